"""When a request is sent again, to which address, and after what pause."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from sketchbandit.errors import InputError
from sketchbandit_service.client.answers import ServiceError, refusal

_CONNECT = 2.0  # seconds
_ELSEWHERE = {502, 503, 504}
_FINAL = {"quarantined"}  # codes of a 503 that stays the same however often the request is sent


@dataclass(frozen=True)
class Retries:
    """Pauses between attempts. They double, with jitter, so clients that failed together return apart.

    Attributes
    ----------
    attempts : int
        How often a request is sent at most, to each address.
    first, most : float
        Seconds of the first pause, and of the longest pause.

    """

    attempts: int = 6
    first: float = 0.1
    most: float = 5.0

    def pause(self, attempt: int, response: httpx.Response | None) -> float:
        """Seconds before attempt number ``attempt`` + 1. At least what the service asks for (Retry-After)."""
        drawn = min(self.most, self.first * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)  # noqa: S311
        asked = "" if response is None else response.headers.get("retry-after", "")
        return max(drawn, min(float(asked), self.most)) if asked.isdecimal() else drawn


class Addresses:
    """The addresses of a service. The address that answered last is tried first."""

    def __init__(self, urls: str | Sequence[str]) -> None:
        given = [urls] if isinstance(urls, str) else list(urls)
        if not given:
            raise InputError("there is no address; give the URL of a service, or a list of URLs")
        for url in given:
            if not isinstance(url, str) or not url.startswith(("http://", "https://")):
                raise InputError(f"the address of a service must begin with http:// or https://, got {url!r}")
        self.all = [url.rstrip("/") for url in given]
        self.current = self.all[0]

    def leave(self, url: str) -> None:
        """Move on to the next address, unless another request has done so already."""
        if url == self.current:
            self.current = self.all[(self.all.index(url) + 1) % len(self.all)]

    def timeout(self, seconds: float) -> httpx.Timeout:
        """The timeout for an answer. With several addresses, connecting to one of them is given up sooner."""
        connect = seconds if len(self.all) == 1 else min(seconds, _CONNECT)
        return httpx.Timeout(seconds, connect=connect)


class Trip:
    """One request and its attempts: in each round it is sent to every address once."""

    def __init__(self, addresses: Addresses, retries: Retries) -> None:
        self._addresses = addresses
        self._retries = retries
        self._round = 1
        self._asked: set[str] = set()
        self.url = addresses.current

    def pause(self, response: httpx.Response | None) -> float | None:
        """Seconds before the request is sent again, to ``url``. None: stop, and use the response as it is.

        A ``response`` of None means that the service did not answer.
        """
        if response is not None and not _may_get_better(response):
            return None
        self._asked.add(self.url)
        if response is None or response.status_code in _ELSEWHERE:
            self._addresses.leave(self.url)
        self.url = self._addresses.current
        if self.url not in self._asked:
            return 0.0
        if self._round >= self._retries.attempts:
            return None
        pause = self._retries.pause(self._round, response)
        self._round += 1
        self._asked.clear()
        return pause


def _may_get_better(response: httpx.Response) -> bool:
    if response.status_code not in {429, *_ELSEWHERE}:
        return False
    return refusal(response.status_code, response.content).code not in _FINAL


def outcome(response: httpx.Response | None, error: httpx.TransportError | None) -> httpx.Response:
    """The answer. Raises ``ServiceError`` if it is an error, or if there is no answer."""
    if response is None:
        raise ServiceError(0, "unreachable", f"the service cannot be reached: {error}") from error
    if not response.is_success:
        raise refusal(response.status_code, response.content)
    return response
