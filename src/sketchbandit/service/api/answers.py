"""What the bandits say, as answers."""

from dataclasses import asdict

from sketchbandit.service.api import models
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.decisions import Decided
from sketchbandit.service.problems import Problem


def bandit_answer(bandit: Bandit) -> models.BanditAnswer:
    """A bandit and its settings."""
    return models.BanditAnswer(name=bandit.name, created=bandit.created, **asdict(bandit.config))


def decision_answer(decided: Decided) -> models.DecisionAnswer:
    """A decision."""
    return models.DecisionAnswer(**asdict(decided))


def failure(problem: Problem) -> models.FailedItem:
    """An item of a batch that was refused."""
    return models.FailedItem(status_code=problem.status, error=error_body(problem))


def error_body(problem: Problem) -> models.ErrorBody:
    """What went wrong."""
    return models.ErrorBody(code=problem.code, message=str(problem))


def stats_answer(bandit: Bandit, now: float) -> models.StatsAnswer:
    """Everything that the dashboard shows of a bandit."""
    totals, history, health = bandit.totals, bandit.history.until(now), bandit.policy.health()
    learned = bandit.policy.rounds
    return models.StatsAnswer(
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
        sketch=models.SketchAnswer(**bandit.sketch()),
        policy_bytes=bandit.policy.nbytes,
        open_bytes=bandit.open_bytes,
        health=health.sentence,
        is_healthy=not health.heading_for_linear_regret,
        history=models.HistoryAnswer(
            start=history.start,
            width=history.width,
            decisions=[bucket.decisions for bucket in history.buckets],
            rewards=[bucket.rewards for bucket in history.buckets],
            reward_sum=[bucket.reward_sum for bucket in history.buckets],
        ),
        recent=[models.RecentAnswer(**asdict(recent)) for recent in reversed(bandit.recent)],
    )
