"""Faults of a server process: ``Zygote.start(extra=...)`` puts them in before it starts."""

from threading import current_thread
from typing import Any

from sketchbandit.policy.learning import Policy

_learn = Policy.update


def memory_fault(after: int, **settings: Any) -> dict[str, Any]:
    """After so many rewards learned, replayed ones too, one cannot be for want of memory. The settings.

    A standby gets over it: it reads everything anew. So it meets another when it has taken over.
    """
    left, has_followed = [after], [False]

    def update(policy: Any, arm: Any, reward: Any) -> None:
        follows = current_thread().name.startswith("standby")
        if not (follows and has_followed[0]):
            left[0] -= 1
            if left[0] == 0:
                if follows:
                    has_followed[0], left[0] = True, after
                raise MemoryError("of the test")
        _learn(policy, arm, reward)

    setattr(Policy, "update", update)  # noqa: B010  (mypy does not let methods be replaced)
    return settings


def extra(*, after: int | None = None, **settings: Any) -> str:
    """What ``Zygote.start`` takes: settings, with a fault or without."""
    if after is None:
        return repr(settings)
    return f"__import__({__name__!r}, fromlist=['']).memory_fault({after}, **{settings!r})"
