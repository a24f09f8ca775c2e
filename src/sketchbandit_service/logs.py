"""Structured logs: one JSON object per line, or plain text for people."""

import json
import logging
import re
import sys
from datetime import UTC, datetime

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters of terminals and text direction. They could make a line look like another one."""


class JsonFormatter(logging.Formatter):
    """Time, level, logger, message, and everything given as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """The same as plain text."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, followed by the indented traceback if there is one."""
        extra = "".join(f" {key}={value}" for key, value in _extra(record).items())
        said = visible(f"{record.getMessage()}{extra}")
        lines = [f"{self.formatTime(record, '%H:%M:%S')} {record.levelname.lower():7} {said}"]
        if record.exc_info:
            lines += [f"  {visible(line)}" for line in self.formatException(record.exc_info).split("\n")]
        return "\n".join(lines)


def visible(text: str) -> str:
    r"""The text with control characters written out.

    >>> print(visible("two\nlines"))
    two\x0alines
    """
    return UNSEEN.sub(lambda found: _escaped(ord(found[0])), text)


def configure(*, level: str = "info", as_json: bool = True) -> None:
    """Send the service's logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    logging.captureWarnings(True)
    for name in ("sketchbandit", "sketchbandit_service", "asyncio", "py.warnings"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level.upper())
        logger.propagate = False


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _extra(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}
