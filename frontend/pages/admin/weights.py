"""Weights of tenants on the page of administration."""

from __future__ import annotations

from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, SHOWN, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import card
from frontend.components.names import isolated
from frontend.components.notices import notice
from frontend.forms import FormValues, errors_by_field, wrong_number
from maat.api.accounts import TenantChanges
from maat.client.errors import FieldProblem
from maat.vocabulary import LEAST_WEIGHT, MOST_WEIGHT

MAY_CHANGE = "tenants:manage"
FIELDS = ("tenant", "weight")


def cards() -> html.Div:
    fields = [
        dmc.Select(id="admin-weight-tenant", label="Tenant", data=[], searchable=True),
        dmc.NumberInput(
            id="admin-weight-weight",
            label="Weight",
            value="",
            min=LEAST_WEIGHT,
            step=1,
            clampBehavior="none",
        ),
        dmc.Button("Set weight", id="admin-weight-set", n_clicks=0, variant="default"),
    ]
    form = html.Div(
        [
            html.Div(id="admin-weight-problem"),
            html.Div(fields, className="form-row narrow"),
            html.Div(
                "Where tenants want the same GPUs, each gets a share as large as its weight, in "
                "all clusters: of two with weights 2 and 1, the first gets two thirds. As long as "
                "all weights are 1 and there is no quota, the policy decides alone.",
                className="hint",
            ),
        ],
        className="form-stack",
        **submits("admin-weight-set"),
    )
    return html.Div(
        [card("Weight of a tenant", form), dcc.Store(id="admin-weight-changed", data=0)],
        id="admin-weights",
        style=HIDDEN,
    )


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_tenants, api),
        output={
            "part": Output("admin-weights", "style"),
            "tenants": Output("admin-weight-tenant", "data"),
        },
        inputs={"_changed": Input("admin-weight-changed", "data")},
    )
    answer(
        app,
        partial(set_weight, api),
        output={
            "problem": Output("admin-weight-problem", "children"),
            "errors": {name: Output(f"admin-weight-{name}", "error") for name in FIELDS},
            "changed": Output("admin-weight-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("admin-weight-set", "n_clicks")},
        state={"values": {name: State(f"admin-weight-{name}", "value") for name in FIELDS}},
        prevent_initial_call=True,
    )


async def show_tenants(api: Api, *, _changed: int) -> Changes:
    """Offer the tenants, each with its present weight, to who may weigh them."""
    try:
        async with api.visitor() as maat:
            may = MAY_CHANGE in (await maat.me())["permissions"]
            tenants = await maat.tenants() if may else []
    except Failure:
        return {"part": HIDDEN}
    offered = [
        {"value": one["id"], "label": f"{one['name']} ({one['weight']:g})"} for one in tenants
    ]
    return {"part": SHOWN if may else HIDDEN, "tenants": offered}


async def set_weight(api: Api, *, clicks: int | None, values: FormValues) -> Changes:
    if not clicks:
        return NOTHING
    wrong = {
        "tenant": "" if values["tenant"] else "Choose a tenant.",
        "weight": wrong_number(TenantChanges, "weight", values["weight"]),
    }
    if values["weight"] in ("", None):
        wrong["weight"] = f"Give a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}."
    if any(wrong.values()):
        return {"errors": wrong, "problem": None}
    try:
        async with api.visitor() as maat:
            version = (await maat.tenant(values["tenant"]))["version"]
            changes = {"weight": float(values["weight"])}
            made = await maat.change_tenant(values["tenant"], changes, version=version)
    except Failure as error:
        beside, above = errors_by_field(error, _place, empty_name="")
        return {"errors": {name: beside.get(name, "") for name in FIELDS}, "problem": above}
    words = f"{isolated(made['name'])} has the weight {made['weight']:g}."
    return {
        "errors": wrong,
        "problem": None,
        "changed": clicks,
        "notices": notice("Weight set", words),
    }


def _place(problem: FieldProblem) -> str | None:
    return problem.field if problem.field in FIELDS else None
