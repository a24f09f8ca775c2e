"""What the bandits say, as answers."""

from dataclasses import asdict

from fastapi import Response
from pydantic import BaseModel

from sketchbandit.service.api.answer_models import (
    BanditAnswer,
    ErrorBody,
    FailedItem,
    HistoryAnswer,
    RecentAnswer,
    SketchAnswer,
    StatsAnswer,
)
from sketchbandit.service.api.bodies import JSON
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.problems import Problem


def json_response(answer: BaseModel, status: int = 200) -> Response:
    """An answer as it is sent."""
    return Response(answer.model_dump_json(), status, media_type=JSON)


def bandit_answer(bandit: Bandit) -> BanditAnswer:
    """A bandit and its settings."""
    return BanditAnswer(name=bandit.name, created=bandit.created, **asdict(bandit.config))


def failure(problem: Problem) -> FailedItem:
    """An item of a batch that was refused."""
    return FailedItem(status_code=problem.status, error=error_body(problem))


def error_body(problem: Problem) -> ErrorBody:
    """What went wrong."""
    return ErrorBody(code=problem.code, message=str(problem))


def stats_answer(bandit: Bandit, now: float) -> StatsAnswer:
    """Everything that the dashboard shows of a bandit."""
    totals, history, health = bandit.totals, bandit.history.until(now), bandit.policy.health()
    learned = bandit.policy.rounds
    return StatsAnswer(
        name=bandit.name,
        policy=bandit.config.policy,
        dim=bandit.config.dim,
        now=now,
        decisions=totals.decisions,
        rewards=totals.rewards,
        defaults=totals.defaults,
        mean_reward=totals.reward_sum / learned if learned else None,
        open=len(bandit.open),
        max_open=bandit.config.max_open,
        decisions_per_second=bandit.meter.rate(now, bandit.created),
        rounds=learned,
        stored_arms=len(bandit.arms),
        sketch=SketchAnswer(**bandit.sketch()),
        policy_bytes=bandit.policy.nbytes,
        open_bytes=bandit.open_bytes,
        health=health.sentence,
        is_healthy=not health.heading_for_linear_regret,
        history=HistoryAnswer(
            start=history.start,
            width=history.width,
            decisions=[bucket.decisions for bucket in history.buckets],
            rewards=[bucket.rewards for bucket in history.buckets],
            reward_sum=[bucket.reward_sum for bucket in history.buckets],
        ),
        recent=[RecentAnswer(**asdict(recent)) for recent in reversed(bandit.recent)],
    )
