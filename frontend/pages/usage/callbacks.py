"""What fills the page of use and cost: one report, drawn and told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from dash import Dash, Input, Output, State, html

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, in_browser, is_press_of
from frontend.components.cards import card, empty_state, error_state
from frontend.components.next_step import goes_to, without_cluster
from frontend.components.notices import refusal
from frontend.components.period import asked_period, period_inputs
from frontend.figures.gpu_hours import effect_figure, hours_by_row_figure, utilisation_figure
from frontend.formatting import clock
from frontend.loading import by_part, failed_figure, loaded, may
from frontend.pages.usage.layout import PAGE
from frontend.pages.usage.parts import rows_table, tiles, types_table, verdict
from frontend.pages.usage.prices import MAY_PRICE, add_button, prices_table
from frontend.shell import NO_CLUSTER
from maat.api.periods import days_named
from maat.api.usage import UsageOut
from maat.client import calls
from maat.client.usage_csv import usage_csv
from maat.figures.base import empty_figure

CHARTS = ("rows_chart", "types_chart", "effect_chart")
NO_CLUSTER_YET = ("No cluster yet", "Create one: what its GPUs are used for shows here.")
NO_DAYS = ("Which days?", "Choose the first and the last day.")


def register(app: Dash, api: Api) -> None:
    chosen = {
        "cluster_id": State("cluster-select", "value"),
        "period": State("usage-period", "value"),
        "days": State("usage-days", "value"),
        "by": State("usage-by", "value"),
    }
    in_browser(
        app,
        "usageInUrl",
        Output("usage-in-url", "data"),
        Input("usage-by", "value"),
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(show, api),
        output={
            "told": Output("usage-told", "children"),
            "note": Output("usage-note", "children"),
            "tiles": Output("usage-tiles", "children"),
            "rows_chart": Output("usage-rows-chart", "figure"),
            "types_chart": Output("usage-types-chart", "figure"),
            "effect_chart": Output("usage-effect-chart", "figure"),
            "table": Output("usage-table", "children"),
            "types": Output("usage-types", "children"),
            "prices": Output("usage-prices", "children"),
            "add": Output("usage-price-add", "children"),
        },
        inputs={
            "_tick": Input("usage-tick", "n_intervals"),
            "_changed": Input("usage-prices-changed", "data"),
            "cluster_id": Input("cluster-select", "value"),
            "scheme": Input("scheme", "data"),
            **period_inputs(PAGE),
            "by": Input("usage-by", "value"),
        },
    )
    answer(
        app,
        partial(download, api),
        output={"file": Output("usage-file", "data"), "notices": NOTICES},
        inputs={"clicks": Input("usage-csv", "n_clicks")},
        state=chosen,
        prevent_initial_call=True,
        running=[(Output("usage-csv", "loading"), True, False)],
    )


async def show(
    api: Api,
    *,
    _tick: object,
    _changed: object,
    cluster_id: str | None,
    scheme: str | None,
    period: str,
    days: Sequence[str | None] | None,
    by: str,
) -> Changes:
    if not cluster_id or not scheme:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        return _without(*NO_CLUSTER_YET, scheme)
    wanted = asked_period(cluster_id, period, days)
    if wanted is None:
        return _without(*NO_DAYS, scheme)
    async with api.visitor() as maat:
        found, prices, me = await asyncio.gather(
            loaded(maat.send(calls.usage(by=by, per_day=True, **wanted))),
            loaded(maat.send(calls.prices(cluster_id))),
            loaded(maat.send(calls.me())),
        )
    may_price = may(me, MAY_PRICE)
    return by_part(
        {
            "told": lambda: html.Div(verdict(found()), className="verdict sentence"),
            "note": lambda: _note(found()),
            "tiles": lambda: tiles(found()),
            "rows_chart": lambda: hours_by_row_figure(found(), scheme=scheme),
            "types_chart": lambda: utilisation_figure(found()["gpu_types"], scheme=scheme),
            "effect_chart": lambda: effect_figure(found(), scheme=scheme),
            "table": lambda: rows_table(found()),
            "types": lambda: types_table(found()["gpu_types"], found()["currency"]),
            "prices": lambda: prices_table(prices()["items"], may=may_price),
            "add": lambda: add_button(may_price),
        },
        failed={
            "told": lambda error: card(None, error_state(error), mb=12),
            "tiles": lambda _: [],
            **dict.fromkeys(CHARTS, failed_figure(scheme)),
            **dict.fromkeys(("table", "types", "prices"), error_state),
        },
    )


async def download(
    api: Api,
    *,
    clicks: int | None,
    cluster_id: str | None,
    period: str,
    days: Sequence[str | None] | None,
    by: str,
) -> Changes:
    """Send the table of the page as a file."""
    if not clicks or not is_press_of("usage-csv") or not cluster_id or cluster_id == NO_CLUSTER:
        return NOTHING
    wanted = asked_period(cluster_id, period, days)
    if wanted is None:
        return NOTHING
    try:
        async with api.visitor() as maat:
            found = await maat.send(calls.usage(by=by, **wanted))
    except Failure as error:
        return {"notices": refusal(error)}
    name = f"usage-by-{by}-{days_named(found['period'])}.csv"
    return {"file": {"content": usage_csv(found), "filename": name, "type": "text/csv"}}


def _note(found: UsageOut) -> str:
    """Which time the figures are of."""
    period = found["period"]
    end = found["as_of"] if period["is_partial"] else period["to"]
    so_far = ", so far" if period["is_partial"] else ""
    return f"{clock(period['from'])} to {clock(end)} of cluster time{so_far}"


def _without(title: str, remedy: str, scheme: str) -> Changes:
    days = empty_state(title, remedy, action=goes_to("Choose days", "usage-days"))
    state = days if title == NO_DAYS[0] else without_cluster(remedy)
    return {
        "told": card(None, state, mb=12),
        "note": "",
        "tiles": [],
        **{name: empty_figure(scheme, title, remedy) for name in CHARTS},
        "table": empty_state(title, remedy),
        "types": empty_state(title, remedy),
    }
