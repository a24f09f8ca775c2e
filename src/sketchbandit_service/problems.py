"""Errors that the service answers with. Each has an HTTP status and a message that says what to do.

Problem
├── Malformed    400  the body is not JSON or not npy
├── Unauthorised 401  no token, or an unknown token
├── Forbidden    403  the token lacks the scope, or the Host header is foreign
├── NotFound     404  no such bandit, arm or decision
├── NotAllowed   405  the path exists, but does not take this method
├── Conflict     409  another reward than before; a bandit of that name with other settings
├── Expired      410  the reward came after the timeout
├── TooLarge     413  a body, a set of arms or a dimension beyond the limit
├── WrongType    415  a body that is neither JSON nor npy
├── Invalid      422  readable, but not usable: NaN, a wrong dimension, no arms
├── Busy         429  too many open decisions or waiting requests: slow down
├── Unavailable  503  the journal cannot be written; nothing was changed, or a retry is safe
├── Quarantined  503  this one bandit is out of service; the message says why
└── Standby      503  this server is a standby; ask the other server
"""

from typing import ClassVar

from sketchbandit.errors import SketchBanditError


class Problem(SketchBanditError):
    """Base class of all errors above. ``str(problem)`` is the message."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    retry_after: ClassVar[int | None] = None


class Malformed(Problem):
    """The body cannot be read."""

    status, code = 400, "malformed"


class Unauthorised(Problem):
    """There is no token, or the token is unknown."""

    status, code = 401, "unauthorised"


class Forbidden(Problem):
    """The client is known, but not allowed to do this."""

    status, code = 403, "forbidden"


class NotFound(Problem):
    """There is nothing with that name or id."""

    status, code = 404, "not_found"


class NotAllowed(Problem):
    """The path exists, but does not take this method."""

    status, code = 405, "not_allowed"


class Conflict(Problem):
    """The request contradicts an earlier one."""

    status, code = 409, "conflict"


class Expired(Problem):
    """The reward came too late."""

    status, code = 410, "expired"


class TooLarge(Problem):
    """The request is beyond a limit."""

    status, code = 413, "too_large"


class WrongType(Problem):
    """The service does not read this content type."""

    status, code = 415, "wrong_type"


class Invalid(Problem):
    """The body is readable, but not usable."""

    status, code = 422, "invalid"


class Busy(Problem):
    """Too much at once. The same request can succeed later."""

    status, code, retry_after = 429, "busy", 1


class Unavailable(Problem):
    """The journal cannot be written at the moment."""

    status, code, retry_after = 503, "unavailable", 1


class Quarantined(Problem):
    """One bandit is out of service: one of its records could not be applied. Trying again does not help."""

    status, code = 503, "quarantined"


class Standby(Problem):
    """This server is a standby. Ask the other server."""

    status, code, retry_after = 503, "standby", 1
