"""Makes answers from what the bandits know."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from io import BytesIO

from sketchbandit_service.accounts import Recent
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.candidate import Candidate
from sketchbandit_service.candidate_value import Valued
from sketchbandit_service.comparing import Comparison, compare
from sketchbandit_service.config import ESTIMATE, NONE
from sketchbandit_service.decision_ids import decision_id
from sketchbandit_service.engine import Engine
from sketchbandit_service.estimating import can_estimate
from sketchbandit_service.history import History
from sketchbandit_service.http.messages import JSON, Response
from sketchbandit_service.http.responses import error_body, utf8
from sketchbandit_service.pacing import politely
from sketchbandit_service.problems import Problem
from sketchbandit_service.storage.records import DecisionRow
from sketchbandit_service.timeline import OTHERS, RangeView

_EXACT = "exact"
_RANKED = '[{"position":'
_UNSAID = {"position": None, "mean": None, "propensity": None}
"""Fields that rankings in journals of format 1 do not have."""
_MOST_SHARES = 10
_SLICE = 500  # entries that are written at once; this takes about a millisecond
_ANSWERED = (
    "This is valid only if the arm does not influence whether a reward is sent: decisions without a reward "
    "are not counted. Set reward_timeout and default_reward to count them."
)
_write = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode


def written(answer: object) -> bytes:
    """The answer as JSON. A number that is not finite becomes null, since JSON has no such numbers."""
    try:
        return utf8(_write(answer))
    except ValueError:
        return utf8(_write(_finite(answer)))


def _finite(answer: object) -> object:
    if isinstance(answer, dict):
        return {name: _finite(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [_finite(value) for value in answer]
    return answer if not isinstance(answer, float) or abs(answer) < float("inf") else None


async def written_list(engine: Engine, items: Sequence[object]) -> bytes:
    """A list as JSON. A long list is written in a thread, slice by slice."""
    if len(items) <= _SLICE:
        return written(items)

    def write() -> bytes:
        whole = BytesIO()  # its getvalue makes no copy
        for at in politely(range(0, len(items), _SLICE)):
            whole.write(b"," if at else b"[")
            whole.write(written(items[at : at + _SLICE])[1:-1])
        whole.write(b"]")
        return whole.getvalue()

    return await engine.threads.run(write)


def response(answer: object, status: int = 200) -> Response:
    """The response for an answer: bytes are sent as they are, anything else is written as JSON."""
    return Response(status, answer if isinstance(answer, bytes) else written(answer), JSON)


def failure(problem: Problem) -> dict[str, object]:
    """The answer for an item of a batch that was refused."""
    return {"status_code": problem.status, "error": error_body(problem)}


def decision_answer(bandit: Bandit, row: DecisionRow) -> bytes:
    """A decision, by its first row. The ranking is stored as JSON; old rankings have fewer fields."""
    head: dict[str, object] = {
        "decision": decision_id(row.seq, row.tag),
        "index": row.arm_index,
        "arm": row.arm_id,
        "action": None if bandit.config.actions is None else row.arm_id,
        "score": row.score,
        "mean": row.mean,
        "propensity": row.propensity or None,
        "propensity_kind": _kind(bandit, row),
        "top": None,
    }
    if row.top is None:
        return written(head)
    if not row.top.startswith(_RANKED):
        return written({**head, "top": [{**_UNSAID, **ranked} for ranked in json.loads(row.top)]})
    return b"".join((written(head)[: -len("null}")], utf8(row.top), b"}"))


def _kind(bandit: Bandit, row: DecisionRow) -> str:
    """How the propensity of a decision is known."""
    if row.propensity:
        return _EXACT
    places = row.top.count('"position":') if bandit.config.slates and row.top else 1
    return ESTIMATE if can_estimate(bandit, row.arm_count, places) else NONE


def _why_unknown(bandit: Bandit) -> str | None:
    """Why no propensity will ever be known. None if some will be.

    It is judged by the last decision. After a restart there may be none yet: then by the stored arms.
    """
    if not bandit.knows_chances:
        return "The bandit was created with propensities: none, so the log has none."
    if bandit.policy.explore.exact_probabilities:
        return None
    arms, shown = len(bandit.arms), 1
    if recent := bandit.accounts.recent:
        arms, shown = recent[-1].arm_count, sum(row.first == recent[-1].first for row in recent)
    if can_estimate(bandit, arms, shown):
        return None
    return (
        f"Thompson sampling gets no propensity for a choice of {shown} among {arms} arms: an estimate would "
        "take too long, and more time does not help. Create a bandit with the rule inverse-gap or "
        "epsilon-greedy: their propensities are exact."
    )


def bandit_answer(bandit: Bandit, *, is_one_of_many: bool = False) -> dict[str, object]:
    """A bandit and its settings."""
    scaling = bandit.about(is_one_of_many=is_one_of_many).described.scaling
    head = {"name": bandit.name, "created": bandit.created, "scaling": scaling}
    promoted = None if bandit.promoted is None else bandit.promoted._asdict()
    origin = None
    if bandit.origin is not None:
        origin = {name: getattr(bandit.origin, name) for name in ("rewards", "dropped")}
        origin["bandit"] = bandit.origin.name
    began = {"from": origin, "promoted": promoted, "candidates": [*bandit.shadows.by_name]}
    return {**head, **asdict(bandit.config), **began}


async def stats_answer(engine: Engine, bandit: Bandit, over: str) -> dict[str, object]:
    """Everything that the dashboard shows of a bandit, for a time range."""
    now, totals, known = engine.clock.now(), bandit.accounts.totals, bandit.about()
    view, rewarded = bandit.accounts.timeline.view(over, now), bandit.accounts.rewarded
    told, weighted = known.described, bandit.accounts.compared(view, now)
    answer = {
        "name": bandit.name,
        "policy": bandit.config.policy,
        "explore": bandit.config.rule.kind,
        "reward_model": bandit.model.kind,
        "forget": bandit.config.forget,
        "baseline": told.baseline,
        "dim": bandit.config.dim,
        "now": now,
        "decisions": totals.decisions,
        "rewards": totals.rewards,
        "defaults": totals.defaults,
        "mean_reward": totals.reward_sum / rewarded if rewarded else None,
        "open": len(bandit.open),
        "max_open": bandit.config.max_open,
        "decisions_per_second": bandit.accounts.meter.rate(now, bandit.created),
        "rounds": known.rounds,
        "effective_rounds": told.effective_rounds,
        "stored_arms": len(bandit.arms),
        "actions": None if bandit.config.actions is None else len(bandit.actions),
        "scaling": told.scaling,
        "sketch": told.sketch,
        "policy_bytes": known.nbytes,
        "open_bytes": bandit.open_bytes,
        "health": told.sentence,
        "is_healthy": told.is_healthy,
        "untried": told.untried,
        "range": over,
        "history": _history(view.history),
        "shares": _shares(view),
        "recent": [_recent(one) for one in reversed(bandit.accounts.recent)],
        "candidates": [candidate_answer(bandit, one, now) for one in bandit.shadows],
    }
    compared = await engine.threads.run(compare, weighted)  # an interval takes some milliseconds
    comparison, note = _comparison(bandit, compared, weighted.count)
    return {**answer, "comparison": comparison, "comparison_note": note}


def candidate_answer(bandit: Bandit, candidate: Candidate, now: float) -> dict[str, object]:
    """A candidate, its settings and what it would have earned."""
    known, valued = candidate.about, bandit.valued(candidate, now)
    value = None
    if valued is not None:
        of_both = {**valued.candidate._asdict(), "live": valued.live._asdict()}
        told = {"count": valued.count, "effective": valued.effective, "verdict": valued.verdict or None}
        value = {**told, **of_both}
    return {
        "name": candidate.name,
        "created": candidate.created,
        **candidate.config.of_policy,
        "reward_range": list(candidate.reward_range),
        "rounds": 0 if known is None else known.rounds,
        "refused": candidate.refused,
        "policy_bytes": 0 if known is None else known.nbytes,
        "scaling": "not known yet" if known is None else known.described.scaling,
        "health": "not known yet" if known is None else known.described.sentence,
        "is_healthy": known is None or known.described.is_healthy,
        "value": value,
        "value_note": _value_note(bandit, candidate, valued),
    }


def _value_note(bandit: Bandit, candidate: Candidate, valued: Valued | None) -> str | None:
    """Why there is no value or no interval, or what the value assumes."""
    timeout = bandit.config.reward_timeout
    if valued is None:
        if not bandit.reaches_all:
            return (
                "Some arms are never drawn, so the value of another policy cannot be estimated. Create the "
                "bandit with exploration (a share of uniform choices), or with a rule that draws at random."
            )
        if (why := _why_unknown(bandit)) is not None:
            return f"No value can be estimated. {why}"
        wait = "" if timeout is None else f" A decision counts {timeout:g} seconds (reward_timeout) after it."
        return f"No decisions to estimate it from yet; none count while the candidate warms up.{wait}"
    if valued.live.low is None:
        least, most = candidate.reward_range
        return (
            f"Some rewards are outside reward_range, {least:g} to {most:g}, so there is no interval. "
            "Remove the candidate and add it again with a range that covers all rewards."
        )
    takes_answers = timeout is None or bandit.config.default_reward is None
    return _ANSWERED if takes_answers else None


def _history(history: History) -> dict[str, object]:
    buckets = history.buckets
    return {
        "start": history.start,
        "width": history.width,
        "decisions": [bucket.decisions for bucket in buckets],
        "rewards": [bucket.rewards for bucket in buckets],
        "defaults": [bucket.defaults for bucket in buckets],
        "reward_sum": [bucket.reward_sum for bucket in buckets],
        "width_sum": [bucket.width_sum for bucket in buckets],
    }


def _comparison(
    bandit: Bandit, compared: Comparison | str, count: int
) -> tuple[dict[str, object] | None, str | None]:
    """The comparison with a uniform choice and what it assumes, or why there is none."""
    if not bandit.reaches_all:
        return None, (
            "Some arms are never drawn, so there is no comparison with a uniform choice. Create the bandit "
            "with exploration (a share of uniform choices), or with a rule that draws at random."
        )
    timeout = bandit.config.reward_timeout
    if not count and (why := _why_unknown(bandit)) is not None:
        return None, f"There is no comparison with a uniform choice. {why}"
    if isinstance(compared, str):
        wait = "" if timeout is None else f" A decision counts {timeout:g} seconds (reward_timeout) after it."
        return None, f"{compared}{wait}"
    takes_answers = timeout is None or bandit.config.default_reward is None
    return asdict(compared), _ANSWERED if takes_answers else None


def _shares(view: RangeView) -> list[dict[str, object]]:
    most = [(arm, count) for arm, count in view.shares.most_common(_MOST_SHARES + 1) if arm != OTHERS]
    found: list[dict[str, object]] = [{"arm": arm, "shown": count} for arm, count in most[:_MOST_SHARES]]
    rest = view.shares.total() - sum(count for _, count in most[:_MOST_SHARES])
    return [*found, {"arm": OTHERS, "shown": rest}] if rest else found


def _recent(recent: Recent) -> dict[str, object]:
    return {
        "decision": decision_id(recent.first, recent.tag),
        "position": recent.position,
        "at": recent.at,
        "arm": recent.arm,
        "arms": recent.arm_count,
        "score": recent.score,
        "width": recent.width,
        "propensity": recent.propensity or None,
        "reward": recent.reward,
        "kind": recent.kind,
    }
