"""Quotas on the page of administration: the list, and a dialog that sets, changes, removes one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from frontend.api import Api, Failure
from frontend.attributes import click_target
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, in_browser, is_press_of
from frontend.components.cards import card, error_state, scrolls, skeleton
from frontend.components.names import isolated
from frontend.components.next_step import without_cluster
from frontend.components.notices import notice
from frontend.components.quota_bar import LEGEND
from frontend.forms import FormValues, errors_by_field
from frontend.pages.admin.quota_dialog import (
    FIELDS,
    Pressed,
    body_of,
    field_id,
    place_of,
    pressed_for,
    quota_dialog,
    unfinished,
)
from frontend.pages.admin.quota_rows import quota_table, type_table
from frontend.shell import NO_CLUSTER
from maat.client import ApiError

MAY_CHANGE = "clusters:write"
_THERE_ALREADY = "The tenant has a quota of this type: change it in the list."


def cards() -> html.Div:
    return html.Div(
        [
            card(
                "Quotas",
                [
                    scrolls("admin-quotas", skeleton(120), label="Quotas"),
                    html.Div(LEGEND, className="hint"),
                ],
                aside=html.Div(id="admin-quota-add"),
                mb=12,
            ),
            card(
                "GPU types", scrolls("admin-quota-types", skeleton(120), label="GPU types"), mb=12
            ),
            quota_dialog(),
            dcc.Store(id="admin-quota-pressed"),
            dcc.Store(id="admin-quota-changed", data=0),
        ]
    )


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_quotas, api),
        output={
            "quotas": Output("admin-quotas", "children"),
            "types": Output("admin-quota-types", "children"),
            "add": Output("admin-quota-add", "children"),
            "tenants": Output(field_id("tenant"), "data"),
            "gpu_types": Output(field_id("gpu_type"), "data"),
        },
        inputs={
            "_live": Input("live", "data"),
            "_changed": Input("admin-quota-changed", "data"),
            "_weighed": Input("admin-weight-changed", "data"),
            "cluster_id": Input("cluster-select", "value"),
        },
    )
    _register_dialog(app, api)


def _register_dialog(app: Dash, api: Api) -> None:
    answer(
        app,
        open_quota,
        output={
            "title": Output("admin-quota", "title"),
            "values": {name: Output(field_id(name), "value") for name in FIELDS},
            "fixed": {name: Output(field_id(name), "disabled") for name in FIELDS[:2]},
            "errors": {
                name: Output(field_id(name), "error", allow_duplicate=True) for name in FIELDS
            },
            "accept": Output("admin-quota-accept", "checked"),
            "problem": Output("admin-quota-problem", "children", allow_duplicate=True),
            "remove": Output("admin-quota-remove", "style"),
        },
        inputs={"pressed": Input("admin-quota-pressed", "data")},
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "openOn",
        Output("admin-quota", "opened", allow_duplicate=True),
        Input("admin-quota-pressed", "data"),
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(act_on_quota, api),
        output={
            "opened": Output("admin-quota", "opened"),
            "problem": Output("admin-quota-problem", "children"),
            "errors": {name: Output(field_id(name), "error") for name in FIELDS},
            "changed": Output("admin-quota-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={
            "sets": Input("admin-quota-set", "n_clicks"),
            "removes": Input("admin-quota-remove", "n_clicks"),
        },
        state={
            "pressed": State("admin-quota-pressed", "data"),
            "cluster_id": State("cluster-select", "value"),
            "values": {name: State(field_id(name), "value") for name in FIELDS},
            "accept": State("admin-quota-accept", "checked"),
        },
        prevent_initial_call=True,
        running=[(Output("admin-quota-set", "loading"), True, False)],
    )


async def show_quotas(
    api: Api, *, _live: object, _changed: int, _weighed: int, cluster_id: str | None
) -> Changes:
    if cluster_id is None:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        none = without_cluster("Quotas are of a cluster.")
        return {"quotas": none, "types": None}
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            found = await maat.quotas(cluster_id)
            may = MAY_CHANGE in me["permissions"]
            tenants = [one["name"] for one in await maat.tenants()] if may else []
    except Failure as error:
        return {"quotas": error_state(error), "types": None}
    return {
        "quotas": quota_table(found, may=may),
        "types": type_table(found["gpu_types"]),
        "add": _add_button() if may else None,
        "tenants": tenants,
        "gpu_types": [one["gpu_type"] for one in found["gpu_types"]],
    }


async def open_quota(*, pressed: Pressed | None) -> Changes:
    """Show what is to be changed in the dialog, or empty fields for a new quota."""
    if not pressed:
        return NOTHING
    is_new = not pressed["version"]
    return {
        "title": "Set a quota" if is_new else f"{pressed['tenant']}: {pressed['gpu_type']}",
        "values": {
            "tenant": pressed["tenant"] or None,
            "gpu_type": pressed["gpu_type"] or None,
            "guaranteed": int(pressed["guaranteed"] or 0),
            "ceiling": int(pressed["ceiling"]) if pressed["ceiling"] else "",
        },
        "fixed": dict.fromkeys(FIELDS[:2], not is_new),
        "errors": dict.fromkeys(FIELDS, ""),
        "accept": False,
        "problem": None,
        "remove": {"visibility": "hidden" if is_new else "visible"},
    }


async def act_on_quota(
    api: Api,
    *,
    sets: int | None,
    removes: int | None,
    pressed: Pressed | None,
    cluster_id: str,
    values: FormValues,
    accept: bool,
) -> Changes:
    """Set the quota, or remove it."""
    if not pressed or not (sets or removes):
        return NOTHING
    removing = is_press_of("admin-quota-remove")
    wrong = {} if removing else unfinished(values)
    if wrong:
        return {"errors": _beside(wrong), "problem": None}
    where = (cluster_id, values["tenant"], values["gpu_type"])
    version = int(pressed["version"]) if pressed["version"] else None
    try:
        async with api.visitor() as maat:
            if removing and version is not None:
                await maat.remove_quota(*where, version=version)
            else:
                body = body_of(values, accept=accept)
                await maat.set_quota(*where, body, version=version)
    except Failure as error:
        if isinstance(error, ApiError) and error.status == 428:
            return {"errors": _beside({"gpu_type": _THERE_ALREADY}), "problem": None}
        beside, above = errors_by_field(error, place_of, empty_name="")
        return {"errors": _beside(beside), "problem": above}
    done = "Quota removed" if removing else "Quota set"
    words = f"{isolated(values['tenant'])}, {values['gpu_type']}: the next round follows it."
    return {
        "opened": False,
        "problem": None,
        "errors": _beside({}),
        "changed": pressed["at"],
        "notices": notice(done, words),
    }


def _beside(errors: Mapping[str, str]) -> dict[str, str]:
    return {name: errors.get(name, "") for name in FIELDS}


def _add_button() -> dmc.Button:
    return dmc.Button(
        "Set a quota",
        variant="subtle",
        size="compact-xs",
        **click_target("admin-quota-pressed", **pressed_for(None)),
    )
