"""What connections share with their server, and the state of a connection."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from sketchbandit_service.budget import Budget
from sketchbandit_service.http.messages import Application
from sketchbandit_service.settings import Limits


class State(Enum):
    """The state of a connection."""

    READING = "a request arrives, or the connection waits for one"
    ANSWERING = "the application works on the request"
    SENDING = "some of the answer is not sent yet"
    LEAVING = "the last answer is sent; what the client still sends is thrown away"


class Client(Protocol):
    """A connection as its server sees it."""

    def check(self, now: float) -> None:
        """End the connection if it takes too long."""

    def stop(self) -> None:
        """Let the connection end after the request under way."""

    def cancel(self) -> asyncio.Task[None] | None:
        """End the connection at once. Returns the work that is still going on."""


@dataclass
class Shared:
    """What all connections of a server share."""

    application: Application
    limits: Limits
    budget: Budget
    connections: set[Client] = field(default_factory=set)
    orphans: set[asyncio.Task[None]] = field(default_factory=set)
    """Requests under way whose clients are gone. They are finished all the same."""
    is_stopping: bool = False
