"""What the page of the papers shows before data comes."""

from __future__ import annotations

from dash import dcc, html

from frontend.components.cards import card, link_button, page_title, scrolls, skeleton
from frontend.components.own_uploads import upload_fields
from frontend.components.reproduce import reproduce_parts
from frontend.papers import PAPER_NAMES
from frontend.routing import QueryValue, query_value

SAYS = (
    "Every table and figure of four papers beside what Maat computes. Quick runs fewer traces and "
    "seeds than the paper has."
)


def layout(
    paper: QueryValue = None,
    profiles: QueryValue = None,
    trace: QueryValue = None,
    variability: QueryValue = None,
    interference: QueryValue = None,
    **_query: object,
) -> html.Div:
    """`paper`: the only one that is shown; others: uploads that stand in for published data."""
    own = {
        "profiles": profiles,
        "trace": trace,
        "variability": variability,
        "interference": interference,
    }
    asked = query_value(paper)
    chosen = asked if asked in PAPER_NAMES else None
    ways = [] if chosen is None else [link_button("All papers", "/papers")]
    return html.Div(
        [
            page_title("Papers", *ways),
            html.Div(SAYS, className="hint", style={"marginBottom": "12px"}),
            html.Div(
                [skeleton(76) for _ in PAPER_NAMES], id="papers-tiles", className="tiles wrapping"
            ),
            html.Div(id="papers-data", className="hint"),
            upload_fields(own),
            html.Div(id="papers-running", className="form-stack", role="status"),
            html.Div(skeleton(420), id="papers-items", className="form-stack"),
            card(
                "Earlier reproductions",
                scrolls("papers-made", skeleton(64), label="Earlier reproductions"),
                className="below",
            ),
            dcc.Store(id="papers-chosen", data=chosen),
            *reproduce_parts(),
        ]
    )
