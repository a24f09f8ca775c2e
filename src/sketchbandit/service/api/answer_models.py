"""What the service answers, as OpenAPI shows it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field


class ErrorBody(BaseModel):
    """What went wrong, and what to do."""

    code: str
    message: str


class ErrorAnswer(BaseModel):
    """Every answer but 2xx."""

    error: ErrorBody


class RankedArm(BaseModel):
    """One of the ``top``."""

    index: int
    arm: str | None
    score: float


class DecisionAnswer(BaseModel):
    """The arm to play. Send the reward with ``decision``."""

    decision: str
    index: Annotated[int, Field(description="Place of the arm in the request, or among the stored ones.")]
    arm: Annotated[str | None, Field(description="Its id, if it is a stored one.")]
    score: Annotated[float, Field(description="Its upper confidence bound.")]
    mean: Annotated[float, Field(description="The reward expected.")]
    propensity: Annotated[float, Field(description="The probability with which this arm was chosen.")]
    top: list[RankedArm] | None = None


class RewardAnswer(BaseModel):
    """``learned``, or ``known`` if the same reward had been there before."""

    decision: str
    status: Literal["learned", "known"]


class FailedItem(BaseModel):
    """An item of a batch that was refused."""

    status_code: int
    error: ErrorBody


class DecideBatchAnswer(BaseModel):
    """In the order of the request."""

    decisions: list[DecisionAnswer | FailedItem]


class RewardBatchAnswer(BaseModel):
    """In the order of the request."""

    rewards: list[RewardAnswer | FailedItem]


class ArmsAnswer(BaseModel):
    """The ids of the stored arms."""

    count: int
    arms: list[str]


class StoredAnswer(BaseModel):
    """How many arms are stored now."""

    count: int


class BanditAnswer(BaseModel):
    """A bandit and its settings."""

    name: str
    created: Annotated[float, Field(description="Seconds since 1970.")]
    dim: int
    policy: str
    parameters: dict[str, Any]
    reward_timeout: float | None
    default_reward: float | None
    max_open: int
    exploration: float
    log_arms: bool


class BanditsAnswer(BaseModel):
    """All bandits."""

    bandits: list[BanditAnswer]


class SketchAnswer(BaseModel):
    """The sketch of the arms played."""

    kind: str
    size: int
    rows: int
    is_exact: bool
    certificate: Annotated[float | None, Field(description="Bound on its spectral error; null: it has none.")]
    budget: Annotated[float | None, Field(description="What the certificate may be now; null: no bound.")]
    limit: Annotated[float | None, Field(description="What it may ever be; null: no bound.")]


class HistoryAnswer(BaseModel):
    """The whole life of the bandit in at most 240 stretches of equal length."""

    start: float
    width: float
    decisions: list[int]
    rewards: list[int]
    reward_sum: list[float]


class RecentAnswer(BaseModel):
    """One of the last decisions."""

    decision: str
    at: float
    arm: str
    arms: int
    score: float
    reward: float | None
    kind: str | None


class StatsAnswer(BaseModel):
    """What a bandit is doing."""

    name: str
    policy: str
    dim: int
    now: float
    decisions: int
    rewards: int
    defaults: Annotated[int, Field(description="Decisions nobody answered in time.")]
    mean_reward: float | None
    open: int
    max_open: int
    decisions_per_second: float
    rounds: Annotated[int, Field(description="Rewards that the policy has learned from.")]
    stored_arms: int
    sketch: SketchAnswer
    policy_bytes: int
    open_bytes: int
    health: str
    is_healthy: bool
    history: HistoryAnswer
    recent: list[RecentAnswer]


class StatusAnswer(BaseModel):
    """Whether the service is well."""

    status: str
