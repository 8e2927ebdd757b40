"""How a page gets its address, and a callback its function in the browser: the two of Dash's calls that carry no types."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import dash
from dash import ClientsideFunction, Dash


def add_page(module: str, *, title: str, layout: Any, **where: Any) -> None:
    """Register a page: `path` or `path_template`, and `name` and `order` where it stands in the navigation."""
    dash.register_page(module, title=f"{title} · Maat", layout=layout, **where)  # type: ignore[no-untyped-call]


def in_browser(app: Dash, function: str, *dependencies: Any, **more: Any) -> None:
    """A callback that runs in the browser: `function` of assets/maat.js."""
    app.clientside_callback(ClientsideFunction("maat", function), *dependencies, **more)  # type: ignore[no-untyped-call]


def aria(label: str) -> dict[str, Any]:
    """The name of a control that shows none."""
    return {"aria-label": label}


def submits(button_id: str) -> dict[str, Any]:
    """Makes a box of fields a form: Enter in one of them presses this button."""
    return {"data-submit": button_id}


def presses(store_id: str, **what: str) -> dict[str, Any]:
    """Makes a button put `what` it stands for, and when, into a store of its page.

    For buttons in what a page draws again: an n_clicks whose callback has not begun by then is gone with the button that it belonged to.
    """
    return {"data-press": store_id, "data-what": json.dumps(what)}


def path_to(path: str, *, cluster: str | None = None, **query: Any) -> str:
    """The address of a page of the cluster, with the parameters that hold something; a list stands several times."""
    given = {
        name: value
        for name, value in {"cluster": cluster, **query}.items()
        if value not in (None, "", [], ())
    }
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def one(value: Any) -> str | None:
    """A query parameter that stands once: the first of them where it was given several times."""
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, str) else None


def several(value: Any) -> list[str]:
    """A query parameter that may stand several times."""
    return [] if value in (None, "") else list(value) if isinstance(value, list) else [str(value)]
