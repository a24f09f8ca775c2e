"""Watches a policy: its sketch, its predictions (drift), and the ranges of its features."""

import math
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Matrix, Rows, Scalars, Vector
from sketchbandit.errors import TooFewDigitsWarning, WorldChangedWarning
from sketchbandit.features import Features
from sketchbandit.features.scaling import Scaling
from sketchbandit.kernels.backend import HEAD
from sketchbandit.linalg import inner
from sketchbandit.policy.health import (
    Complaints,
    Health,
    HealthWatch,
    dropped_sentence,
    following_sentence,
    mass_to_look_at,
    offset_sentence,
    out_of_range_sentence,
    world_sentence,
)
from sketchbandit.policy.posterior import Posterior, Step
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.accounts import ONE_APPENDED

EVERY = 8
"""One of so many rounds is looked at."""
WINDOW = 16
"""The number of looks after which a verdict is given."""


class RangeWatch:
    """Counts for each column how often arms learned from lie far outside the range of the warm-up.

    The verdict is about the last complete window. Only columns outside are counted, so it costs next to
    nothing as long as there are none.
    """

    def __init__(self) -> None:
        self.looks = 0
        """The number of arms looked at in the present window."""
        self._counts: dict[int, int] = {}
        self.left: tuple[int, ...] = ()
        """The columns outside in more than half of the last window."""

    def look_at(self, source: Rows, rounds: int, scaling: Scaling | None) -> None:
        """Look at some of the arms (n, dim), learned from in rounds ``rounds``, ``rounds + 1``, ..."""
        which = range(-rounds % EVERY, source.shape[0], EVERY)
        skipped = (self.looks + len(which)) // WINDOW * WINDOW - WINDOW - self.looks
        if skipped > 0:  # whole windows before the last one do not count
            which, self.looks, self._counts = which[skipped:], 0, {}
        for i in which:
            self.look(source[[i]], scaling)

    def look(self, arm: Rows, scaling: Scaling | None) -> None:
        """Look at one arm, (dim,) or (1, dim)."""
        if scaling is None or scaling.limit is None:
            return
        limit, lens, middle = scaling.limit, scaling.lens, HEAD + scaling.dim
        centre, factor = lens[HEAD:middle], lens[middle:]
        if sparse.issparse(arm):
            columns, values = arm.indices, arm.data
            far = abs((values - centre[columns]) * factor[columns]) > limit[columns]
            outside = columns[far].tolist()
        else:
            with np.errstate(over="ignore"):
                far = abs((arm.ravel() - centre) * factor) > limit
            outside = far.nonzero()[0].tolist()
        for column in outside:
            self._counts[column] = self._counts.get(column, 0) + 1
        self.looks += 1
        if self.looks >= WINDOW:
            left = (column for column, count in self._counts.items() if 2 * count > self.looks)
            self.left = tuple(sorted(left))
            self.looks, self._counts = 0, {}

    def add(self, other: "RangeWatch") -> None:
        """Merge with a watch that ran in parallel."""
        self.looks = min(self.looks + other.looks, WINDOW - 1)
        for column, count in other._counts.items():
            self._counts[column] = self._counts.get(column, 0) + count
        self.left = tuple(sorted({*self.left, *other.left}))

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> Scalars:
        """JSON values that ``undump`` turns into the same watch."""
        counts = sorted(self._counts.items())
        return {"looks": self.looks, "counts": counts, "left": list(self.left)}

    @classmethod
    def undump(cls, scalars: Scalars) -> "RangeWatch":
        """The watch that ``dump`` described."""
        made = cls()
        made.looks = int(scalars["looks"])
        made._counts = {int(column): int(count) for column, count in scalars["counts"]}
        made.left = tuple(map(int, scalars["left"]))
        return made


