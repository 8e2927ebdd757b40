"""Where reports by schedule go: a folder of the operator's, or a webhook."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from backend.models import Report, ReportSchedule
from backend.reports.forms import ReportFile, file_of_kept
from backend.secret_key import SecretError, secret_key
from backend.settings import Settings
from backend.webhooks.addresses import PrivateAddress, RefusedAddress, Target, checked_target
from backend.webhooks.signing import signed_headers
from maat.api.fields import rfc3339
from maat.api.reports import Paper, ReportForm

EVENT_TYPE, ENVELOPE = "report.made", 1


class Undelivered(Exception):
    """A report did not arrive. `final`: trying again would not help."""

    def __init__(self, message: str, *, status: int | None = None, final: bool = False) -> None:
        super().__init__(message)
        self.status, self.final = status, final


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
        target = checked_target(
            schedule.url or "", to_private=settings.webhooks_to_private_addresses
        )
    except SecretError:
        raise Undelivered("The secret cannot be read: give it again.", final=True) from None
    except RefusedAddress as refused:
        is_final = isinstance(refused, PrivateAddress)
        raise Undelivered(str(refused), final=is_final) from None
    body = envelope(schedule, report, event_id)
    headers = signed_headers(secret, body, event_id=event_id, timestamp=int(time.time()))
    status = _post(target, body, headers, seconds=settings.webhook_seconds)
    if not 200 <= status < 300:
        moved = " Redirects are not followed." if 300 <= status < 400 else ""
        raise Undelivered(f"The webhook answered {status}.{moved}", status=status)
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


def _post(target: Target, body: bytes, headers: dict[str, str], *, seconds: float) -> int:
    """Send a message and return the status; the answer's body is not read. Raises Undelivered."""
    try:
        return asyncio.run(asyncio.wait_for(_posted(target, body, headers, seconds), seconds))
    except TimeoutError:
        raise Undelivered(f"The webhook did not answer within {seconds:g} s.") from None
    except httpx.HTTPError as error:
        raise Undelivered(f"The webhook cannot be reached: {_why(error)}.") from None


async def _posted(target: Target, body: bytes, headers: dict[str, str], seconds: float) -> int:
    """Send to the address that was checked, under the name that the URL has."""
    url = httpx.URL(target.url)
    named = url.netloc.decode("ascii")
    more = {
        "Host": named,
        "Content-Type": "application/json",
        "User-Agent": "Maat",
        **headers,
    }
    # The environment may name a proxy, and a proxy would look the name up again.
    async with (
        httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=seconds) as client,
        client.stream(
            "POST",
            url.copy_with(host=target.address),
            content=body,
            headers=more,
            extensions={"sni_hostname": target.host},
        ) as answer,
    ):
        return answer.status_code


def _why(error: httpx.HTTPError) -> str:
    """Say why in few words, without the address that was looked up."""
    words = re.sub(r"[^A-Za-z]+", " ", type(error).__name__)
    return {"ConnectError": "no connection, or its certificate is not valid"}.get(words, words)
