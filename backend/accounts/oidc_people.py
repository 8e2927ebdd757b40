"""Who a person of the provider is to Maat: a user, by issuer and subject, and by nothing else.

A name of the provider never leads to a user who is there already: it could be taken over.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlmodel import Session, col, select

from backend.accounts.administrators import LastAdministrator, an_administrator_stays
from backend.accounts.changes import one_at_a_time, shown_user
from backend.accounts.models import Tenant, User
from backend.accounts.name_rules import free_name
from backend.accounts.oidc import Claims, OidcRefused
from backend.accounts.permissions import Role
from backend.audit.changes import Change, Shown, program, record
from backend.problems import Invalid
from backend.settings import Settings
from maat.api.fields import NameInAddresses

T = TypeVar("T")

_NAME: TypeAdapter[str] = TypeAdapter(NameInAddresses)


def person_of(session: Session, settings: Settings, claims: Claims) -> User:
    """Find or make the user. The role follows the claims if a claim is set for it.

    Raises OidcRefused for whom no setting lets in.
    """
    one_at_a_time(session)
    role = _role(settings, claims)
    user = session.exec(
        select(User).where(User.issuer == settings.oidc_issuer, User.subject == claims["sub"])
    ).first()
    if user is None:
        return _new_person(session, settings, claims, role)
    tenant = session.get_one(Tenant, user.tenant_id)
    if not user.active or tenant.closed_at is not None:
        raise OidcRefused("unknown", f"{user.id} is not active")
    if settings.oidc_role_claim and user.role != role.value:
        before = shown_user(user)
        try:
            with an_administrator_stays(session, settings, f"To change {user.name} so"):
                user.role, user.version = role.value, user.version + 1
                session.add(user)
        except LastAdministrator as error:
            raise OidcRefused("unknown", error.detail) from None
        _record(session, "change user", user, before)
    return user


def _new_person(session: Session, settings: Settings, claims: Claims, role: Role) -> User:
    wanted = _mapped(settings.oidc_tenants, claims.get(settings.oidc_tenant_claim))
    tenant = session.exec(
        select(Tenant).where(
            Tenant.name == (wanted or settings.oidc_default_tenant), col(Tenant.closed_at).is_(None)
        )
    ).first()
    if tenant is None:
        raise OidcRefused("unknown", "no setting gives this person an open tenant")
    name = _name(session, settings, claims)
    user = User(
        name=name,
        tenant_id=tenant.id,
        role=role.value,
        issuer=settings.oidc_issuer,
        subject=claims["sub"],
    )
    session.add(user)
    session.flush()
    _record(session, "create user", user, {})
    return user


def _record(session: Session, action: str, user: User, before: Shown) -> None:
    actor = program("the provider")
    record(session, Change(actor, action, user.id, before, shown_user(user), user.tenant_id))


def _role(settings: Settings, claims: Claims) -> Role:
    """Return the role that the claims give; a viewer's if none is to be had from them."""
    if not settings.oidc_role_claim:
        return Role.VIEWER
    found = _mapped(settings.oidc_roles, claims.get(settings.oidc_role_claim))
    if found is None:
        raise OidcRefused("unknown", "no setting gives this person a role")
    return found


def _mapped(mapping: dict[str, T], given: object) -> T | None:
    """Return the first entry of the setting that the claim, a text or a list, names."""
    values = given if isinstance(given, list) else [given]
    return next((result for value, result in mapping.items() if value in values), None)


def _name(session: Session, settings: Settings, claims: Claims) -> str:
    try:
        name = _NAME.validate_python(claims.get(settings.oidc_name_claim) or claims["sub"])
        return free_name(session, User, name)
    except ValidationError:
        raise OidcRefused("bad_name", "the provider's name cannot be one of Maat") from None
    except Invalid as refused:
        code = "name_taken" if refused.errors[0].code == "name_taken" else "bad_name"
        raise OidcRefused(code, refused.errors[0].message) from None
