"""What the service refuses, each with its HTTP status and a message that says what to do.

Problem
├── Malformed    400  not JSON, not npy
├── Unauthorised 401  no token, or one that is not known
├── Forbidden    403  a token without the scope, a foreign Host
├── NotFound     404  no such bandit, arm or decision
├── Conflict     409  another reward than before; a bandit of that name with other settings
├── Expired      410  the reward came after the timeout
├── TooLarge     413  a body, an arm set or a dimension beyond the limit
├── WrongType    415  a body that is neither JSON nor npy
├── Invalid      422  well formed, but not usable: NaN, a wrong dimension, no arms
├── Busy         429  too many open decisions or waiting requests: slow down
├── Unavailable  503  the journal cannot be written; nothing was changed, or a retry is safe
├── Quarantined  503  one bandit alone is out of service, and the message says why
└── Standby      503  this server follows another one, which is to be asked
"""

from typing import ClassVar

from sketchbandit.errors import SketchBanditError


class Problem(SketchBanditError):
    """Base of everything above; ``str`` of it is the message."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    retry_after: ClassVar[int | None] = None


class Malformed(Problem):
    """The body cannot be read."""

    status, code = 400, "malformed"


class Unauthorised(Problem):
    """No token, or an unknown one."""

    status, code = 401, "unauthorised"


class Forbidden(Problem):
    """Known, but not allowed."""

    status, code = 403, "forbidden"


class NotFound(Problem):
    """Nothing of that name or id."""

    status, code = 404, "not_found"


class NotAllowed(Problem):
    """The path is there, the method is not."""

    status, code = 405, "not_allowed"


class Conflict(Problem):
    """Contradicts what was said before."""

    status, code = 409, "conflict"


class Expired(Problem):
    """Too late."""

    status, code = 410, "expired"


class TooLarge(Problem):
    """Beyond a limit."""

    status, code = 413, "too_large"


class WrongType(Problem):
    """A content type that the service does not read."""

    status, code = 415, "wrong_type"


class Invalid(Problem):
    """Readable, but not usable."""

    status, code = 422, "invalid"


class Busy(Problem):
    """Too much at once; later it will do."""

    status, code, retry_after = 429, "busy", 1


class Unavailable(Problem):
    """The journal cannot be written at the moment."""

    status, code, retry_after = 503, "unavailable", 1


class Quarantined(Problem):
    """One bandit is out of service: a record of it could not be applied. Trying again does not help."""

    status, code = 503, "quarantined"


class Standby(Problem):
    """Ask the other server."""

    status, code, retry_after = 503, "standby", 1
