"""What the bandits say, as answers."""

import json
from dataclasses import asdict

from fastapi import Response
from pydantic import BaseModel

from sketchbandit.service.api.answer_models import (
    BanditAnswer,
    ComparisonAnswer,
    ErrorBody,
    FailedItem,
    HistoryAnswer,
    RecentAnswer,
    ShareAnswer,
    SketchAnswer,
    StatsAnswer,
)
from sketchbandit.service.api.bodies import JSON
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.comparing import compare, doubts
from sketchbandit.service.decision_ids import decision_id
from sketchbandit.service.exploring import reaches_all
from sketchbandit.service.history import History
from sketchbandit.service.problems import Problem
from sketchbandit.service.timeline import OTHERS, View

_MOST_SHARES = 10
_ANSWERED = (
    "It holds only if whether a decision is answered does not depend on its arm: those without an answer do "
    "not count. With reward_timeout and default_reward they do."
)


def json_response(answer: BaseModel, status: int = 200) -> Response:
    """An answer as it is sent."""
    return Response(answer.model_dump_json(), status, media_type=JSON)


def bandit_answer(bandit: Bandit) -> BanditAnswer:
    """A bandit and its settings."""
    scaling = bandit.told().described.scaling
    return BanditAnswer(name=bandit.name, created=bandit.created, scaling=scaling, **asdict(bandit.config))


def failure(problem: Problem) -> FailedItem:
    """An item of a batch that was refused."""
    return FailedItem(status_code=problem.status, error=error_body(problem))


def error_body(problem: Problem) -> ErrorBody:
    """What went wrong."""
    return ErrorBody(code=problem.code, message=str(problem))


def stats_answer(bandit: Bandit, now: float, over: str) -> StatsAnswer:
    """Everything that the dashboard shows of a bandit, over a range of time."""
    totals, known, view = bandit.totals, bandit.told(), bandit.timeline.view(over, now)
    told = known.described
    learned = known.rounds
    comparison, note = _comparison(bandit, view, now)
    return StatsAnswer(
        name=bandit.name,
        policy=bandit.config.policy,
        explore=bandit.config.rule.kind,
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
        actions=None if bandit.config.actions is None else len(bandit.actions),
        scaling=told.scaling,
        sketch=SketchAnswer(**told.sketch),
        policy_bytes=known.nbytes,
        open_bytes=bandit.open_bytes,
        health=told.sentence,
        is_healthy=told.is_healthy,
        range=over,
        history=_history(view.history),
        comparison=comparison,
        comparison_note=note,
        shares=_shares(view),
        recent=[_recent(recent) for recent in reversed(bandit.recent)],
    )


def _history(history: History) -> HistoryAnswer:
    buckets = history.buckets
    return HistoryAnswer(
        start=history.start,
        width=history.width,
        decisions=[bucket.decisions for bucket in buckets],
        rewards=[bucket.rewards for bucket in buckets],
        reward_sum=[bucket.reward_sum for bucket in buckets],
        width_sum=[bucket.width_sum for bucket in buckets],
    )


def _comparison(bandit: Bandit, view: View, now: float) -> tuple[ComparisonAnswer | None, str | None]:
    """Against a uniform choice, and what it takes for granted; or why that cannot be told."""
    if not reaches_all(bandit.config.rule):
        return None, (
            "Some arms are never drawn, so that nothing can be said of a uniform choice: create the bandit "
            "with exploration (a share drawn uniformly), or with a rule that draws."
        )
    total, timeout = bandit.compared(view, now), bandit.config.reward_timeout
    found = compare(total)
    if found is None:
        wait = (
            "" if timeout is None else f" Decisions count when {timeout:g} seconds (reward_timeout) are over."
        )
        return None, f"{doubts(total)}{wait}"
    takes_answers = timeout is None or bandit.config.default_reward is None
    return ComparisonAnswer(**asdict(found)), _ANSWERED if takes_answers else None


def _shares(view: View) -> list[ShareAnswer]:
    most = [(arm, count) for arm, count in view.shares.most_common(_MOST_SHARES + 1) if arm != OTHERS]
    found = [ShareAnswer(arm=arm, shown=count) for arm, count in most[:_MOST_SHARES]]
    rest = view.shares.total() - sum(share.shown for share in found)
    return [*found, ShareAnswer(arm=OTHERS, shown=rest)] if rest else found


def _recent(recent):
    row = recent.row
    return RecentAnswer(
        decision=decision_id(row.first, row.tag),
        position=row.position,
        at=row.at,
        arm=row.arm_name,
        arms=row.arm_count,
        score=row.score,
        width=row.width,
        propensity=row.propensity or None,
        reward=recent.reward,
        kind=recent.kind,
    )


def decision_json(bandit, row):
    top = (
        None
        if row.top is None
        else [{"position": None, "mean": None, "propensity": None, **one} for one in json.loads(row.top)]
    )
    return {
        "decision": decision_id(row.seq, row.tag),
        "index": row.arm_index,
        "arm": row.arm_id,
        "action": None if bandit.config.actions is None else row.arm_id,
        "score": row.score,
        "mean": row.mean,
        "propensity": row.propensity or None,
        "propensity_kind": "exact" if row.propensity else bandit.config.propensities,
        "top": top,
    }
