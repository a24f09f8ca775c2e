"""What a policy says of a choice."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.errors import InputError
from sketchbandit.explore.base import Explore, chances_of, with_share
from sketchbandit.explore.candidates import Candidates, copies_among
from sketchbandit.explore.thompson import Thompson, check_few, win_chances


class Choice(NamedTuple):
    """An arm that was chosen, and how sure of it the policy was.

    Attributes
    ----------
    index : int
        Which arm.
    probability : float
        With which this arm was chosen, chance and the uniform share included.
    mean, width : float
        Its mean reward, and sqrt(x'A^-1 x).
    score : float
        margin + radius·width, the margin being x'theta: the mean itself where rewards are linear, else that
        by which arms are ordered (``policy.margin``). ``policy.radius`` is 0 for rules that use none.

    """

    index: int  # type: ignore[assignment]  # tuples have a method of that name
    probability: float
    mean: float
    width: float
    score: float


class ActionChoice(NamedTuple):
    """What ``PerAction`` has chosen: an action by its name; all else as in ``Choice``."""

    action: str | int
    probability: float
    mean: float
    width: float
    score: float


class Ranking(NamedTuple):
    """Arms in the order in which they were chosen, as arrays (k,), for whoever has many of them.

    Attributes
    ----------
    index : array
        Which arms; of ``PerAction``: places among the actions that it was asked about.
    probability : array
        That of each place, given the places before; 0 where it was left out.
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
    """What the probabilities of a choice follow from, as of one moment.

    To make them costs about as much as the widths of all arms. ``probabilities`` may be asked for later, in
    any thread, whatever the policy has learned since: that is when Thompson sampling samples them.
    """

    rule: Explore
    means: Vector
    chances: Vector | None
    """The rule's probabilities, where they are exact."""
    covariance: Matrix | None
    """Of the scores that Thompson sampling draws."""
    first_copies: AnyArray | None

    @classmethod
    def of(cls, candidates: Candidates, rule: Explore) -> "Scores":
        """The scores of a set of arms."""
        if type(rule).probabilities is Thompson.probabilities:
            check_few(candidates)
            return cls(rule, candidates.means, None, candidates.covariance(), candidates.first_copies())
        return cls(rule, candidates.means, chances_of(rule, candidates), None, None)

    def probabilities(self) -> Vector:
        """The probability of every arm, (K,), the uniform share included."""
        return with_share(self.own(), self.rule.uniform_share)

    def standard_errors(self) -> Vector:
        """By how much each probability may be off, (K,): 0 where it is exact."""
        chances = self.own()
        if self.first_copies is None or len(set(self.first_copies.tolist())) <= 2:
            return np.zeros_like(chances)
        assert isinstance(self.rule, Thompson)  # noqa: S101  (for the type checker)
        return (1.0 - self.rule.uniform_share) * np.sqrt(chances * (1.0 - chances) / self.rule.samples)

    def own(self) -> Vector:
        """The probabilities without the uniform share, (K,)."""
        if self.chances is not None:
            return self.chances
        assert isinstance(self.rule, Thompson)  # noqa: S101  (for the type checker)
        assert self.covariance is not None and self.first_copies is not None  # noqa: S101, PT018
        return win_chances(self.means, self.covariance, self.first_copies, self.rule.samples)

    def among(self, indices: AnyArray) -> "Scores":
        """Those of some of the arms, as if there were no others; only of rules that sample."""
        if self.covariance is None or self.first_copies is None:
            raise InputError(
                "how other rules choose among fewer arms does not follow from their probabilities"
            )
        copies = copies_among(self.first_copies, indices)
        covariance = self.covariance[np.ix_(indices, indices)]
        return replace(self, means=self.means[indices], covariance=covariance, first_copies=copies)
