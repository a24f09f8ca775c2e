"""The requests and how their answers are read.

Both clients share this; each sends requests in its own way.
"""

import io
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.estimate import Estimate
from sketchbandit.estimate.base import model_settings
from sketchbandit_service.client.answers import Decision, ServiceError, failure

T = TypeVar("T")

Reward = float | Mapping[int, float] | Mapping[str, float]
"""The reward of a decision; or rewards of arms of its slate, by position (from 0) or by id."""

Features: TypeAlias = ArrayLike | sparse.csr_array | Mapping[str, object]
"""One arm or context: numbers, one row of scipy.sparse, or named features."""
Arms: TypeAlias = ArrayLike | sparse.csr_array | Sequence[Features] | None
"""Arms: numbers (a DataFrame, too), rows of scipy.sparse, a list of either form, or ids of stored arms."""
Interaction = Literal["product", "concatenate", "outer"]

JSON = "application/json"
NPY = "application/x-npy"


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request, and the function that reads its answer."""

    method: str
    path: str
    read: Callable[[Any], T]
    content: bytes | None = None
    content_type: str = JSON
    key: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the request."""
        found = {} if self.content is None else {"content-type": self.content_type}
        return found if self.key is None else {**found, "idempotency-key": self.key}


def authorization(token: str | None) -> dict[str, str]:
    """The header that carries the token. White space around the token is removed, as a file may add it."""
    if token is None:
        return {}
    if not token.strip().isascii() or not token.strip().isprintable() or " " in token.strip():
        raise InputError("the token has characters that no token has; copy it as `service token` printed it")
    return {"authorization": f"Bearer {token.strip()}"}


_UNPRINTED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters and lone surrogates
_OF_THE_PROCESS = {"seed", "per"}  # settings of a rule that the service does not accept


def bandit_path(name: str, *rest: str) -> str:
    """The path of a bandit, or of something that belongs to it. A name that no URL can carry is refused."""
    if not isinstance(name, str):
        raise InputTypeError(f"a bandit's name must be a string, got {name!r}")
    if name in {"", ".", ".."} or "/" in name or _UNPRINTED.search(name):  # quoting does not escape dots
        raise InputError(
            f"a bandit's name cannot be {name!r}; give a name that is not empty, not . or .., and has no "
            "slashes and no control characters"
        )
    return "/".join(["/v1/bandits", quote(name, safe=""), *rest])


def create(name: str, dim: int, settings: Mapping[str, object]) -> Call[None]:
    """PUT a bandit. ``from_`` becomes the field ``from``, which is a keyword in Python."""
    said = _settings(settings)
    if "from_" in said:
        said["from"] = said.pop("from_")
    return Call("PUT", bandit_path(name), lambda _: None, _json({"dim": dim, **said}))


def put_candidate(name: str, candidate: str, settings: Mapping[str, object]) -> Call[dict[str, Any]]:
    """PUT a candidate of a bandit."""
    return Call("PUT", _candidate_path(name, candidate), dict, _json(_settings(settings)))


def candidates(name: str) -> Call[list[dict[str, Any]]]:
    """GET the candidates of a bandit."""
    return Call("GET", bandit_path(name, "candidates"), lambda answer: list(answer["candidates"]))


def candidate(name: str, candidate: str) -> Call[dict[str, Any]]:
    """GET one candidate."""
    return Call("GET", _candidate_path(name, candidate), dict)


def remove_candidate(name: str, candidate: str) -> Call[None]:
    """DELETE one candidate."""
    return Call("DELETE", _candidate_path(name, candidate), lambda _: None)


def promote(name: str, candidate: str, keep: str | None) -> Call[dict[str, Any]]:
    """POST the promotion of a candidate: its policy decides from now on."""
    return Call("POST", f"{_candidate_path(name, candidate)}/promote", dict, _json({"keep": keep}))


