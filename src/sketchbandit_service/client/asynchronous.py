"""The client for asyncio. It has the same methods as ``Client``, as coroutines."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

import httpx

from sketchbandit_service.client import calls
from sketchbandit_service.client.answers import Decision, ServiceError
from sketchbandit_service.client.calls import Arms, Call, Features, Interaction, Reward, authorization
from sketchbandit_service.client.retries import Addresses, Retries, Trip, outcome

T = TypeVar("T")


class AsyncClient:
    """A connection to a decision service, for asyncio. It takes the same parameters as ``Client``."""

    def __init__(
        self,
        url: str | Sequence[str] = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: Retries | None = None,
    ) -> None:
        self._addresses = Addresses(url)
        self._http = httpx.AsyncClient(headers=authorization(token), timeout=self._addresses.timeout(timeout))
        self._retries = retries or Retries()

    async def create(self, name: str, dim: int, **settings: object) -> "AsyncBandit":
        """Create a bandit. If it exists with the same settings, nothing changes.

        ``settings`` are the same as for ``Client.create``.
        """
        await self.call(calls.create(name, dim, settings))
        return AsyncBandit(self, name)

    def bandit(self, name: str) -> "AsyncBandit":
        """Use a bandit that exists. Nothing is sent yet."""
        return AsyncBandit(self, name)

    async def bandits(self) -> list[dict[str, Any]]:
        """List all bandits with their settings."""
        return await self.call(calls.bandits())

    async def call(self, call: Call[T]) -> T:
        """Send a request and return its answer. A request that may still succeed is sent again."""
        trip = Trip(self._addresses, self._retries)
        while True:
            response, error = None, None
            try:
                response = await self._http.request(
                    call.method, trip.url + call.path, content=call.content, headers=call.headers
                )
            except httpx.TransportError as failed:
                error = failed
            if (pause := trip.pause(response)) is None:
                return call.read(outcome(response, error).json())
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncBandit:
    """One bandit of the service. It has the methods of a policy."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    async def select(
        self,
        arms: Arms = None,
        *,
        context: Features | None = None,
        interaction: Interaction | None = None,
        top: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Choose an arm; see ``Bandit.select``."""
        return await self._client.call(
            calls.select(self.name, arms, top, key, calls.Context(context, interaction))
        )

    async def update(self, decision: Decision | str, reward: Reward) -> bool:
        """Send the reward of a decision, or the rewards of a slate; see ``Bandit.update``."""
        return await self._client.call(calls.update(self.name, decision, reward))

    async def select_many(
        self, sets: Sequence[Arms], *, top: int | None = None
    ) -> list[Decision | ServiceError]:
        """Make several decisions with one request; see ``Bandit.select_many``."""
        asked = list(sets)
        return await self._client.call(calls.select_many(self.name, asked, top)) if asked else []

    async def update_many(self, pairs: Sequence[tuple[Decision | str, Reward]]) -> list[bool | ServiceError]:
        """Send several rewards with one request; see ``Bandit.update_many``."""
        given = list(pairs)
        return await self._client.call(calls.update_many(self.name, given)) if given else []

    async def put_arms(self, arms: Mapping[str, Features]) -> int:
        """Store arms by id. Returns how many arms are stored now."""
        return await self._client.call(calls.put_arms(self.name, arms))

    async def remove_arm(self, arm: str) -> None:
        """Delete a stored arm."""
        await self._client.call(calls.remove_arm(self.name, arm))

    async def arms(self) -> list[str]:
        """List the ids of the stored arms."""
        return await self._client.call(calls.arms(self.name))

    async def select_action(
        self,
        context: Features,
        actions: Sequence[str] | None = None,
        *,
        top: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Choose an action for a context; see ``Bandit.select_action``."""
        return await self._client.call(calls.select_action(self.name, context, actions, top, key))

    async def add_actions(self, actions: Sequence[str]) -> list[str]:
        """Offer new actions, or offer retired actions again. Returns all actions offered now."""
        return await self._client.call(calls.add_actions(self.name, actions))

    async def retire_action(self, action: str) -> None:
        """Stop offering an action. Its model still learns from rewards that come late."""
        await self._client.call(calls.retire_action(self.name, action))

    async def actions(self) -> dict[str, list[str]]:
        """List the names of the offered ``actions`` and of the ``retired`` ones."""
        return await self._client.call(calls.actions(self.name))

    async def put_candidate(self, candidate: str, **settings: object) -> dict[str, Any]:
        """Add a candidate: a policy that learns from the same rewards and never decides.

        See ``Bandit.put_candidate``.
        """
        return await self._client.call(calls.put_candidate(self.name, candidate, settings))

    async def candidates(self) -> list[dict[str, Any]]:
        """List all candidates with their settings, their rounds and the ``value`` each would have earned."""
        return await self._client.call(calls.candidates(self.name))

    async def candidate(self, candidate: str) -> dict[str, Any]:
        """Show one candidate."""
        return await self._client.call(calls.candidate(self.name, candidate))

    async def remove_candidate(self, candidate: str) -> None:
        """Delete a candidate and all it has learned."""
        await self._client.call(calls.remove_candidate(self.name, candidate))

    async def promote(self, candidate: str, *, keep: str | None = None) -> dict[str, Any]:
        """Let the policy of a candidate decide from now on. Returns the new settings of the bandit.

        ``keep``: the policy that decided until now becomes a candidate with this name.
        """
        return await self._client.call(calls.promote(self.name, candidate, keep))

    async def stats(self, over: str = "all") -> dict[str, Any]:
        """Show what the bandit is doing; see ``Bandit.stats``."""
        return await self._client.call(calls.stats(self.name, over))

    async def delete(self) -> None:
        """Delete the bandit and all it has learned."""
        await self._client.call(calls.delete(self.name))
