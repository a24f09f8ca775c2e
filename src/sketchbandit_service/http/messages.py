"""A request that has arrived, and the answer to it."""

from dataclasses import dataclass, field
from typing import Protocol

from sketchbandit_service.budget import Charge

JSON = "application/json"


READING = ("GET", "HEAD")
"""Methods that change nothing."""


@dataclass(slots=True)
class Request:
    """One request. While its body is still arriving, ``body`` is empty."""

    method: str
    path: str
    """Without the query, percent-decoded."""
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    charge: Charge
    """The request's share of the server's memory budget, until the last byte of its answer is sent."""
    body: bytes = b""
    route: str = "other"
    """The path as the API describes it, for the metrics. Set once the route is found."""
    client: str = ""
    """The address of the client."""


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
        """Look at the head before any of the body is read. An answer refuses the request."""

    async def answer(self, request: Request) -> Response:
        """The answer to a whole request. It never raises."""
