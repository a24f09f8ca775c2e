"""The requests of clients, as OpenAPI shows them.

Validation of a list stops at its first error (fail_fast). So a body with a million errors is cheap to refuse.
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

from sketchbandit_service.config import OF_BANDIT
from sketchbandit_service.interactions import Interaction
from sketchbandit_service.logs import UNSEEN

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A JSON number. true is refused, and so is a string that looks like a number."""
Whole = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
_MOST_VALUES = 200


def storable(name: str) -> str:
    """Refuse a name that a URL cannot carry, or that looks like another name."""
    if not 1 <= len(name) <= 128:
        raise ValueError(f"names and ids have 1 to 128 characters, got {name[:150]!r}")
    if UNSEEN.search(name):
        raise ValueError(f"{name!r} has control characters or lone surrogates; leave them out")
    if {".", ".."}.intersection(name.split("/")):  # clients and proxies would turn it into another path
        raise ValueError(f"{name!r} cannot be part of a path; no part between slashes may be . or ..")
    return name


def bandit_name(name: str) -> str:
    """Check the name of a bandit: no slash, and not made of dots only."""
    if "/" in name or not name.strip("."):
        raise ValueError(
            f"{name!r:.150} cannot be the name of a bandit or candidate; give a name without slashes "
            "that is not made of dots only"
        )
    return storable(name)


def few(said: Any) -> Any:
    """Refuse more values than any settings or reward can have. Checking each of them would take time."""
    left, seen = [said], 0
    while left and seen <= _MOST_VALUES:
        inner = left.pop()
        if isinstance(inner, (dict, list)):
            seen += len(inner)
            left += [] if seen > _MOST_VALUES else inner.values() if isinstance(inner, dict) else inner
    if seen > _MOST_VALUES:
        raise ValueError(f"there are more than {_MOST_VALUES} values; give fewer")
    return said


ArmId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00]+$")]
NewId = Annotated[ArmId, AfterValidator(storable)]
Key = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")]