BLOCK = 64
"""The number of rounds that are looked at together."""
ROUNDS_TO_A_FALSE_ALARM = 1e6
"""The mean number of rounds to a false alarm is at least this, while one of the two nulls holds."""
_ENOUGH = math.log(ROUNDS_TO_A_FALSE_ALARM)
_MOST_SQUARE, _MOST_GAIN = 9.0, 4.0  # in units of the level: the largest scores of one round
_WORSE, _BEYOND = 1.5, 0.25  # tolerated: squared errors 1.5 times as large, and a quarter of the level
_NOVEL = 2.0  # times the reference: arms of larger x'A^-1 x are too little known, and are left out
_LOST = 1.5  # times the reference: if the sketch has lost more, it may be the cause itself
_ISOLATED = 30.0  # times the mean of the worse rounds: a larger square is the cause itself
_OUTLIER = 60.0  # times the mean of a reference: such a square may be felt in the next stretch
_ERRORS, _EVENTS = 3.0, 2.0  # standard errors, and largest events, by which a reference is raised
_DOUBT, _PATIENCE = 2.0, 1.5  # log of a bet above which a mark is delayed, and the longest delay
_MOST_TOTAL = 1e290


class Reference(NamedTuple):
    """How large the errors were in an earlier stretch of rounds. The bets are against these."""

    level: float
    """The mean squared error: the unit of the scores."""
    square: float
    """An upper bound on the mean of min(error²/level, 9) then, plus half of that mean."""
    gain: float
    """An upper bound on the mean of (error² - error of a guess²)/level then, within ±4, plus a quarter."""
    quadratic: float
    """The mean of x'A^-1 x then."""
    loss: float
    """The ridge plus the certificate then."""


