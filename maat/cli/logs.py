"""Commands that show what a job's processes do: `maat logs` and `maat attempts`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
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
from maat.vocabulary import MAX_GPUS

if TYPE_CHECKING:
    from maat.api.attempts import AttemptOut
    from maat.client import Client
    from maat.client.calls import Call

Answer = TypeVar("Answer")

POLL_SECONDS, AGAIN_SECONDS = 1.0, 2.0
_MOST_ATTEMPTS = 2**31 - 1
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
    url: Url = DEFAULT_URL,
) -> None:
    """Print what a command has written; with -f, what it writes until it ends."""
    with client_of(url) as maat:
        reader = LogReader(maat, job_id_of(maat, job), rank, say=_aside)
        for text in reader.texts(attempt, follow=follow):
            sys.stdout.write(text)
            sys.stdout.flush()


def attempts(
    job: JobNamed,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the attempts of a command: the lives of its processes."""
    from maat.client import calls

    with client_of(url) as maat:
        job_id = job_id_of(maat, job)
        maat.job_command(job_id)
        page = maat.send(calls.attempts(job_id, limit=MAX_LISTED))
    columns = (
        "number", "kind", "state", "outcome", "gpu_type", "gpu_count", "queued_at", "ended_at",
        "exit_codes", "checkpoint_step", "reason",
    )  # fmt: skip
    rows = [[_cell(one, column) for column in columns] for one in page["items"]]
    show(page, as_json, table_of(columns, rows))


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
    ) -> None:
        self._maat, self._job_id, self._rank = maat, job_id, rank
        self._say, self._wait = say, wait

    def texts(self, number: int | None, *, follow: bool) -> Iterator[str]:
        """Yield the text of attempt `number`, or of the last; following, of those after it too.

        Raises ApiError if there is no such job, or it is no command.
        """
        self._maat.job_command(self._job_id)
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

    def _attempts(self) -> dict[int, AttemptOut]:
        from maat.client import calls

        found = self._send(calls.attempts(self._job_id, limit=MAX_LISTED), patient=True)
        return {one["number"]: one for one in found["items"]}

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


def _cell(attempt: Any, column: str) -> str:
    value = attempt[column]
    if isinstance(value, dict):
        return ",".join(str(code) for code in value.values())
    return "-" if value in (None, "") else str(value)


def _aside(sentence: str) -> None:
    typer.echo(f"maat: {sentence}", err=True)
