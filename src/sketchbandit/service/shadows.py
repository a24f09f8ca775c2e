"""The candidates of a bandit: changed by records of the journal alone, as everything of a bandit."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.service.candidate import Candidate, Settled, candidate_from
from sketchbandit.service.chances import Chance, decode, encode
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.storage.records import CandidateRow, ChanceRow

_MOST_UNJUDGED = 1000
_CHANCE = 200  # bytes of a probability that waits for a reward


class Rewarded(NamedTuple):
    """A decision with its reward, which waits for probabilities: that of its arm, or those of candidates."""

    at: float
    """When it counts."""
    reward: float
    propensity: float
    """With which its arm was chosen; 0: not known yet."""
    chances: tuple[Chance, ...]
    """With which candidates would have chosen it; none: not known yet."""


class Shadows:
    """Candidates by name, in the order in which they came; and what is known of decisions that wait."""

    def __init__(self) -> None:
        self.by_name: dict[str, Candidate] = {}
        self._chances: dict[int, tuple[Chance, ...]] = {}
        """Of open decisions, by their first rows."""
        self._unjudged: dict[int, Rewarded] = {}
        """Decisions that were rewarded before all probabilities were known."""

    def __len__(self) -> int:
        return len(self.by_name)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.by_name.values())

    @property
    def seconds(self) -> float:
        """How long they may need to learn from a reward."""
        return sum(candidate.seconds for candidate in self) if self.by_name else 0.0

    # -- records ----------------------------------------------------------------------------------------

    def added(
        self, row: CandidateRow, config: BanditConfig, is_offered: Mapping[str, bool]
    ) -> Callable[[], None]:
        """One was added to a bandit of these settings: what is left to be done in its lane."""
        made = candidate_from(row.seq, row.name, row.settings or "", config, created=row.at)
        self.by_name[row.name] = made
        return partial(made.build, dict(is_offered))

    def removed(self, name: str) -> Candidate | None:
        """It learns no more."""
        found = self.by_name.pop(name, None)
        if not self.by_name:
            self._chances, self._unjudged = {}, {}
        return found

    def keep(self, row: CandidateRow, promoted: Candidate, config: BanditConfig) -> Candidate | None:
        """The policy that decided so far goes on as a candidate, if it is to; it comes to it in the lane."""
        if row.kept is None:
            return None
        made = Candidate(row.seq, row.kept, config, promoted.reward_range, created=row.at)
        self.by_name[row.kept] = made
        return made

    def judged(self, row: ChanceRow, waits: Callable[[int], bool]) -> None:
        """Probabilities became known; ``waits``: before the reward of their decision, or after."""
        found: dict[int, list[Chance]] = {}
        for chance in decode(row.chances):
            found.setdefault(chance.decision, []).append(chance)
        for first, chances in found.items():
            if waits(first):
                self._chances[first] = tuple(chances)
            elif (rewarded := self._unjudged.pop(first, None)) is not None:
                self._judge(first, rewarded._replace(chances=tuple(chances)))

    def rewarded(self, first: int, at: float, reward: float | None, propensity: float) -> None:
        """The arm that a decision showed first has its reward; None: nothing came, and nothing is learned."""
        chances = self._chances.pop(first, ())
        if reward is not None and self.by_name:
            self._judge(first, Rewarded(at, reward, propensity, chances))

    def estimated(self, first: int, propensity: float) -> None:
        """The probability of a decision was estimated."""
        if (rewarded := self._unjudged.pop(first, None)) is not None:
            self._judge(first, rewarded._replace(propensity=propensity))

    def _judge(self, first: int, rewarded: Rewarded) -> None:
        """Count what a decision tells of candidates, now or when all is known."""
        if not (rewarded.propensity and rewarded.chances):
            self._unjudged[first] = rewarded
            if len(self._unjudged) > _MOST_UNJUDGED:
                del self._unjudged[next(iter(self._unjudged))]  # the oldest
            return
        known = {candidate.number: candidate for candidate in self}
        for chance in rewarded.chances:
            if (candidate := known.get(chance.candidate)) is not None:
                candidate.count(rewarded.at, chance.chance / rewarded.propensity, rewarded.reward)

    def release(self, now: float, settled: Settled) -> None:
        """Time goes on."""
        for candidate in self:
            candidate.release(now, settled)

    @property
    def nbytes(self) -> int:
        """What waits for rewards, roughly."""
        return _CHANCE * len(self._chances) * max(1, len(self.by_name))

    # -- snapshots --------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """As JSON and an array, but for what is changed in the lane; nothing where there is none."""
        if not self.by_name:
            return {}
        waiting = encode(chance for chances in self._chances.values() for chance in chances)
        return {
            "candidates": [one.dump() for one in self],
            "chances": np.frombuffer(waiting, dtype=np.uint8),
            "unjudged": [[first, *rewarded] for first, rewarded in self._unjudged.items()],
        }

    def undump(self, saved: Mapping[str, Any], policies: Mapping[int, Any], config: BanditConfig) -> None:
        """Back from a snapshot of a bandit of these settings; those of earlier versions have nothing."""
        self.by_name, self._chances, self._unjudged = {}, {}, {}
        for one in saved.get("candidates", ()):
            made = candidate_from(one["number"], one["name"], one["settings"], config, created=one["created"])
            made.undump(one)
            made.policy, made.refused = policies[made.number], one["refused"]
            self.by_name[made.name] = made
        for chance in decode(saved["chances"].tobytes()) if self.by_name else ():
            self._chances[chance.decision] = (*self._chances.get(chance.decision, ()), chance)
        for first, at, reward, propensity, chances in saved.get("unjudged", ()):
            self._unjudged[first] = Rewarded(at, reward, propensity, tuple(Chance(*one) for one in chances))
