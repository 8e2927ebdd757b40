"""`maat sessions ...` and `maat password`: one's own browsers, and one's own password."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.cli.users import password_from
from maat.scheduling.errors import ParameterError

_PRESENT = "Your present password"


def list_sessions(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the browsers in which you are signed in, newest first."""
    with client_of(url) as maat:
        found = maat.sessions()
    columns = ("id", "how", "created_at", "last_seen_at", "expires_at", "browser")
    rows = [[one[column] for column in columns] for one in found]  # type: ignore[literal-required]
    show(found, as_json, table_of(columns, rows) if rows else "You are signed in nowhere.")


def end(
    session: Annotated[
        str | None, typer.Argument(help="The session's id, from `maat sessions list`.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Sign yourself out in one browser, or in all."""
    if (session is None) != all_:
        raise ParameterError(
            "is missing" if session is None else "is given beside --all",
            field="session",
            value=session,
            remedy="Give the id of one, or --all.",
        )
    with client_of(url) as maat:
        if session is None:
            ended = maat.end_other_sessions()["ended"]
        else:
            maat.end_session(session)
            ended = 1
    show({"ended": ended}, as_json, _ended(ended))


def password(
    from_stdin: Annotated[
        bool,
        typer.Option(
            "--password-stdin",
            help="Read two lines of standard input, the present and the new one; else they are "
            "asked for.",
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Change your own password. You are signed out in all browsers; tokens stay."""
    if from_stdin:
        old = sys.stdin.readline().rstrip("\n")
    else:
        old = str(typer.prompt(_PRESENT, hide_input=True, err=True))
    new = password_from(from_stdin, "Your new password")
    with client_of(url) as maat:
        changed = maat.change_own_password(old, new)
    show(changed, as_json, f"Your password is changed. {_ended(changed['ended'])}")


def _ended(count: int) -> str:
    return "1 session has ended." if count == 1 else f"{count} sessions have ended."
