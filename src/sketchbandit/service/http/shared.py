"""What connections know of their server, and how far each of them is."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from sketchbandit.service.budget import Budget
from sketchbandit.service.http.messages import Application
from sketchbandit.service.settings import Limits


class State(Enum):
    """What a connection is at."""

    READING = "a request arrives, or is waited for"
    ANSWERING = "the application works on it"
    SENDING = "some of the answer has not left yet"
    LEAVING = "the last answer is given: what the client still sends is thrown away"


class Client(Protocol):
    """A connection, to its server."""

    def check(self, now: float) -> None:
        """End it if it takes too long."""

    def stop(self) -> None:
        """End it in order."""

    def cancel(self) -> asyncio.Task[None] | None:
        """End it at once; gives what is still being worked on."""


@dataclass
class Shared:
    """What all connections of a server have in common."""

    application: Application
    limits: Limits
    budget: Budget
    connections: set[Client] = field(default_factory=set)
    orphans: set[asyncio.Task[None]] = field(default_factory=set)
    """Requests under way whose clients have gone: they are finished all the same."""
    is_stopping: bool = False
