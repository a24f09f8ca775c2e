"""The candidates of a bandit. Like everything of a bandit, they are changed by journal records only."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from sketchbandit_service.candidate import Candidate, SavedCandidate, Settled, candidate_from, candidate_of
from sketchbandit_service.chance_bytes import Chance, decode, encode
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.storage.records import CandidateRow, ChanceRow
from sketchbandit_service.types import AnyPolicy

_MOST_UNJUDGED = 1000
_CHANCE = 200  # bytes of a probability that waits for a reward


class Rewarded(NamedTuple):
    """A rewarded decision that waits for probabilities: its propensity, or those of candidates."""

    at: float
    """When it counts."""
    reward: float
    propensity: float
    """The propensity of its arm. 0: not known yet."""
    chances: tuple[Chance, ...]
    """The probabilities with which candidates would have chosen it. Empty: not known yet."""


class SavedShadows(TypedDict, total=False):
    """The candidates as JSON and an array."""

    candidates: list[SavedCandidate]
    chances: NDArray[np.uint8]
    unjudged: list[tuple[int, float, float, float, Sequence[tuple[int, int, float]]]]


class Shadows:
    """Candidates by name, in the order in which they came, and what is known of waiting decisions."""

    def __init__(self) -> None:
        self.by_name: dict[str, Candidate] = {}
        self._chances: dict[int, tuple[Chance, ...]] = {}
        """The probabilities for open decisions, by their first rows."""
        self._unjudged: dict[int, Rewarded] = {}
        """Decisions that were rewarded before all probabilities were known."""

    def __len__(self) -> int:
        return len(self.by_name)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.by_name.values())

    @property
    def seconds(self) -> float:
        """How long all candidates may need to learn from a reward."""
        return sum(candidate.seconds for candidate in self) if self.by_name else 0.0

    # -- records ----------------------------------------------------------------------------------------

    def added(
        self, row: CandidateRow, config: BanditConfig, is_offered: Mapping[str, bool]
    ) -> Callable[[], None]:
        """A candidate was added to a bandit with these settings. Returns what is left to do in its queue."""
        made = candidate_from(row.seq, row.name, row.settings or "", config, created=row.at)
        self.by_name[row.name] = made
        return partial(made.build, dict(is_offered))

    def removed(self, name: str) -> Candidate | None:
        """Stop a candidate from learning."""
        found = self.by_name.pop(name, None)
        if not self.by_name:
            self._chances, self._unjudged = {}, {}
        return found

    def keep(self, row: CandidateRow, promoted: Candidate, config: BanditConfig) -> Candidate | None:
        """Keep the old policy as a candidate, if asked for. The policy itself is moved in the queue."""
        if row.kept is None:
            return None
        made = Candidate(row.seq, row.kept, config, promoted.reward_range, created=row.at)
        self.by_name[row.kept] = made
        return made

    def judged(self, row: ChanceRow, waits: Callable[[int], bool]) -> None:
        """Probabilities became known. ``waits`` says whether a decision still waits for its reward."""
        found: dict[int, list[Chance]] = {}
        for chance in decode(row.chances):
            found.setdefault(chance.decision, []).append(chance)
        for first, chances in found.items():
            if waits(first):
                self._chances[first] = tuple(chances)
            elif (rewarded := self._unjudged.pop(first, None)) is not None:
                self._judge(first, rewarded._replace(chances=tuple(chances)))

    def rewarded(self, first: int, at: float, reward: float | None, propensity: float) -> None:
        """The first arm of a decision got its reward. None: no reward came, and nothing is learned."""
        chances = self._chances.pop(first, ())
        if reward is not None and self.by_name:
            self._judge(first, Rewarded(at, reward, propensity, chances))

    def estimated(self, first: int, propensity: float) -> None:
        """The propensity of a decision was estimated."""
        if (rewarded := self._unjudged.pop(first, None)) is not None:
            self._judge(first, rewarded._replace(propensity=propensity))

    def _judge(self, first: int, rewarded: Rewarded) -> None:
        """Count what a decision says about candidates, now or when everything is known."""
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
        """Let candidates count the decisions whose time is over."""
        for candidate in self:
            candidate.release(now, settled)

    @property
    def nbytes(self) -> int:
        """The approximate memory of what waits for rewards."""
        return _CHANCE * len(self._chances) * max(1, len(self.by_name))

    # -- snapshots --------------------------------------------------------------------------------------

    def dump(self) -> SavedShadows:
        """The state as JSON and an array, without what the queue changes.

        Empty if there are no candidates.
        """
        if not self.by_name:
            return {}
        waiting = encode(chance for chances in self._chances.values() for chance in chances)
        return {
            "candidates": [one.dump() for one in self],
            "chances": np.frombuffer(waiting, dtype=np.uint8),
            "unjudged": [(first, *rewarded) for first, rewarded in self._unjudged.items()],
        }

    def undump(
        self, saved: Mapping[str, Any], policies: Mapping[int, AnyPolicy], config: BanditConfig
    ) -> None:
        """Restore from a snapshot of a bandit with these settings. Earlier versions have nothing here."""
        self.by_name, self._chances, self._unjudged = {}, {}, {}
        for one in saved.get("candidates", ()):
            made = candidate_of(one, config)
            made.policy, made.refused = policies[made.number], one["refused"]
            self.by_name[made.name] = made
        for chance in decode(saved["chances"].tobytes()) if self.by_name else ():
            self._chances[chance.decision] = (*self._chances.get(chance.decision, ()), chance)
        for first, at, reward, propensity, chances in saved.get("unjudged", ()):
            self._unjudged[first] = Rewarded(at, reward, propensity, tuple(Chance(*one) for one in chances))
