"""Models that tenants share, on the page of administration: the list, and a switch for each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, aria, click_target, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import card, error_state, refused_state, scrolls, skeleton
from frontend.components.names import cut_name, isolated
from frontend.components.notices import notice, refusal
from frontend.formatting import clock
from maat.api.evidence import SharedModelOut

MAY_CHANGE = "clusters:write"
_WORDS = (
    "A model is its tenant's own: what jobs of another tenant report of a model of the same name "
    "says nothing of it. Where you know that a name means the same model for all, share it."
)


class Pressed(TypedDict):
    """A press of the switch of a shared model."""

    at: int
    model: str


def cards() -> html.Div:
    new = html.Div(
        [
            html.Div(id="admin-shared-model-problem"),
            dmc.Group(
                [
                    dmc.TextInput(
                        id="admin-shared-model-name", value="", placeholder="model", **aria("Model")
                    ),
                    dmc.Button("Share", id="admin-shared-model-add", n_clicks=0),
                ],
                gap=8,
            ),
        ],
        id="admin-shared-model-form",
        className="form-stack",
        **submits("admin-shared-model-add"),
    )
    table = scrolls("admin-shared-models", skeleton(60), label="Models that tenants share")
    return html.Div(
        [
            card(
                "Models that tenants share",
                [html.Div(_WORDS, className="hint"), table, new],
                mb=12,
            ),
            dcc.Store(id="admin-shared-model-pressed"),
            dcc.Store(id="admin-shared-models-changed", data=0),
        ]
    )


def register(app: Dash, api: Api) -> None:
    changed = Output("admin-shared-models-changed", "data", allow_duplicate=True)
    answer(
        app,
        partial(show_models, api),
        output={
            "models": Output("admin-shared-models", "children"),
            "new": Output("admin-shared-model-form", "style"),
        },
        inputs={"_changed": Input("admin-shared-models-changed", "data")},
    )
    answer(
        app,
        partial(share, api),
        output={
            "problem": Output("admin-shared-model-problem", "children"),
            "name": Output("admin-shared-model-name", "value"),
            "changed": changed,
            "notices": NOTICES,
        },
        inputs={"clicks": Input("admin-shared-model-add", "n_clicks")},
        state={"name": State("admin-shared-model-name", "value")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(stop_sharing, api),
        output={"changed": changed, "notices": NOTICES},
        inputs={"pressed": Input("admin-shared-model-pressed", "data")},
        prevent_initial_call=True,
    )


async def show_models(api: Api, *, _changed: int) -> Changes:
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            models = await maat.shared_models()
    except Failure as error:
        return {"models": error_state(error), "new": HIDDEN}
    may = MAY_CHANGE in me["permissions"]
    return {"models": model_table(models, may=may), "new": {} if may else HIDDEN}


async def share(api: Api, *, clicks: int | None, name: str | None) -> Changes:
    if not clicks:
        return NOTHING
    try:
        async with api.visitor() as maat:
            model = (await maat.share_model((name or "").strip()))["model"]
    except Failure as error:
        return {"problem": refused_state(error)}
    words = notice("Model shared", f"What all tenants report of {isolated(model)} counts together.")
    return {"problem": None, "name": "", "changed": clicks, "notices": words}


async def stop_sharing(api: Api, *, pressed: Pressed | None) -> Changes:
    if not pressed or not (model := pressed.get("model")):
        return NOTHING
    try:
        async with api.visitor() as maat:
            await maat.unshare_model(model)
    except Failure as error:
        return {"notices": refusal(error)}
    words = notice("Model no longer shared", f"Each tenant's {isolated(model)} is its own.")
    return {"changed": pressed["at"], "notices": words}


def model_table(models: Sequence[SharedModelOut], *, may: bool) -> Component:
    if not models:
        return html.Div("None is shared.", className="hint")
    rows = [
        html.Tr(
            [
                html.Td(cut_name(one["model"])),
                html.Td(clock(one["shared_at"])),
                html.Td(_switch(one["model"]) if may else ""),
            ]
        )
        for one in models
    ]
    head = html.Thead(html.Tr([html.Th(name) for name in ("Model", "Shared since", "")]))
    return html.Table([head, html.Tbody(rows)], className="plain-table")


def _switch(model: str) -> dmc.Button:
    return dmc.Button(
        "Stop sharing",
        variant="subtle",
        size="compact-xs",
        **click_target("admin-shared-model-pressed", model=model),
        **aria(f"Stop sharing {model}"),
    )
