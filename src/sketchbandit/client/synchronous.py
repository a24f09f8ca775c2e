"""The client for ordinary code."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

import httpx

from sketchbandit.client import calls
from sketchbandit.client.answers import Decision, ServiceError
from sketchbandit.client.calls import Call, Interaction, Reward, authorization
from sketchbandit.client.retries import Addresses, Retries, Trip, outcome

T = TypeVar("T")


class Client:
    """A connection to a decision service.

    Parameters
    ----------
    url : str or list of str
        Where it is; of a server and its standby both, in any order: the one that answers is found.
    token : str, optional
        If it needs one.
    timeout : float
        Seconds to wait for an answer.
    retries : Retries
        How often to try again when it is busy or away.

    """

    def __init__(
        self,
        url: str | Sequence[str] = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: Retries | None = None,
    ) -> None:
        self._addresses = Addresses(url)
        self._http = httpx.Client(headers=authorization(token), timeout=self._addresses.timeout(timeout))
        self._retries = retries or Retries()

    def create(self, name: str, dim: int, **settings: Any) -> "Bandit":
        """Create a bandit, or find it if it is there with the same settings.

        ``settings``: policy, parameters (of the policy: ``{"scaling": "auto", "intercept": True}``, ...),
        rewards (the reward model: ``"logistic"`` for clicks, ...), forget, reward_timeout, default_reward,
        max_open, explore, exploration, propensities, slates, actions, log_arms, arm_dim; ``from_``: a bandit
        from all of whose log a new one learns before it decides anything.
        """
        self.call(calls.create(name, dim, settings))
        return Bandit(self, name)

    def bandit(self, name: str) -> "Bandit":
        """A bandit that is there; nothing is sent yet."""
        return Bandit(self, name)

    def bandits(self) -> list[dict[str, Any]]:
        """All of them, with their settings."""
        return self.call(calls.bandits())

    def call(self, call: Call[T]) -> T:
        """The answer to a request, which is sent again while that may help."""
        trip = Trip(self._addresses, self._retries)
        while True:
            response, error = None, None
            try:
                response = self._http.request(
                    call.method, trip.url + call.path, content=call.content, headers=call.headers
                )
            except httpx.TransportError as failed:
                error = failed
            if (pause := trip.pause(response)) is None:
                return call.read(outcome(response, error).json())
            time.sleep(pause)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Bandit:
    """One bandit of the service, with the verbs of a policy."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def select(
        self,
        arms: Any = None,
        *,
        context: Any = None,
        interaction: Interaction | None = None,
        top: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Choose an arm.

        Parameters
        ----------
        arms
            (K, dim): numpy, a DataFrame of numbers, scipy.sparse or lists; or a list of named features or of
            ids of stored arms; nothing: all stored arms.
        context : optional
            Of whom or what an arm is chosen for, where arms are stored: numpy, scipy.sparse or a list; or
            named features.
        interaction : {"product", "concatenate", "outer"}, optional
            How a context u and a stored arm x become the features: ``x * u``, which is the default; ``u``
            then ``x``; or ``numpy.kron(u, x)``.
        top : int, optional
            Rank so many.
        key : str, optional
            Idempotency key; by default a new one, kept over retries.

        """
        return self._client.call(calls.select(self.name, arms, top, key, calls.Context(context, interaction)))

    def update(self, decision: Decision | str, reward: Reward) -> bool:
        """Tell the reward of a decision; False if it was known already.

        Of a slate, ``{position: reward}`` or ``{arm: reward}`` tells those of the arms shown, some or all; a
        number is that of the first.
        """
        return self._client.call(calls.update(self.name, decision, reward))

    def select_many(self, sets: Sequence[Any], *, top: int | None = None) -> list[Decision | ServiceError]:
        """Several decisions with one request; what failed is an error in its place."""
        return self._client.call(calls.select_many(self.name, sets, top))

    def update_many(self, pairs: Sequence[tuple[Decision | str, Reward]]) -> list[bool | ServiceError]:
        """Several rewards with one request, learned from in this order."""
        return self._client.call(calls.update_many(self.name, pairs))

    def put_arms(self, arms: Mapping[str, Any]) -> int:
        """Store arms by id; how many there are now."""
        return self._client.call(calls.put_arms(self.name, arms))

    def remove_arm(self, arm: str) -> None:
        """Forget a stored arm."""
        self._client.call(calls.remove_arm(self.name, arm))

    def arms(self) -> list[str]:
        """The ids of the stored arms."""
        return self._client.call(calls.arms(self.name))

    def select_action(
        self,
        context: Any,
        actions: Sequence[str] | None = None,
        *,
        top: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Choose an action for a context, for a bandit that was created with ``actions=[...]``.

        Parameters
        ----------
        context
            (dim,): numpy, scipy.sparse or a list; or named features.
        actions : list of str, optional
            Those that may be chosen; all that are offered unless it is given.
        top, key
            As for ``select``.

        """
        return self._client.call(calls.select_action(self.name, context, actions, top, key))

    def add_actions(self, actions: Sequence[str]) -> list[str]:
        """Offer new actions, or retired ones again; all that are offered now."""
        return self._client.call(calls.add_actions(self.name, actions))

    def retire_action(self, action: str) -> None:
        """Offer an action no more; it still learns from rewards that come late."""
        self._client.call(calls.retire_action(self.name, action))

    def actions(self) -> dict[str, list[str]]:
        """The names of the ``actions`` that are offered, and of the ``retired`` ones."""
        return self._client.call(calls.actions(self.name))

    def put_candidate(self, candidate: str, **settings: Any) -> dict[str, Any]:
        """Add a policy that learns from the same rewards and never decides; again is no error.

        ``settings``: those of a policy, as for ``create``; and reward_range, the least reward there can be
        and the most, ``[0, 1]`` unless it is given. What the service says of it is returned.
        """
        return self._client.call(calls.put_candidate(self.name, candidate, settings))

    def candidates(self) -> list[dict[str, Any]]:
        """All candidates: settings, rounds, and the ``value`` that each would have earned."""
        return self._client.call(calls.candidates(self.name))

    def candidate(self, candidate: str) -> dict[str, Any]:
        """One of them."""
        return self._client.call(calls.candidate(self.name, candidate))

    def remove_candidate(self, candidate: str) -> None:
        """Forget a candidate and all that it has learned."""
        self._client.call(calls.remove_candidate(self.name, candidate))

    def promote(self, candidate: str, *, keep: str | None = None) -> dict[str, Any]:
        """Let the policy of a candidate decide from now on; the settings of the bandit then.

        ``keep``: the policy that decided so far goes on as a candidate of this name.
        """
        return self._client.call(calls.promote(self.name, candidate, keep))

    def stats(self, over: str = "all") -> dict[str, Any]:
        """What the bandit is doing.

        ``over``: "hour", "day", "week" or "all", for its curve, shares and gain over a uniform choice.
        """
        return self._client.call(calls.stats(self.name, over))

    def delete(self) -> None:
        """Delete the bandit and all it has learned."""
        self._client.call(calls.delete(self.name))
