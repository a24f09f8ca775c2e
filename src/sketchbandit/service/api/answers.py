"""What the bandits say, as answers."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sketchbandit.service.api.reading import apart
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.comparing import compare, doubts
from sketchbandit.service.describing import describe, describe_scaling
from sketchbandit.service.engine import Engine
from sketchbandit.service.exploring import reaches_all
from sketchbandit.service.http.messages import JSON, Response
from sketchbandit.service.politeness import politely
from sketchbandit.service.problems import Problem
from sketchbandit.service.timeline import OTHERS, View

HEADERS = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
"""Of every answer."""
_MOST_SHARES = 10
_SLICE = 500  # entries that are written at once: a millisecond
_ANSWERED = (
    "It holds only if whether a decision is answered does not depend on its arm: those without an answer do "
    "not count. With reward_timeout and default_reward they do."
)
_write = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def written(answer: Any) -> bytes:
    """As JSON, which has no word for numbers that are not finite: null."""
    try:
        return _write(answer).encode()
    except ValueError:
        return _write(_finite(answer)).encode()


def _finite(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _finite(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [_finite(value) for value in answer]
    return answer if not isinstance(answer, float) or abs(answer) < float("inf") else None


async def written_list(engine: Engine, items: Sequence[Any]) -> bytes:
    """A list as JSON; a long one is written in a thread, slice by slice."""
    if len(items) <= _SLICE:
        return written(items)

    def write() -> bytes:
        slices = (items[at : at + _SLICE] for at in range(0, len(items), _SLICE))
        return b"[" + b",".join(written(some)[1:-1] for some in politely(slices)) + b"]"

    return await apart(engine, write)


def response(answer: Any, status: int = 200) -> Response:
    """An answer as it is sent: bytes, or what is yet to be written."""
    return Response(status, answer if isinstance(answer, bytes) else written(answer), JSON, HEADERS)


def refusal(problem: Problem) -> Response:
    """The answer to what was refused."""
    headers = dict(HEADERS)
    if problem.retry_after is not None:
        headers["retry-after"] = str(problem.retry_after)
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    return Response(problem.status, written({"error": error_body(problem)}), JSON, headers)


def error_body(problem: Problem) -> dict[str, str]:
    """What went wrong."""
    return {"code": problem.code, "message": str(problem)}


def failure(problem: Problem) -> dict[str, Any]:
    """An item of a batch that was refused."""
    return {"status_code": problem.status, "error": error_body(problem)}


async def decision_answer(engine: Engine, decided: Any) -> bytes:
    """A decision."""
    head = {
        "decision": decided.decision,
        "index": decided.index,
        "arm": decided.arm,
        "action": decided.action,
        "score": decided.score,
        "mean": decided.mean,
        "propensity": decided.propensity,
        "propensity_kind": decided.propensity_kind,
        "top": None,
    }
    if decided.top is None:
        return written(head)
    return b"".join((written(head)[: -len("null}")], await written_list(engine, decided.top), b"}"))


def bandit_answer(bandit: Bandit) -> dict[str, Any]:
    """A bandit and its settings."""
    head = {"name": bandit.name, "created": bandit.created, "scaling": describe_scaling(bandit.policy)}
    return {**head, **asdict(bandit.config)}


def stats_answer(bandit: Bandit, now: float, over: str) -> dict[str, Any]:
    """Everything that the dashboard shows of a bandit, over a range of time."""
    totals, told, view = bandit.totals, describe(bandit.policy), bandit.timeline.view(over, now)
    learned = bandit.policy.rounds
    comparison, note = _comparison(bandit, view, now)
    return {
        "name": bandit.name,
        "policy": bandit.config.policy,
        "explore": bandit.config.rule.kind,
        "dim": bandit.config.dim,
        "now": now,
        "decisions": totals.decisions,
        "rewards": totals.rewards,
        "defaults": totals.defaults,
        "mean_reward": totals.reward_sum / learned if learned else None,
        "open": len(bandit.open),
        "max_open": bandit.config.max_open,
        "decisions_per_second": bandit.meter.rate(now, bandit.created),
        "rounds": learned,
        "stored_arms": len(bandit.arms),
        "actions": None if bandit.config.actions is None else len(bandit.policy.actions),
        "scaling": told.scaling,
        "sketch": told.sketch,
        "policy_bytes": bandit.policy.nbytes,
        "open_bytes": bandit.open_bytes,
        "health": told.sentence,
        "is_healthy": told.is_healthy,
        "range": over,
        "history": _history(view.history),
        "comparison": comparison,
        "comparison_note": note,
        "shares": _shares(view),
        "recent": [asdict(recent) for recent in reversed(bandit.recent)],
    }


def _history(history: Any) -> dict[str, Any]:
    buckets = history.buckets
    return {
        "start": history.start,
        "width": history.width,
        "decisions": [bucket.decisions for bucket in buckets],
        "rewards": [bucket.rewards for bucket in buckets],
        "reward_sum": [bucket.reward_sum for bucket in buckets],
        "width_sum": [bucket.width_sum for bucket in buckets],
    }


def _comparison(bandit: Bandit, view: View, now: float) -> tuple[dict[str, Any] | None, str | None]:
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
    return asdict(found), _ANSWERED if takes_answers else None


def _shares(view: View) -> list[dict[str, Any]]:
    most = [(arm, count) for arm, count in view.shares.most_common(_MOST_SHARES + 1) if arm != OTHERS]
    found: list[dict[str, Any]] = [{"arm": arm, "shown": count} for arm, count in most[:_MOST_SHARES]]
    rest = view.shares.total() - sum(share["shown"] for share in found)
    return [*found, {"arm": OTHERS, "shown": rest}] if rest else found
