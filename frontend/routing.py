"""Functions that run in the browser, addresses, and the cluster to which a page belongs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias
from urllib.parse import urlencode

from dash import ClientsideFunction, Dash, Input, Output, dcc

QueryValue: TypeAlias = "str | Sequence[str] | None"
"""What an address gives for a parameter: a list where it stands several times."""
Props: TypeAlias = dict[str, Any]
"""Attributes of a component that its class does not name."""


def in_browser(app: Dash, function: str, *dependencies: Any, **more: Any) -> None:
    """A callback that runs in the browser: `function` of one of the scripts in assets/."""
    app.clientside_callback(ClientsideFunction("maat", function), *dependencies, **more)  # type: ignore[no-untyped-call]


def aria(label: str) -> Props:
    """The name of a control that shows none."""
    return {"aria-label": label}


UNHEARD: Props = {"aria-hidden": "true"}
"""Makes a screen reader pass over a part that only shows."""


def submits(button_id: str) -> Props:
    """Makes a box of fields a form: Enter in one of them presses this button."""
    return {"data-submit": button_id}


READS: Props = {"data-reads": ""}
"""Makes a press of a button of a form wait until the form knows what was typed just before."""


def click_target(store_id: str, **what: str) -> Props:
    """Makes a button put `what` it stands for, and when, into a store of its page.

    For buttons in a part that is drawn again: a drawn-again button has lost its n_clicks, and with
    them every press whose callback has not begun.
    """
    return {"data-press": store_id, "data-what": json.dumps(what)}


def cluster_store(page: str) -> dcc.Store:
    """Return the store of the cluster of a page whose address names none; the frame shows it."""
    return dcc.Store(id=f"{page}-cluster")


def cluster_output(page: str) -> Output:
    return Output(f"{page}-cluster", "data")


def register_cluster(app: Dash, page: str) -> None:
    """The frame follows what is put into `cluster_output`."""
    in_browser(
        app,
        "clusterOfPage",
        Output(f"{page}-cluster", "id"),
        Input(f"{page}-cluster", "data"),
        prevent_initial_call=True,
    )


def title_store(page: str) -> dcc.Store:
    """Return the store of what a page shows; its title in the browser names it."""
    return dcc.Store(id=f"{page}-title")


def title_output(page: str) -> Output:
    return Output(f"{page}-title", "data")


def register_title(app: Dash, page: str) -> None:
    """The title in the browser follows what is put into `title_output`."""
    in_browser(
        app,
        "titleOfPage",
        Output(f"{page}-title", "id"),
        Input(f"{page}-title", "data"),
        prevent_initial_call=True,
    )


def path_to(path: str, *, cluster: QueryValue = None, **query: QueryValue) -> str:
    """Return an address with the parameters that are not empty; a list stands several times."""
    given = {
        name: value
        for name, value in {"cluster": cluster, **query}.items()
        if value not in (None, "", [], ())
    }
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def query_value(value: QueryValue) -> str | None:
    """A query parameter that stands once: the first of them where it was given several times."""
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, str) else None


def query_values(value: QueryValue) -> list[str]:
    """A query parameter that may stand several times."""
    return [] if value in (None, "") else list(value) if isinstance(value, list) else [str(value)]
