"""The submit form: what a job needs to say, and what to expect of it before it is submitted.

Every error stands beside its field.
"""

from __future__ import annotations

from uuid import uuid4

from dash import Dash, Input, Output, dcc, html

from frontend.addresses import add_page, anything
from frontend.api import Api
from frontend.callbacks import in_browser
from frontend.components.cards import card, page_title
from frontend.pages.submit import (
    address,
    as_text,
    filling,
    forecast,
    offers,
    preview,
    run,
    run_filling,
    submission,
)
from frontend.pages.submit.fields import job_fields, one_form
from frontend.pages.submit.run_fields import run_beside, run_form
from frontend.routing import QueryValue, query_value


def layout(
    like: QueryValue = None,
    remedy: QueryValue = None,
    text: QueryValue = None,
    **query: QueryValue,
) -> html.Div:
    asked = address.asked_of(query)
    fields = card("Job", job_fields(replaces=bool(remedy)))
    forms = [one_form(fields, box_id="submit-played", opened=True), run_form()]
    beside = [
        one_form(preview.preview_card(), box_id="submit-played-beside", opened=True),
        run_beside(),
        forecast.forecast_card(),
    ]
    columns = [
        html.Div(forms, className="span-5"),
        html.Div(beside, className="span-7 form-stack level"),
        as_text.text_card(query_value(text)),
    ]
    page = html.Div(
        [
            page_title("Submit a job"),
            html.Div(id="submit-absent"),
            html.Div(id="submit-long", className="hint", role="status"),
            html.Div(columns, className="columns"),
            dcc.Store(id="submit-key", data=uuid4().hex),
            dcc.Store(id="submit-models", data=[]),
            dcc.Store(id="submit-capacity"),
            dcc.Store(id="submit-told"),
            dcc.Store(id="submit-run-told"),
            dcc.Store(
                id="submit-like", data={"job": query_value(like), "remedy": query_value(remedy)}
            ),
            *address.stores(asked, replaces=bool(remedy)),
        ]
    )
    address.fill_in(page, asked)
    return page


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/submit",
        name="Submit",
        title="Submit",
        order=3,
        layout=layout,
        takes={"like": anything, "remedy": anything, "text": as_text.TAKES, **address.TAKES},
    )
    in_browser(app, "focusOn", Output("submit-problem", "id"), Input("submit-name", "id"))
    offers.register(app, api)
    preview.register(app, api)
    submission.register(app, api)
    forecast.register(app, api)
    filling.register(app, api)
    run.register(app, api)
    run_filling.register(app, api)
    as_text.register(app, api)
    address.register(app)
