"""What to do where there is nothing: the next step as a button."""

from __future__ import annotations

from typing import Any

from dash import dcc, html
from dash.development.base_component import Component, ComponentType

from frontend.components.cards import empty_state

NO_CLUSTER_YET = "No cluster yet"
CLUSTERS = "/admin?tab=clusters"


def leads(text: str, href: str) -> dcc.Link:
    """A button that leads to another page."""
    return dcc.Link(text, href=href, className="button-link primary")


def goes_to(text: str, field_id: str) -> html.Button:
    """A button that puts the focus into a field of this page; assets/focus.js does it."""
    target: dict[str, Any] = {"data-focus": field_id}
    return html.Button(text, type="button", className="button-link primary", **target)


def without_cluster(remedy: ComponentType) -> Component:
    """What a page says that shows a cluster, while there is none."""
    return empty_state(NO_CLUSTER_YET, remedy, action=leads("Make a cluster", CLUSTERS))
