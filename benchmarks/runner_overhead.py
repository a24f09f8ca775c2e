"""What the experiment runner costs beside its work: ``python -m benchmarks.runner_overhead``.

CPU time of the process that hands out the runs, over that of the runs themselves: less than a twentieth.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from sketchbandit.simulation.runs import perform
from sketchbandit.simulation.specs import spec
from sketchbandit_paper import plan, runner
from sketchbandit_paper.definitions import contenders
from sketchbandit_paper.experiment import Experiment
from sketchbandit_paper.profiles import PROFILES

_MOST = 0.05


def main() -> None:
    """Do the work here, and then by the runner."""
    race = Experiment(
        id="race",
        title="race",
        environment=spec("classification", data="digits"),
        series=contenders.alone(contenders.OFUL, *contenders.sized("SOFUL", 10)),
        rounds=8000,
        points=4,
    )
    amount = replace(PROFILES["quick"], permutations=4, rounds=1.0)
    started, chosen = time.process_time(), {}
    for run in plan.tuning_runs([race], amount):
        perform(run)
        chosen[str(run.environment), str(run.contender), run.rounds] = plan.Tuned(2.0, 0.1, 0.0)
    for run in plan.final_runs([race], amount, chosen):
        perform(run)
    work = time.process_time() - started
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        outcome = runner.run([race], amount, out=Path(folder), jobs=2)
    overhead = time.process_time() - started
    assert not outcome.failures, outcome.failures
    print(f"{overhead:.2f} s for {work:.1f} s of work: {overhead / work:.1%}")
    assert overhead < _MOST * work, "the runner costs much"


if __name__ == "__main__":
    main()
