"""Actions as an exploration rule sees them: one model per action, one context for all."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sketchbandit.arms import Arms, Scan
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.explore import ArmCandidates, Candidates
from sketchbandit.policy.action_board import Board
from sketchbandit.policy.posterior import Posterior
from sketchbandit.theory import Confidence


class ActionCandidates(Candidates):
    """One context and K models that share no data, so their scores are independent.

    A model is asked for its width once.
    """

    def __init__(
        self, context: Arms, board: Board, which: AnyArray, rounds: int, directions: Matrix | None = None
    ) -> None:
        self._directions = directions  # draws that a batch of contexts shares
        self._context, self._which = context, which
        self._posteriors: Sequence[Posterior] = [board.posteriors[k] for k in which]
        self._scans: list[Scan] | None = None
        if board.sync() and context.view is not None:
            self.means, norm_sq = board.means(context.vector(0), which)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                self._scans = [one.estimate.scan(context) for one in self._posteriors]
            self.means = np.array([scan.means[0] for scan in self._scans])
            norm_sq = float(context.norms_sq()[0])
        self.baseline = self._posteriors[0].estimate.baseline
        self.radius, self._shifts = board.radii[which], board.shifts[which]
        self.rounds = rounds
        self._norms_sq = np.array([norm_sq])
        self._asked: dict[int, tuple[ArmCandidates, float]] = {}
        self._last: ArmCandidates | None = None

    def width(self, index: int) -> float:
        """The confidence width of the action's model."""
        if index not in self._asked:
            of_one = self._of(index)
            self._asked[index] = of_one, of_one.width(0)
        self._last, width = self._asked[index]
        return width

    def _of(self, index: int) -> ArmCandidates:
        """The context as the model of one action sees it."""
        if self._scans is None:
            scan = Scan(self._context, self.means[index : index + 1], self._norms_sq)
        else:
            scan = self._scans[index]
        return ArmCandidates(scan, self._posteriors[index].precision, float(self.radius[index]))

    @property
    def rewards(self) -> Vector:
        """The mean rewards. All models have the same link."""
        rewards: Vector = self._posteriors[0].estimate.expected(self.margins)
        return rewards

    @property
    def relative_rewards(self) -> Vector:
        """The mean rewards, less the baseline if there is no link."""
        return self.rewards if self._posteriors[0].estimate.has_link else self.means

    def keep(self) -> None:
        """Keep the leverage of the last action looked at, for its update."""
        if self._last is not None:
            self._last.keep()

    def most_widths(self) -> Vector:
        """Upper bounds on the widths: |x| / sqrt(rho), with the rho of each model."""
        most: Vector = np.sqrt(self._norms_sq / self._shifts)
        return most

    def drawn(self, random: np.random.Generator) -> Vector:
        """Means plus radius·width·z, with an independent z per model."""
        if self._directions is not None:
            return self.along(self._directions)
        scores: Vector = self.means + self.bonuses() * random.standard_normal(len(self))
        return scores

    def along(self, direction: Any) -> Vector:
        """Means plus radius·x'v, with one v per model: the rows of ``direction``."""
        moved = [float(self._context.times(v)[0]) for v in direction]
        scores: Vector = self.means + self.radius * np.array(moved)
        return scores

    def covariance(self) -> Matrix:
        """The diagonal covariance matrix of the scores. Nothing is shared that could be subtracted."""
        return np.diag(np.square(self.bonuses()))

    def first_copies(self) -> AnyArray:
        """For each action, the first one that draws cannot tell apart from it: same mean, no width."""
        first, found = np.arange(len(self)), dict[float, int]()
        for index, bonus in enumerate(self.bonuses().tolist()):
            if not bonus:
                first[index] = found.setdefault(float(self.means[index]), index)
        return first

    def regression_bound(self, confidence: Confidence) -> float:
        """The sum over all actions, because a reward informs one model only."""
        return sum(self._of(index).regression_bound(confidence) for index in range(len(self)))
