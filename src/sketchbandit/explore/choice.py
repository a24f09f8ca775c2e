"""What a policy says of a choice."""

from dataclasses import dataclass
from typing import NamedTuple

from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.explore.base import Explore, with_share
from sketchbandit.explore.candidates import Candidates
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
        mean + radius·width: the upper confidence bound, and the mean where the rule uses no widths.

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
        if isinstance(rule, Thompson):
            check_few(candidates)
            return cls(rule, candidates.means, None, candidates.covariance(), candidates.first_copies())
        return cls(rule, candidates.means, rule.probabilities(candidates), None, None)

    def probabilities(self) -> Vector:
        """The probability of every arm, (K,), the uniform share included."""
        chances = self.chances
        if chances is None:
            assert isinstance(self.rule, Thompson)  # noqa: S101  (for the type checker)
            assert self.covariance is not None and self.first_copies is not None  # noqa: S101, PT018
            chances = win_chances(self.means, self.covariance, self.first_copies, self.rule.samples)
        return with_share(chances, self.rule.uniform_share)
