"""The price list on the page of use and cost: what counts, and how admins add and remove prices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypedDict
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import aria, click_target, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, in_browser
from frontend.components.dialogs import dialog, question, register_question
from frontend.components.notices import notice, refusal
from frontend.components.states import gpu_chip
from frontend.forms import FormValues, errors_by_field
from maat.api.usage import PriceOut
from maat.client import calls
from maat.client.errors import FieldProblem

MAY_PRICE = "clusters:write"
REMOVE = "usage-price-remove"
FIELDS = ("gpu_type", "price_per_gpu_hour", "currency", "valid_from")
_LABELS = {
    "gpu_type": ("GPU type", "t4"),
    "price_per_gpu_hour": ("Price per GPU-hour", "0.35"),
    "currency": ("Currency", "EUR"),
    "valid_from": ("From this day on (UTC)", "today, or 2026-11-01"),
}


class Pressed(TypedDict):
    """A press of the button that removes a price. `told`: which one it is, in words."""

    at: int
    price: str
    version: str
    told: str


def field_id(name: str) -> str:
    return "usage-price-" + name.replace("_", "-")


def price_dialog() -> dmc.Modal:
    fields = [
        dmc.TextInput(
            id=field_id(name),
            label=label,
            placeholder=example,
            withAsterisk=name != "valid_from",
            value="",
        )
        for name, (label, example) in _LABELS.items()
    ]
    form = html.Div(
        [
            html.Div(
                "Earlier days keep the price that counted then. All prices of a cluster are in one "
                "currency.",
                className="hint",
            ),
            html.Div(id="usage-price-problem"),
            *fields,
            dmc.Group([dmc.Button("Set price", id="usage-price-set", n_clicks=0)], mt=4),
            dcc.Store(id="usage-price-key", data=uuid4().hex),
            dcc.Store(id="usage-price-open"),
            dcc.Store(id="usage-price-removed"),
        ],
        className="form-stack",
        **submits("usage-price-set"),
    )
    return dialog("usage-price-ask", "Set a price", form)


def remove_dialog() -> dmc.Modal:
    return question(REMOVE, "Remove this price?", keeps="Keep it", does="Remove")


def add_button(may: bool) -> dmc.Button | None:
    if not may:
        return None
    return dmc.Button(
        "Set a price",
        id="usage-price-opens",
        variant="subtle",
        size="compact-xs",
        **click_target("usage-price-open"),
    )


def prices_table(prices: Sequence[PriceOut], *, may: bool) -> Component:
    """All prices, newest of each type first; with buttons for who may remove them."""
    if not prices:
        asks = "Set what a GPU-hour costs" if may else "Ask an admin of the cluster for them"
        return html.Div(f"No price yet: hours are shown without costs. {asks}.", className="hint")
    ordered = sorted(prices, key=lambda one: one["valid_from"], reverse=True)
    ordered.sort(key=lambda one: one["gpu_type"])
    return html.Table(html.Tbody([_row(one, may=may) for one in ordered]), className="plain-table")


def _row(one: PriceOut, *, may: bool) -> html.Tr:
    until = f" until {one['valid_until']}" if one["valid_until"] else " on"
    what = f"{one['price_per_gpu_hour']} {one['currency']} per GPU-hour"
    button = dmc.Button(
        "Remove",
        variant="subtle",
        size="compact-xs",
        **click_target(
            "usage-price-removed",
            price=one["id"],
            version=str(one["version"]),
            told=f"{one['gpu_type']}: {what}, from {one['valid_from']}{until}.",
        ),
        **aria(f"Remove the price of {one['gpu_type']} from {one['valid_from']}"),
    )
    counts = html.B(what) if one["is_valid_now"] else what
    told = [
        dmc.Group([gpu_chip(one["gpu_type"], one["gpu_type"]), counts], gap=6),
        html.Div(f"from {one['valid_from']}{until}", className="caption"),
    ]
    return html.Tr([html.Td(told), html.Td(button if may else "", className="number")])


def register(app: Dash, api: Api) -> None:
    in_browser(
        app,
        "openOn",
        Output("usage-price-ask", "opened", allow_duplicate=True),
        Input("usage-price-open", "data"),
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(set_price, api),
        output={
            "asks": Output("usage-price-ask", "opened"),
            "problem": Output("usage-price-problem", "children"),
            "errors": {name: Output(field_id(name), "error") for name in FIELDS},
            "key": Output("usage-price-key", "data"),
            "changed": Output("usage-prices-changed", "data"),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("usage-price-set", "n_clicks")},
        state={
            "cluster_id": State("cluster-select", "value"),
            "key": State("usage-price-key", "data"),
            "values": {name: State(field_id(name), "value") for name in FIELDS},
        },
        prevent_initial_call=True,
        running=[(Output("usage-price-set", "loading"), True, False)],
    )
    register_question(
        app,
        REMOVE,
        pressed="usage-price-removed",
        ask=words_of,
        act=partial(remove, api),
        changed=Output("usage-prices-changed", "data", allow_duplicate=True),
        state={"cluster_id": State("cluster-select", "value")},
    )


async def set_price(
    api: Api, *, clicks: int | None, cluster_id: str, key: str, values: FormValues
) -> Changes:
    if not clicks:
        return NOTHING
    given = {name: (values[name] or "").strip() for name in FIELDS}
    needed = {name for name in FIELDS if name != "valid_from" and not given[name]}
    missing = {name: "Fill it in." if name in needed else "" for name in FIELDS}
    if any(missing.values()):
        return {"errors": missing, "problem": None}
    body = {name: value for name, value in given.items() if value}
    try:
        async with api.visitor() as maat:
            made = await maat.send(calls.add_price(cluster_id, body, idempotency_key=key))
    except Failure as error:
        beside, above = errors_by_field(error, _place, empty_name="")
        errors = {name: beside.get(name, "") for name in FIELDS}
        return {"errors": errors, "problem": above, "key": uuid4().hex}
    words = f"{made['gpu_type']}: {made['price_per_gpu_hour']} {made['currency']} per GPU-hour"
    return {
        "asks": False,
        "problem": None,
        "errors": dict.fromkeys(FIELDS, ""),
        "key": uuid4().hex,
        "changed": made["id"],
        "notices": notice("Price set", f"{words}, from {made['valid_from']} on."),
    }


def words_of(pressed: Pressed) -> str:
    """What to ask before the price whose button was pressed is removed."""
    return (
        f"{pressed['told']} Its days, past ones too, then cost what the price before it says; "
        "without one their hours have no price."
    )


async def remove(api: Api, *, chosen: Pressed, cluster_id: str) -> Changes:
    """Remove the price."""
    version = int(chosen["version"])
    try:
        async with api.visitor() as maat:
            await maat.send(calls.remove_price(cluster_id, chosen["price"], version=version))
    except Failure as error:
        return {"notices": refusal(error)}
    words = "The price before it counts on."
    return {"changed": chosen["at"], "notices": notice("Price removed", words)}


def _place(problem: FieldProblem) -> str | None:
    return problem.field if problem.field in FIELDS else None
