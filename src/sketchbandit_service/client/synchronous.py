"""The client for ordinary (blocking) code."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

import httpx

from sketchbandit_service.client import calls
from sketchbandit_service.client.answers import Decision, ServiceError
from sketchbandit_service.client.calls import Arms, Call, Features, Interaction, Reward, authorization
from sketchbandit_service.client.retries import Addresses, Retries, Trip, outcome

T = TypeVar("T")


class Client:
    """A connection to a decision service.

    Parameters
    ----------
    url : str or list of str
        The address of the service. If there is a standby, give both addresses in any order; the client finds
        the server that answers.
    token : str, optional
        The token, if the service needs one.
    timeout : float
        Seconds to wait for an answer.
    retries : Retries
        How often to try again when the service is busy or cannot be reached.

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

    def create(self, name: str, dim: int, **settings: object) -> "Bandit":
        """Create a bandit. If it exists with the same settings, nothing changes.

        ``settings``: policy; parameters (of the policy: ``{"scaling": "auto", "baseline": True}``, ...);
        rewards (the reward model: ``"logistic"`` for clicks, ...); forget, reward_timeout, default_reward,
        max_open, explore, exploration, propensities, slates, actions, log_arms, arm_dim.
        ``from_`` is the name of another bandit: the new one first learns from its whole log.
        """
        self.call(calls.create(name, dim, settings))
        return Bandit(self, name)

    def bandit(self, name: str) -> "Bandit":
        """Use a bandit that exists. Nothing is sent yet."""
        return Bandit(self, name)

    def bandits(self) -> list[dict[str, Any]]:
        """List all bandits with their settings."""
        return self.call(calls.bandits())

    def call(self, call: Call[T]) -> T:
        """Send a request and return its answer. A request that may still succeed is sent again."""
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
    """One bandit of the service. It has the methods of a policy."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def select(
        self,
        arms: Arms = None,
        *,
        context: Features | None = None,
        interaction: Interaction | None = None,
        top: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Choose an arm.

        Parameters
        ----------
        arms
            The arms to choose from, (K, dim): a numpy array, a DataFrame of numbers, scipy.sparse or lists.
            Or a list of dicts of named features, or a list of ids of stored arms. None: all stored arms.
        context : optional
            The features of whom or what an arm is chosen for. It goes with stored arms only: a numpy array,
            scipy.sparse, a list or a dict of named features.
        interaction : {"product", "concatenate", "outer"}, optional
            How a context u and a stored arm x become features: ``x * u`` (product, the default), ``u``
            followed by ``x`` (concatenate), or ``numpy.kron(u, x)`` (outer).
        top : int, optional
            Rank this many arms.
        key : str, optional
            Idempotency key. By default a new key is made and used for all attempts of this request.

        """
        return self._client.call(calls.select(self.name, arms, top, key, calls.Context(context, interaction)))

    def update(self, decision: Decision | str, reward: Reward) -> bool:
        """Send the reward of a decision. Returns False if the service had it already.

        For a slate, ``{position: reward}`` or ``{arm: reward}`` gives the rewards of some or all shown arms.
        A single number is the reward of the first arm.
        """
        return self._client.call(calls.update(self.name, decision, reward))

    def select_many(self, sets: Sequence[Arms], *, top: int | None = None) -> list[Decision | ServiceError]:
        """Make several decisions with one request.

        A decision that failed is a ``ServiceError`` in the list. With no sets of arms nothing is sent, and
        the result is empty.
        """
        asked = list(sets)
        return self._client.call(calls.select_many(self.name, asked, top)) if asked else []

    def update_many(self, pairs: Sequence[tuple[Decision | str, Reward]]) -> list[bool | ServiceError]:
        """Send several rewards with one request. They are learned from in this order.

        Each item of the result is as from ``update``, or a ``ServiceError`` if that reward was refused.
        With no rewards nothing is sent, and the result is empty.
        """
        given = list(pairs)
        return self._client.call(calls.update_many(self.name, given)) if given else []

    def put_arms(self, arms: Mapping[str, Features]) -> int:
        """Store arms by id. Returns how many arms are stored now."""
        return self._client.call(calls.put_arms(self.name, arms))

    def remove_arm(self, arm: str) -> None:
        """Delete a stored arm."""
        self._client.call(calls.remove_arm(self.name, arm))

    def arms(self) -> list[str]:
        """List the ids of the stored arms."""
        return self._client.call(calls.arms(self.name))

    def select_action(
        self,
        context: Features,
        actions: Sequence[str] | None = None,
        *,
        top: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Choose an action for a context. The bandit was created with ``actions=[...]``.

        Parameters
        ----------
        context
            The features, (dim,): a numpy array, scipy.sparse, a list or a dict of named features.
        actions : list of str, optional
            The actions to choose from. By default all that are offered.
        top, key
            As for ``select``.

        """
        return self._client.call(calls.select_action(self.name, context, actions, top, key))

    def add_actions(self, actions: Sequence[str]) -> list[str]:
        """Offer new actions, or offer retired actions again. Returns all actions offered now."""
        return self._client.call(calls.add_actions(self.name, actions))

    def retire_action(self, action: str) -> None:
        """Stop offering an action. Its model still learns from rewards that come late."""
        self._client.call(calls.retire_action(self.name, action))

    def actions(self) -> dict[str, list[str]]:
        """List the names of the offered ``actions`` and of the ``retired`` ones."""
        return self._client.call(calls.actions(self.name))

    def put_candidate(self, candidate: str, **settings: object) -> dict[str, Any]:
        """Add a candidate: a policy that learns from the same rewards and never decides.

        Adding it again with the same settings changes nothing. ``settings`` are those of a policy, as for
        ``create``, and reward_range: the smallest and the largest possible reward, by default ``[0, 1]``.
        Returns what the service knows of the candidate.
        """
        return self._client.call(calls.put_candidate(self.name, candidate, settings))

    def candidates(self) -> list[dict[str, Any]]:
        """List all candidates with their settings, their rounds and the ``value`` each would have earned."""
        return self._client.call(calls.candidates(self.name))

    def candidate(self, candidate: str) -> dict[str, Any]:
        """Show one candidate."""
        return self._client.call(calls.candidate(self.name, candidate))

    def remove_candidate(self, candidate: str) -> None:
        """Delete a candidate and all it has learned."""
        self._client.call(calls.remove_candidate(self.name, candidate))

    def promote(self, candidate: str, *, keep: str | None = None) -> dict[str, Any]:
        """Let the policy of a candidate decide from now on. Returns the new settings of the bandit.

        ``keep``: the policy that decided until now becomes a candidate with this name.
        """
        return self._client.call(calls.promote(self.name, candidate, keep))

    def stats(self, over: str = "all") -> dict[str, Any]:
        """Show what the bandit is doing.

        ``over`` is "hour", "day", "week" or "all": the time range of the curve, the shares and the comparison
        with a uniform choice.
        """
        return self._client.call(calls.stats(self.name, over))

    def delete(self) -> None:
        """Delete the bandit and all it has learned."""
        self._client.call(calls.delete(self.name))
