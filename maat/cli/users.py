"""`maat users ...`: who may use Maat, and as what."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.scheduling.errors import ParameterError
from maat.vocabulary import Role, UserKind

Named = Annotated[str, typer.Argument(help="The user's name or id.")]
Stdin = Annotated[
    bool,
    typer.Option(
        "--password-stdin", help="Read the password from standard input; else it is asked for."
    ),
]


def list_users(
    tenant: Annotated[str | None, typer.Option(help="Of this tenant.")] = None,
    role: Annotated[Role | None, typer.Option(help="With this role.")] = None,
    search: Annotated[str | None, typer.Option(help="Part of the name.")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List users, oldest first."""
    with client_of(url) as maat:
        found = maat.users(tenant=tenant, role=role, q=search)
    rows = [
        [
            one["name"],
            one["tenant"],
            one["role"],
            one["kind"],
            "active" if one["active"] else "not active",
            ", ".join(one["signs_in_by"]) or "-",
            one["signed_in_at"] or "-",
        ]
        for one in found
    ]
    columns = ("name", "tenant", "role", "kind", "state", "signs_in_by", "signed_in_at")
    show(found, as_json, table_of(columns, rows))


def create(
    name: Annotated[str, typer.Argument(help="The name to sign in with.")],
    role: Annotated[Role, typer.Option(help="What they may do.")] = Role.VIEWER,
    tenant: Annotated[str | None, typer.Option(help="Default: your own.")] = None,
    service: Annotated[
        bool, typer.Option("--service", help="A service account: tokens, and no password.")
    ] = False,
    without_password: Annotated[
        bool, typer.Option("--no-password", help="They sign in by other means, or later.")
    ] = False,
    password_stdin: Stdin = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make a user."""
    body: dict[str, Any] = {"name": name, "role": role.value}
    if tenant is not None:
        body["tenant"] = tenant
    if service:
        body["kind"] = UserKind.SERVICE.value
    elif not without_password:
        body["password"] = password_from(password_stdin, f"Password of {name}")
    with client_of(url) as maat:
        made = maat.create_user(body)
    show(made, as_json, f"{made['name']} is a {made['role']} of {made['tenant']}")


def change(
    user: Named,
    role: Annotated[Role | None, typer.Option(help="The new role.")] = None,
    active: Annotated[
        bool | None,
        typer.Option("--activate/--deactivate", help="Who is not active is not let in."),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Change a user's role or activity."""
    changes = {"role": None if role is None else role.value, "active": active}
    given = {name: value for name, value in changes.items() if value is not None}
    if not given:
        raise ParameterError(
            "is missing: nothing would change",
            field="role",
            remedy="Give --role, --activate or --deactivate.",
        )
    with client_of(url) as maat:
        changed = maat.change_user(user, given, version=maat.user(user)["version"])
    state = "" if changed["active"] else ", and not active"
    show(changed, as_json, f"{changed['name']} is a {changed['role']}{state}")


def set_password(
    user: Named, password_stdin: Stdin = False, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Give a person another password; their sessions end."""
    new = password_from(password_stdin, f"New password of {user}")
    with client_of(url) as maat:
        changed = maat.set_password(user, new)
    show(changed, as_json, f"{changed['name']} has a new password")


def sign_out(user: Named, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Sign a user out of all browsers."""
    with client_of(url) as maat:
        ended = maat.sign_out_user(user)["ended"]
    show({"ended": ended}, as_json, f"{ended} sessions of {user} have ended")


def remove(user: Named, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Remove a user who owns nothing."""
    with client_of(url) as maat:
        maat.remove_user(user)
    show({"removed": user}, as_json, f"{user} is removed")


def password_from(from_stdin: bool, words: str) -> str:
    """Read a password: never an argument, which others on the machine could see."""
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    return str(typer.prompt(words, hide_input=True, confirmation_prompt=True, err=True))
