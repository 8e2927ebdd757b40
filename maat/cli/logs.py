"""Commands that show what a job's processes do: `maat logs` and `maat attempts`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from maat.cli.numbers import whole_option
from maat.cli.service import (
    DEFAULT_URL,
    MAX_LISTED,
    AsJson,
    JobNamed,
    Url,
    client_of,
    job_id_of,
    show,
    table_of,
)
from maat.cli.terminal_text import TerminalText
from maat.scheduling.errors import ParameterError
from maat.vocabulary import LARGEST_INTEGER, MAX_GPUS

if TYPE_CHECKING:
    from maat.api.attempts import AttemptOut, LogOut
    from maat.api.fields import Page
    from maat.client import Client
    from maat.client.calls import Call

Answer = TypeVar("Answer")

POLL_SECONDS, AGAIN_SECONDS = 1.0, 2.0
MOST_TAILED = 1_000_000  # lines
_TAIL_BYTES, _MOST_TAIL_BYTES = 64 * 1024, 256 * 1024 * 1024
_MOST_ATTEMPTS = LARGEST_INTEGER
_ENDED = frozenset({"succeeded", "failed", "cancelled"})


def logs(
    job: JobNamed,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    rank: Annotated[
        int, whole_option("--rank", least=0, most=MAX_GPUS - 1, help="Which process.")
    ] = 0,
    attempt: Annotated[
        int | None,
        whole_option(
            "--attempt", least=1, most=_MOST_ATTEMPTS, help="Only this attempt; default: the last."
        ),
    ] = None,
    tail: Annotated[
        int | None,
        whole_option("--tail", least=0, most=MOST_TAILED, help="Only so many lines of the end."),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="All bytes as they were written, such as for a file."),
    ] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Print what a command has written; with -f, what it writes until it ends.

    On a terminal without the control sequences in it. Bytes that are no UTF-8 are replaced.
    """
    if raw and (follow or tail is not None):
        raise ParameterError(
            "prints the whole log as it is now",
            field="--raw",
            remedy="Leave out --follow and --tail, or --raw.",
        )
    with client_of(url) as maat:
        job_id = job_id_of(maat, job)
        if raw:
            _print_raw(maat, job_id, attempt, rank)
            return
        reader = LogReader(maat, job_id, rank, say=_aside, tail=tail)
        cleaner = TerminalText() if sys.stdout.isatty() else None
        for text in reader.texts(attempt, follow=follow):
            sys.stdout.write(text if cleaner is None else cleaner.add(text))
            sys.stdout.flush()
        sys.stdout.write("" if cleaner is None else cleaner.end())


