"""Reports of rank 0: in a thread of its own, so that a slow or absent server holds nothing up.

A report bears a number, and the server takes each number once. So one that may have arrived is sent
again as it is, and what happens meanwhile is in the next.
"""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, NamedTuple

from maat.agent.environment import BatchPlan
from maat.agent.files import write_whole
from maat.agent.ledger import Ledger
from maat.agent.words import say

REPORT_SECONDS = 30.0
LONGEST_PAUSE = 300.0
TIMEOUT_SECONDS = 10.0
_FIRST_PAUSE = 1.0
_BYE_SECONDS = 5.0
_MOST_BYTES = 65_536
_STALE = b"stale-attempt"
# A report is whole without them: by the beginning of a JSON Pointer, where in it they are.
_MEASURED = {
    ("passes",): "passes",
    ("ranks",): "ranks",
    ("gradient",): "gradient",
    ("memory",): "memory",
    ("progress", "processed_samples"): "processed_samples",
    ("progress", "gained_samples"): "gained_samples",
}


class Answer(NamedTuple):
    """What the server wants. `is_stale`: the attempt is over, and must save nothing."""

    plan: BatchPlan | None = None
    stop: bool = False
    is_stale: bool = False


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token is for one server, and for no other to which that one may point."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Reporter:
    """Sends what a ledger holds, and passes on what is answered."""

    def __init__(self, ledger: Ledger, hear: Callable[[Answer], None]) -> None:
        self._ledger, self._hear = ledger, hear
        self._incarnation = uuid.uuid4().hex
        self._sequence, self._failures = 0, 0
        self._pending: dict[str, Any] | None = None
        self._seconds = REPORT_SECONDS
        self._is_over = False
        self._ending = threading.Event()
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._thread = threading.Thread(target=self._run, name="maat-report", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Say goodbye, if the server hears it soon enough."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        self._report("hello")
        while not self._ending.wait(self._pause()):
            self._report("report")
        deadline = time.monotonic() + _BYE_SECONDS
        if self._pending is not None:
            self._send(deadline - time.monotonic())
        self._report("bye", deadline - time.monotonic())

    def _pause(self) -> float:
        """Return the time until the next try: longer with each failure, never quite the same."""
        if not self._failures:
            return self._seconds
        pause: float = min(_FIRST_PAUSE * 2 ** min(self._failures - 1, 16), LONGEST_PAUSE)
        return pause * random.uniform(0.5, 1.0)

    def _report(self, kind: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self._write(kind)
        if self._is_over or self._ledger.environment.server is None:
            return
        if self._pending is None:
            self._sequence += 1
            self._pending = self._named(kind, self._ledger.take())
        self._send(timeout)

    def _named(self, kind: str, facts: dict[str, Any]) -> dict[str, Any]:
        named = {"sequence": self._sequence, "kind": kind, "incarnation": self._incarnation}
        return {**named, **facts}

    def _write(self, kind: str) -> None:
        """Leave what is known beside the logs, for whom cannot ask the server."""
        try:
            report = {**self._named(kind, self._ledger.look()), "at": time.time()}
            write_whole(self._ledger.environment.file("report.json"), json.dumps(report))
        except OSError as error:
            say(f"report.json cannot be written: {error}")

    def _send(self, timeout: float) -> None:
        """Send the pending report once."""
        if timeout <= 0:
            return
        try:
            with self._opener.open(self._request(), timeout=timeout) as response:
                answer = json.loads(response.read(_MOST_BYTES))
            plan = answer.get("plan")
            heard = Answer(
                plan=None if plan is None else BatchPlan.from_json(plan),
                stop=answer.get("stop") is True,
            )
            self._seconds = min(max(float(answer["report_seconds"]), 0.05), LONGEST_PAUSE)
        except urllib.error.HTTPError as error:
            with error:
                body = error.read(_MOST_BYTES)
            self._refused(error.code, body)
            if error.code == 422 and self._pending is not None:
                self._send(timeout)
        except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
            self._failed(repr(error))
        else:
            self._pending, self._failures = None, 0
            self._hear(heard)

    def _request(self) -> urllib.request.Request:
        around = self._ledger.environment
        server = (around.server or "").rstrip("/")
        return urllib.request.Request(  # noqa: S310  (Environment has looked at the scheme)
            f"{server}/api/v1/attempts/{around.attempt_id}/reports",
            data=json.dumps(self._pending).encode(),
            headers={
                "Authorization": f"Bearer {around.file('token').read_text()}",
                "Content-Type": "application/json",
            },
            method="POST",
        )

    def _refused(self, status: int, body: bytes) -> None:
        if status == 409 and _STALE in body:
            self._is_over, self._pending = True, None
            self._hear(Answer(is_stale=True))
        elif status == 429 or status >= 500:
            self._failed(f"status {status}")
        else:  # it will never be taken: what is not named in the answer may, and the next report
            say(f"the server refuses a report ({status}): {body[:500]!r}")
            self._pending = self._without(_measured_parts(body))

    def _without(self, parts: frozenset[str]) -> dict[str, Any] | None:
        """Return the pending report without these parts; None if it does not have them."""
        pending = self._pending
        if not parts or pending is None or not parts <= pending.keys() | pending["progress"].keys():
            return None
        left = {name: value for name, value in pending.items() if name not in parts}
        progress = {name: value for name, value in left["progress"].items() if name not in parts}
        return {**left, "progress": progress}

    def _failed(self, reason: str) -> None:
        self._failures += 1
        if self._failures == 1:
            say(f"no report gets through, training goes on: {reason}")


def _measured_parts(body: bytes) -> frozenset[str]:
    """Return the measured parts of a report that a problem names; none if it names others too."""
    try:
        named = [str(error["pointer"]).split("/")[1:] for error in json.loads(body)["errors"]]
    except (ValueError, KeyError, TypeError):
        return frozenset()
    parts = [_MEASURED.get(tuple(way[:1])) or _MEASURED.get(tuple(way[:2])) for way in named]
    return frozenset(part for part in parts if part) if all(parts) else frozenset()
