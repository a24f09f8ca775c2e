"""All that can be asked of the service."""

from functools import cache
from typing import Any

from sketchbandit.service.api import answer_models as answers
from sketchbandit.service.api import handlers as do
from sketchbandit.service.api import request_models as asked
from sketchbandit.service.api.decisions import decide, decide_batch
from sketchbandit.service.api.reading import NPY
from sketchbandit.service.api.rewards import reward, reward_batch
from sketchbandit.service.api.routing import Route, Table
from sketchbandit.service.http.messages import JSON

_BANDITS, _BANDIT = "/v1/bandits", "/v1/bandits/{name}"
_TAKES_JSON: dict[str, Any] = {"kinds": (JSON,), "scope": "decide", "statuses": (404,), "is_early": True}
_EVERYDAY: dict[str, Any] = {"scope": "decide", "statuses": (404,)}
_NOT_FOUND: dict[str, Any] = {"statuses": (404,)}
_NPY_SCHEMA = {
    "type": "string",
    "format": "binary",
    "description": "A float32 or float64 matrix, one arm a row.",
}
_DECIDE = {
    "content": {NPY: {"schema": _NPY_SCHEMA}},
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"},
            "description": "Again with the same key: the same decision, if it is still open.",
        },
        {
            "name": "top",
            "in": "query",
            "required": False,
            "schema": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
            "description": "As in the body, for npy.",
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
            "description": "The last hour, ..., or ever.",
        }
    ]
}


@cache
def table() -> Table:
    """The routes, as they are described too."""
    a = answers
    return Table(
        (
            Route("GET", _BANDITS, do.list_bandits, a.BanditsAnswer),
            Route(
                *(
                    "PUT",
                    _BANDIT,
                    do.create_bandit,
                    a.BanditAnswer,
                    asked.BanditRequest,
                    "admin",
                    (JSON,),
                    (409,),
                ),
                details={"new": "It is new"},
            ),
            Route("GET", _BANDIT, do.show_bandit, a.BanditAnswer, **_NOT_FOUND),
            Route("DELETE", _BANDIT, do.delete_bandit, a.StatusAnswer, scope="admin", statuses=(404,)),
            Route("GET", f"{_BANDIT}/stats", do.stats, a.StatsAnswer, **_NOT_FOUND, details=_RANGE),
            Route("PUT", f"{_BANDIT}/arms", do.put_arms, a.StoredAnswer, asked.ArmsRequest, **_TAKES_JSON),
            Route("GET", f"{_BANDIT}/arms", do.list_arms, a.ArmsAnswer, **_NOT_FOUND),
            Route(
                *("POST", f"{_BANDIT}/arms/remove", do.remove_arms, a.StatusAnswer, asked.RemovedRequest),
                **_TAKES_JSON,
            ),
            Route("DELETE", f"{_BANDIT}/arms/{{arm}}", do.remove_arm, a.StatusAnswer, **_EVERYDAY),
            Route("GET", f"{_BANDIT}/actions", do.list_actions, a.ActionsAnswer, **_NOT_FOUND),
            Route(
                *("POST", f"{_BANDIT}/actions", do.add_actions, a.ActionsAnswer, asked.ActionsRequest),
                **_TAKES_JSON,
            ),
            Route(
                *(
                    "POST",
                    f"{_BANDIT}/actions/retire",
                    do.retire_actions,
                    a.ActionsAnswer,
                    asked.RetiredRequest,
                ),
                **_TAKES_JSON,
            ),
            Route("DELETE", f"{_BANDIT}/actions/{{action}}", do.retire_action, a.ActionsAnswer, **_EVERYDAY),
            Route(
                *("POST", f"{_BANDIT}/decide", decide, a.DecisionAnswer, asked.DecideRequest),
                **{**_TAKES_JSON, "kinds": (JSON, NPY), "statuses": (404, 409)},
                details=_DECIDE,
            ),
            Route(
                *("POST", f"{_BANDIT}/decide/batch", decide_batch, a.DecideBatchAnswer),
                asked.DecideBatchRequest,
                **_TAKES_JSON,
            ),
            Route(
                *("POST", f"{_BANDIT}/reward", reward, a.RewardAnswer, asked.RewardRequest),
                **{**_TAKES_JSON, "statuses": (404, 409, 410)},
            ),
            Route(
                *("POST", f"{_BANDIT}/reward/batch", reward_batch, a.RewardBatchAnswer),
                asked.RewardBatchRequest,
                **_TAKES_JSON,
            ),
            *(
                Route(method, "/healthz", do.healthz, a.StatusAnswer, scope=None)
                for method in ("GET", "HEAD")
            ),
            *(Route(method, "/readyz", do.readyz, a.ReadyAnswer, scope=None) for method in ("GET", "HEAD")),
            Route("GET", "/metrics", do.metrics, "text/plain"),
        )
    )
