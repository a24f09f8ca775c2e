"""A service inside the test, and the small things that tests say often."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ParamSpec
from urllib.parse import parse_qsl, unquote

import httpx
import numpy as np

from sketchbandit_service.api.app import Api
from sketchbandit_service.engine import Engine
from sketchbandit_service.http.messages import Request, Response
from sketchbandit_service.http.responses import ALWAYS, problem_response
from sketchbandit_service.problems import Problem, TooLarge
from sketchbandit_service.settings import Limits, Settings
from sketchbandit_service.tokens import Tokens
from sketchbandit_service.upkeep import Upkeep, running

P = ParamSpec("P")

DIM = 4
AS_THEY_ARE: dict[str, Any] = {"scaling": None, "intercept": False}
"""Parameters of a policy that reads features so."""
PLAIN: dict[str, Any] = {"parameters": AS_THEY_ARE, "explore": "ucb"}
"""Settings of a bandit of which one can tell beforehand what it will choose."""


def in_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run an async test on an event loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 120))

    return run


class Direct(httpx.AsyncBaseTransport):
    """Asks the application as the server does: the head, then the body; what it took is given back."""

    def __init__(self, api: Api, engine: Engine) -> None:
        self._api = api
        self._engine = engine

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request and its answer."""
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        asked = Request(
            request.method,
            unquote(path),
            dict(parse_qsl(query, keep_blank_values=True)),
            {name.lower(): value for name, value in request.headers.items()},
            self._engine.budget.open(),
        )
        try:
            answer = self._api.admit(asked) or await self._rest(asked, request)
        except Problem as problem:
            answer = problem_response(problem)
        finally:
            asked.charge.release()
        headers = {**ALWAYS, **answer.headers, "content-type": answer.content_type}
        body = b"" if request.method == "HEAD" else answer.body
        return httpx.Response(answer.status, headers=headers, content=body, request=request)

    async def _rest(self, asked: Request, request: httpx.Request) -> Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        parts: list[bytes] = []
        async for part in request.stream:
            parts.append(part)
            if sum(map(len, parts)) > self._engine.limits.body_bytes:
                raise TooLarge(f"the body is longer than {self._engine.limits.body_bytes} bytes")
            asked.charge.add(len(part))
        asked.body = b"".join(parts)
        return await self._api.answer(asked)


class Service:
    """An engine and a client of its API."""

    def __init__(self, engine: Engine, http: httpx.AsyncClient, upkeep: Upkeep) -> None:
        self.engine = engine
        self.http = http
        self.upkeep = upkeep

    async def create(self, name: str = "b", **settings: Any) -> httpx.Response:
        """PUT a bandit of four dimensions."""
        answer = await self.http.put(f"/v1/bandits/{name}", json={"dim": DIM, **settings})
        assert answer.is_success, answer.text
        return answer

    async def decide(self, arms: Any = None, name: str = "b", **rest: Any) -> httpx.Response:
        """POST a decision; by default among the four unit vectors."""
        body = {"arms": np.eye(DIM).tolist() if arms is None else arms, **rest}
        return await self.http.post(f"/v1/bandits/{name}/decide", json=body)

    async def reward(self, decision: str, reward: float, name: str = "b") -> httpx.Response:
        """POST a reward."""
        body = {"decision": decision, "reward": reward}
        return await self.http.post(f"/v1/bandits/{name}/reward", json=body)

    async def rewards(self, decision: str, *given: dict[str, Any], name: str = "b") -> httpx.Response:
        """POST rewards of a slate."""
        body = {"decision": decision, "rewards": list(given)}
        return await self.http.post(f"/v1/bandits/{name}/reward", json=body)

    async def play(self, rounds: int, name: str = "b", seed: int = 0) -> None:
        """Decide and reward on random arms."""
        random = np.random.default_rng(seed)
        for _ in range(rounds):
            arms = random.standard_normal((5, self.engine.bandit(name).config.dim)).tolist()
            decided = (await self.decide(arms, name)).json()
            answer = await self.reward(decided["decision"], float(random.standard_normal()), name)
            assert answer.status_code == 200, answer.text

    async def settle(self) -> None:
        """Wait until all estimates are written."""
        while self.engine.estimator._tasks:
            await asyncio.sleep(0.005)
        await self.engine.journal.probe()

    async def stats(self, name: str = "b") -> Any:
        """GET the stats."""
        return (await self.http.get(f"/v1/bandits/{name}/stats")).json()


@asynccontextmanager
async def service(
    state: Path,
    *,
    tokens: Tokens | None = None,
    token: str | None = None,
    limits: Limits | None = None,
    cors: tuple[str, ...] = (),
    rounds: bool = True,
    **settings: Any,
) -> AsyncIterator[Service]:
    """The service, on no socket; what it keeps is in ``state``.

    Without ``rounds``, those of upkeep are left to the test: one more would change what it counts.
    """
    settings = {"storage_patience": 0.3, **settings}
    engine = Engine(Settings(state, limits=limits or Limits(), **settings), seed=0)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    transport = Direct(Api(engine, tokens, cors=cors), engine)
    async with (
        running(engine) as upkeep,
        httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as http,
    ):
        if not rounds:
            await upkeep.stop()
        yield Service(engine, http, upkeep)


def crash(found: Service) -> None:
    """Leave everything as a kill -9 would: nothing is finished, nothing is written."""
    assert found.upkeep._task is not None
    found.upkeep._task.cancel()
    journal = found.engine.journal
    assert journal._task is not None
    journal._task.cancel()
    journal._thread.shutdown()
    found.engine.release()


async def crashing(state: Path, work: Callable[[Service], Any], **settings: Any) -> Service:
    """Do something with a service and let it crash."""
    async with service(state, **settings) as found:
        await work(found)
        crash(found)
        found.upkeep.snapshot_all = found.engine.drain = _nothing  # type: ignore[method-assign]
        found.engine.release = lambda: None  # type: ignore[method-assign]
    return found


async def _nothing() -> None:
    """What a killed process does."""


def error_of(answer: httpx.Response) -> tuple[int, str]:
    """Status and message of a refusal; its shape is checked on the way."""
    error = answer.json()["error"]
    assert set(error) == {"code", "message"}
    assert "Traceback" not in answer.text
    return answer.status_code, error["message"]
