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

    position: int | None
    index: int
    arm: str | None
    score: float
    mean: float | None
    propensity: Annotated[float | None, Field(description="Given those before it; null: not known now.")]


class DecisionAnswer(BaseModel):
    """The arm to play. Send the reward with ``decision``."""

    decision: str
    index: Annotated[int, Field(description="Place of the arm in the request, or among the stored ones.")]
    arm: Annotated[str | None, Field(description="Its id, if it is a stored one; or the action.")]
    action: Annotated[str | None, Field(description="The action, where the bandit has such.")]
    score: Annotated[
        float,
        Field(description="Its upper confidence bound; of logistic and poisson rewards before the link."),
    ]
    mean: Annotated[float, Field(description="The reward expected: of logistic rewards a probability.")]
    propensity: Annotated[
        float | None, Field(description="The probability with which this arm was chosen, where it is exact.")
    ]
    propensity_kind: Annotated[
        Literal["exact", "estimate", "none"],
        Field(description="estimate: it is estimated after the answer, for the log; none: it is left out."),
    ]
    top: list[RankedArm] | None = None


Status = Literal["learned", "known"]


class TakenReward(BaseModel):
    """One reward of several."""

    position: int
    status: Status


class RewardAnswer(BaseModel):
    """``learned`` if anything was, or ``known`` if the same had been there before."""

    decision: str
    status: Status
    rewards: Annotated[list[TakenReward] | None, Field(description="Each, where several were sent.")] = None


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


class ActionsAnswer(BaseModel):
    """The names of a bandit's actions."""

    actions: Annotated[list[str], Field(description="Those that are offered.")]
    retired: Annotated[list[str], Field(description="Those that are offered no more, but still learn.")]


_Scaling = Annotated[
    str,
    Field(description="How features are read: as they are, rows, columns, or how far the warm-up is."),
]


class OriginAnswer(BaseModel):
    """The log that a bandit had learned from when it was created."""

    bandit: Annotated[str, Field(description="Whose log it is.")]
    rewards: Annotated[int, Field(description="How many it has learned from.")]
    dropped: Annotated[int, Field(description="How many were no longer in the log: --retention-days.")]


class PromotedAnswer(BaseModel):
    """The candidate that became the policy that decides."""

    name: str
    at: Annotated[float, Field(description="When: seconds since 1970.")]


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
    slates: bool
    explore: Annotated[dict[str, Any] | None, Field(description="The rule and all of its settings.")]
    propensities: Literal["estimate", "none"]
    actions: Annotated[list[str] | None, Field(description="Those that it began with.")]
    arm_dim: Annotated[int | None, Field(description="Features of a stored arm; null: dim.")]
    defaults: Annotated[
        dict[str, Any],
        Field(
            description="Ridge, scaling, intercept and rule where they were not given, as when it was "
            "created; no rule: UCB."
        ),
    ]
    rewards: Annotated[
        dict[str, Any] | None,
        Field(description="The reward model and all of its settings; null: that of the policy, linear."),
    ]
    forget: Annotated[float | None, Field(description="As given; null: nothing is forgotten.")]
    scaling: _Scaling
    origin: Annotated[OriginAnswer | None, Field(alias="from", description="null: it began with nothing.")]
    promoted: Annotated[
        PromotedAnswer | None, Field(description="By which the settings became these; null: as created.")
    ]
    candidates: Annotated[list[str], Field(description="Those that learn beside it.")]


class IntervalAnswer(BaseModel):
    """A mean reward, and an interval that holds at all times together with 95 %."""

    value: float
    low: Annotated[float | None, Field(description="null: a reward was outside of reward_range.")]
    high: float | None


class ValueAnswer(IntervalAnswer):
    """What a candidate would have earned, by the decisions of the policy that decides."""

    count: Annotated[int, Field(description="Decisions that it rests on.")]
    effective: Annotated[float, Field(description="Decisions of equal weight that they are worth.")]
    live: Annotated[IntervalAnswer, Field(description="What was earned by the same decisions.")]


