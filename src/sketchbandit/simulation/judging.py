"""Policies by name, judged by a log in a file: each candidate in a process of its own."""

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sketchbandit import evaluation
from sketchbandit.arrays import Scalars
from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit.evaluation import Estimate, Evaluation, Log, Replay
from sketchbandit.evaluation.off_policy import Settings, conclude, judged, judging_rows
from sketchbandit.evaluation.target_policies import UNIFORM
from sketchbandit.evaluation.terms import Terms
from sketchbandit.policy import PerAction
from sketchbandit.processes import Answer, Message, Tell, ask_all, serve
from sketchbandit.simulation import policies as known
from sketchbandit.simulation import rules
from sketchbandit.simulation.specs import parse
from sketchbandit.sketch.checks import check_count

WORKER = "sketchbandit.simulation.judging"
ALWAYS = "always:"
"""Followed by the name of an action: the policy that always takes it."""


class DecisionProgress:
    """Progress callbacks; each does nothing by default."""

    def begin(self, decisions: int) -> None:
        """So many decisions are to be judged, by all candidates together."""

    def advance(self, decisions: int) -> None:
        """So many more are done."""


class Candidate(NamedTuple):
    """One policy to be judged, as data."""

    log: str
    bandit: str | None
    dim: int | None
    policy: str
    settings: Scalars
    split: float | None
    parts: int | None
    learning: bool
    out: str

    def to_json(self) -> str:
        """For the worker."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> "Candidate":
        """The candidate that ``to_json`` described; lists were tuples."""
        found = cls(**json.loads(text))
        tuples = {name: tuple(v) if isinstance(v, list) else v for name, v in found.settings.items()}
        return found._replace(settings=tuples)


def evaluate(
    log: str | Path,
    policies: Sequence[str],
    *,
    bandit: str | None = None,
    dim: int | None = None,
    methods: Sequence[str] = ("ips", "snips", "dr"),
    interval: str = "bounded",
    level: float = 0.95,
    split: float | None = None,
    parts: int | None = None,
    reward_range: tuple[float, float] | None = None,
    max_weight: float | None = None,
    jobs: int | None = None,
    watcher: DecisionProgress | None = None,
) -> Evaluation:
    """What policies would earn that have learned from a part of the log, by the rows that they have not seen.

    Parameters
    ----------
    log : path
        A file for ``evaluation.read_log``: Parquet, npz, or the export of a service.
    policies : sequence of str
        "adaptive", "soful:size=20", "oful:explore=thompson,scale=0.1", as for ``compare``; and "uniform".
    bandit : str, optional
        Which one, if an export has several.
    dim : int, optional
        Length of an arm, where they are sparse.
    methods, interval, level, split, parts, reward_range, max_weight
        As for ``evaluation.train_and_judge``.
    jobs : int, optional
        Processes at a time; by default one for each core.
    watcher : DecisionProgress, optional
        Its methods are called as the work goes on.

    """
    settings: Scalars = {"methods": tuple(methods), "interval": interval, "level": level}
    settings |= {"reward_range": reward_range, "max_weight": max_weight}
    wanted = Settings(**settings)
    where = {"log": str(log), "bandit": bandit, "dim": dim, "split": split, "parts": parts}
    judging = judging_rows(evaluation.read_log(log, bandit=bandit, dim=dim), wanted, split=split, parts=parts)
    found = _ask(policies, {**where, "learning": False, "settings": settings}, len(judging), jobs, watcher)
    return conclude(judging, {name: _terms(path, judging) for name, path in found}, wanted)


def replay(
    log: str | Path,
    policies: Sequence[str],
    *,
    bandit: str | None = None,
    dim: int | None = None,
    level: float = 0.95,
    jobs: int | None = None,
    watcher: DecisionProgress | None = None,
) -> dict[str, Replay]:
    """What policies earn while they learn, by replay of the log; the settings are those of ``evaluate``."""
    whole = evaluation.read_log(log, bandit=bandit, dim=dim)
    where = {"log": str(log), "bandit": bandit, "dim": dim, "split": None, "parts": None}
    task = {**where, "learning": True, "settings": {"level": level}}
    found = {}
    for name, path in _ask(policies, task, len(whole), jobs, watcher):
        with np.load(path, allow_pickle=False) as kept:
            numbers, ends = kept["numbers"], kept["estimate"].tolist()
            verdict = str(kept["verdict"])
        estimate = Estimate(name, "replay", *ends)
        rewards = whole.reward[numbers]
        found[name] = Replay(name, len(numbers), len(whole), numbers, rewards, estimate, verdict, None)
    return found


def _ask(
    policies: Sequence[str], task: Scalars, decisions: int, jobs: int | None, watcher: DecisionProgress | None
) -> Iterable[tuple[str, Path]]:
    """Every candidate's file, when all are done; the files go afterwards."""
    names = _checked(policies)
    watch = watcher or DecisionProgress()
    watch.begin(decisions * len(names))
    count = os.cpu_count() or 1 if jobs is None else check_count("jobs", jobs, at_least=1)
    with tempfile.TemporaryDirectory(prefix="sketchbandit-") as folder:
        paths = {name: Path(folder) / f"{number}.npz" for number, name in enumerate(names)}
        tasks = [Candidate(policy=name, out=str(path), **task) for name, path in paths.items()]

        def tell(news: Message) -> None:
            watch.advance(news["decisions"])

        if count == 1 or len(tasks) == 1:
            for one in tasks:
                judge(one, watch.advance)
        else:
            for done in ask_all(tasks, count, WORKER, tell):
                for answer in done:
                    if not isinstance(answer, Answer):
                        raise SketchBanditError(f"{answer.task.policy}: {answer.reason}")
        yield from paths.items()


