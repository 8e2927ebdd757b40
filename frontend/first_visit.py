"""What the HTML of a page brings along, so that a first visit waits for less.

Its layout: the frame with the page of the address in it, for which Dash would ask twice, one
request after the other; who the visitor is and which clusters there are, for which the frame would
ask then. assets/first_visit.js adds what only the browser knows, and gives it to Dash. And the
addresses of what the page asks for as soon as its scripts run: the browser fetches that beside
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dash
from dash import dcc
from dash._pages import _parse_query_string, _path_to_page
from dash._utils import to_json
from dash.development.base_component import Component
from dash_ag_grid import AgGrid

from frontend.scripts import CHARTS_PATH
from frontend.shell import shell_layout
from maat.api.clusters import ClusterOut
from maat.api.service import MeOut

LAYOUT_PLACE = "maat-first-layout"
PRELOADS_PLACE = "<!-- maat-preloads -->"
_DEPENDENCIES = "/_dash-dependencies"


def first_layout(
    path: str, query: str, *, clusters: list[ClusterOut] | None = None, me: MeOut | None = None
) -> Component:
    """Return the frame with the page of an address in it, as Dash's router would fill it.

    Both parts of the address are as the browser sent them. `clusters`, `me`: what the service
    answered to the visitor; None if it did not.
    """
    entry, in_path = _path_to_page(path.strip("/"))  # type: ignore[no-untyped-call]
    asked = _parse_query_string(f"?{query}")  # type: ignore[no-untyped-call]
    entry = entry or _not_found()
    page: Component = entry["layout"](**{**(in_path or {}), **asked})
    frame: Component = shell_layout(page, entry["title"], path=path, clusters=clusters, me=me)
    return frame


def _not_found() -> dict[str, Any]:
    pages: dict[str, dict[str, Any]] = dash.page_registry
    return next(entry for name, entry in pages.items() if name.endswith("not_found_404"))


def with_first_visit(html: str, layout: Component | None, *, grid_script: str) -> str:
    """Put a layout, and the addresses of what it asks for, into the HTML. None: neither."""
    if layout is None:
        return html.replace(LAYOUT_PLACE, "")
    written: str = to_json(layout)  # type: ignore[no-untyped-call]
    text = written.replace("<", "\\u003c")  # none of it ends the script
    return html.replace(PRELOADS_PLACE, "\n".join(_preloads(layout, grid_script))).replace(
        LAYOUT_PLACE, text
    )


def _preloads(layout: Component, grid_script: str) -> Iterator[str]:
    parts = list(layout._traverse())  # type: ignore[no-untyped-call]
    scripts = [
        *([CHARTS_PATH] if any(isinstance(part, dcc.Graph) for part in parts) else ()),
        *([grid_script] if any(isinstance(part, AgGrid) for part in parts) else ()),
    ]
    yield f'<link rel="preload" as="fetch" href="{_DEPENDENCIES}" crossorigin>'
    for address in scripts:
        yield f'<link rel="preload" as="script" href="{address}">'
