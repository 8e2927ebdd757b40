"""`maat ready`: whether all that a running Maat needs is there."""

from __future__ import annotations

import typer

from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show


def ready(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Say whether all that Maat needs is there; if not, what is missing, and the remedy.

    Ends with 1 if something is missing.
    """
    from maat.client import ApiError

    with client_of(url) as maat:
        try:
            found = maat.ready()
        except ApiError as error:
            if error.status != 503 or not error.by_field:
                raise
            lines = [f"missing: {what}. {words}" for what, words in error.by_field.items()]
            show({"status": "not ready", "missing": error.by_field}, as_json, "\n".join(lines))
            raise typer.Exit(1) from None
    show(found, as_json, f"ready: {', '.join(found['checked'])}")
