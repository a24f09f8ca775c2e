"""The answers of the service, as OpenAPI shows them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field


class ErrorBody(BaseModel):
    """What went wrong, and what to do."""

    code: str
    message: str


class ErrorAnswer(BaseModel):
    """Every answer that is not 2xx."""

    error: ErrorBody


class RankedArm(BaseModel):
    """One of the ranked arms."""

    position: int | None
    index: int
    arm: str | None
    score: float
    mean: float | None
    propensity: Annotated[float | None, Field(description="Given the arms before it. null: not yet known.")]


class DecisionAnswer(BaseModel):
    """The arm to play. Send its reward together with ``decision``."""

    decision: str
    index: Annotated[int, Field(description="Place of the arm in the request, or among the stored arms.")]
    arm: Annotated[str | None, Field(description="Id of the arm if it is stored, or the action.")]
    action: Annotated[str | None, Field(description="The action, for a bandit with actions.")]
    score: Annotated[
        float,
        Field(description="Upper confidence bound; with logistic and poisson rewards before the link."),
    ]
    mean: Annotated[float, Field(description="Expected reward; with logistic rewards a probability.")]
    propensity: Annotated[
        float | None, Field(description="Probability of choosing this arm. null: not known exactly.")
    ]
    propensity_kind: Annotated[
        Literal["exact", "estimate", "none"],
        Field(description="estimate: it is estimated after the answer, for the log. none: there is none."),
    ]
    top: list[RankedArm] | None = None


Status = Literal["learned", "known"]


class TakenReward(BaseModel):
    """One of several rewards."""

    position: int
    status: Status


class RewardAnswer(BaseModel):
    """``learned`` if anything new was learned, ``known`` if the same reward had come before."""

    decision: str
    status: Status
    rewards: Annotated[list[TakenReward] | None, Field(description="One each, if several were sent.")] = None


class FailedItem(BaseModel):
    """An item of a batch that was refused."""

    status_code: int
    error: ErrorBody


class DecideBatchAnswer(BaseModel):
    """The decisions in the order of the request."""

    decisions: list[DecisionAnswer | FailedItem]


class RewardBatchAnswer(BaseModel):
    """The rewards in the order of the request."""

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

    actions: Annotated[list[str], Field(description="The offered actions.")]
    retired: Annotated[list[str], Field(description="Actions that are not offered, but still learn.")]


_Scaling = Annotated[
    str,
    Field(description="How features are scaled: not at all, rows, columns, or the state of the warm-up."),
]


class OriginAnswer(BaseModel):
    """The log that a bandit learned from when it was created."""

    bandit: Annotated[str, Field(description="The bandit that the log belongs to.")]
    rewards: Annotated[int, Field(description="Rewards that were learned from.")]
    dropped: Annotated[int, Field(description="Rewards no longer in the log; see --retention-days.")]


class PromotedAnswer(BaseModel):
    """The candidate whose policy decides now."""

    name: str
    at: Annotated[float, Field(description="Time of the promotion, in seconds since 1970.")]


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
    actions: Annotated[list[str] | None, Field(description="The actions it was created with.")]
    arm_dim: Annotated[int | None, Field(description="Features of a stored arm. null: dim.")]
    defaults: Annotated[
        dict[str, Any],
        Field(
            description="Ridge, scaling, intercept, baseline and rule, where the request gave none. They "
            "stay as they were when the bandit was created. No rule: UCB."
        ),
    ]
    rewards: Annotated[
        dict[str, Any] | None,
        Field(description="The reward model and all of its settings. null: the policy's own, linear."),
    ]
    forget: Annotated[float | None, Field(description="As given. null: nothing is forgotten.")]
    scaling: _Scaling
    origin: Annotated[OriginAnswer | None, Field(alias="from", description="null: it began empty.")]
    promoted: Annotated[
        PromotedAnswer | None, Field(description="The last promotion. null: the settings are as created.")
    ]
    candidates: Annotated[list[str], Field(description="Names of its candidates.")]


class IntervalAnswer(BaseModel):
    """A mean reward and its interval, which holds at all times at once with probability 95 %."""

    value: float
    low: Annotated[float | None, Field(description="null: nothing can be said; see verdict.")]
    high: float | None


class ValueAnswer(IntervalAnswer):
    """What a candidate would have earned, estimated from the decisions of the deciding policy."""

    count: Annotated[int, Field(description="Decisions in the estimate.")]
    effective: Annotated[float, Field(description="Effective sample size of these decisions.")]
    verdict: Annotated[
        str | None,
        Field(description="Why it is not clear which of the two earns more. null: the intervals are apart."),
    ]
    live: Annotated[IntervalAnswer, Field(description="What the same decisions really earned.")]


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
    refused: Annotated[int, Field(description="Rewards that its reward model cannot take.")]
    policy_bytes: int
    scaling: _Scaling
    health: str
    is_healthy: bool
    value: Annotated[ValueAnswer | None, Field(description="null: there is no estimate.")]
    value_note: Annotated[str | None, Field(description="Why there is none, or what it assumes.")]


class CandidatesAnswer(BaseModel):
    """All candidates of a bandit."""

    candidates: list[CandidateAnswer]


class QuarantinedAnswer(BaseModel):
    """A bandit that is out of service, and the reason."""

    name: str
    reason: str


class BanditsAnswer(BaseModel):
    """All bandits."""

    bandits: list[BanditAnswer]
    quarantined: Annotated[list[QuarantinedAnswer], Field(description="Bandits out of service.")]


class SketchAnswer(BaseModel):
    """The sketch of the played arms."""

    kind: str
    size: int
    rows: int
    is_exact: bool
    certificate: Annotated[float | None, Field(description="Bound on its spectral error. null: none.")]
    budget: Annotated[float | None, Field(description="Largest allowed certificate now. null: no bound.")]
    limit: Annotated[float | None, Field(description="Largest allowed certificate ever. null: no bound.")]


class HistoryAnswer(BaseModel):
    """The time range in at most 240 intervals of equal length."""

    start: float
    width: Annotated[float, Field(description="Length of an interval in seconds.")]
    decisions: list[int]
    rewards: list[int]
    defaults: Annotated[list[int], Field(description="Rewards that were the default: none came in time.")]
    reward_sum: list[float]
    width_sum: Annotated[list[float], Field(description="Sum of confidence widths of the first arms.")]


class ComparisonAnswer(BaseModel):
    """Mean reward of the first arms: as they were chosen, and as if they had been drawn uniformly."""

    count: Annotated[int, Field(description="Rewards with a known propensity.")]
    mean_reward: float
    uniform: Annotated[float, Field(description="Estimated with inverse propensities, self-normalised.")]
    low: Annotated[float, Field(description="Lower end of its 95 % interval.")]
    high: float


class ShareAnswer(BaseModel):
    """How often an arm was shown."""

    arm: Annotated[str, Field(description="Its id or its index. Empty: all other arms.")]
    shown: int


class RecentAnswer(BaseModel):
    """One of the arms shown last."""

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
    explore: Annotated[str, Field(description="The rule that chooses arms.")]
    reward_model: Annotated[str, Field(description="linear, logistic, poisson or robust.")]
    forget: Annotated[float | None, Field(description="As given. null: nothing is forgotten.")]
    baseline: Annotated[
        float | None,
        Field(
            description="The mean of the rewards learned, which an arm without data is expected to pay. "
            "null: rewards are learned as they are."
        ),
    ]
    dim: int
    now: float
    decisions: int
    rewards: int
    defaults: Annotated[int, Field(description="Shown arms whose reward did not come in time.")]
    mean_reward: float | None
    open: int
    max_open: int
    decisions_per_second: float
    rounds: Annotated[int, Field(description="Rewards that the policy has learned from.")]
    effective_rounds: Annotated[float, Field(description="The rounds that are not forgotten.")]
    stored_arms: int
    actions: Annotated[int | None, Field(description="Offered actions. null: it chooses among arms.")]
    scaling: _Scaling
    sketch: SketchAnswer
    policy_bytes: int
    open_bytes: int
    health: str
    is_healthy: bool
    untried: Annotated[
        list[str],
        Field(description="Actions or stored arms that were (nearly) never tried, after many rewards."),
    ]
    range: Annotated[str, Field(description="Time range of the next four fields: hour, day, week or all.")]
    history: HistoryAnswer
    comparison: Annotated[
        ComparisonAnswer | None, Field(description="Comparison with a uniform choice. null: not possible.")
    ]
    comparison_note: Annotated[str | None, Field(description="Why there is none, or what it assumes.")]
    shares: Annotated[list[ShareAnswer], Field(description="The arms shown most, and all others together.")]
    recent: list[RecentAnswer]
    candidates: Annotated[list[CandidateAnswer], Field(description="Policies that learn beside it.")]


class StatusAnswer(BaseModel):
    """Whether the service is well."""

    status: str


class ReadyAnswer(BaseModel):
    """Whether the service accepts requests."""

    status: str
    quarantined: Annotated[
        int, Field(description="Number of bandits out of service. Other bandits are not affected.")
    ]
