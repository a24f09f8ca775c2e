"""Actions as an exploration rule sees them: the models of all side by side, and one context for all."""

import math
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np

from sketchbandit.arms import Arms, Scan
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import ArmCandidates, Candidates, Explore
from sketchbandit.explore.candidates import upper_bound
from sketchbandit.kernels import kernels
from sketchbandit.kernels.backend import Loops
from sketchbandit.linalg import inner_rows, row_norms_sq
from sketchbandit.policy.chooser import Choices, Random
from sketchbandit.policy.policy import Policy
from sketchbandit.policy.posterior import Posterior
from sketchbandit.precision import ToBeat
from sketchbandit.theory import Confidence

Action = str | int

_NAMED = 5  # actions named in a message


def read_names(actions: object) -> list[Action]:
    """Read a list of names, without repetition."""
    if isinstance(actions, (str, bytes)) or not isinstance(actions, Iterable):
        raise InputTypeError(f'actions must be a list of names such as ["a", "b"], got {actions!r:.80}')
    names = [check_action(action) for action in actions]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"action {twice!r} is there twice; name each action once")
    if not names:
        raise InputError("there are no actions to choose from: the list is empty")
    return names


def some_of(names: Iterable[Action]) -> str:
    """A few names, as a part of a message."""
    listed = list(names)
    more = f", ... ({len(listed)} in all)" if len(listed) > _NAMED else ""
    return f"there are {', '.join(map(repr, listed[:_NAMED]))}{more}" if listed else "there are none"


def check_action(action: object) -> Action:
    """Check the name of an action: a string or an integer."""
    if isinstance(action, str):
        return str(action)
    if isinstance(action, (bool, np.bool_)) or not isinstance(action, Integral):
        raise InputTypeError(f"the name of an action must be a string or an integer, got {action!r:.80}")
    return int(action)


def made_by(factory: object) -> Policy:
    """The fresh policy that a factory makes."""
    if isinstance(factory, Policy) or not callable(factory):
        raise InputTypeError(
            f"factory is a {type(factory).__name__}; give a function that returns a policy, for instance "
            "lambda: sketchbandit.adaptive(300)"
        )
    made = factory()
    if not isinstance(made, Policy):
        raise InputTypeError(f"factory returned a {type(made).__name__}; let it return a sketchbandit.Policy")
    if made.rounds or made.sketch.count:
        raise InputError(
            f"factory returned a policy of {made.rounds} rounds; let it return a fresh one at every call"
        )
    return made


