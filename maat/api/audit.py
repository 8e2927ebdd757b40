"""What was changed, by whom, and when."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Timestamp
from maat.vocabulary import ActorKind, TargetKind

Shown = Annotated[dict[str, Any], Field(description="What is shown of the row; never a secret.")]


class AuditForm(StrEnum):
    """The form of a file of records."""

    CSV = "csv"
    JSON = "json"


class AuditRecordOut(TypedDict):
    """One change: who did what to which row.

    `actor`: the user's name; `an administrator` where that is one of another tenant. `credential`:
    the id of the token or session. `tenant`: whose affair it is; null for what concerns all.
    `target_id` is empty if there is no row.
    """

    id: str
    at: Timestamp
    actor: str
    actor_kind: ActorKind
    actor_id: str | None
    credential: str | None
    tenant: str | None
    action: str
    target_kind: TargetKind
    target_id: str
    before: Shown
    after: Shown
    request_id: str | None
