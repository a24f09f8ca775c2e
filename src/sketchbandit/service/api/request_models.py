"""What clients send, as OpenAPI shows it.

Lists stop at their first error (fail_fast): a body with a million of them is as cheap to refuse as any.
"""

from copy import copy
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
)
from pydantic.fields import FieldInfo

from sketchbandit.service.config import OF_BANDIT
from sketchbandit.service.interactions import Interaction
from sketchbandit.service.logs import UNSEEN

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A number is a number: neither a text that looks like one nor true."""
Whole = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
_MOST_VALUES = 200


def storable(name: str) -> str:
    """Refuse a name that addresses cannot carry, or that shows as another one."""
    if not 1 <= len(name) <= 128:
        raise ValueError(f"names and ids have 1 to 128 characters, got {name[:150]!r}")
    if UNSEEN.search(name):
        raise ValueError(f"{name!r} has control characters, or half of a pair; leave them out")
    if {".", ".."}.intersection(name.split("/")):  # on the way clients and proxies would read another path
        raise ValueError(f"{name!r} cannot stand in a path; names and ids have no part that is . or ..")
    return name


def bandit_name(name: str) -> str:
    """One that a bandit can have: no slash, and more than dots."""
    if "/" in name or not name.strip("."):
        raise ValueError(
            f"{name!r:.150} cannot be the name of a bandit or candidate: leave out slashes, and have more "
            "than dots"
        )
    return storable(name)


def few(said: Any) -> Any:
    """Refuse more values than any settings or any reward have: each of them could be wrong."""
    left, seen = [said], 0
    while left and seen <= _MOST_VALUES:
        inner = left.pop()
        if isinstance(inner, (dict, list)):
            seen += len(inner)
            left += [] if seen > _MOST_VALUES else inner.values() if isinstance(inner, dict) else inner
    if seen > _MOST_VALUES:
        raise ValueError(f"there are more than {_MOST_VALUES} values; a few names and numbers are taken")
    return said


ArmId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00]+$")]
NewId = Annotated[ArmId, AfterValidator(storable)]
Key = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")]


class RequestModel(BaseModel):
    """What a client sends: unknown fields are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class BanditRequest(RequestModel):
    """The settings of a new bandit. They do not change while it lives."""

    dim: Annotated[
        Whole, Field(ge=1, le=2**31 - 1, description="Features of an arm, or columns they are hashed to.")
    ]
    policy: Annotated[
        str, Field(max_length=64, description="adaptive, dbslinucb, oful, soful, cbscfd, cbrap.")
    ] = "adaptive"
    parameters: Annotated[
        dict[str, Any],
        BeforeValidator(few),
        Field(
            max_length=20,
            description="Of the policy: ridge, beta, size, epsilon, ...; scaling: how features are brought "
            "to scale (auto, rows, columns, or null: as they are); intercept: whether a constant feature is "
            "added, or how long it is beside an arm.",
            examples=[{"scaling": "auto", "intercept": True}],
        ),
    ] = {}
    reward_timeout: Annotated[
        Number | None, Field(gt=0, le=1e9, description="Seconds to wait for a reward; null: for ever.")
    ] = 3600.0
    default_reward: Annotated[
        Number | None,
        Field(
            ge=-1e9, le=1e9, description="Learned from when no reward came in time; null: nothing is learned."
        ),
    ] = 0.0
    max_open: Annotated[
        Whole, Field(ge=1, le=10_000_000, description="Open decisions at most; then 429.")
    ] = 100_000
    exploration: Annotated[
        Number,
        Field(ge=0, le=1, description="Share of decisions drawn uniformly, for off-policy evaluation."),
    ] = 0.0
    log_arms: Annotated[Flag, Field(description="Keep all arms of every decision in the journal.")] = False
    explore: Annotated[
        Any,
        BeforeValidator(few),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}]}),
        Field(
            description="How arms are chosen: ucb, thompson, inverse-gap, epsilon-greedy or greedy; or an "
            'object such as {"rule": "thompson", "scale": 0.1, "floor": 0.01}.'
        ),
    ] = None
    rewards: Annotated[
        Any,
        BeforeValidator(few),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}]}),
        Field(
            description="What is believed of the rewards: linear, logistic (clicks: from 0 to 1), poisson "
            '(counts: from 0 on) or robust (outliers); or an object such as {"model": "robust", '
            '"scale": 0.1}.'
        ),
    ] = None
    forget: Annotated[
        Number | None,
        Field(
            gt=0,
            description="How fast to forget, where the world changes: up to 1 the factor by which what was "
            "learned counts after each further reward, such as 0.999; above 1 the half-life in rewards, such "
            "as 700; null: nothing is forgotten. An action forgets by its own rewards.",
        ),
    ] = None
    propensities: Annotated[
        Literal["estimate", "none"],
        Field(description="Probabilities that are not exact (Thompson): estimated after the answer, or not."),
    ] = "estimate"
    actions: Annotated[
        Annotated[list[NewId], Field(min_length=1, max_length=1000, fail_fast=True)] | None,
        Field(description="A model for each of these actions, and a context of dim features, not arms."),
    ] = None
    slates: Annotated[
        Flag, Field(description="All of the top are shown: each has a reward of its own, or the default.")
    ] = False
    arm_dim: Annotated[
        Whole | None,
        Field(
            ge=1,
            le=2**31 - 1,
            description="Features of a stored arm, where a context makes dim of them: concatenate, outer.",
        ),
    ] = None
    origin: Annotated[
        str | None,
        Field(
            alias="from",
            max_length=128,
            description="A bandit from all of whose log the new one learns before it decides anything.",
        ),
    ] = None


