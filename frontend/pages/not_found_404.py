"""The page of an address that has none."""

from __future__ import annotations

from typing import Any

from dash import Dash, html

from frontend.addresses import add_page
from frontend.api import Api
from frontend.components.cards import card, empty_state, link_button, page_title


def layout(**_query: Any) -> html.Div:
    return html.Div(
        [
            page_title("Not found"),
            card(
                None,
                empty_state(
                    "There is no page at this address",
                    "The link may be old, or mistyped.",
                    action=link_button("Go to the overview", "/", variant="primary"),
                ),
            ),
        ]
    )


def register(_app: Dash, _api: Api) -> None:
    add_page(__name__, path="/404", title="Not found", layout=layout)
