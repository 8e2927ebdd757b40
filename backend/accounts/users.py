"""Makes, changes and removes users, none above the caller's own role. Commits nothing."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import SecretStr
from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select

from backend.accounts.administrators import an_administrator_stays
from backend.accounts.changes import one_at_a_time, shown_user
from backend.accounts.models import ApiToken, Tenant, User
from backend.accounts.name_rules import free_name
from backend.accounts.passwords import check_choice, hashed
from backend.accounts.permissions import Role
from backend.accounts.principals import LOCAL_USER, Principal
from backend.accounts.refusals import invalid, unknown_tenant
from backend.accounts.sessions import end_sessions
from backend.answers import answer_of
from backend.audit.changes import Change, Shown, actor_of, record
from backend.problems import Conflict, Forbidden, NotFound
from backend.settings import Settings
from backend.web.conditional import check_version, check_version_if_sent
from maat.api.accounts import UserBody, UserChanges, UserOut
from maat.vocabulary import UserKind


def find_user(session: Session, principal: Principal, named: str) -> User:
    """Find a user by id or name. Raises NotFound, also for one of a tenant that may not be seen."""
    found = session.exec(
        select(User).where((col(User.id) == named) | (col(User.name) == named))
    ).first()
    if found is None or not principal.may_see(found.tenant_id):
        raise NotFound(f"There is no user {named!r}.")
    return found


def create_user(
    session: Session, principal: Principal, body: UserBody, password_hash: str | None
) -> User:
    """Store a user. `password_hash`: of the body's password, from `prepare_password`."""
    one_at_a_time(session)
    tenant = _tenant_of(session, principal, body.tenant)
    _check_may_give(principal, body.role)
    user = User(
        name=free_name(session, User, body.name),
        tenant_id=tenant.id,
        role=body.role.value,
        kind=body.kind.value,
        password_hash=password_hash,
    )
    session.add(user)
    session.flush()
    actor = actor_of(principal)
    record(session, Change(actor, "create user", user.id, {}, shown_user(user), user.tenant_id))
    return user


def prepare_password(body: UserBody) -> str | None:
    """Hash the password of a new user, which takes time, before anything is written.

    Raises Invalid.
    """
    if body.password is None:
        return None
    if body.kind is UserKind.SERVICE:
        raise invalid(
            "/password",
            "no_password",
            "A service account has no password.",
            "Leave it out and make a token.",
        )
    check_choice(body.password, user_name=body.name, pointer="/password")
    return hashed(body.password)


def change_user(
    session: Session,
    settings: Settings,
    principal: Principal,
    named: str,
    changes: UserChanges,
    if_match: str | None,
) -> User:
    """Change role or activity. Who is deactivated is signed out everywhere.

    Raises LastAdministrator, Forbidden for users and roles above the caller's own.
    """
    one_at_a_time(session)
    user = _changeable(session, principal, named)
    check_version(if_match, user.version)
    before = shown_user(user)
    with an_administrator_stays(session, settings, f"To change {user.name} so"):
        if changes.role is not None and changes.role.value != user.role:
            _check_may_give(principal, changes.role)
            user.role = changes.role.value
        if changes.active is not None:
            user.active = changes.active
        user.version += 1
    if not user.active:
        end_sessions(session, user.id)
    actor, after = actor_of(principal), shown_user(user)
    record(session, Change(actor, "change user", user.id, before, after, user.tenant_id))
    return user


def set_password(
    session: Session, principal: Principal, named: str, new: SecretStr, password_hash: str
) -> User:
    """Give a person another password. Ends their sessions; tokens stay."""
    one_at_a_time(session)
    user = _changeable(session, principal, named)
    if user.kind != UserKind.PERSON.value:
        raise Conflict(f"{user.name} is a service account, which has no password: make a token.")
    check_choice(new, user_name=user.name, pointer="/password")
    _store_password(session, user, password_hash)
    _record(session, principal, "set password of user", user)
    return user


