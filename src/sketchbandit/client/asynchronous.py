"""The client for asyncio: the same as ``Client``, to be awaited."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

import httpx

from sketchbandit.client import calls
from sketchbandit.client.answers import Decision, ServiceError
from sketchbandit.client.calls import Call, Interaction, Reward, authorization
from sketchbandit.client.retries import Addresses, Retries, Trip, outcome

T = TypeVar("T")


class AsyncClient:
    """A connection to a decision service, for asyncio; the parameters are those of ``Client``."""

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

    async def create(self, name: str, dim: int, **settings: Any) -> "AsyncBandit":
        """Create a bandit, or find it if it is there with the same settings.

        ``settings``: policy, parameters (of the policy: ``{"scaling": "auto", "intercept": True}``, ...),
        rewards (the reward model: ``"logistic"`` for clicks, ...), forget, reward_timeout, default_reward,
        max_open, explore, exploration, propensities, slates, actions, log_arms, arm_dim; ``from_``: a bandit
        from all of whose log a new one learns before it decides anything.
        """
        await self.call(calls.create(name, dim, settings))
        return AsyncBandit(self, name)

    def bandit(self, name: str) -> "AsyncBandit":
        """A bandit that is there; nothing is sent yet."""
        return AsyncBandit(self, name)

    async def bandits(self) -> list[dict[str, Any]]:
        """All of them, with their settings."""
        return await self.call(calls.bandits())

    async def call(self, call: Call[T]) -> T:
        """The answer to a request, which is sent again while that may help."""
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
    """One bandit of the service, with the verbs of a policy."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    async def select(
        self,
        arms: Any = None,
        *,
        context: Any = None,
        interaction: Interaction | None = None,
        top: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Choose an arm, as ``Bandit.select``."""
        return await self._client.call(
            calls.select(self.name, arms, top, key, calls.Context(context, interaction))
        )

    async def update(self, decision: Decision | str, reward: Reward) -> bool:
        """Tell the reward of a decision, or those of a slate, as ``Bandit.update``."""
        return await self._client.call(calls.update(self.name, decision, reward))

    async def select_many(
        self, sets: Sequence[Any], *, top: int | None = None
    ) -> list[Decision | ServiceError]:
        """Several decisions with one request; what failed is an error in its place."""
        return await self._client.call(calls.select_many(self.name, sets, top))

    async def update_many(self, pairs: Sequence[tuple[Decision | str, Reward]]) -> list[bool | ServiceError]:
        """Several rewards with one request, learned from in this order."""
        return await self._client.call(calls.update_many(self.name, pairs))

    async def put_arms(self, arms: Mapping[str, Any]) -> int:
        """Store arms by id; how many there are now."""
        return await self._client.call(calls.put_arms(self.name, arms))

    async def remove_arm(self, arm: str) -> None:
        """Forget a stored arm."""
        await self._client.call(calls.remove_arm(self.name, arm))

    async def arms(self) -> list[str]:
        """The ids of the stored arms."""
        return await self._client.call(calls.arms(self.name))

    async def select_action(
        self,
        context: Any,
        actions: Sequence[str] | None = None,
        *,
        top: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Choose an action for a context, as ``Bandit.select_action``."""
        return await self._client.call(calls.select_action(self.name, context, actions, top, key))

    async def add_actions(self, actions: Sequence[str]) -> list[str]:
        """Offer new actions, or retired ones again; all that are offered now."""
        return await self._client.call(calls.add_actions(self.name, actions))

    async def retire_action(self, action: str) -> None:
        """Offer an action no more; it still learns from rewards that come late."""
        await self._client.call(calls.retire_action(self.name, action))

    async def actions(self) -> dict[str, list[str]]:
        """The names of the ``actions`` that are offered, and of the ``retired`` ones."""
        return await self._client.call(calls.actions(self.name))

    async def put_candidate(self, candidate: str, **settings: Any) -> dict[str, Any]:
        """Add a policy that learns from the same rewards and never decides; again is no error.

        ``settings``: those of a policy, as for ``create``; and reward_range, the least reward there can be
        and the most, ``[0, 1]`` unless it is given. What the service says of it is returned.
        """
        return await self._client.call(calls.put_candidate(self.name, candidate, settings))

    async def candidates(self) -> list[dict[str, Any]]:
        """All candidates: settings, rounds, and the ``value`` that each would have earned."""
        return await self._client.call(calls.candidates(self.name))

    async def candidate(self, candidate: str) -> dict[str, Any]:
        """One of them."""
        return await self._client.call(calls.candidate(self.name, candidate))

    async def remove_candidate(self, candidate: str) -> None:
        """Forget a candidate and all that it has learned."""
        await self._client.call(calls.remove_candidate(self.name, candidate))

    async def promote(self, candidate: str, *, keep: str | None = None) -> dict[str, Any]:
        """Let the policy of a candidate decide from now on; the settings of the bandit then.

        ``keep``: the policy that decided so far goes on as a candidate of this name.
        """
        return await self._client.call(calls.promote(self.name, candidate, keep))

    async def stats(self, over: str = "all") -> dict[str, Any]:
        """What the bandit is doing, as ``Bandit.stats``."""
        return await self._client.call(calls.stats(self.name, over))

    async def delete(self) -> None:
        """Delete the bandit and all it has learned."""
        await self._client.call(calls.delete(self.name))
