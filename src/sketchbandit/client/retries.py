"""When to try again, and after how long."""

import random
from dataclasses import dataclass

import httpx

from sketchbandit.client.answers import ServiceError, refusal

_AGAIN = {429, 502, 503, 504}


@dataclass(frozen=True)
class Retries:
    """Pauses that double, with jitter, so that clients that failed together do not return together.

    Attributes
    ----------
    attempts : int
        How often a request is sent at most.
    first, most : float
        Seconds of the first pause, and of the longest.

    """

    attempts: int = 6
    first: float = 0.1
    most: float = 5.0

    def pause(self, attempt: int, response: httpx.Response | None) -> float:
        """Seconds before attempt number ``attempt`` + 1; what the service asks for (Retry-After) at least."""
        drawn = min(self.most, self.first * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)  # noqa: S311
        asked = "" if response is None else response.headers.get("retry-after", "")
        return max(drawn, min(float(asked), self.most)) if asked.isdecimal() else drawn

    def is_final(self, attempt: int, response: httpx.Response | None) -> bool:
        """Whether the answer (None: there was none) is to be taken as it is."""
        return attempt >= self.attempts or (response is not None and response.status_code not in _AGAIN)


def outcome(response: httpx.Response | None, error: httpx.TransportError | None) -> httpx.Response:
    """The answer, or the error that it is."""
    if response is None:
        raise ServiceError(0, "unreachable", f"the service cannot be reached: {error}") from error
    if not response.is_success:
        raise refusal(response.status_code, response.content)
    return response