def _candidate_path(name: str, candidate: str) -> str:
    return bandit_path(name, "candidates", bandit_path(candidate).rpartition("/")[2])  # same rules for names


def _settings(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings as JSON. ``explore`` may be a rule of the library, ``rewards`` a reward model."""
    rule, model = settings.get("explore"), settings.get("rewards")
    for key, given in (("explore", rule), ("rewards", model)):
        if isinstance(given, type):
            raise InputTypeError(
                f"{key} is the class {given.__name__}; give an instance: {given.__name__}(...)"
            )
    if isinstance(model, Estimate):
        settings = {**settings, "rewards": model_settings(model)}
    if rule is not None and hasattr(rule, "settings"):
        kept = {key: value for key, value in rule.settings().items() if key not in _OF_THE_PROCESS}
        settings = {**settings, "explore": {key: value for key, value in kept.items() if value is not None}}
    return dict(settings)


def bandits() -> Call[list[dict[str, Any]]]:
    """GET all bandits."""
    return Call("GET", "/v1/bandits", lambda answer: list(answer["bandits"]))


def delete(name: str) -> Call[None]:
    """DELETE a bandit."""
    return Call("DELETE", bandit_path(name), lambda _: None)


def stats(name: str, over: str) -> Call[dict[str, Any]]:
    """GET the statistics of a bandit."""
    return Call("GET", f"{bandit_path(name, 'stats')}?range={quote(over, safe='')}", dict)


def put_arms(name: str, arms: Mapping[str, Features]) -> Call[int]:
    """PUT arms."""
    body = _json({"arms": {arm: features(given) for arm, given in arms.items()}})
    return Call("PUT", bandit_path(name, "arms"), lambda answer: int(answer["count"]), body)


def arms(name: str) -> Call[list[str]]:
    """GET the ids of the stored arms."""
    return Call("GET", bandit_path(name, "arms"), lambda answer: list(answer["arms"]))


def remove_arm(name: str, arm: str) -> Call[None]:
    """POST the id of a stored arm to delete. The id is in the body, so a slash in it does no harm."""
    return Call("POST", bandit_path(name, "arms", "remove"), lambda _: None, _json({"arms": [arm]}))


def _without_names(arms: Any) -> Any:
    """The numbers of a DataFrame. Anything else is returned as it is."""
    return np.asarray(arms.to_numpy(), dtype=np.float64) if hasattr(arms, "to_numpy") else arms


class Context(NamedTuple):
    """The context for which stored arms are chosen, and how it is combined with them."""

    given: Features | None = None
    interaction: Interaction | None = None

    def request(self) -> dict[str, object]:
        """The fields of the request."""
        found = {"context": features(_without_names(self.given)), "interaction": self.interaction}
        return {field: value for field, value in found.items() if value is not None}


def select(name: str, arms: Arms, top: int | None, key: str | None, context: Context) -> Call[Decision]:
    """POST a decision. A dense array is sent as npy, everything else as JSON."""
    path, key = bandit_path(name, "decide"), key or uuid.uuid4().hex
    given = _without_names(arms)
    if (said := context.request()) and given is not None and not all(isinstance(arm, str) for arm in given):
        raise InputTypeError("a context goes with stored arms: give their ids, or leave arms out to use all")
    if isinstance(given, np.ndarray) and given.dtype in (np.float32, np.float64):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, given, version=(1, 0), allow_pickle=False)
        path = path if top is None else f"{path}?top={top:d}"
        return Call("POST", path, Decision.of, buffer.getvalue(), NPY, key)
    return Call("POST", path, Decision.of, _json({**_request(given, top), **said}), key=key)


def select_action(
    name: str, context: Features, actions: Sequence[str] | None, top: int | None, key: str | None
) -> Call[Decision]:
    """POST a decision among actions."""
    asked = {
        "context": features(_without_names(context)),
        "actions": None if actions is None else _names(actions),
        "top": top,
    }
    return Call("POST", bandit_path(name, "decide"), Decision.of, _json(asked), key=key or uuid.uuid4().hex)


def actions(name: str) -> Call[dict[str, list[str]]]:
    """GET the names of the actions."""
    return Call("GET", bandit_path(name, "actions"), dict)


def add_actions(name: str, added: Sequence[str]) -> Call[list[str]]:
    """POST actions."""
    body = _json({"actions": _names(added)})
    return Call("POST", bandit_path(name, "actions"), lambda answer: list(answer["actions"]), body)


def retire_action(name: str, action: str) -> Call[None]:
    """POST the name of an action that is no longer offered."""
    return Call("POST", bandit_path(name, "actions", "retire"), lambda _: None, _json({"actions": [action]}))


def select_many(name: str, sets: Sequence[Arms], top: int | None) -> Call[list[Decision | ServiceError]]:
    """POST several decisions."""
    asked = [{**_request(_without_names(arms), top), "key": uuid.uuid4().hex} for arms in sets]

    def read(answer: Any) -> list[Decision | ServiceError]:
        return [failure(found) or Decision.of(found) for found in answer["decisions"]]

    return Call("POST", bandit_path(name, "decide", "batch"), read, _json({"decisions": asked}))


def update(name: str, decision: Decision | str, reward: Reward) -> Call[bool]:
    """POST a reward, or the rewards of a slate."""
    return Call("POST", bandit_path(name, "reward"), _is_learned, _json(_reward(decision, reward)))


def update_many(name: str, pairs: Sequence[tuple[Decision | str, Reward]]) -> Call[list[bool | ServiceError]]:
    """POST several rewards."""
    given = [_reward(decision, reward) for decision, reward in pairs]

    def read(answer: Any) -> list[bool | ServiceError]:
        return [failure(found) or _is_learned(found) for found in answer["rewards"]]

    return Call("POST", bandit_path(name, "reward", "batch"), read, _json({"rewards": given}))


def features(arm: Any) -> object:
    """One arm as JSON: dense, sparse or named."""
    if sparse.issparse(arm):
        row = arm.tocsr()
        return {"indices": row.indices.tolist(), "values": row.data.tolist()}
    return arm.tolist() if isinstance(arm, np.ndarray) else arm


def _is_learned(answer: Mapping[str, object]) -> bool:
    return bool(answer["status"] == "learned")


def _request(arms: Any, top: int | None) -> dict[str, object]:
    asked: dict[str, object] = {} if top is None else {"top": top}
    if sparse.issparse(arms):
        rows = arms.tocsr()
        return {**asked, "arms": [features(rows[[i]]) for i in range(rows.shape[0])]}
    if arms is not None:
        asked["arms"] = [features(arm) for arm in arms]
    return asked


def _reward(decision: Decision | str, reward: Reward) -> dict[str, object]:
    asked: dict[str, object] = {"decision": decision.id if isinstance(decision, Decision) else decision}
    if not isinstance(reward, Mapping):
        return {**asked, "reward": _value(reward)}
    if not reward:
        raise InputError("the rewards are empty; give {position: reward} or {arm: reward}")
    rewards = [
        {"arm" if isinstance(which, str) else "position": which, "reward": _value(value)}
        for which, value in reward.items()
    ]
    return {**asked, "rewards": rewards}


def _names(actions: Sequence[str]) -> list[str]:
    if isinstance(actions, str):
        raise InputTypeError(f"actions must be a list, got the string {actions!r}; give [{actions!r}]")
    return list(actions)


def _value(reward: float) -> float:
    try:
        if isinstance(reward, str | bytes | bool):
            raise TypeError
        return float(reward)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"a reward must be a number, got {reward!r}") from error


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, default=_number).encode()
    except ValueError as error:
        raise InputError("arms and rewards must be finite numbers, but there is a NaN or inf") from error


def _number(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be sent as JSON")
