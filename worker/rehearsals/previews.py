"""Plays previews of rounds, each in a process of its own. Knows no broker.

A policy may take long, and cannot be asked to stop while it decides: a preview that is cancelled,
or takes too long, ends with its process. Rounds go on meanwhile.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from typing import Any

from sqlmodel import col, select

from backend.database import Database
from backend.models import Operation, OperationState, RoundPreview
from backend.previews.service import PREVIEW
from backend.problems import InternalError
from worker.operations import OPERATIONS, is_cancel_requested, waiting_operations
from worker.rehearsals.round_preview import POLICY_FAILED

log = logging.getLogger(__name__)

MOST_SECONDS = 120.0
LOOK_SECONDS = 0.2
_ONE_AT_A_TIME = threading.Lock()
_NO_NODE = "The cluster has no node any more: it makes no rounds."
_TOO_LONG = f"The rounds took more than {MOST_SECONDS:.0f} s, and were given up."
_FAULT = "The rounds could not be played because of a fault of Maat; the worker's log says more."


class Cancelled(Exception):
    """Somebody cancelled the preview."""


class GivenUp(Exception):
    """The rounds could not be played. The message says why."""


def waiting_previews(database: Database) -> list[str]:
    """Return previews without a worker, and mark them as sent."""
    operations = waiting_operations(database, kind=PREVIEW)
    with database.session_scope(writes=False) as session:
        wanted = col(RoundPreview.operation_id).in_(operations)
        return list(session.exec(select(RoundPreview.id).where(wanted)))


def begin(database: Database, preview_id: str) -> threading.Thread:
    """Play a preview beside the rounds of this process, one preview after the other."""

    def run() -> None:
        try:
            with _ONE_AT_A_TIME:
                run_preview(database, preview_id)
        except Exception:  # it is sent again
            log.exception("the preview %s was not played", preview_id)

    thread = threading.Thread(target=run, name=f"preview-{preview_id}", daemon=True)
    thread.start()
    return thread


def run_preview(
    database: Database, preview_id: str, *, most_seconds: float = MOST_SECONDS
) -> OperationState | None:
    """Play a preview and store its result.

    Returns how it ended; None if another worker has claimed it or it has ended.
    """
    with database.session_scope() as session:
        preview = session.get(RoundPreview, preview_id)
        if preview is None:
            return None
        mine = col(Operation.id) == preview.operation_id
        claim = OPERATIONS.claim_next(session, mine, message="Playing two rounds.")
    if claim is None:
        return None
    state, result, message = OperationState.SUCCEEDED, None, "Both rounds are played."
    with OPERATIONS.working_on(database, claim):
        try:
            result = _played(database, preview, most_seconds=most_seconds)
        except Cancelled:
            state, message = OperationState.CANCELLED, "Cancelled: nothing was changed."
        except GivenUp as why:
            state, message = OperationState.FAILED, str(why)
    ended: dict[str, Any] = {"message": message}
    if state is OperationState.SUCCEEDED:
        ended["done"] = 2.0
    if state is OperationState.FAILED:
        instance = f"/api/v1/operations/{preview.operation_id}"
        ended["error"] = InternalError(message).as_json(instance=instance, request_id="")
    with database.session_scope() as session:
        if OPERATIONS.settle(session, claim, state, **ended):
            session.get_one(RoundPreview, preview_id).result = result
    return state


def _played(database: Database, preview: RoundPreview, *, most_seconds: float) -> Any:
    """Return what the program prints. Raises Cancelled, GivenUp."""
    url = database.engine.url.render_as_string(hide_password=False)
    process = subprocess.Popen(
        (sys.executable, "-m", "worker.rehearsals.round_preview", preview.id),
        env={**os.environ, "MAAT_DATABASE_URL": url},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + most_seconds
    try:
        while True:
            try:
                said, errors = process.communicate(timeout=LOOK_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if is_cancel_requested(database, preview.operation_id):
                    raise Cancelled from None
                if time.monotonic() > until:
                    raise GivenUp(_TOO_LONG) from None
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    if process.returncode == POLICY_FAILED:
        raise GivenUp(said.strip())
    if process.returncode != 0:
        log.error("%s failed: %s", preview.id, errors.strip().rsplit("\n", 1)[-1].split(":")[0])
        raise GivenUp(_FAULT)
    result = json.loads(said)
    if result is None:
        raise GivenUp(_NO_NODE)
    return result
