"""Bearer tokens: who may read, decide or administer. The file holds only their hashes."""

import hashlib
import hmac
import logging
import os
import re
import secrets
import time
from pathlib import Path
from typing import NamedTuple

from sketchbandit.errors import InputError

log = logging.getLogger(__name__)

SCOPES = ("read", "decide", "admin")
"""Each scope includes those before it."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Token(NamedTuple):
    """A line of the file: ``name scope sha256``."""

    name: str
    scope: str
    digest: str


class Tokens:
    """The tokens of a server."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens

    @classmethod
    def read(cls, path: Path) -> "Tokens":
        """Read the tokens of a file. Empty lines and lines that begin with # are skipped."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the token file {path}: {error}") from error
        tokens = []
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                tokens.append(_parse(line, f"{path}, line {number}"))
        if not tokens:
            raise InputError(f"{path} holds no token; make one with: sketchbandit service token {path}")
        return cls(tokens)

    def scope_of(self, secret: str) -> str | None:
        """The scope of a token. None if it is unknown. The time taken does not show how close a guess is."""
        digest = _digest(secret)
        found = None
        for token in self._tokens:  # always all of them, even after a match
            if hmac.compare_digest(token.digest, digest):
                found = token.scope
        return found


class Refusals:
    """Logs refused tokens, at most one line per second, so that nobody can fill the disk with them."""

    def __init__(self, every: float = 1.0) -> None:
        self._every = every
        self._next = 0.0
        self._unsaid = 0

    def saw(self, path: str, client: str, reason: str) -> None:
        """Log that a token was refused, or count it for the next line. The token itself is never logged."""
        now = time.monotonic()
        if now < self._next:
            self._unsaid += 1
            return
        told = {"path": path[:200], "client": client, "reason": reason, "more": self._unsaid}
        log.warning("a token was refused", extra=told)
        self._next, self._unsaid = now + self._every, 0


def allows(scope: str, needed: str) -> bool:
    """Whether a token with one scope may do what needs another."""
    return SCOPES.index(scope) >= SCOPES.index(needed)


def add(path: Path, name: str, scope: str) -> str:
    """Make a token, append its hash to the file, and return the token. It is stored nowhere."""
    if not _NAME.fullmatch(name):
        raise InputError(f"a token's name must have letters, digits, '-', '_' and '.' only, got {name!r}")
    if scope not in SCOPES:
        raise InputError(f"unknown scope {scope!r}; choose from {', '.join(SCOPES)}")
    if not path.resolve().parent.is_dir():
        raise InputError(f"there is no folder {path.resolve().parent}")
    secret = f"sb_{secrets.token_urlsafe(32)}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)  # others cannot read it
    is_cut = path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with os.fdopen(handle, "a", encoding="utf-8") as file:
        file.write(("\n" if is_cut else "") + f"{name} {scope} {_digest(secret)}\n")
    return secret


def _digest(secret: str) -> str:
    """The hash of a token. SHA-256 is enough: a token has 256 random bits and cannot be guessed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _parse(line: str, at: str) -> Token:
    parts = line.split()
    if len(parts) != 3 or parts[1] not in SCOPES or not re.fullmatch(r"[0-9a-f]{64}", parts[2]):
        raise InputError(f"{at} must be 'name scope sha256', with a scope of {', '.join(SCOPES)}")
    return Token(*parts)