def change_own_password(
    session: Session, principal: Principal, password_hash: str
) -> tuple[User, int]:
    """Store one's own new password, whose old one was checked.

    Ends all of one's sessions; returns how many.
    """
    one_at_a_time(session)
    user = session.get_one(User, principal.user_id)
    ended = _store_password(session, user, password_hash)
    _record(session, principal, "change own password", user)
    return user, ended


def sign_out(session: Session, principal: Principal, named: str) -> int:
    """End all sessions of a user; return how many."""
    one_at_a_time(session)
    user = _changeable(session, principal, named)
    ended = end_sessions(session, user.id)
    _record(session, principal, "sign out user", user)
    return ended


def remove_user(
    session: Session, settings: Settings, principal: Principal, named: str, if_match: str | None
) -> None:
    """Remove a user who owns nothing, with tokens and sessions.

    Raises Conflict for any other: they can be deactivated. Raises LastAdministrator for who cannot
    even be that.
    """
    one_at_a_time(session)
    user = _changeable(session, principal, named)
    check_version_if_sent(if_match, user.version)
    before = shown_user(user)
    with an_administrator_stays(session, settings, f"To remove {user.name}"):
        user.active = False
    if user.name == LOCAL_USER:
        raise Conflict(f"{LOCAL_USER} comes back at each start: {_instead(before)}.")
    _delete_user(session, user, instead=_instead(before))
    actor = actor_of(principal)
    record(session, Change(actor, "remove user", user.id, before, {}, user.tenant_id))


def _instead(before: Shown) -> str:
    """Return what is left to do with a user who cannot be removed."""
    if before["active"]:
        return "deactivate the user instead"
    return "the user is not active, and nobody is let in by it"


def _delete_user(session: Session, user: User, *, instead: str) -> None:
    try:
        with session.begin_nested():
            end_sessions(session, user.id)
            session.execute(delete(ApiToken).where(col(ApiToken.user_id) == user.id))
            session.delete(user)
            session.flush()
    except IntegrityError:
        raise Conflict(
            f"{user.name} owns jobs, simulations, measurements, webhooks or schedules of reports, "
            f"which would be lost: {instead}."
        ) from None


def show_users(session: Session, rows: Sequence[User]) -> list[UserOut]:
    tenants = dict(
        session.exec(
            select(Tenant.id, Tenant.name).where(
                col(Tenant.id).in_({row.tenant_id for row in rows})
            )
        ).all()
    )
    return [
        answer_of(UserOut, row, tenant=tenants[row.tenant_id], signs_in_by=_ways(row))
        for row in rows
    ]


def may_change_user(principal: Principal, user: User) -> bool:
    """Return whether the user's role is not above the caller's own."""
    return principal.may_give(Role(user.role))


def _record(session: Session, principal: Principal, action: str, user: User) -> None:
    """Write down what changes nothing that is shown of a user."""
    record(session, Change(actor_of(principal), action, user.id, tenant_id=user.tenant_id))


def _changeable(session: Session, principal: Principal, named: str) -> User:
    user = find_user(session, principal, named)
    if not may_change_user(principal, user):
        raise Forbidden(
            f"{user.name} has the role {user.role}, which you may not change: "
            "your own role, or the scopes of your token, are less."
        )
    return user


def _check_may_give(principal: Principal, role: Role) -> None:
    if not principal.may_give(role):
        raise invalid(
            "/role",
            "role_above_own",
            "You cannot give a role above your own.",
            "Choose one that may no more than you: than your role, and the scopes of your token.",
            role.value,
        )


def _tenant_of(session: Session, principal: Principal, name: str | None) -> Tenant:
    if name is None:
        return session.get_one(Tenant, principal.tenant_id)
    found = session.exec(
        select(Tenant).where((col(Tenant.name) == name) | (col(Tenant.id) == name))
    ).first()
    if found is None or not principal.may_see(found.id):
        raise unknown_tenant(name)
    return found


def _store_password(session: Session, user: User, password_hash: str) -> int:
    user.password_hash = password_hash
    user.version += 1
    session.add(user)
    session.flush()
    return end_sessions(session, user.id)


def _ways(user: User) -> list[str]:
    if user.kind != UserKind.PERSON.value:
        return []
    given = (("password", user.password_hash), ("oidc", user.subject))
    return [way for way, known in given if known]