def _checked(policies: Sequence[str]) -> list[str]:
    """Each of them once, and such that it can be built."""
    if not policies:
        raise InputError("name a policy or more, such as adaptive")
    for text in policies:
        if text != UNIFORM and not text.startswith(ALWAYS):
            asked = parse(text)
            known.check(asked)
            rules.refuse_ambiguous(asked)
            if asked.get(known.DELAY) is not None:
                raise InputError(f"{text}: delay is for compare; in a log rewards are there")
    twice = [text for text in policies if list(policies).count(text) > 1]
    if twice:
        raise InputError(f"{twice[0]} is there twice")
    return list(policies)


def maker(text: str, log: Log) -> object:
    """What makes a fresh policy of this name for a log; a model for each action, where actions have names."""
    if text == UNIFORM:
        return UNIFORM
    if text.startswith(ALWAYS):
        return _action(text.removeprefix(ALWAYS), log)
    asked = parse(text)
    names, width = log.actions, log.context_dim
    if names is None or width is None:
        return lambda: known.build(asked, log.dim, rounds=len(log))
    return lambda: PerAction(names, lambda: known.build(asked, width, rounds=len(log)))


def _action(text: str, log: Log) -> str | int:
    """The action of this name, which may be a number."""
    for action in log.actions or ():
        if str(action) == text:
            return action
    names = ", ".join(map(str, (log.actions or ())[:8]))
    there = f"; there are {names}" if names else ": its actions have no names"
    raise InputError(f"{ALWAYS}{text}: the log has no action {text!r}{there}")


def judge(candidate: Candidate, tell: Callable[[int], None]) -> None:
    """Judge one, and write what came of it into its file."""
    log = evaluation.read_log(candidate.log, bandit=candidate.bandit, dim=candidate.dim)
    make = maker(candidate.policy, log)
    if candidate.learning:
        if not callable(make):
            raise InputError(f"{candidate.policy} does not learn; leave it out of a replay")
        level = candidate.settings["level"]
        found = evaluation.replay(log, {candidate.policy: make}, level=level, tell=tell)[candidate.policy]
        estimate = np.array(found.estimate[2:])
        np.savez(candidate.out, numbers=found.numbers, estimate=estimate, verdict=found.verdict)
        return
    settings, split, parts = Settings(**candidate.settings), candidate.split, candidate.parts
    _, terms = judged(log, {candidate.policy: make}, settings, split=split, parts=parts, tell=tell)
    one = terms[candidate.policy]
    np.savez(
        candidate.out, weight=one.weight, predicted=one.predicted, value=one.value, unlogged=one.unlogged
    )


def _terms(path: Path, log: Log) -> Terms:
    with np.load(path, allow_pickle=False) as found:
        weight, predicted, value = found["weight"], found["predicted"], found["value"]
        return Terms(log.reward, weight, predicted, value, float(found["unlogged"]))


def handle(task: str, tell: Tell) -> Message:
    """In a process: judge a candidate, and write down what came of it."""
    judge(Candidate.from_json(task), lambda done: tell({"decisions": done}))
    return {}


if __name__ == "__main__":
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    serve(handle)
