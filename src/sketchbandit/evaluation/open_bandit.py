"""The Open Bandit Dataset as logs: every row is a decision among all items, at its position.

As its authors do, we treat the three positions of a page as three decisions. The policy has a distribution
over the items for each position. The logged propensity is that of the item at its position. Clicks at one
position are assumed not to depend on what the other positions show.
"""

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix
from sketchbandit.data import OpenBandit
from sketchbandit.data.open_bandit import POSITIONS
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.logged_arms import MadeArms


def open_bandit_log(feedback: OpenBandit) -> Log:
    """Make the log. An arm has its item (one-hot), the position, and the user's categories and affinity."""
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
    """The share of each item at each position, (positions, items): the average policy of a log.

    Thompson sampling changes as it learns; this is its average over the time of the log.
    """
    counts = np.zeros((POSITIONS, feedback.items))
    np.add.at(counts, (feedback.position, feedback.item), 1.0)
    shares: Matrix = counts / counts.sum(axis=1, keepdims=True)
    return shares


def at_positions(shares: Matrix, feedback: OpenBandit) -> Matrix:
    """The candidate that follows these shares, on the rows of a log: probabilities (rows, items)."""
    found: Matrix = shares[feedback.position]
    return found
