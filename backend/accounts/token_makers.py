"""Who made a token, and the tokens with which it was made: it may never do more than they may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, select

from backend.accounts.models import ApiToken, Tenant, User
from backend.accounts.permissions import SEES_ALL_TENANTS, Role


@dataclass(frozen=True)
class Maker:
    """What somebody who made a token is now."""

    role: Role
    tenant_id: str

    def may_see(self, tenant_id: str) -> bool:
        return self.role in SEES_ALL_TENANTS or tenant_id == self.tenant_id


def makers_of(session: Session, token: ApiToken) -> Sequence[Maker | None]:
    """Return who made this token and those that it was made with, without its user.

    None for one who is removed, not active, or of a closed tenant. Who operates the database's
    machine is nobody's maker.
    """
    if token.made_with is None and token.made_by in (None, token.user_id):
        return ()
    line = (
        select(ApiToken.made_by, ApiToken.made_with)
        .where(ApiToken.id == token.id)
        .cte("line", recursive=True)
    )
    line = line.union(
        select(col(ApiToken.made_by), col(ApiToken.made_with)).join(
            line, col(ApiToken.id) == line.c.made_with
        )
    )
    rows = session.execute(
        select(line.c.made_by, User, Tenant)
        .select_from(line)
        .outerjoin(User, col(User.id) == line.c.made_by)
        .outerjoin(Tenant, col(Tenant.id) == col(User.tenant_id))
        .where(line.c.made_by.is_not(None), line.c.made_by != token.user_id)
    ).all()
    return [_maker(user, tenant) for _, user, tenant in rows]


def _maker(user: User | None, tenant: Tenant | None) -> Maker | None:
    if user is None or tenant is None or not user.active or tenant.closed_at is not None:
        return None
    return Maker(Role(user.role), user.tenant_id)
