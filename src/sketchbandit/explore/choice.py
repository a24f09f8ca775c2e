"""The descriptions of a choice that a policy returns."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError
from sketchbandit.explore.base import Explore, chances_of, mixed, with_share
from sketchbandit.explore.candidates import Candidates
from sketchbandit.explore.rules import GaussianScores, Thompson, check_few


class Choice(NamedTuple):
    """An arm that was chosen, and how sure the policy was.

    Attributes
    ----------
    index : int
        The index of the arm among those offered.
    probability : float
        The probability (propensity) with which the arm was chosen, including the uniform share.
    mean : float
        Its mean reward.
    width : float
        Its confidence width, sqrt(x'A^-1 x).
    score : float
        margin + radius·width. The margin is x'theta, which is the mean for linear rewards; with other reward
        models arms are ordered by it (``policy.margin``). For rules that use no widths the radius is 0.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> choice = sb.oful(2, beta=0.5).choose([[1.0, 0.0], [0.0, 2.0]])
    >>> choice.index, choice.probability, choice.score
    (1, 1.0, 1.0)

    """

    index: int  # type: ignore[assignment]  # tuples have a method of that name
    probability: float
    mean: float
    width: float
    score: float


class ActionChoice(NamedTuple):
    """An action that ``PerAction`` has chosen, by its name. The other fields are those of ``Choice``.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> sb.PerAction(["red", "green"], lambda: sb.oful(2)).choose([1.0, 0.0]).action
    'red'

    """

    action: str | int
    probability: float
    mean: float
    width: float
    score: float


class Ranking(NamedTuple):
    """Ranked arms, best first, as arrays of shape (k,).

    Attributes
    ----------
    index : array of int
        The indices of the arms. With ``PerAction``, indices into the list of actions asked about.
    probability : array
        The probability of each arm at its place, given the places before; 0 if left out.
    mean, width, score : array
        As in ``Choice``.

    """

    index: AnyArray  # type: ignore[assignment]  # tuples have a method of that name
    probability: Vector
    mean: Vector
    width: Vector
    score: Vector


@dataclass(frozen=True)
class Scores:
    """The scores of a set of arms at one moment, from which probabilities can be computed later.

    To make it costs about as much as the widths of all arms. ``probabilities`` can be called later, from any
    thread, whatever the policy has learned since. Thompson sampling does its sampling only then.
    """

    rule: Explore
    chances: Vector | None
    """The probabilities of the rule, if they are exact."""
    draws: GaussianScores | None
    """The scores that Thompson sampling draws, if not."""

    @classmethod
    def of(cls, candidates: Candidates, rule: Explore) -> "Scores":
        """The scores of a set of arms."""
        if isinstance(rule, Thompson) and type(rule).probabilities is Thompson.probabilities:
            check_few(candidates)
            return cls(rule, None, GaussianScores.of(candidates, rule.samples))
        return cls(rule, chances_of(rule, candidates), None)

    def __len__(self) -> int:
        held = self.chances if self.draws is None else self.draws.means
        return 0 if held is None else len(held)

    def probabilities(self) -> Vector:
        """The probability of every arm, shape (K,), including the uniform share. Their sum is one."""
        return with_share(self.own(), self.rule.uniform_share)

    def propensity(self, chosen: int) -> float:
        """The probability of the arm that was chosen, including the uniform share: what a log should hold.

        If probabilities are sampled, the choice counts as one of the samples (``Thompson``).
        """
        own = float(self.own()[chosen]) if self.draws is None else self.draws.chance_of_chosen(chosen)
        return mixed(own, self.rule.uniform_share, len(self))

    def standard_errors(self) -> Vector:
        """The standard error of every probability, shape (K,); 0 if it is exact."""
        chances = self.own()
        if self.draws is None or self.draws.are_exact:
            return np.zeros_like(chances)
        errors: Vector = np.sqrt(chances * (1.0 - chances) / self.draws.samples)
        return (1.0 - self.rule.uniform_share) * errors

    def own(self) -> Vector:
        """The probabilities without the uniform share, shape (K,)."""
        if self.draws is not None:
            return self.draws.chances()
        assert self.chances is not None  # noqa: S101  (for the type checker)
        return self.chances

    def among(self, indices: AnyArray) -> "Scores":
        """The scores of some of the arms, as if there were no others. Only for rules that sample."""
        if self.draws is None:
            raise InputError(
                "among() needs Thompson sampling: the probabilities of other rules do not determine how they "
                "choose among fewer arms"
            )
        return replace(self, draws=self.draws.among(indices))