class RequestModel(BaseModel):
    """The base of all requests. Unknown fields are refused, so a misspelt field is noticed."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class BanditRequest(RequestModel):
    """The settings of a new bandit. They do not change while it exists."""

    dim: Annotated[
        Whole, Field(ge=1, le=2**31 - 1, description="Number of features; named ones are hashed to so many.")
    ]
    policy: Annotated[
        str, Field(max_length=64, description="adaptive, dbslinucb, oful, soful, cbscfd or cbrap.")
    ] = "adaptive"
    parameters: Annotated[
        dict[str, Any],
        BeforeValidator(few),
        Field(
            max_length=20,
            description="Parameters of the policy: ridge, beta, size, epsilon, ... scaling says how features "
            "are scaled: auto, rows, columns, or null for no scaling. intercept adds a constant feature: "
            "true, or the constant. baseline: whether rewards are learned less their mean; by default they "
            "are.",
            examples=[{"scaling": "auto", "intercept": True, "baseline": True}],
        ),
    ] = {}
    reward_timeout: Annotated[
        Number | None, Field(gt=0, le=1e9, description="Seconds to wait for a reward. null: for ever.")
    ] = 3600.0
    default_reward: Annotated[
        Number | None,
        Field(ge=-1e9, le=1e9, description="The reward if none came in time. null: nothing is learned then."),
    ] = 0.0
    max_open: Annotated[
        Whole, Field(ge=1, le=10_000_000, description="Most open decisions. Beyond it the answer is 429.")
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
            description="The rule that chooses arms: ucb, thompson, inverse-gap, epsilon-greedy or greedy. "
            'Or an object such as {"rule": "thompson", "scale": 0.1, "floor": 0.01}.'
        ),
    ] = None
    rewards: Annotated[
        Any,
        BeforeValidator(few),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}]}),
        Field(
            description="The reward model: linear, logistic (clicks: from 0 to 1), poisson (counts: from 0 "
            'on) or robust (outliers). Or an object such as {"model": "robust", '
            '"scale": 0.1}.'
        ),
    ] = None
    forget: Annotated[
        Number | None,
        Field(
            gt=0,
            description="How fast to forget. Up to 1: the weight of old rewards is multiplied by this factor "
            "at each new reward, such as 0.999. Above 1: the half-life in rewards, such as 700. null: "
            "nothing is forgotten. With actions, each reward makes the models of all actions forget.",
        ),
    ] = None
    propensities: Annotated[
        Literal["estimate", "none"],
        Field(description="What to do if a propensity is not exact (Thompson): estimate it later, or not."),
    ] = "estimate"
    actions: Annotated[
        Annotated[list[NewId], Field(min_length=1, max_length=1000, fail_fast=True)] | None,
        Field(description="Names of actions. Each gets its own model; decisions take a context, not arms."),
    ] = None
    slates: Annotated[
        Flag, Field(description="All ranked arms are shown, and each gets its own reward or the default.")
    ] = False
    arm_dim: Annotated[
        Whole | None,
        Field(
            ge=1,
            le=2**31 - 1,
            description="Features of a stored arm, if a context makes dim of them (concatenate, outer).",
        ),
    ] = None
    origin: Annotated[
        str | None,
        Field(
            alias="from",
            max_length=128,
            description="The name of another bandit. The new one first learns from its whole log.",
        ),
    ] = None


def _of_policy(name: str) -> tuple[Any, FieldInfo]:
    field = BanditRequest.model_fields[name]
    return field.annotation, copy(field)


class _CandidateBase(RequestModel):
    """A policy that learns from the same rewards and never decides. Its settings are those of a bandit."""

    reward_range: Annotated[
        tuple[Number, Number],
        Field(description="The smallest and the largest possible reward. The interval depends on them."),
    ] = (0.0, 1.0)


CandidateRequest = create_model(
    "CandidateRequest",
    __base__=_CandidateBase,
    __doc__=_CandidateBase.__doc__,
    **{name: _of_policy(name) for name in BanditRequest.model_fields if name not in (*OF_BANDIT, "origin")},  # type: ignore[call-overload]  # no overload takes fields by name
)
"""The settings of the policy, and the range of the rewards."""


class PromoteRequest(RequestModel):
    """What happens to the policy that decided until now."""

    keep: Annotated[
        Annotated[str, AfterValidator(bandit_name)] | None,
        Field(description="The old policy becomes a candidate with this name. null: it is deleted."),
    ] = None


_FEATURES: dict[str, Any] = {
    "description": "A list of dim numbers, or {indices, values}, or named features, which are hashed: a name "
    "with a text value is the feature 'name=value'.",
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
    Whole, Field(ge=1, le=2**31 - 1, description="Rank this many arms. The first one is the chosen arm.")
]


class DenseDecideRequest(RequestModel):
    """A decision among dense arms. This is the usual case, and it is read fast."""

    arms: Annotated[list[Annotated[list[Number], Field(fail_fast=True)]], Field(fail_fast=True)]
    top: Top | None = None


class DecideRequest(RequestModel):
    """The arms to choose from; or stored arms and a context; or a context for a bandit with actions."""

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
        Field(description="Features, or ids of stored arms. Without arms: all stored arms."),
    ] = None
    context: Annotated[
        Any,
        WithJsonSchema({"anyOf": [_FEATURES, _NULL]}),
        Field(
            description="The features of whom or what is decided for. For a bandit with actions, or together "
            "with stored arms."
        ),
    ] = None
    interaction: Annotated[
        Interaction | None,
        Field(
            description="How a context u and a stored arm x become dim features. product (the default): x "
            "times u, feature by feature. concatenate: u followed by x. outer: u[0] times x, then u[1] times "
            "x, and so on."
        ),
    ] = None
    actions: Annotated[
        Annotated[list[ArmId], Field(fail_fast=True)] | None,
        Field(description="For a bandit with actions: those to choose from. By default all offered ones."),
    ] = None
    top: Top | None = None


class KeyedDecideRequest(DecideRequest):
    """One decision of a batch."""

    key: Annotated[
        Key | None, Field(description="Idempotency key. The same key again gives the same decision.")
    ] = None


def _list_of(model: type[RequestModel]) -> dict[str, Any]:
    """Items are read one by one, so a bad item does no harm to the others."""
    return {"type": "array", "minItems": 1, "items": {"$ref": f"#/components/schemas/{model.__name__}"}}


class DecideBatchRequest(RequestModel):
    """Several decisions at once."""

    decisions: Annotated[list[Any], WithJsonSchema(_list_of(KeyedDecideRequest))]


Position = Annotated[Whole, Field(ge=0, le=2**31 - 1, description="Position of a shown arm, from 0.")]


class ShownReward(RequestModel):
    """The reward of one shown arm, by its position, its id or the name of the action."""

    reward: Number
    position: Position | None = None
    arm: ArmId | None = None
    action: ArmId | None = None


class RewardRequest(RequestModel):
    """The reward of a decision, of one arm of a slate, or of several arms of it."""

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
        Number | None, Field(description="Reward of the first arm, or of that position, arm or action.")
    ] = None
    position: Position | None = None
    arm: ArmId | None = None
    action: Annotated[ArmId | None, Field(description="The same as arm, for a bandit with actions.")] = None
    rewards: Annotated[
        Annotated[
            list[Annotated[ShownReward, BeforeValidator(few)]],
            Field(min_length=1, max_length=1000, fail_fast=True),
        ]
        | None,
        Field(description="Instead of reward: rewards of several arms. All are taken, or none."),
    ] = None


class RewardBatchRequest(RequestModel):
    """Several rewards at once. They are learned from in this order."""

    rewards: Annotated[list[Any], WithJsonSchema(_list_of(RewardRequest))]


class ArmsRequest(RequestModel):
    """Arms to store, by id. A known id gets new features."""

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
    """Actions to offer: new ones, or retired ones again."""

    actions: Annotated[list[NewId], Field(min_length=1, max_length=1000, fail_fast=True)]


class RetiredRequest(RequestModel):
    """Actions to retire: they are no longer offered."""

    actions: Annotated[list[ArmId], Field(min_length=1, max_length=1000, fail_fast=True)]


class RemovedRequest(RequestModel):
    """Stored arms to delete, by id."""

    arms: Annotated[list[ArmId], Field(min_length=1, max_length=1000, fail_fast=True)]
