"""Arms stored under names, so that a decision need not send their features."""

from collections.abc import Mapping, Sequence

from sketchbandit.service.offered import ArmSet
from sketchbandit.service.problems import Invalid, NotFound
from sketchbandit.service.vectors import Matrix, Vector, nbytes, stack


class ArmStore:
    """The arms of one bandit by id, in the order in which they came."""

    def __init__(self) -> None:
        self._vectors: dict[str, Vector] = {}
        self._matrix: Matrix | None = None
        self._places: dict[str, int] = {}
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._vectors)

    def __contains__(self, arm: str) -> bool:
        return arm in self._vectors

    def ids(self) -> list[str]:
        """All ids."""
        return list(self._vectors)

    def put(self, arms: Mapping[str, Vector]) -> None:
        """Add arms, or give known ones new features."""
        for arm, vector in arms.items():
            self.nbytes += nbytes(vector) - (nbytes(self._vectors[arm]) if arm in self._vectors else 0)
            self._vectors[arm] = vector
        self._matrix = None

    def remove(self, arm: str) -> None:
        """Forget one."""
        self.nbytes -= nbytes(self._vectors.pop(arm))
        self._matrix = None

    def row(self, arm: str) -> Vector:
        """The features of one."""
        try:
            return self._vectors[arm]
        except KeyError:
            raise NotFound(f"there is no stored arm {arm!r}; PUT it to /arms first") from None

    def choose_from(self, ids: Sequence[str] | None) -> ArmSet:
        """The arms of these ids, or all."""
        for arm in ids or ():
            self.row(arm)  # says which is missing
        if not self._vectors:
            raise Invalid("no arms are stored for this bandit; PUT some to /arms, or send some to /decide")
        if self._matrix is None:
            self._matrix = stack(list(self._vectors.values()))
            self._places = {arm: place for place, arm in enumerate(self._vectors)}
        if ids is None:
            return ArmSet(self._matrix, self.ids())
        check_once(ids)
        return ArmSet(self._matrix[[self._places[arm] for arm in ids]], ids)


def check_once(ids: Sequence[str]) -> None:
    """Refuse an id that is there twice: a reward by id would not say which."""
    seen: set[str] = set()
    for arm in ids:
        if arm in seen:
            raise Invalid(f"the arm {arm!r} is there twice")
        seen.add(arm)
