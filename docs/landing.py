"""The picture of the landing page: `python docs/landing.py`. What the page's ten lines earn over the rounds.

It is the loop of the page, played with twenty seeds. The type is large, for phones.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import sketchbandit as sb
from sketchbandit.drawing import COLOURS, STYLE

PICTURE = Path(__file__).parent / "images" / "landing.png"
SEEDS, ROUNDS, TOGETHER = 20, 500, 20


def play(seed: int) -> NDArray[np.float64]:
    """What readers like of the article chosen, and of the best of the ten: a row a round."""
    random = np.random.default_rng(seed)
    topics = random.standard_normal((20, 300))
    taste = random.standard_normal(20)
    policy = sb.adaptive(300, seed=seed)
    earned = np.empty((ROUNDS, 2))
    for number in range(ROUNDS):
        articles = random.standard_normal((10, 20))
        arms = articles @ topics
        chosen = policy.select(arms)
        liked = articles[chosen] @ taste + random.standard_normal()
        policy.update(arms[chosen], reward=liked)
        earned[number] = (articles @ taste)[chosen], (articles @ taste).max()
    return earned


def drawn(earned: NDArray[np.float64]) -> Figure:
    """The means of some rounds together, and what a random choice earns: nothing, on average."""
    means = earned.reshape(-1, TOGETHER, 2).mean(axis=1)
    rounds = TOGETHER * np.arange(1, len(means) + 1)
    with mpl.rc_context({**STYLE, "font.size": 13}):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axis = figure.subplots()
        axis.plot(rounds, means[:, 1], color="0.45", ls="--")
        axis.plot(rounds, means[:, 0], color=COLOURS[1], lw=3)
        axis.axhline(0.0, color="0.45", ls=":", lw=2)
        high = float(means[:, 1].max())
        axis.set(
            xlabel="rounds", ylabel="reward per round", xlim=(0, ROUNDS), ylim=(-0.16 * high, 1.25 * high)
        )
        axis.text(ROUNDS, 1.07 * high, "the best of the ten articles", color="0.3", ha="right")
        axis.text(ROUNDS, 0.66 * high, "the policy's choice", color=COLOURS[1], ha="right", weight="bold")
        axis.text(ROUNDS, 0.05 * high, "a random article", color="0.3", ha="right")
    return figure


def main() -> None:
    """Play and draw."""
    earned = np.mean([play(seed) for seed in range(SEEDS)], axis=0)
    drawn(earned).savefig(PICTURE, dpi=160)


if __name__ == "__main__":
    main()
