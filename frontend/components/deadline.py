"""The deadline of a job as a form takes it: date and time in the cluster's time, UTC."""

from __future__ import annotations

from datetime import UTC, datetime

import dash_mantine_components as dmc

from maat.api.fields import rfc3339
from maat.api.jobs import JobBody

_HELP = "In the cluster's time, UTC. A wish: it is told when it will be missed."


def deadline_field(field_id: str) -> dmc.TextInput:
    return dmc.TextInput(
        id=field_id,
        label=JobBody.model_fields["deadline"].title,
        description=_HELP,
        placeholder="2026-12-01 08:00",
        value="",
        debounce=300,
        inputWrapperOrder=["label", "input", "description", "error"],
    )


def wrong_deadline(text: str | None) -> str:
    """Return what is wrong with what a field holds; nothing if it is empty or a moment."""
    if not (text or "").strip() or _moment(text) is not None:
        return ""
    return "Write date and time, such as 2026-12-01 08:00."


def deadline_body(text: str | None) -> str | None:
    """Return what a field holds as the API's moment; None if it is empty."""
    moment = _moment(text)
    return None if moment is None else rfc3339(moment)


def _moment(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat((text or "").strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
