"""The submit form: what a job needs to say, and what to expect of it before it is submitted.

Every error stands beside its field.
"""

from __future__ import annotations

from uuid import uuid4

from dash import Dash, Input, Output, dcc, html

from frontend.addresses import add_page, anything
from frontend.api import Api
from frontend.components.cards import card, page_title
from frontend.pages.submit import filling, forecast, offers, preview, run, run_filling, submission
from frontend.pages.submit.fields import job_fields
from frontend.pages.submit.run_fields import run_columns
from frontend.routing import QueryValue, in_browser, query_value


def layout(like: QueryValue = None, remedy: QueryValue = None, **_query: object) -> html.Div:
    cards = [
        card("Job", job_fields(replaces=bool(remedy)), className="span-5"),
        preview.preview_card(),
        forecast.forecast_card(),
    ]
    return html.Div(
        [
            page_title("Submit a job"),
            html.Div(html.Div(cards, className="columns"), id="submit-played"),
            run_columns(),
            dcc.Store(id="submit-key", data=uuid4().hex),
            dcc.Store(id="submit-models", data=[]),
            dcc.Store(id="submit-capacity"),
            dcc.Store(id="submit-told"),
            dcc.Store(id="submit-run-told"),
            dcc.Store(
                id="submit-like", data={"job": query_value(like), "remedy": query_value(remedy)}
            ),
        ]
    )


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/submit",
        name="Submit",
        title="Submit",
        order=3,
        layout=layout,
        takes={"like": anything, "remedy": anything},
    )
    in_browser(app, "focusOn", Output("submit-problem", "id"), Input("submit-name", "id"))
    offers.register(app, api)
    preview.register(app, api)
    submission.register(app, api)
    forecast.register(app, api)
    filling.register(app, api)
    run.register(app, api)
    run_filling.register(app, api)
