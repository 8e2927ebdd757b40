"""Addresses of pages, and the cluster and the title to which a page belongs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import urlencode

from dash import Dash, Input, Output, dcc

from frontend.callbacks import in_browser

QueryValue: TypeAlias = "str | Sequence[str] | None"
"""What an address gives for a parameter: a list where it stands several times."""


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
