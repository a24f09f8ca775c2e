"""The Open Bandit Dataset as logs: every row is a decision among all items, at its position.

As its authors do, the three positions of a page are three decisions: the policy has a distribution over the
items for each position, the logged propensity is that of the item at its position, and clicks at one position
are taken not to depend on what the others show.
"""

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix
from sketchbandit.data import OpenBandit
from sketchbandit.data.open_bandit import POSITIONS
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.sources import MadeArms


def open_bandit_log(feedback: OpenBandit) -> Log:
    """The log. An arm is its item (one-hot), the position, the user's categories and affinity to the item."""
    levels = feedback.users.max(axis=0) + 1
    shared = np.hstack(
        [np.eye(POSITIONS)[feedback.position]]
        + [np.eye(count)[column] for count, column in zip(levels, feedback.users.T, strict=True)]
    ).astype(np.float32)
    items, width = feedback.items, shared.shape[1]
    dim = items + width + 1

    def arms(start: int, stop: int) -> AnyArray:
        made = np.zeros((stop - start, items, dim), dtype=np.float32)
        made[:, np.arange(items), np.arange(items)] = 1.0
        made[:, :, items : items + width] = shared[start:stop, np.newaxis]
        made[:, :, -1] = np.log1p(feedback.affinity[start:stop])
        return made

    return Log(
        arms=MadeArms(arms, len(feedback.item), is_fixed=True),
        chosen=feedback.item,
        reward=feedback.click,
        probability=feedback.propensity,
        time=feedback.time,
    )


def shown_shares(feedback: OpenBandit) -> Matrix:
    """How often each item was shown at each position, (positions, items): the policy of a log on average.

    Of Thompson sampling, which changes as it learns, that is its average over the time of the log.
    """
    counts = np.zeros((POSITIONS, feedback.items))
    np.add.at(counts, (feedback.position, feedback.item), 1.0)
    shares: Matrix = counts / counts.sum(axis=1, keepdims=True)
    return shares


def at_positions(shares: Matrix, feedback: OpenBandit) -> Matrix:
    """The candidate that follows these shares, on the rows of a log: probabilities (rows, items)."""
    found: Matrix = shares[feedback.position]
    return found
