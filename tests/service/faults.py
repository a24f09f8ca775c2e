"""Faults of a server process: ``Zygote.start(extra=...)`` puts them in before it starts."""

from typing import Any

from sketchbandit.policy.learning import Policy

_learn = Policy.update


def memory_fault(after: int, **settings: Any) -> dict[str, Any]:
    """After so many rewards learned, replayed ones too, one cannot be for want of memory. The settings."""
    left = [after]

    def update(policy: Any, arm: Any, reward: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise MemoryError("of the test")
        _learn(policy, arm, reward)

    setattr(Policy, "update", update)  # noqa: B010  (mypy does not let methods be replaced)
    return settings


def extra(*, after: int | None = None, **settings: Any) -> str:
    """What ``Zygote.start`` takes: settings, with a fault or without."""
    if after is None:
        return repr(settings)
    return f"__import__({__name__!r}, fromlist=['']).memory_fault({after}, **{settings!r})"
