"""The candidates of a bandit: changed by records of the journal alone, as everything of a bandit."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from sketchbandit.service.candidate import Candidate, candidate_from
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.storage.records import CandidateRow


class Shadows:
    """Candidates by name, in the order in which they came."""

    def __init__(self) -> None:
        self.by_name: dict[str, Candidate] = {}

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
        return self.by_name.pop(name, None)

    def keep(self, row: CandidateRow, name: str, config: BanditConfig) -> Candidate:
        """The policy that decided so far goes on as a candidate; it is given to it in the lane."""
        made = self.by_name[name] = Candidate(row.seq, name, config, created=row.at)
        return made

    # -- snapshots --------------------------------------------------------------------------------------

    def dump(self) -> list[dict[str, Any]]:
        """As JSON, but for what is changed in the lane."""
        return [
            {"number": one.number, "name": one.name, "settings": one.settings, "created": one.created}
            for one in self
        ]

    def undump(self, saved: list[dict[str, Any]], policies: Mapping[int, Any], config: BanditConfig) -> None:
        """Back from a snapshot."""
        self.by_name = {}
        for one in saved:
            made = candidate_from(one["number"], one["name"], one["settings"], config, created=one["created"])
            made.policy, made.refused = policies[made.number], one["refused"]
            self.by_name[made.name] = made