def _of_policy(name: str) -> tuple[Any, FieldInfo]:
    field = BanditRequest.model_fields[name]
    return field.annotation, copy(field)


class _CandidateBase(RequestModel):
    """A policy that learns from the same rewards and never decides: settings as those of a bandit."""

    reward_range: Annotated[
        tuple[Number, Number],
        Field(description="The least reward there can be, and the most: its interval rests on them."),
    ] = (0.0, 1.0)


CandidateRequest = create_model(
    "CandidateRequest",
    __base__=_CandidateBase,
    __doc__=_CandidateBase.__doc__,
    **{name: _of_policy(name) for name in BanditRequest.model_fields if name not in (*OF_BANDIT, "origin")},  # type: ignore[call-overload]  # no overload takes fields by name
)
"""What is not the bandit's own, and how far rewards reach."""


class PromoteRequest(RequestModel):
    """What becomes of the policy that decides so far."""

    keep: Annotated[
        Annotated[str, AfterValidator(bandit_name)] | None,
        Field(description="It goes on as a candidate of this name; null: it is forgotten."),
    ] = None


_FEATURES: dict[str, Any] = {
    "description": "A list of dim numbers; or {indices, values}; or named features, hashed: a text value "
    "is the feature 'name=value'.",
    "anyOf": [
        {"type": "array", "items": {"type": "number"}},
        {
            "type": "object",
            "required": ["indices", "values"],
            "properties": {
                "indices": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                "values": {"type": "array", "items": {"type": "number"}},
            },
            "additionalProperties": False,
        },
        {"type": "object", "additionalProperties": {"anyOf": [{"type": "number"}, {"type": "string"}]}},
    ],
}
_ARM = {"anyOf": [*_FEATURES["anyOf"], {"type": "string", "minLength": 1, "maxLength": 128}]}
_NULL = {"type": "null"}
Top = Annotated[
    Whole, Field(ge=1, le=2**31 - 1, description="Rank so many arms; the first is the one chosen.")
]


class DenseDecideRequest(RequestModel):
    """The usual case, read fast."""

    arms: Annotated[list[Annotated[list[Number], Field(fail_fast=True)]], Field(fail_fast=True)]
    top: Top | None = None


