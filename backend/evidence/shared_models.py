"""Models of which all tenants' evidence counts together: listed, shared, told apart again.

Commits nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session, col, select

from backend.attempts.models import SharedModel
from backend.audit.changes import Change, asker, record
from backend.clocktime import utc_now
from backend.problems import NotFound
from maat.api.evidence import SharedModelOut
from maat.api.fields import rfc3339


def shared_by_name(session: Session) -> Sequence[SharedModelOut]:
    rows = session.exec(select(SharedModel).order_by(col(SharedModel.model)))
    return [_shown(row) for row in rows]


def share_model(session: Session, model: str) -> SharedModelOut:
    """Say that a name means the same model for all tenants; it may be said again."""
    row = session.get(SharedModel, model)
    if row is None:
        row = SharedModel(model=model, shared_at=utc_now())
        session.add(row)
        _record(session, "share model", model, is_shared=True)
    return _shown(row)


def unshare_model(session: Session, model: str) -> None:
    """Say that each tenant's model of this name is its own again. Raises NotFound."""
    row = session.get(SharedModel, model)
    if row is None:
        raise NotFound(f"No model {model!r} is shared.")
    session.delete(row)
    _record(session, "stop sharing model", model, is_shared=False)


def _record(session: Session, action: str, model: str, *, is_shared: bool) -> None:
    before, after = ({"model": model, "shared": shared} for shared in (not is_shared, is_shared))
    record(session, Change(asker(), action, "", before, after))


def _shown(row: SharedModel) -> SharedModelOut:
    return SharedModelOut(model=row.model, shared_at=rfc3339(row.shared_at))
