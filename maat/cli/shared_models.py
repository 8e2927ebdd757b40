"""`maat shared-models ...`: models of which all tenants' evidence counts together."""

from __future__ import annotations

from typing import Annotated

import typer

from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of

Model = Annotated[str, typer.Argument(help="The model's name, as jobs give it.")]


def list_models(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the models that tenants share, by name."""
    with client_of(url) as maat:
        found = maat.shared_models()
    rows = [[one["model"], one["shared_at"]] for one in found]
    words = table_of(("model", "shared_at"), rows) if rows else "Each tenant's models are its own."
    show(found, as_json, words)


def add(model: Model, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Say that a name means the same model for all tenants."""
    with client_of(url) as maat:
        shared = maat.share_model(model)
    show(shared, as_json, f"what all tenants' jobs report of {model} counts together")


def remove(model: Model, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Say that each tenant's model of this name is its own again."""
    with client_of(url) as maat:
        maat.unshare_model(model)
    show({"model": model}, as_json, f"each tenant's {model} is its own")
