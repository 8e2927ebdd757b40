"""The policy of a live cluster: chosen, and tried on the next round."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, SHOWN, submits
from frontend.callbacks import NOTHING, Changes, Sources, answer
from frontend.components.cards import card, error_state, folded_fields
from frontend.components.parameter_fields import (
    ROUND,
    Chosen,
    Typed,
    errors_of,
    every,
    groups,
    parameter_states,
    parameters_of,
    place_of,
)
from frontend.forms import FormValues, errors_by_field
from frontend.pages.admin.clusters import MAY_CHANGE
from frontend.pages.admin.policy_preview import preview_view
from frontend.pages.admin.policy_result import PREFIX, Asked, register_result
from frontend.shell import NO_CLUSTER
from maat.api.clusters import ClusterOut
from maat.api.policies import DescribedOut
from maat.client import AsyncClient, calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

FIELDS = ("policy", "placer")
EVERY_MILLISECONDS = 500


def cards() -> html.Div:
    row = [
        dmc.Select(id=f"{PREFIX}-{name}", label=name.capitalize(), data=[], allowDeselect=False)
        for name in FIELDS
    ]
    form = html.Div(
        [
            html.Div(id=f"{PREFIX}-problem"),
            html.Div(row, className="form-row wide"),
            folded_fields(
                "Parameters, and the interval of rounds",
                html.Div(id=f"{PREFIX}-parameters", className="form-stack"),
                box_id=f"{PREFIX}-parameters-box",
            ),
            dmc.Group(
                [
                    dmc.Button("Preview the next round", id=f"{PREFIX}-preview", n_clicks=0),
                    dmc.Button(
                        "Cancel",
                        id=f"{PREFIX}-cancel",
                        variant="default",
                        n_clicks=0,
                        style=HIDDEN,
                    ),
                ],
                gap=8,
                mt=4,
            ),
            html.Div(id=f"{PREFIX}-result", role="status"),
            html.Div(
                dmc.Button("Apply this change", id=f"{PREFIX}-apply", n_clicks=0),
                id=f"{PREFIX}-apply-box",
                style=HIDDEN,
            ),
        ],
        id=f"{PREFIX}-form",
        className="form-stack",
        **submits(f"{PREFIX}-preview"),
    )
    return html.Div(
        [
            card("Policy of the chosen cluster", form, mb=12),
            dcc.Store(id=f"{PREFIX}-asked"),
            dcc.Store(id=f"{PREFIX}-key", data=uuid4().hex),
            dcc.Interval(id=f"{PREFIX}-tick", interval=EVERY_MILLISECONDS, disabled=True),
        ]
    )


def register(app: Dash, api: Api) -> None:
    fields = {name: Input(f"{PREFIX}-{name}", "value") for name in FIELDS}
    answer(
        app,
        partial(offer_policies, api),
        output={
            "policies": Output(f"{PREFIX}-policy", "data"),
            "placers": Output(f"{PREFIX}-placer", "data"),
            "policy": Output(f"{PREFIX}-policy", "value"),
            "placer": Output(f"{PREFIX}-placer", "value"),
            "form": Output(f"{PREFIX}-form", "style"),
            "problem": Output(f"{PREFIX}-problem", "children", allow_duplicate=True),
            "result": Output(f"{PREFIX}-result", "children", allow_duplicate=True),
            "apply": Output(f"{PREFIX}-apply-box", "style", allow_duplicate=True),
        },
        inputs={"cluster_id": Input("cluster-select", "value")},
        prevent_initial_call="initial_duplicate",
    )
    answer(
        app,
        partial(follow_policy, api),
        output={"placer": Output(f"{PREFIX}-placer", "value", allow_duplicate=True)},
        inputs={"policy": fields["policy"]},
        state={"cluster_id": State("cluster-select", "value")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(offer_parameters, api),
        output={"fields": Output(f"{PREFIX}-parameters", "children")},
        inputs={"values": fields},
        state={"cluster_id": State("cluster-select", "value")},
    )
    state: dict[str, State | Sources] = {
        "values": {name: State(f"{PREFIX}-{name}", "value") for name in FIELDS},
        "given": parameter_states(PREFIX),
        "cluster_id": State("cluster-select", "value"),
    }
    answer(
        app,
        partial(preview, api),
        output={
            "asked": Output(f"{PREFIX}-asked", "data"),
            "key": Output(f"{PREFIX}-key", "data"),
            "problem": Output(f"{PREFIX}-problem", "children"),
            "errors": {name: Output(f"{PREFIX}-{name}", "error") for name in FIELDS},
            "parameters": Output(every(PREFIX), "error"),
            "open": Output(f"{PREFIX}-parameters-box", "open"),
            "result": Output(f"{PREFIX}-result", "children"),
            "apply": Output(f"{PREFIX}-apply-box", "style"),
            "off": Output(f"{PREFIX}-tick", "disabled"),
        },
        inputs={"clicks": Input(f"{PREFIX}-preview", "n_clicks")},
        state={**state, "key": State(f"{PREFIX}-key", "data")},
        prevent_initial_call=True,
        running=[(Output(f"{PREFIX}-preview", "loading"), True, False)],
    )
    register_result(app, api)


async def offer_policies(api: Api, *, cluster_id: str | None) -> Changes:
    """Offer what there is, beginning with what the cluster has; forget a preview of another."""
    if not cluster_id or cluster_id == NO_CLUSTER:
        return {"form": HIDDEN}
    try:
        async with api.visitor() as maat:
            me, cluster = await asyncio.gather(maat.me(), maat.cluster(cluster_id))
            policies, placers = await _described(maat)
    except Failure as error:
        return {"form": SHOWN, "problem": error_state(error)}
    may = MAY_CHANGE in me["permissions"]
    return {
        "policies": [{"value": one["name"], "label": one["title"]} for one in policies],
        "placers": [{"value": one["name"], "label": one["title"]} for one in placers],
        "policy": cluster["policy"],
        "placer": cluster["placer"],
        "form": SHOWN if may else HIDDEN,
        "problem": None,
        "result": None,
        "apply": HIDDEN,
    }


async def _described(maat: AsyncClient) -> tuple[list[DescribedOut], list[DescribedOut]]:
    policies, placers = await asyncio.gather(
        maat.send(calls.policies()), maat.send(calls.placers())
    )
    return policies["items"], placers["items"]


async def follow_policy(api: Api, *, policy: str | None, cluster_id: str | None) -> Changes:
    """Choose the placer that a change of the policy alone would bring."""
    if not policy or not cluster_id or cluster_id == NO_CLUSTER:
        return NOTHING
    try:
        async with api.visitor() as maat:
            cluster, policies = await asyncio.gather(
                maat.cluster(cluster_id), maat.send(calls.policies())
            )
    except Failure:
        return NOTHING  # offer_parameters tells it
    own = {one["name"]: one["placer"] for one in policies["items"]}
    return {"placer": cluster["placer"] if policy == cluster["policy"] else own.get(policy)}


async def offer_parameters(api: Api, *, values: FormValues, cluster_id: str | None) -> Changes:
    """Show the parameters of what is chosen; of what the cluster has, with their values."""
    if not cluster_id or cluster_id == NO_CLUSTER or not values["policy"]:
        return NOTHING
    try:
        async with api.visitor() as maat:
            cluster = await maat.cluster(cluster_id)
            policies, placers = await _described(maat)
    except Failure as error:
        return {"fields": error_state(error)}
    chosen = [
        (f"{kind}:{one['name']}", one)
        for kind, known in (("policy", policies), ("placer", placers))
        for one in known
        if one["name"] == values[kind]
    ]
    return {"fields": groups(PREFIX, chosen, None, _held_by(cluster))}


def _held_by(cluster: ClusterOut) -> Chosen:
    """Return the parameters that the cluster has, by their owner."""
    return {
        f"policy:{cluster['policy']}": {
            **cluster["policy_parameters"],
            ROUND: cluster["round_seconds"],
        },
        f"placer:{cluster['placer']}": cluster["placer_parameters"],
    }


async def preview(
    api: Api,
    *,
    clicks: int | None,
    values: FormValues,
    given: Typed,
    cluster_id: str,
    key: str,
) -> Changes:
    """Ask for a preview, or show what is wrong beside its field."""
    if not clicks:
        return NOTHING
    try:
        async with api.visitor() as maat:
            policies, _ = await _described(maat)
            body = body_of(values, given, policies)
            asked = await maat.preview_round(cluster_id, body, idempotency_key=key)
    except Failure as error:
        beside, above = errors_by_field(error, partial(_place, values), empty_name="")
        return {
            **_beside(given, beside),
            "problem": above,
            "key": uuid4().hex,
            "result": None,
            "apply": HIDDEN,
        }
    shown = Asked(preview=asked["id"], cluster=asked["cluster_id"], operation=asked["operation_id"])
    return {
        **_beside(given, {}),
        "asked": shown,
        "key": uuid4().hex,
        "problem": None,
        "result": preview_view(asked),
        "apply": HIDDEN,
        "off": False,
    }


def body_of(values: FormValues, given: Typed, policies: list[DescribedOut]) -> RawBody:
    """The form as the change that is tried: an empty interval of rounds is the policy's own."""
    typed = parameters_of(given)
    of_policy = typed.get(f"policy:{values['policy']}", {})
    own = next((p["round_seconds"] for p in policies if p["name"] == values["policy"]), None)
    return {
        "policy": values["policy"],
        "policy_parameters": {name: of_policy[name] for name in of_policy if name != ROUND},
        "placer": values["placer"],
        "placer_parameters": dict(typed.get(f"placer:{values['placer']}", {})),
        "round_seconds": of_policy.get(ROUND, own),
    }


def _place(values: FormValues, problem: FieldProblem) -> str | None:
    owners = {f"/{kind}_parameters": f"{kind}:{values[kind]}" for kind in FIELDS}
    if problem.pointer == f"/{ROUND}":
        return f"policy:{values['policy']}/{ROUND}"
    return place_of(problem, owners) or (problem.field if problem.field in FIELDS else None)


def _beside(given: Typed, errors: Mapping[str, str]) -> dict[str, object]:
    told = errors_of(given, errors)
    return {
        "errors": {name: errors.get(name, "") for name in FIELDS},
        "parameters": told,
        **({"open": True} if any(told) else {}),
    }
