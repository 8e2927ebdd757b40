"""`maat tokens ...`: tokens of a running service. token.py makes one without the service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from maat.cli.numbers import number_option
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.cli.token import MAX_DAYS


def list_tokens(
    user: Annotated[
        str | None, typer.Option(help="Whose: a user's name or id, or `me`; default: all.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List tokens, newest first."""
    with client_of(url) as maat:
        found = maat.tokens(user=user)
    columns = ("id", "user", "name", "prefix", "state", "scopes", "expires_at", "last_used_at")
    rows = [
        [
            one["id"],
            one["user"],
            one["name"],
            one["prefix"],
            one["state"],
            "all" if one["scopes"] is None else ",".join(one["scopes"]) or "none",
            one["expires_at"] or "never",
            one["last_used_at"] or "never",
        ]
        for one in found
    ]
    show(found, as_json, table_of(columns, rows))


def create(
    name: Annotated[str, typer.Argument(help="What the token is for.")],
    user: Annotated[
        str | None, typer.Option(help="A service account that you manage; default: yourself.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="A permission such as jobs:read; repeat it. Default: all you have."),
    ] = None,
    days: Annotated[
        float | None,
        number_option(
            "--days", least=0.001, most=MAX_DAYS, help="Days until it expires; default: never."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it. It is shown only once."""
    body: dict[str, Any] = {"name": name}
    if user is not None:
        body["user"] = user
    if scope:
        body["scopes"] = scope
    if days is not None:
        body["expires_at"] = (datetime.now(UTC) + timedelta(days=days)).isoformat()
    with client_of(url) as maat:
        made = maat.create_token(body)
    show(made, as_json, str(made["secret"]))


def revoke(
    token_id: Annotated[str, typer.Argument(help="The token's id, from `maat tokens list`.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Revoke a token, and those that were made with it."""
    with client_of(url) as maat:
        maat.revoke_token(token_id)
    show({"revoked": token_id}, as_json, f"{token_id} is revoked")
