"""What has been begun and is not over yet, by a key: so that nobody begins it a second time."""

import asyncio
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class SingleFlight(Generic[K]):
    """Futures by key; each is forgotten when it is over."""

    def __init__(self) -> None:
        self._futures: dict[K, asyncio.Future[Any]] = {}

    def __len__(self) -> int:
        return len(self._futures)

    def __contains__(self, key: K) -> bool:
        return key in self._futures

    def add(self, key: K, future: asyncio.Future[Any]) -> None:
        """Begun. Nothing may be awaited between looking and this."""
        self._futures[key] = future
        future.add_done_callback(lambda _: self._futures.pop(key, None))

    async def over(self, key: K) -> None:
        """Wait until nothing of that key is under way; what came of it is for the caller to see."""
        while (future := self._futures.get(key)) is not None:
            await asyncio.wait([future])  # always lets the loop turn, also where the future is done