class CandidateAnswer(BaseModel):
    """A candidate and its settings."""

    name: str
    created: Annotated[float, Field(description="Seconds since 1970.")]
    policy: str
    parameters: dict[str, Any]
    explore: Annotated[dict[str, Any] | None, Field(description="The rule and all of its settings.")]
    exploration: float
    rewards: dict[str, Any] | None
    forget: float | None
    defaults: dict[str, Any]
    reward_range: tuple[float, float]
    rounds: Annotated[int, Field(description="Rewards that it has learned from.")]
    refused: Annotated[int, Field(description="Rewards that its reward model has no place for.")]
    policy_bytes: int
    scaling: _Scaling
    health: str
    is_healthy: bool
    value: Annotated[ValueAnswer | None, Field(description="null: nothing can be told.")]
    value_note: Annotated[str | None, Field(description="Why not; or what it takes for granted.")]


class CandidatesAnswer(BaseModel):
    """All candidates of a bandit."""

    candidates: list[CandidateAnswer]


class QuarantinedAnswer(BaseModel):
    """A bandit that is out of service, and why."""

    name: str
    reason: str


class BanditsAnswer(BaseModel):
    """All bandits."""

    bandits: list[BanditAnswer]
    quarantined: Annotated[list[QuarantinedAnswer], Field(description="Those that are out of service.")]


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
    """The time asked for in at most 240 stretches of equal length."""

    start: float
    width: Annotated[float, Field(description="Seconds of a stretch.")]
    decisions: list[int]
    rewards: list[int]
    reward_sum: list[float]
    width_sum: Annotated[list[float], Field(description="Of the confidence widths of the arms shown first.")]


class ComparisonAnswer(BaseModel):
    """Mean rewards of the arms shown first: as they were chosen, and as if they had been drawn uniformly."""

    count: Annotated[int, Field(description="Rewards whose probability is known.")]
    mean_reward: float
    uniform: Annotated[float, Field(description="Estimated by inverse propensities.")]
    low: Annotated[float, Field(description="Of its 95 % interval.")]
    high: float


class ShareAnswer(BaseModel):
    """How often an arm was shown."""

    arm: Annotated[str, Field(description="Its id, or its index; empty: all others.")]
    shown: int


class RecentAnswer(BaseModel):
    """One of the last arms shown."""

    decision: str
    position: int
    at: float
    arm: str
    arms: int
    score: float
    width: float | None
    propensity: float | None
    reward: float | None
    kind: str | None


class StatsAnswer(BaseModel):
    """What a bandit is doing."""

    name: str
    policy: str
    explore: Annotated[str, Field(description="The rule by which arms are chosen.")]
    reward_model: Annotated[str, Field(description="linear, logistic, poisson or robust.")]
    forget: Annotated[float | None, Field(description="As given; null: nothing is forgotten.")]
    dim: int
    now: float
    decisions: int
    rewards: int
    defaults: Annotated[int, Field(description="Arms shown that nobody rewarded in time.")]
    mean_reward: float | None
    open: int
    max_open: int
    decisions_per_second: float
    rounds: Annotated[int, Field(description="Rewards that the policy has learned from.")]
    effective_rounds: Annotated[float, Field(description="The same, as far as they are not forgotten.")]
    stored_arms: int
    actions: Annotated[int | None, Field(description="Offered now; null: it chooses among arms.")]
    scaling: _Scaling
    sketch: SketchAnswer
    policy_bytes: int
    open_bytes: int
    health: str
    is_healthy: bool
    range: Annotated[str, Field(description="Of the four that follow: hour, day, week or all.")]
    history: HistoryAnswer
    comparison: Annotated[
        ComparisonAnswer | None, Field(description="Against a uniform choice; null: it cannot be told.")
    ]
    comparison_note: Annotated[str | None, Field(description="Why it cannot; or what it takes for granted.")]
    shares: Annotated[list[ShareAnswer], Field(description="The arms shown most, and all others.")]
    recent: list[RecentAnswer]
    candidates: Annotated[list[CandidateAnswer], Field(description="Those that learn beside it.")]


class StatusAnswer(BaseModel):
    """Whether the service is well."""

    status: str


class ReadyAnswer(BaseModel):
    """Whether the service takes requests."""

    status: str
    quarantined: Annotated[
        int, Field(description="Bandits that are out of service; others are not affected.")
    ]
