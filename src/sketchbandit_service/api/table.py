"""All routes of the service."""

from functools import cache
from typing import TypedDict

from sketchbandit_service.api import answer_models as a
from sketchbandit_service.api import candidates
from sketchbandit_service.api import handlers as do
from sketchbandit_service.api import request_models as asked
from sketchbandit_service.api.decisions import decide, decide_batch
from sketchbandit_service.api.request_reader import NPY
from sketchbandit_service.api.rewards import reward, reward_batch
from sketchbandit_service.api.routing import Route, Table
from sketchbandit_service.http.messages import JSON

_BANDITS, _BANDIT = "/v1/bandits", "/v1/bandits/{name}"


class _Common(TypedDict, total=False):
    """Arguments that many routes share."""

    kinds: tuple[str, ...]
    scope: str
    statuses: tuple[int, ...]
    is_early: bool


_TAKES_JSON: _Common = {"kinds": (JSON,), "scope": "decide", "statuses": (404,), "is_early": True}
_EVERYDAY: _Common = {"scope": "decide", "statuses": (404,)}
_NOT_FOUND: _Common = {"statuses": (404,)}
_NPY_SCHEMA = {
    "type": "string",
    "format": "binary",
    "description": "A float32 or float64 matrix with one arm per row.",
}
_DECIDE = {
    "content": {NPY: {"schema": _NPY_SCHEMA}},
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"},
            "description": "The same key again gives the same decision, while it is open.",
        },
        {
            "name": "top",
            "in": "query",
            "required": False,
            "schema": {"type": "integer", "minimum": 1, "maximum": 999_999_999},
            "description": "The same as top in the body, for npy.",
        },
    ],
}
_RANGE = {
    "parameters": [
        {
            "name": "range",
            "in": "query",
            "required": False,
            "schema": {"type": "string", "enum": ["hour", "day", "week", "all"], "default": "all"},
            "description": "The last hour, day or week, or all time.",
        }
    ]
}


@cache
def table() -> Table:
    """The routes. Requests are answered by them, and the descriptions are made from them."""
    of_choices = (*_of_arms(), *_of_actions(), *_of_decisions())
    return Table((*_of_bandits(), *_of_candidates(), *of_choices, *_of_the_server()))


def _of_bandits() -> tuple[Route, ...]:
    return (
        Route("GET", _BANDITS, do.list_bandits, a.BanditsAnswer),
        Route(
            method="PUT",
            path=_BANDIT,
            handle=do.create_bandit,
            answer=a.BanditAnswer,
            body=asked.BanditRequest,
            scope="admin",
            kinds=(JSON,),
            statuses=(404, 409),
            details={"new": "It is new"},
        ),
        Route("GET", _BANDIT, do.show_bandit, a.BanditAnswer, **_NOT_FOUND),
        Route("DELETE", _BANDIT, do.delete_bandit, a.StatusAnswer, scope="admin", statuses=(404,)),
        Route("GET", f"{_BANDIT}/stats", do.stats, a.StatsAnswer, **_NOT_FOUND, details=_RANGE),
    )


def _of_candidates() -> tuple[Route, ...]:
    path = f"{_BANDIT}/candidates"
    one = f"{path}/{{candidate}}"
    return (
        Route("GET", path, candidates.list_candidates, a.CandidatesAnswer, **_NOT_FOUND),
        Route(
            method="PUT",
            path=one,
            handle=candidates.put_candidate,
            answer=a.CandidateAnswer,
            body=asked.CandidateRequest,
            scope="admin",
            kinds=(JSON,),
            statuses=(404, 409),
            details={"new": "It is new"},
            is_early=True,
        ),
        Route("GET", one, candidates.show_candidate, a.CandidateAnswer, **_NOT_FOUND),
        Route("DELETE", one, candidates.remove_candidate, a.StatusAnswer, scope="admin", statuses=(404,)),
        Route(
            method="POST",
            path=f"{one}/promote",
            handle=candidates.promote_candidate,
            answer=a.BanditAnswer,
            body=asked.PromoteRequest,
            scope="admin",
            kinds=(JSON,),
            statuses=(404, 409),
            is_early=True,
        ),
    )


def _of_arms() -> tuple[Route, ...]:
    path = f"{_BANDIT}/arms"
    return (
        Route("PUT", path, do.put_arms, a.StoredAnswer, body=asked.ArmsRequest, **_TAKES_JSON),
        Route("GET", path, do.list_arms, a.ArmsAnswer, statuses=(404, 413)),
        Route(
            method="POST",
            path=f"{path}/remove",
            handle=do.remove_arms,
            answer=a.StatusAnswer,
            body=asked.RemovedRequest,
            **_TAKES_JSON,
        ),
        Route("DELETE", f"{path}/{{arm}}", do.remove_arm, a.StatusAnswer, **_EVERYDAY),
    )


def _of_actions() -> tuple[Route, ...]:
    path = f"{_BANDIT}/actions"
    return (
        Route("GET", path, do.list_actions, a.ActionsAnswer, **_NOT_FOUND),
        Route("POST", path, do.add_actions, a.ActionsAnswer, body=asked.ActionsRequest, **_TAKES_JSON),
        Route(
            method="POST",
            path=f"{path}/retire",
            handle=do.retire_actions,
            answer=a.ActionsAnswer,
            body=asked.RetiredRequest,
            **_TAKES_JSON,
        ),
        Route("DELETE", f"{path}/{{action}}", do.retire_action, a.ActionsAnswer, **_EVERYDAY),
    )


def _of_decisions() -> tuple[Route, ...]:
    return (
        Route(
            method="POST",
            path=f"{_BANDIT}/decide",
            handle=decide,
            answer=a.DecisionAnswer,
            body=asked.DecideRequest,
            **(_TAKES_JSON | {"kinds": (JSON, NPY), "statuses": (404, 409)}),
            details=_DECIDE,
        ),
        Route(
            method="POST",
            path=f"{_BANDIT}/decide/batch",
            handle=decide_batch,
            answer=a.DecideBatchAnswer,
            body=asked.DecideBatchRequest,
            **_TAKES_JSON,
        ),
        Route(
            method="POST",
            path=f"{_BANDIT}/reward",
            handle=reward,
            answer=a.RewardAnswer,
            body=asked.RewardRequest,
            **(_TAKES_JSON | {"statuses": (404, 409, 410)}),
        ),
        Route(
            method="POST",
            path=f"{_BANDIT}/reward/batch",
            handle=reward_batch,
            answer=a.RewardBatchAnswer,
            body=asked.RewardBatchRequest,
            **_TAKES_JSON,
        ),
    )


def _of_the_server() -> tuple[Route, ...]:
    return (
        Route("GET", "/healthz", do.healthz, a.StatusAnswer, scope=None),
        Route("GET", "/readyz", do.readyz, a.ReadyAnswer, scope=None),
        Route("GET", "/metrics", do.metrics, "text/plain"),
    )
