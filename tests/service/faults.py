"""Faults of a server process: ``Zygote.start(extra=...)`` puts them in before it starts."""

from collections.abc import Sequence
from threading import current_thread
from typing import Any

from sketchbandit_service.bandit import Bandit
from sketchbandit_service.candidate import Candidate
from sketchbandit_service.storage.records import DecisionRow
from tests.service.crowd import NAME

_learn = Bandit._learn


def memory_fault(after: int, **settings: Any) -> dict[str, Any]:
    """After so many rewards of one bandit, replayed ones too, one cannot be learned for want of memory.

    A standby may get over it, by reading everything anew. So it meets another when it has taken over.
    Gives the settings.
    """
    left, has_followed = [after], [False]

    def learn(bandit: Bandit, shown: DecisionRow, reward: float, candidates: Sequence[Candidate]) -> None:
        follows = current_thread().name.startswith("standby")
        if bandit.name == NAME and not (follows and has_followed[0]):
            left[0] -= 1
            if left[0] == 0:
                if follows:
                    has_followed[0], left[0] = True, after
                raise MemoryError("of the test")
        _learn(bandit, shown, reward, candidates)

    setattr(Bandit, "_learn", learn)  # noqa: B010  (mypy does not let methods be replaced)
    return settings


def extra(*, after: int | None = None, **settings: Any) -> str:
    """What ``Zygote.start`` takes: settings, with a fault or without."""
    if after is None:
        return repr(settings)
    return f"__import__({__name__!r}, fromlist=['']).memory_fault({after}, **{settings!r})"
