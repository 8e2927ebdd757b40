"""Who made a token, and the tokens with which it was made: it may never do more than they may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    return makers_by_token(session, [token]).get(token.id, ())


def makers_by_token(
    session: Session, tokens: Sequence[ApiToken]
) -> Mapping[str, Sequence[Maker | None]]:
    """Return `makers_of` each token that has any, by the token's id."""
    made = {
        token.id: token.user_id
        for token in tokens
        if token.made_with is not None or token.made_by not in (None, token.user_id)
    }
    if not made:
        return {}
    line = (
        select(col(ApiToken.id).label("token_id"), ApiToken.made_by, ApiToken.made_with)
        .where(col(ApiToken.id).in_(made))
        .cte("line", recursive=True)
    )
    line = line.union(
        select(line.c.token_id, col(ApiToken.made_by), col(ApiToken.made_with)).join(
            line, col(ApiToken.id) == line.c.made_with
        )
    )
    rows = session.execute(
        select(line.c.token_id, line.c.made_by, User, Tenant)
        .select_from(line)
        .outerjoin(User, col(User.id) == line.c.made_by)
        .outerjoin(Tenant, col(Tenant.id) == col(User.tenant_id))
        .where(line.c.made_by.is_not(None))
    ).all()
    found: dict[str, list[Maker | None]] = {}
    for token_id, made_by, user, tenant in rows:
        if made_by != made[token_id]:
            found.setdefault(token_id, []).append(_maker(user, tenant))
    return found


def _maker(user: User | None, tenant: Tenant | None) -> Maker | None:
    if user is None or tenant is None or not user.active or tenant.closed_at is not None:
        return None
    return Maker(Role(user.role), user.tenant_id)
