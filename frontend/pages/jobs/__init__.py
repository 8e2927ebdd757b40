"""The job list: every job that matches the filters.

The counts by state follow the same filters. Rows are read as they are scrolled to.
"""

from __future__ import annotations

from dash import Dash

from frontend.addresses import add_page, among
from frontend.api import Api
from frontend.pages.jobs import bulk, callbacks, columns, filters, views
from frontend.pages.jobs.layout import layout
from frontend.pages.jobs.rows import SORTS

ORDERS = tuple(sign + column for column in sorted(SORTS) for sign in ("", "-"))
TAKES = {
    **filters.TAKES,
    "sort": among("order", ORDERS),
    "column": among("column", columns.CHOICES),
}


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/jobs",
        name="Jobs",
        title="Jobs",
        order=2,
        layout=layout,
        takes=TAKES,
        all_of=("/jobs", "All jobs"),
    )
    callbacks.register(app, api)
    bulk.register(app, api)
    views.register(app)
    columns.register(app)
