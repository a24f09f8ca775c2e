"""BTS from the random log of the Open Bandit Dataset and random from the BTS log, beside the truth.

    SKETCHBANDIT_DATA=data python -m benchmarks.open_bandit [FOLDER]

prints the tables of docs/open-bandit.md and, with a folder, draws their forest plots.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from sketchbandit.data import OpenBandit, load_open_bandit
from sketchbandit.drawing import save
from sketchbandit.evaluation import METHODS, Evaluation, evaluate
from sketchbandit.evaluation.bounded import of_rewards
from sketchbandit.evaluation.open_bandit import at_positions, open_bandit_log, shown_shares
from sketchbandit.evaluation.report import forest
from sketchbandit_paper.reporting import markdown_table

MODELS: dict[str, Any] = {
    "sketched ridge": "ridge",
    "logistic regression": LogisticRegression(C=0.1, max_iter=300),
}


def judged(of: OpenBandit, by: OpenBandit, model: Any, interval: str = "bounded") -> Evaluation:
    """The policy of one log, estimated from the other."""
    log = open_bandit_log(by)
    shares = shown_shares(of) if of.policy == "bts" else np.full((3, of.items), 1.0 / of.items)
    return evaluate(
        log, {of.policy: at_positions(shares, by)}, tuple(METHODS), model=model, interval=interval
    )


def table(found: dict[str, Evaluation], of: OpenBandit) -> str:
    """Every method beside the truth: the click rate of the candidate's own log, in per cent."""
    truth = 100.0 * of.click.mean()
    own = of_rewards(of.click, 0.05, (0.0, 1.0))
    rows = [["its own log", "", f"{truth:.3f}", f"{100.0 * own.low:.3f} to {100.0 * own.high:.3f}", ""]]
    for model, one in found.items():
        for row in one:
            needs = METHODS[row.method].needs_model
            if not needs and model != next(iter(found)):
                continue
            value, ends = 100.0 * row.value, (100.0 * row.low, 100.0 * row.high)
            off = abs(value - truth) / truth
            said = "nothing" if np.isnan(row.low) else f"{ends[0]:.3f} to {ends[1]:.3f}"
            rows.append([row.method, model if needs else "", f"{value:.3f}", said, f"{off:.0%}"])
    return markdown_table(["method", "model", "click rate, %", "95 % interval", "relative error"], rows)


def main() -> None:
    """Both ways."""
    logs = {policy: load_open_bandit(policy) for policy in ("random", "bts")}
    for of, by in (("bts", "random"), ("random", "bts")):
        found = {name: judged(logs[of], logs[by], model) for name, model in MODELS.items()}
        first = next(iter(found.values()))
        weights = first.weights[of]
        size = f"{weights.effective_size:.0f} of {weights.decisions}"
        mean = f"{weights.mean:.3f} ± {weights.mean_error:.3f}"
        print(f"\n{of} from the log of {by} ({logs[by].click.sum():.0f} clicks): effective size {size},")
        print(f"mean weight {mean}, largest {weights.largest:.1f}; {weights.verdict or 'good'}\n")
        print(table(found, logs[of]))
        between = first.difference(of, method="snips")
        ends = f"{100 * between.low:+.3f} to {100 * between.high:+.3f}"
        print(f"minus the log (snips): {100 * between.value:+.3f}, {ends}; {between.verdict}")
        usual = judged(logs[of], logs[by], "ridge", "bootstrap").of(of, "snips")
        print(f"percentiles of resamples (snips): {100 * usual.low:.3f} to {100 * usual.high:.3f}\n")
        if len(sys.argv) > 1:
            title, truth = f"{of} from the log of {by}", float(logs[of].click.mean())
            drawn = forest(first, title=title, unit="clicks an impression", truth=truth)
            save(drawn, Path(sys.argv[1]) / f"open-bandit-{of}")


if __name__ == "__main__":
    main()
