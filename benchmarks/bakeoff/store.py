"""Results, one line of JSON a run, so that a stopped bake-off goes on where it was."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.bakeoff.contestants import Contestant
from benchmarks.bakeoff.streams import Stream

Key = tuple[str, str, str, str, str, int, int, int]


@dataclass(frozen=True)
class Result:
    """One run, or why there is none."""

    contestant: str
    version: str
    setting: str
    data: str
    condition: str
    target: int
    seed: int
    rounds: int
    regret: float = float("nan")
    seconds: float = 0.0
    bytes: int = 0
    error: str = ""
    took: float = 0.0
    """Seconds of the whole run, waiting included."""

    @property
    def key(self) -> Key:
        """What must be the same for a result to count."""
        where = (self.data, self.condition, self.target, self.seed, self.rounds)
        return (self.contestant, self.version, self.setting, *where)


def key(contestant: Contestant, stream: Stream, condition: str, rounds: int) -> Key:
    """Of the run that is wanted."""
    return (
        contestant.name,
        contestant.version,
        contestant.setting,
        stream.data,
        condition,
        *stream[1:],
        rounds,
    )


class Store:
    """The results kept in a file. A later line replaces an earlier one of the same run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[Key, Result] = {}
        if path.is_file():
            for number, line in enumerate(path.read_text().splitlines(), start=1):
                try:
                    found = Result(**json.loads(line))
                except (TypeError, ValueError) as error:
                    raise SystemExit(
                        f"{path}, line {number} is no result of this program ({error}): "
                        "delete that line, or start anew with --fresh"
                    ) from error
                self.results[found.key] = found

    def add(self, result: Result) -> None:
        """Keep it, on disk at once."""
        self.results[result.key] = result
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")

    def forget(self, names: Iterable[str], data: Iterable[str], conditions: Iterable[str]) -> None:
        """Drop what these contestants did there; the file is written anew."""
        chosen, places, kinds = set(names), set(data), set(conditions)
        self.results = {
            one: result
            for one, result in self.results.items()
            if not (result.contestant in chosen and result.data in places and result.condition in kinds)
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(asdict(result)) + "\n" for result in self.results.values()]
        self.path.write_text("".join(lines))