class PredictionWatch:
    """Detects that prediction errors have grown, by two bets that must both win.

    Blocks of 64 rounds are compared with the stretch before the last mark. Marks are set after 64, 128, 256,
    ... rounds. Let z_t be a clipped score whose conditional mean is at most m as long as nothing has changed.
    Then M := max(M, 1)·product of (1 + bet·(z_t - m)) passes 1e6 at most once in 1e6 rounds, on average (an
    e-detector, Shin, Ramdas, Rinaldo 2024). The alarm is given when two such bets have both passed it:

    1. z = min(error²/level, 9): squared errors have become more than 1.5 times as large.
    2. z = (error² - (reward - guess)²)/level, in which the noise cancels. The guess is the mean reward of the
       last blocks. Compared with guessing, the model has become worse by a quarter of the level.

    So no alarm is given for a model that was always wrong, nor for noise that grows because better arms are
    chosen.

    An outlier can win both bets: what it has taught the model spoils the next predictions. In least squares
    all these errors together have at most about x'A^-1 x times its own square, so it stands out among them. A
    change makes many errors large. So an alarm needs rounds, since the last block as good as the reference,
    whose largest square is at most 30 times their mean.
    """

    def __init__(self) -> None:
        self.changed_at: int | None = None
        """The number of rounds after which a change was noticed."""
        self.begin()

    def begin(self) -> None:
        """Start learning the expected size of errors."""
        self.pending: list[tuple[float, float, float]] = []
        """Rounds that were not looked at yet, at most ``BLOCK``."""
        self._blocks, self._next_mark = 0, 1
        self._guess: float | None = None
        self._level = 0.0  # the unit of the scores of the present stretch
        self._sums = [0.0] * 7
        self._largest = 0.0
        self._reference: Reference | None = None
        self._logs = (0.0, 0.0)
        self._suspects = (0.0, 0.0, 0.0)  # rounds that may be worse: number, sum of squares, largest

    def see(self, reward: float, error: float, quadratic: float) -> None:
        """Record one round: the reward, the prediction error, and x'A^-1 x before it.

        The caller must ``close`` the block after ``BLOCK`` rounds.
        """
        self.pending.append((reward, error, quadratic))

    def dump(self) -> Scalars:
        """JSON values that ``undump`` turns into the same watch."""
        return {
            "changed_at": self.changed_at,
            "pending": [(a, b if math.isfinite(b) else None, c) for a, b, c in self.pending],
            "blocks": [self._blocks, self._next_mark],
            "measured": [self._level, self._largest, *self._sums],
            "guess": self._guess,
            "reference": self._reference,
            "logs": self._logs,
            "suspects": self._suspects,
        }

    @classmethod
    def undump(cls, scalars: Scalars) -> Self:
        """The watch that ``dump`` described."""
        watch = cls()
        changed, guess, reference = scalars["changed_at"], scalars["guess"], scalars["reference"]
        watch.changed_at = None if changed is None else int(changed)
        for reward, error, quadratic in scalars["pending"]:
            watch.see(float(reward), math.nan if error is None else float(error), float(quadratic))
        watch._blocks, watch._next_mark = (int(count) for count in scalars["blocks"])
        watch._level, watch._largest, *watch._sums = (float(value) for value in scalars["measured"])
        watch._guess = None if guess is None else float(guess)
        watch._reference = None if reference is None else Reference(*map(float, reference))
        first, second = (float(log) for log in scalars["logs"])
        watch._logs = first, second
        count, total, largest = scalars.get("suspects", watch._suspects)  # files of 0.14 have none
        watch._suspects = float(count), float(total), float(largest)
        return watch

    def add(self, other: "PredictionWatch") -> None:
        """Merge with a watch that ran in parallel. The expected errors have to be learned again."""
        noticed = [at for at in (self.changed_at, other.changed_at) if at is not None]
        self.changed_at = max(noticed, default=None)
        self.begin()

    def close(self, loss: float) -> None:
        """Look at a block of rounds. ``loss`` is that of the sketch (``loss_of``)."""
        pending, self.pending = self.pending, []
        with np.errstate(over="ignore", invalid="ignore"):
            self._close(np.array(pending).T, loss)

    def _close(self, block: Matrix, loss: float) -> None:
        rewards, errors, quadratics = block
        guess, mean = self._guess, float(rewards.mean())
        squares = errors * errors
        of_guess = squares if guess is None else np.square(rewards - guess)
        total = float(squares.sum())
        if not total + float(of_guess.sum()) + self._sums[1] < _MOST_TOTAL:  # too large to compute with
            self.begin()
            return
        reference = self._reference
        if reference is not None and loss <= _LOST * reference.loss < math.inf:
            self._bet(reference, squares, of_guess, quadratics)
        self._gather_suspects(squares, total)
        self._measure(squares, of_guess, quadratics, total)
        self._guess = mean if guess is None else 0.5 * (guess + mean)
        self._blocks += 1
        is_doubtful = max(self._logs) > _DOUBT and self._blocks < _PATIENCE * self._next_mark
        if self._blocks >= self._next_mark and not is_doubtful:  # a doubtful stretch must not be a reference
            self._mark(loss)

    def _bet(self, reference: Reference, squares: Vector, of_guess: Vector, quadratics: Vector) -> None:
        is_known = quadratics <= _NOVEL * reference.quadratic
        square, gain = _scores(squares[is_known], of_guess[is_known], reference.level)
        logs = []
        for log, scores, mean, bet in (
            (self._logs[0], square, reference.square, 0.25 / reference.square),
            (self._logs[1], gain, reference.gain, 0.5 / (max(reference.gain, 0.0) + _MOST_GAIN)),
        ):  # no score is below 0, or -4, so no factor is below 1/2
            won = max(log, 0.0) + float(np.log1p(bet * (scores - mean)).sum())
            logs.append(min(won, 2.0 * _ENOUGH))
        self._logs = logs[0], logs[1]

    def _gather_suspects(self, squares: Vector, total: float) -> None:
        """Add a block to the rounds that may be worse. A block as good as the reference starts them anew.

        It is the first of them, because what is worse may have begun in it.
        """
        reference = self._reference
        is_good = reference is None or (
            max(self._logs) <= 0.0
            and float(np.minimum(squares / reference.level, _MOST_SQUARE).mean()) <= reference.square
        )
        count, before, largest = (0.0, 0.0, 0.0) if is_good else self._suspects
        self._suspects = count + len(squares), before + total, max(largest, float(squares.max()))

    @property
    def has_changed(self) -> bool:
        """Whether both bets have won, and not by one outlier and what it did to the model."""
        count, total, largest = self._suspects
        return min(self._logs) >= _ENOUGH and count * largest <= _ISOLATED * total

    def _measure(self, squares: Vector, of_guess: Vector, quadratics: Vector, total: float) -> None:
        self._largest = max(self._largest, float(squares.max()))
        added = [float(len(squares)), total, float(quadratics.sum()), 0.0, 0.0, 0.0, 0.0]
        if self._level > 0.0:
            square, gain = _scores(squares, of_guess, self._level)
            added[3:] = map(float, (square.sum(), inner(square, square), gain.sum(), inner(gain, gain)))
        self._sums = [a + b for a, b in zip(self._sums, added, strict=True)]

    def _mark(self, loss: float) -> None:
        count, squares, quadratics, *scored = self._sums
        self._reference = None
        if self._largest * count > _OUTLIER * squares:
            self._suspects = float(BLOCK), self._largest, self._largest  # as if in the last block
        if squares > 0.0 and self._level > 0.0:
            square = _raised(count, scored[0], scored[1], _MOST_SQUARE)
            gain = _raised(count, scored[2], scored[3], _MOST_GAIN)
            mean = scored[0] / count
            self._reference = Reference(
                self._level,
                square + (_WORSE - 1.0) * mean,
                gain + _BEYOND * mean,
                quadratics / count,
                loss,
            )
        self._level, self._largest, self._sums = squares / count, 0.0, [0.0] * 7
        self._next_mark = 2 * self._blocks