class Board:
    """The theta, shift and radius of every model. A row is read again whenever its model has changed.

    With a baseline a model has theta for the level of the rewards after its own last one, and the image along
    which theta moves by what the others have learned since.

    Attributes
    ----------
    posteriors : sequence of Posterior
        What the models on offer have learned.
    thetas, shifts, radii : array
        Shapes (K, dim), (K,) and (K,), as of the last ``sync``.

    """

    def __init__(self, posteriors: Sequence[Posterior]) -> None:
        self.posteriors = posteriors
        count, dim = len(posteriors), posteriors[0].sketch.dim if posteriors else 0
        self.thetas, self.shifts, self.radii = np.zeros((count, dim)), np.ones(count), np.zeros(count)
        has_baseline = count > 0 and posteriors[0].scale.baseline
        self._images = np.zeros((count if has_baseline else 0, dim))
        self._levels, self._lags = np.zeros(count), np.zeros(count)
        self._row_stats = [posterior.sketch.row_stats for posterior in posteriors]
        self._versions = [-1] * count
        self._without: set[int] = set()

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        held = (self.thetas, self.shifts, self.radii, self._images, self._levels, self._lags)
        return sum(array.nbytes for array in held)

    def sync(self) -> bool:
        """Read the models that have changed. Return whether all means are x'theta."""
        now = [row_stats.version for row_stats in self._row_stats]
        if now != self._versions:
            for k, posterior in enumerate(self.posteriors):
                if now[k] != self._versions[k]:
                    self._read(k, posterior)
            self._versions = now
        if len(self.posteriors):
            first = self.posteriors[0]
            if first.beta == "auto":  # the spread of the rewards of all actions
                self.radii[:] = first.radius
            if len(self._images):
                np.subtract(first.estimate.level, self._levels, out=self._lags)
        return not self._without

    def _read(self, k: int, posterior: Posterior) -> None:
        found, precision = posterior.estimate.affine_theta, posterior.precision
        precision.sync()
        self.shifts[k] = precision.inverse.shift
        self.radii[k] = posterior.radius
        if found is None:
            self._without.add(k)
            return
        self._without.discard(k)
        self.thetas[k] = found.theta
        if found.image is not None:
            self._images[k], self._levels[k] = found.image, found.at

    def means(self, x: Vector, which: AnyArray) -> tuple[Vector, float]:
        """x'theta of some models, and |x|². Values that overflow are inf or NaN."""
        compiled = kernels()
        if compiled is None:
            with np.errstate(over="ignore", invalid="ignore"):
                means = inner_rows(self.thetas[which], x)
                if len(self._images):
                    means -= self._lags[which] * inner_rows(self._images[which], x)
                return means, float(row_norms_sq(x[np.newaxis])[0])
        means, _, _, norm_sq = self._scored(compiled, x, which)
        return means, norm_sq

    def _scored(self, compiled: Loops, x: Vector, which: AnyArray) -> tuple[Vector, Vector, int, float]:
        """Means, optimistic bounds, the index of the largest bound (-1: one is not finite), and |x|²."""
        means, bounds = np.empty(len(which)), np.empty(len(which))
        models = self.thetas, self._images, self._lags, which, self.shifts, self.radii
        first, norm_sq = compiled.score_models(x, *models, means, bounds)
        return means, bounds, first, norm_sq

    def search(self, x: Vector, which: AnyArray) -> int | None:
        """The index of the model with the largest upper confidence bound; None if it cannot be found so.

        Ties go to the first. The most promising model is tried first. A model whose optimistic bound cannot
        win is not asked for a width.
        """
        compiled = kernels()
        if compiled is None or not self.sync():
            return None
        means, bounds, first, norm_sq = self._scored(compiled, x, which)
        if first < 0:
            return None
        best, score, kept = -1, -math.inf, None
        listed = bounds.tolist()
        for i in (first, *range(len(listed))):
            if listed[i] < score or (i == first and best >= 0):
                continue
            k = which.item(i)
            mean, radius, inverse = means.item(i), self.radii.item(k), self.posteriors[k].precision.inverse
            leverage = inverse.leverage_to_beat(x, norm_sq, ToBeat(mean, radius, score))
            if leverage is None:
                continue
            value = upper_bound(mean, radius, math.sqrt(inverse.quadratic(leverage, norm_sq)))
            if value > score or (value == score and i < best):
                best, score, kept = i, value, (k, leverage)
        if kept is not None:
            self.posteriors[kept[0]].precision.last_choice = x.copy(), kept[1]
        return best


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

    def along(self, direction: Matrix) -> Vector:
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


class Roster(NamedTuple):
    """Actions to choose from, and their places on the board of all models on offer."""

    names: tuple[Action, ...]
    which: AnyArray
    board: Board


class ActionChoices(Choices):
    """One context, and the actions that may be chosen for it.

    ``directions`` are draws that a batch of contexts shares, one for each model.
    """

    noun = "actions"

    def __init__(self, context: Arms, roster: Roster, rounds: int, directions: Matrix | None = None) -> None:
        self._context, self._roster, self._rounds, self._directions = context, roster, rounds, directions
        self._candidates: ActionCandidates | None = None

    def __len__(self) -> int:
        return len(self._roster.names)

    def candidates(self) -> ActionCandidates:
        """The actions as a rule sees them. Raises unless all scores are finite."""
        if self._candidates is None:
            names, which, board = self._roster
            with np.errstate(over="ignore", invalid="ignore"):
                found = ActionCandidates(self._context, board, which, self._rounds, self._directions)
                most = np.abs(found.means) + found.most_bonuses()
            if not np.isfinite(most).all():
                name = names[int(np.flatnonzero(~np.isfinite(most))[0])]
                raise InputError(f"the score of action {name!r} overflows; rescale contexts or rewards")
            self._candidates = found
        return self._candidates

    def best(self, count: int, rule: Explore, random: Random) -> list[int]:
        """The choice of the rule; that of UCB for a dense context in a few compiled calls."""
        if count == 1 and self._context.view is not None:
            own = search(self._context.vector(0), self._roster, rule)
            if own is not None:
                return [own]
        return super().best(count, rule, random)


def search(context: AnyArray, roster: Roster, rule: Explore) -> int | None:
    """The choice of UCB for a dense context, in a few compiled calls; None if that is impossible."""
    if rule.chooses_by != "bound":
        return None
    return roster.board.search(context.astype(np.float64, copy=False), roster.which)
