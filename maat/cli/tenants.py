"""`maat tenants ...`: the teams that share the clusters."""

from __future__ import annotations

from typing import Annotated

import typer

from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of

Named = Annotated[str, typer.Argument(help="The tenant's name or id.")]


def list_tenants(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List tenants, oldest first."""
    with client_of(url) as maat:
        found = maat.tenants()
    columns = ("id", "name", "state", "users", "created_at")
    rows = [[str(one[column]) for column in columns] for one in found]  # type: ignore[literal-required]
    show(found, as_json, table_of(columns, rows))


def create(
    name: Annotated[str, typer.Argument(help="Its name.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make a tenant."""
    with client_of(url) as maat:
        made = maat.create_tenant(name)
    show(made, as_json, f"{made['name']} is {made['state']}")


def rename(
    tenant: Named,
    name: Annotated[str, typer.Argument(help="Its new name.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Rename a tenant."""
    with client_of(url) as maat:
        version = maat.tenant(tenant)["version"]
        changed = maat.change_tenant(tenant, {"name": name}, version=version)
    show(changed, as_json, f"{tenant} is {changed['name']} now")


def close(tenant: Named, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Close a tenant: nobody of it is let in, what it has stays."""
    _set_closed(tenant, True, url, as_json)


def reopen(tenant: Named, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Open a closed tenant again."""
    _set_closed(tenant, False, url, as_json)


def remove(tenant: Named, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Remove a tenant that has nothing."""
    with client_of(url) as maat:
        maat.remove_tenant(tenant)
    show({"removed": tenant}, as_json, f"{tenant} is removed")


def _set_closed(tenant: str, closed: bool, url: str, as_json: bool) -> None:
    with client_of(url) as maat:
        version = maat.tenant(tenant)["version"]
        changed = maat.change_tenant(tenant, {"closed": closed}, version=version)
    show(changed, as_json, f"{changed['name']} is {changed['state']}")
