"""How the service's processes write their logs.

A log never holds what a user sent: no body, no token, no query. An error's message often repeats
the value that caused it, so a log names the kind of an error and where it arose, not its message.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from backend.asking import asking

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_OF_THE_SERVER = ("uvicorn", "uvicorn.error", "uvicorn.access")
_MOST_CAUSES = 10
_SECONDS_BETWEEN_TRACES, _MOST_TRACES = 600.0, 100

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class WithoutMessages(logging.Formatter):
    """Formats a log line.

    For an error it shows the kind and every call that led to it; for one that comes again and
    again, these once in ten minutes, and else its kind.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._written: OrderedDict[str, float] = OrderedDict()

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802  (the name that logging calls)
        if ei[1] is None:
            return ""
        trace = "".join(trace_of(ei[1])).rstrip()
        now = time.monotonic()
        before = self._written.get(trace)
        if before is not None and now - before < _SECONDS_BETWEEN_TRACES:
            return f"{_kind_of(ei[1])}, with the same calls as {now - before:.0f} s ago"
        self._written[trace] = now
        self._written.move_to_end(trace)
        if len(self._written) > _MOST_TRACES:
            self._written.popitem(last=False)
        return trace


class JsonLines(WithoutMessages):
    """Formats a log line as one JSON object, with the id of the request that it is about."""

    def format(self, record: logging.LogRecord) -> str:
        request = asking()
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        if request is not None:
            line["request_id"] = request.request_id
        if record.exc_info is not None and record.exc_info[0] is not None:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def formatter(form: str) -> logging.Formatter:
    """Return what writes lines of this form: `text` or `json`."""
    return JsonLines() if form == "json" else WithoutMessages(FORMAT)


class WithoutQuery(logging.Filter):
    """Removes the query from the server's lines about requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                part.partition("?")[0] if isinstance(part, str) else part for part in record.args
            )
        return True


def install_logging(level: str, form: str = "text") -> None:
    """Install the log format in this process: `text` or `json`.

    uvicorn has set up its own before it loads the application.
    """
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler(sys.stderr))
        root.handlers[0].setFormatter(formatter(form))
        root.setLevel(level)
    for name in _OF_THE_SERVER:
        for handler in logging.getLogger(name).handlers:
            handler.setFormatter(formatter(form))
    access = logging.getLogger("uvicorn.access")
    if not any(isinstance(known, WithoutQuery) for known in access.filters):
        access.addFilter(WithoutQuery())


def trace_of(error: BaseException) -> Iterator[str]:
    """Yield the lines of an error and its causes.

    They name files, lines of code and kinds of errors, and hold no messages.
    """
    for cause in reversed(list(_causes(error))):
        yield "Traceback (most recent call last):\n"
        yield from traceback.format_tb(cause.__traceback__)
        yield f"{_kind_of(cause)}\n"
        if isinstance(cause, BaseExceptionGroup):
            for part in cause.exceptions[:_MOST_CAUSES]:
                yield from trace_of(part)


def _kind_of(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def first_line(error: BaseException) -> str:
    """Return a database driver's message without its details, which hold values."""
    return str(error).partition("\n")[0]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error itself, then its causes as Python chains them."""
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen and len(seen) < _MOST_CAUSES:
        yield current
        seen.append(current)
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
