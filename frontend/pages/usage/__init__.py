"""Use and cost: GPU-hours of a period, by whom and to what effect, waits, and prices."""

from __future__ import annotations

from dash import Dash

from frontend.addresses import add_page, among
from frontend.api import Api
from frontend.components.period import period_parameters, register_period
from frontend.pages.usage import callbacks, prices
from frontend.pages.usage.layout import BY, PAGE, layout


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/usage",
        name="Usage & cost",
        title="Usage & cost",
        order=5,
        layout=layout,
        takes={**period_parameters(), "by": among("way to sum up", dict(BY))},
        all_of=("/usage", "This week, by tenant"),
    )
    register_period(app, PAGE)
    callbacks.register(app, api)
    prices.register(app, api)
