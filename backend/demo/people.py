"""The tenants of the demo cluster and their members.

They have no tokens, so nobody can act as one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from sqlmodel import Session, select

from backend.accounts.identity import Principal, principal_named
from backend.accounts.models import Tenant, User
from backend.accounts.permissions import Role
from backend.demo.arrivals import TEAMS
from backend.problems import Unauthenticated


def ensure_people(session: Session) -> dict[str, Principal]:
    """Return every member by name; add those that are missing."""
    for team in TEAMS:
        tenant = session.exec(select(Tenant).where(Tenant.name == team.name)).first() or Tenant(
            name=team.name
        )
        session.add(tenant)
        session.flush()
        for member in team.members:
            if session.exec(select(User).where(User.name == member)).first() is None:
                session.add(User(name=member, tenant_id=tenant.id, role=Role.SUBMITTER.value))
    session.flush()
    return dict(_let_in(session))


def _let_in(session: Session) -> Iterator[tuple[str, Principal]]:
    """Yield the members whom nobody has deactivated."""
    for member in (member for team in TEAMS for member in team.members):
        with suppress(Unauthenticated):
            yield member, principal_named(session, member)