def _print_raw(maat: Client, job_id: str, attempt: int | None, rank: int) -> None:
    from maat.client import calls

    if attempt is None:
        maat.job_command(job_id)
        known = [one["number"] for one in _all_attempts(job_id, maat.send)]
        if not known:
            return
        attempt = max(known)
    for part in maat.stream(calls.log_file(job_id, attempt, rank)):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def attempts(
    job: JobNamed,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the attempts of a command: the lives of its processes."""
    with client_of(url) as maat:
        job_id = job_id_of(maat, job)
        maat.job_command(job_id)
        items = list(_all_attempts(job_id, maat.send))
    columns = (
        "number", "kind", "state", "outcome", "gpu_type", "gpu_count", "queued_at", "ended_at",
        "exit_codes", "checkpoint_step", "reason",
    )  # fmt: skip
    rows = [[_cell(one, column) for column in columns] for one in items]
    show({"items": items, "next_cursor": None}, as_json, table_of(columns, rows))


class LogReader:
    """Reads the logs of one rank of a job's attempts, through a service that may come and go."""

    def __init__(
        self,
        maat: Client,
        job_id: str,
        rank: int,
        *,
        say: Callable[[str], None],
        wait: Callable[[float], None] = time.sleep,
        tail: int | None = None,
    ) -> None:
        """Read from the beginning, or of the first attempt that is read only the last lines.

        `say`: shows a remark. `wait`: sleeps. `tail`: how many lines.
        """
        self._maat, self._job_id, self._rank = maat, job_id, rank
        self._say, self._wait, self._tail = say, wait, tail

    def texts(self, number: int | None, *, follow: bool) -> Iterator[str]:
        """Yield the text of attempt `number`, or of the last; following, of those after it too.

        Raises ApiError if there is no such job, or it is no command.
        """
        from maat.client import calls

        self._send(calls.job_command(self._job_id), patient=follow)
        if number is not None:
            yield from self._attempt(number, follow=follow)
            return
        read = 0
        while True:
            is_over = self._is_over()  # first, so that no attempt can follow the last one read
            later = [n for n in self._attempts() if n > read]
            if later:
                read = later[0] if read else max(later)
                yield from self._attempt(read, follow=follow)
            elif is_over or not follow:
                return
            else:
                self._wait(POLL_SECONDS)
            if not follow:
                return

    def _attempt(self, number: int, *, follow: bool) -> Iterator[str]:
        """Yield the text of one attempt; following, until its end."""
        from maat.client import ApiError, calls

        offset, had_ended = 0, False
        while True:
            try:
                if self._tail is not None:
                    text, offset = self._end_of(number, self._tail, patient=follow)
                    self._tail = None
                    yield text
                part = self._send(
                    calls.log(self._job_id, number, self._rank, offset=offset), patient=follow
                )
            except ApiError as error:
                known = self._attempts().get(number) if error.status == 404 and follow else None
                if known is None:
                    raise
                if had_ended or self._rank >= known["gpu_count"]:
                    self._say(error.detail)
                    return
                had_ended = known["state"] == "ended"  # it may have written until just now
                if not had_ended:
                    self._wait(POLL_SECONDS)
                continue
            if part["text"]:
                yield part["text"]
            is_all = part["next_offset"] == offset
            offset = part["next_offset"]
            if part["ended"] or (is_all and not follow):
                return
            if is_all:
                self._wait(POLL_SECONDS)

    def _end_of(self, number: int, lines: int, *, patient: bool) -> tuple[str, int]:
        """Return the last lines of a log, and the offset behind them.

        Ever larger parts of its end are read, until they hold so many lines.
        """
        from maat.client import calls

        def read(offset: int) -> LogOut:
            call = calls.log(self._job_id, number, self._rank, offset=offset)
            return self._send(call, patient=patient)

        total, size = read(0)["total_bytes"], _TAIL_BYTES
        while True:
            first = offset = max(total - size, 0)
            text = ""
            while offset < total and (part := read(offset))["next_offset"] > offset:
                text, offset = text + part["text"], part["next_offset"]
            if first == 0 or text.count("\n") > lines or size >= _MOST_TAIL_BYTES:
                return _last_lines(text, lines), offset
            size *= 4

    def _attempts(self) -> dict[int, AttemptOut]:
        send = partial(self._send, patient=True)
        return {one["number"]: one for one in _all_attempts(self._job_id, send)}

    def _is_over(self) -> bool:
        from maat.client import calls

        return self._send(calls.job(self._job_id), patient=True)["state"] in _ENDED

    def _send(self, call: Call[Answer], *, patient: bool) -> Answer:
        """Send a call; if patient, again and again while the service is away."""
        from maat.client import ApiError, Unreachable

        is_told = False
        while True:
            try:
                return self._maat.send(call)
            except (ApiError, Unreachable) as error:
                if not patient or (isinstance(error, ApiError) and not error.retryable):
                    raise
            if not is_told:
                self._say("The service does not answer; trying again.")
                is_told = True
            self._wait(AGAIN_SECONDS)


def _all_attempts(
    job_id: str, send: Callable[[Call[Page[AttemptOut]]], Page[AttemptOut]]
) -> Iterator[AttemptOut]:
    from maat.client import calls

    cursor = None
    while True:
        page = send(calls.attempts(job_id, limit=MAX_LISTED, cursor=cursor))
        yield from page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def _last_lines(text: str, count: int) -> str:
    at = len(text) - text.endswith("\n")
    for _ in range(count):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return text
    return text[at + 1 :] if count else ""


def _cell(attempt: Any, column: str) -> str:
    value = attempt[column]
    if isinstance(value, dict):
        return ",".join(str(code) for code in value.values())
    return "-" if value in (None, "") else str(value)


def _aside(sentence: str) -> None:
    typer.echo(f"maat: {sentence}", err=True)
