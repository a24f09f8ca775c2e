"""A request that has arrived, and the answer to it."""

from dataclasses import dataclass, field
from typing import Protocol

from sketchbandit.service.budget import Charge

JSON = "application/json"


READING = ("GET", "HEAD")
"""Methods that change nothing."""


@dataclass(slots=True)
class Request:
    """One request. While its body is still on the way ``body`` is empty."""

    method: str
    path: str
    """Without the query, percent-decoded."""
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    charge: Charge
    """What it holds of the server's budget, until the last byte of its answer has left."""
    body: bytes = b""
    route: str = "other"
    """The path as the API describes it, for the metrics; set by who finds it."""
    client: str = ""
    """The address that it came from."""


@dataclass(slots=True)
class Response:
    """One answer."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


class Application(Protocol):
    """What answers requests."""

    def admit(self, request: Request) -> Response | None:
        """Look at the head, before any of the body is taken: an answer here refuses the request."""

    async def answer(self, request: Request) -> Response:
        """The answer to a whole request; never raises."""
