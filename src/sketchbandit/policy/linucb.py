"""Linear UCB over any sketch."""

import copy
from typing import Any, Self

from sketchbandit.arrays import Arrays, Scalars
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.estimate import Estimate, Linear, RewardScale
from sketchbandit.explore import DEFAULT_BETA, UCB, Explore
from sketchbandit.explore.base import Auto
from sketchbandit.html_repr import Facts, amount, certificate
from sketchbandit.policy.baseline import read_baseline
from sketchbandit.policy.blank import Blank
from sketchbandit.policy.drift import PredictionWatch
from sketchbandit.policy.exploring import copy_of_rule
from sketchbandit.policy.files import Part, content_of, restored_parts
from sketchbandit.policy.forgetting import Clock, read_forget
from sketchbandit.policy.health import HealthWatch
from sketchbandit.policy.learning import Policy
from sketchbandit.scaling import Intercept, Kind, RangeWatch, Reader
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.checks import check_count
from sketchbandit.sketch.columns import ColumnNames
from sketchbandit.theory import Confidence


class LinUCB(Policy):
    """A policy made of three parts: a sketch, a reward model and an exploration rule.

    By default it chooses the arm with the largest upper confidence bound x'theta + beta·sqrt(x' A^-1 x).
    Here A = (ridge + alpha) I + S'S, with S and alpha of the sketch, and theta = A^-1 (sum of reward·x).
    With a ``DyadicBlockSketch`` this is Alg. 2 of the paper (DBSLinUCB). With other sketches it is one of the
    algorithms that the paper compares with. ``adaptive``, ``oful``, ``soful``, ``cbscfd`` and ``dbslinucb``
    make such policies with fewer settings.

    Threads may share a policy: every public call is atomic.

    Parameters
    ----------
    sketch : Sketch
        A fresh sketch, an instance of any subclass of ``sketchbandit.Sketch``. From now on the policy updates
        it. If a scaling has to be learned, the policy works with copies: read ``policy.sketch``.
    ridge : float
        lambda, the ridge parameter, in units of a squared arm norm.
    beta : float or Confidence or str, optional
        The confidence radius, short for ``explore=UCB(beta)``. A float is a constant radius, a ``Confidence``
        is that of the theorem, and "auto" follows the standard deviation of the rewards. Default 0.1.
    explore : Explore, optional
        The exploration rule: ``UCB`` (the default), ``Thompson``, ``InverseGap``, ``EpsilonGreedy``,
        ``Greedy`` or a rule of your own. The policy makes a copy.
    rewards : Estimate, optional
        The reward model: ``Linear()`` (the default), ``Logistic()``, ``Poisson()``, ``Robust()`` or a model
        of your own (docs/beyond-linear.md). The policy makes a copy.
    forget : float, optional
        How fast to forget old rounds, for rewards that drift. A number up to 1 is a factor per round, such as
        0.999. A number above 1 is a half-life in rounds, such as 700. None (the default) never forgets
        (docs/bandits.md).
    baseline : bool, optional
        Whether to learn from rewards less their mean, so that a constant added to all rewards changes no
        choice, and an arm that was never tried has the mean of all rewards (docs/bandits.md). Default: not,
        except for ``adaptive`` and in a ``PerAction``.
    scaling : str or Scaling or None
        How features are scaled: "rows", "columns" or "auto" (docs/scaling.md). The ``scaling`` of another
        policy can be given too. Default None: features stay as they are.
    intercept : bool or float
        Whether a constant feature is added to every arm. A float sets the length of that feature. The sketch
        then needs one column more than an arm has.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchbandit import FrequentDirections
    >>> policy = LinUCB(FrequentDirections(3, size=2), ridge=1.0, beta=0.1)
    >>> arms = np.eye(3)
    >>> policy.select(arms)
    0
    >>> policy.update(arms[0], reward=-1.0)
    >>> policy.select(arms)
    1
    >>> policy.mean(arms)
    array([-0.5,  0. ,  0. ])

    """

    kind = "linucb"

    def __init__(
        self,
        sketch: Sketch,
        *,
        ridge: float = 1.0,
        beta: float | Confidence | Auto | None = None,
        explore: Explore | None = None,
        rewards: Estimate | None = None,
        forget: float | None = None,
        baseline: bool | None = None,
        scaling: Kind = None,
        intercept: Intercept = False,
    ) -> None:
        for name, given, wanted in (
            ("sketch", sketch, Sketch),
            ("rewards", rewards or Linear(), Estimate),
        ):
            if isinstance(given, type):
                raise InputTypeError(
                    f"{name} is the class {given.__name__}; give an instance, made by calling it"
                )
            if not isinstance(given, wanted):
                kind = type(given).__name__
                raise InputTypeError(
                    f"{name} is a {kind}; give an instance of sketchbandit.{wanted.__name__} or of a subclass"
                )
        if sketch.count:
            raise InputError(
                f"the sketch has seen {sketch.count} rows without their rewards; give a fresh sketch"
            )
        rule = copy_of_rule(UCB() if explore is None else explore)
        model = copy.deepcopy(rewards or Linear())
        if rule.beta is not None and beta is not None:
            raise InputError(f"beta is {beta}, but explore={rule!r} has a beta of its own; leave out beta")
        radius = next(given for given in (rule.beta, beta, DEFAULT_BETA) if given is not None)
        reader = Reader.of(sketch.dim - bool(intercept), scaling, intercept)
        self._set_up(
            sketch,
            ridge,
            radius,
            explore=rule,
            estimate=model,
            forget=read_forget(forget),
            baseline=read_baseline(baseline),
        )
        self._read_by(reader, self._make_blank(reader))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}(ridge={self._ridge:g}, {self._said_rule()}{self._said_rewards()}"
            f"{self._said_forget()}{self._said_baseline()}"
            f"{self._said_scaling()}): "
            f"{self._rounds} rounds, "
            f"{type(self.sketch).__name__} of size {self.sketch.size}, "
            f"error <= {self.sketch.error_bound:.4g}, {self.nbytes:,} bytes>"
        )

    def _facts(self) -> Facts:
        sketch, health = self.sketch, self.health()
        kept = "a full matrix" if sketch.is_dense else f"{sketch.row_count:,} rows kept"
        return [
            ("sketch", f"{type(sketch).__name__}, size {sketch.size:,}, {kept}"),
            ("features", f"{self.dim:,}"),
            ("rounds", f"{self._rounds:,}"),
            ("explores by", repr(self._explore)),
            ("scaling", health.scaling or "none"),
            ("memory", amount(self.nbytes)),
            ("certificate", certificate(health.certificate)),
            ("health", health.sentence),
        ]

    def _said_rule(self) -> str:
        is_short = type(self._explore) is UCB and not self._share
        return f"beta={self._beta}" if is_short else f"explore={self._explore!r}"

    def _said_rewards(self) -> str:
        return f", rewards={self._estimate!r}" if self._estimate.weighs else ""

    def _said_forget(self) -> str:
        return "" if self._forget is None else f", forget={self._forget:.6g}"

    def _said_baseline(self) -> str:
        return f", baseline={self.baseline:.6g}" if self._has_baseline else ""

    def _said_scaling(self) -> str:
        return "" if self._reader is None else f", {self._reader!r}"

    def _content(self) -> tuple[Scalars, Arrays]:
        parts: dict[str, Part] = {
            "sketch": self.sketch,
            "precision": self._precision,
            "estimate": self._estimate,
            "explore": self._explore,
        }
        if self._reader is not None and not self._is_part:
            parts["reader"] = self._reader
            if self._blank is not None:
                parts["blank"] = self._blank.sketch
        scalars, arrays = content_of(parts)
        kept, rows = self._saved_warm_up()
        beta = vars(self._beta) if isinstance(self._beta, Confidence) else self._beta
        own: dict[str, Any] = {
            "ridge": self._ridge,
            "beta": beta,
            "rounds": self._rounds,
            "columns": self._columns.names,
            "baseline": self._has_baseline,
            "wants_baseline": self._wants_baseline,
        }
        if not self._is_part:
            own["reward_scale"] = self._reward_scale.dump()
        if self._clock is not None:
            own["clock"] = self._clock.dump()
        return {
            **own,
            **self._saved_chance(),
            "reward_mass": self._estimate.reward_mass,
            "arm_lengths": self._estimate.arm_lengths,
            **self._watch.dump(),
            "world": self._world.dump(),
            "ranges": self._ranges.dump(),
            **scalars,
            **kept,
        }, {**arrays, **rows}

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """Return the policy that ``dump`` described."""
        parts, beta = restored_parts(scalars, arrays, **extra), scalars["beta"]
        policy = cls.__new__(cls)
        saved_beta = Confidence(**beta) if isinstance(beta, dict) else beta
        clock = Clock.undump(scalars["clock"]) if "clock" in scalars else None
        policy._set_up(
            parts.sketch,
            scalars["ridge"],
            saved_beta,
            explore=parts.explore,
            estimate=parts.estimate,
            forget=None if clock is None else clock.factor,
            baseline=bool(scalars.get("baseline", False)),  # not in files of 0.14
            saved=parts.precision,
        )
        policy._wants_baseline = scalars.get("wants_baseline", False)
        if "reward_scale" in scalars:
            policy._reward_scale.restore(scalars["reward_scale"])
        elif "spread" in scalars:  # a file of 0.10 to 0.14
            policy._estimate.reward_scale = RewardScale.of_moments(scalars["spread"])
        policy._estimate.restore(*parts.learned)
        policy._estimate.reward_mass = float(scalars["reward_mass" if "reward_mass" in scalars else "reach"])
        policy._estimate.arm_lengths = float(scalars.get("arm_lengths", 0.0))  # not in files of 0.14
        policy._rounds = check_count("rounds", scalars["rounds"], at_least=0)
        policy._clock = clock
        if "world" in scalars:  # not in files of 0.12
            policy._world = PredictionWatch.undump(scalars["world"])
        if "ranges" in scalars:  # not in files of 0.14
            policy._ranges = RangeWatch.undump(scalars["ranges"])
        policy._watch = HealthWatch.undump(scalars)
        policy._columns = ColumnNames(scalars.get("columns"))
        policy._restore_chance(scalars)
        blank = None if parts.blank is None else Blank(parts.blank, policy._unbound_estimate())
        policy._read_by(parts.reader, blank)
        policy._restore_warm_up(scalars, arrays)
        return policy