class DecideRequest(RequestModel):
    """The arms to choose from, stored ones maybe with a context; or that of a bandit with actions."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"arms": [[0.6, 0.8], [1.0, 0.0]]},
                {"arms": [{"user=7": 1, "price": 0.3}, {"user=7": 1, "price": 0.9}], "top": 2},
                {"arms": ["shoes-42", "shoes-43"]},
                {},
                {"context": [0.6, 0.8], "interaction": "product"},
                {"context": [0.6, 0.8], "actions": ["red", "green"]},
            ]
        }
    )

    arms: Annotated[
        Any,
        WithJsonSchema({"anyOf": [{"type": "array", "minItems": 1, "items": _ARM}, _NULL]}),
        Field(description="Features, or ids of stored arms; without any: all stored arms."),
    ] = None
    context: Annotated[
        Any,
        WithJsonSchema({"anyOf": [_FEATURES, _NULL]}),
        Field(
            description="For a bandit with actions: its features. With stored arms: those of whom or what "
            "the arm is for."
        ),
    ] = None
    interaction: Annotated[
        Interaction | None,
        Field(
            description="How a context u and a stored arm x become dim features; product (unless it is "
            "given): x times u, one by one; concatenate: u, then x; outer: u[0] times x, then u[1] times x, "
            "and so on."
        ),
    ] = None
    actions: Annotated[
        Annotated[list[ArmId], Field(fail_fast=True)] | None,
        Field(description="For a bandit with actions: those that may be chosen; without: all offered."),
    ] = None
    top: Top | None = None


class KeyedDecideRequest(DecideRequest):
    """One decision of a batch."""

    key: Annotated[
        Key | None, Field(description="Idempotency key: again with the same key, the same decision.")
    ] = None


def _list_of(model: type[RequestModel]) -> dict[str, Any]:
    """Items are read one by one, so that a bad one does no harm to the others."""
    return {"type": "array", "minItems": 1, "items": {"$ref": f"#/components/schemas/{model.__name__}"}}


class DecideBatchRequest(RequestModel):
    """Several decisions at once."""

    decisions: Annotated[list[Any], WithJsonSchema(_list_of(KeyedDecideRequest))]


Position = Annotated[Whole, Field(ge=0, le=2**31 - 1, description="Of a shown arm in its slate, from 0.")]


class ShownReward(RequestModel):
    """The reward of one shown arm: by its position, by its id, or by the name of the action."""

    reward: Number
    position: Position | None = None
    arm: ArmId | None = None
    action: ArmId | None = None


class RewardRequest(RequestModel):
    """The reward of a decision; of one of the arms of a slate; or several of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"decision": "2-0e5b7c1d9a44", "reward": 1},
                {"decision": "2-0e5b7c1d9a44", "reward": 1, "position": 3},
                {"decision": "2-0e5b7c1d9a44", "rewards": [{"position": 0, "reward": 0}]},
                {"decision": "2-0e5b7c1d9a44", "rewards": [{"arm": "shoes-42", "reward": 1}]},
            ]
        }
    )

    decision: Annotated[str, Field(max_length=64)]
    reward: Annotated[
        Number | None, Field(description="Of the first arm, unless position, arm or action says which.")
    ] = None
    position: Position | None = None
    arm: ArmId | None = None
    action: Annotated[ArmId | None, Field(description="For a bandit with actions, as arm.")] = None
    rewards: Annotated[
        Annotated[
            list[Annotated[ShownReward, BeforeValidator(few)]],
            Field(min_length=1, max_length=1000, fail_fast=True),
        ]
        | None,
        Field(description="Instead of reward: of several arms, each at most once; all are taken or none."),
    ] = None


class RewardBatchRequest(RequestModel):
    """Several rewards at once, learned from in this order."""

    rewards: Annotated[list[Any], WithJsonSchema(_list_of(RewardRequest))]


class ArmsRequest(RequestModel):
    """Arms to be stored, by id; known ids get new features."""

    arms: Annotated[
        dict[str, Any],
        Field(min_length=1),
        WithJsonSchema(
            {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"minLength": 1, "maxLength": 128},
                "additionalProperties": _FEATURES,
            }
        ),
    ]


class ActionsRequest(RequestModel):
    """Actions to be offered: new ones, or retired ones again."""

    actions: Annotated[list[NewId], Field(min_length=1, max_length=1000, fail_fast=True)]


class RetiredRequest(RequestModel):
    """Actions to be offered no more."""

    actions: Annotated[list[ArmId], Field(min_length=1, max_length=1000, fail_fast=True)]


class RemovedRequest(RequestModel):
    """Stored arms to be forgotten, by id."""

    arms: Annotated[list[ArmId], Field(min_length=1, max_length=1000, fail_fast=True)]