def loss_of(sketch: Sketch, ridge: float) -> float:
    """The ridge plus the certificate; inf if the sketch may inflate predictions.

    Without compensation theta is too large by a factor of up to 1 + e/ridge. Then errors say nothing about
    the world.
    """
    error, alpha = sketch.error_bound, sketch.alpha
    return ridge + error if error - alpha <= ridge else math.inf


def _scores(squares: Vector, of_guess: Vector, level: float) -> tuple[Vector, Vector]:
    gain = np.minimum(np.maximum((squares - of_guess) / level, -_MOST_GAIN), _MOST_GAIN)
    return np.minimum(squares / level, _MOST_SQUARE), gain


def _raised(count: float, total: float, squares: float, most: float) -> float:
    """A mean that is hardly below the true one, also where what counts is rare."""
    mean = total / count
    deviation = math.sqrt(max(squares / count - mean * mean, 0.0))
    return mean + _ERRORS * deviation / math.sqrt(count) + _EVENTS * most / count


_FAR, _ENOUGH_REWARDS = 5.0, 100  # deviations from 0, and the number of rewards that it takes to say so
_FOLLOWED = 3.0  # memory lengths after a change until a policy that forgets has adapted


class Watch:
    """The watches of one model, and what they say together."""

    def __init__(self, posterior: Posterior) -> None:
        self.health = HealthWatch()
        self.drift = PredictionWatch()
        self.ranges = RangeWatch()
        self._mass_to_look_at = mass_to_look_at(posterior.sketch, posterior.ridge)

    # -- after every reward ---------------------------------------------------------------------------

    def see(self, step: Step, reward: float, posterior: Posterior, features: Features) -> Complaints:
        """Look at what one reward did, and return the warnings to give."""
        drift = self.drift
        if step.quadratic >= 0.0:
            drift.see(reward, step.error, step.quadratic)
            if len(drift.pending) >= BLOCK:
                return self._look_for_drift(posterior) + self.learned(
                    posterior, features, lossy=not step.change.additive
                )
        if (  # most rounds
            step.change is ONE_APPENDED
            and posterior.rounds < self.health.next_mark
            and posterior.precision.sketch.row_stats.mass < self._mass_to_look_at
        ):
            return ()
        return self.learned(posterior, features, lossy=not step.change.additive)

    def learned(self, posterior: Posterior, features: Features, *, lossy: bool) -> Complaints:
        """Look at the sketch if its health may have changed, after one reward or many."""
        sketch, mass = posterior.sketch, posterior.sketch.row_stats.mass
        is_long = mass >= self._mass_to_look_at
        if not (lossy or is_long or posterior.rounds >= self.health.next_mark):
            return ()
        if is_long:  # look again when the mass has doubled
            self._mass_to_look_at = 2.0 * mass
        forgets = posterior.clock is not None
        found = self.health.look(sketch, posterior.rounds, posterior.ridge, forgets=forgets)
        return found + self._complaints_of_dropped(features)

    def _look_for_drift(self, posterior: Posterior) -> Complaints:
        """Test whether predictions have become worse. The warning comes once; never if the policy forgets."""
        drift, forgets = self.drift, posterior.clock is not None
        drift.close(loss_of(posterior.sketch, posterior.ridge))
        if not drift.has_changed or (drift.changed_at is not None and not forgets):
            return ()
        drift.changed_at = posterior.rounds
        drift.begin()
        return () if forgets else (WorldChangedWarning(world_sentence(drift.changed_at)),)

    def _complaints_of_dropped(self, features: Features) -> Complaints:
        """The warning that columns are dropped, once the scaling is fixed; it comes once."""
        if features.is_warming_up or self.health.has_warned_of_digits or not features.dropped:
            return ()
        self.health.has_warned_of_digits = True
        return (TooFewDigitsWarning(dropped_sentence(features.dropped)),)

    def warn_again(self) -> None:
        """Give warnings again, because everything was learned anew with another scaling."""
        self.health.has_warned = self.health.has_warned_of_digits = False

    # -- the report -----------------------------------------------------------------------------------

    def report(self, posterior: Posterior, features: Features) -> Health:
        """The present ``Health``."""
        forgets = posterior.clock is not None
        found = self.health.report(posterior.sketch, posterior.rounds, posterior.ridge, forgets=forgets)
        if found.enough_digits and not found.heading_for_linear_regret and _lie_far_from_zero(posterior):
            scale = posterior.scale
            found = found._replace(sentence=offset_sentence(scale.mean, scale.deviation))
        found = found._replace(**self.of_world(posterior, found.sentence))
        if features.scaling is None:
            return found
        outside, dropped = features.named(self.ranges.left), features.dropped
        found = found._replace(scaling=features.description, out_of_range=outside)
        if dropped and found.enough_digits:
            return found._replace(sentence=dropped_sentence(dropped), enough_digits=False)
        if outside and found.enough_digits and not found.heading_for_linear_regret:
            sentence = out_of_range_sentence(outside, features.dim)
            return found._replace(
                sentence=f"{sentence} {found.sentence}" if found.world_changed else sentence
            )
        return found

    def of_world(self, posterior: Posterior, sentence: str) -> Scalars:
        """The fields of ``Health`` about the predictions, and the sentence."""
        noticed, memory = self.drift.changed_at, math.inf
        if noticed is None:
            return {}
        if posterior.forget is not None:
            memory = _FOLLOWED / (1.0 - posterior.forget)
            sentence = f"{following_sentence(noticed)} {sentence}"
        else:
            sentence = world_sentence(noticed)
        if posterior.rounds - noticed > memory:
            return {"changed_at": noticed}
        return {"world_changed": True, "changed_at": noticed, "sentence": sentence}

    # -- merging and files ------------------------------------------------------------------------------

    def add(self, other: "Watch") -> None:
        """Merge with a watch that ran in parallel."""
        self.health.add(other.health)
        self.drift.add(other.drift)
        self.ranges.add(other.ranges)

    def dump(self) -> Scalars:
        """JSON values that ``restore`` takes."""
        return {**self.health.dump(), "world": self.drift.dump(), "ranges": self.ranges.dump()}

    def restore(self, scalars: Scalars) -> None:
        """Restore what ``dump`` returned."""
        self.health = HealthWatch.undump(scalars)
        if "world" in scalars:  # not in files of 0.12
            self.drift = PredictionWatch.undump(scalars["world"])
        if "ranges" in scalars:  # not in files of 0.14
            self.ranges = RangeWatch.undump(scalars["ranges"])


def _lie_far_from_zero(posterior: Posterior) -> bool:
    """Whether the mean reward is so many deviations that a policy without a baseline learns slowly."""
    scale = posterior.scale
    is_likely = not scale.baseline and posterior.estimate.takes_baseline and scale.count >= _ENOUGH_REWARDS
    return is_likely and 0.0 < _FAR * scale.deviation < abs(scale.mean)
