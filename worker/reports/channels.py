"""Where reports by schedule go: a folder of the operator's, or a webhook."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.models import Report, ReportSchedule
from backend.reports.forms import ReportFile, file_of_kept
from backend.secret_key import SecretError, secret_key
from backend.settings import Settings
from maat.api.fields import rfc3339
from maat.api.reports import Paper, ReportForm
from worker.webhooks.posting import Undelivered, post_signed

__all__ = ["Delivered", "Undelivered", "envelope", "send_to_webhook", "write_to_folder"]

EVENT_TYPE, ENVELOPE = "report.made", 1


@dataclass(frozen=True)
class Delivered:
    """`files`: names below the folder of reports; `status`: what a webhook answered."""

    message: str
    status: int | None = None
    files: list[str] = field(default_factory=list)


def write_to_folder(schedule: ReportSchedule, report: Report, settings: Settings) -> Delivered:
    """Write the forms of a report as files. Repeating it writes the same again.

    The folder is the operator's; below it, names are made of ids and safe letters only. Raises
    Undelivered.
    """
    base = settings.reports_path
    if base is None:
        raise Undelivered("This service writes reports to no folder any more.", final=True)
    folder = base / schedule.cluster_id / schedule.id
    names = []
    for file in _files(schedule, report):
        stem, _, end = file.name.rpartition(".")
        name = f"{stem}-{report.id}.{end}"
        try:
            _write(folder, name, file.content)
        except OSError as error:
            raise Undelivered(f"The folder cannot be written: {error.strerror}.") from error
        names.append(str((folder / name).relative_to(base)))
    return Delivered(f"{len(names)} written.", files=names)


def _files(schedule: ReportSchedule, report: Report) -> list[ReportFile]:
    paper = Paper(schedule.paper)
    return [file_of_kept(report, ReportForm(form), paper) for form in schedule.forms]


def _write(folder: Path, name: str, content: bytes) -> None:
    """Write a file as a whole or not at all: readers never see a part of it."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, own = tempfile.mkstemp(dir=folder, prefix=".report-")
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        os.chmod(own, 0o640)
        os.replace(own, folder / name)
    except BaseException:
        Path(own).unlink(missing_ok=True)
        raise
    kept = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(kept)
    finally:
        os.close(kept)


def send_to_webhook(
    schedule: ReportSchedule, report: Report, settings: Settings, *, event_id: str
) -> Delivered:
    """Post a report to the schedule's webhook. Raises Undelivered.

    `event_id`: the same in every repetition. Any answer of 200 to 299 means that it arrived.
    """
    try:
        secret = secret_key(settings).decrypted(schedule.secret or b"")
    except SecretError:
        raise Undelivered("The secret cannot be read: give it again.", final=True) from None
    body = envelope(schedule, report, event_id)
    status = post_signed(schedule.url or "", body, [secret], settings, event_id=event_id)
    return Delivered(f"The webhook answered {status}.", status=status)


def envelope(schedule: ReportSchedule, report: Report, event_id: str) -> bytes:
    """Return the body of the message; of one event always the same bytes."""
    message: dict[str, Any] = {
        "version": ENVELOPE,
        "id": event_id,
        "type": EVENT_TYPE,
        "schedule_id": schedule.id,
        "schedule": schedule.name,
        "report_id": report.id,
        "made_at": rfc3339(report.made_at),
        "checksum": report.checksum,
        "report": report.document,
        "files": [
            {
                "name": file.name,
                "media_type": file.media_type,
                "base64": base64.b64encode(file.content).decode(),
            }
            for file in _files(schedule, report)
            if not file.name.endswith(".json")  # it is `report`
        ],
    }
    return json.dumps(message, separators=(",", ":")).encode()
