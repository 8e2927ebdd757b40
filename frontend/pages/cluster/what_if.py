"""What if, on the page of the cluster: other nodes, another policy or placer from now on.

The question stands in the address. What can be chosen is asked for once the card is opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from dash import Dash, Input, Output, State, ctx, html

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer, in_browser
from frontend.components.cards import error_state
from frontend.components.next_step import without_cluster
from frontend.components.parameter_fields import (
    Chosen,
    Typed,
    errors_of,
    every,
    groups,
    parameter_states,
    parameters_of,
)
from frontend.components.question import asking, begun, over, register_question, told_outputs
from frontend.forms import errors_by_field
from frontend.pages.cluster.what_if_answer import parts_of
from frontend.pages.cluster.what_if_fields import (
    CHOOSE_FIRST,
    FIELDS,
    OWNERS,
    PREFIX,
    Question,
    changes_of,
    field_id,
    owners_of,
    parameters_written,
    place_of,
    wrong_bounds,
)
from frontend.shell import NO_CLUSTER
from maat.api.clusters import ClusterOut, ClusterStateOut
from maat.api.policies import DescribedOut
from maat.client import calls

MAY_ASK = "simulations:run"
_NOTHING = "Choose a node to drain, nodes to add, another policy or placer, or a bound on moves."
_NO_CLUSTER_HINT = "Then it can be asked what if it were another."


def register(app: Dash, api: Api) -> None:
    _register_address(app)
    _register_offers(app, api)
    answer(
        app,
        partial(ask, api),
        output={
            **told_outputs(PREFIX),
            "errors": {name: Output(field_id(name), "error") for name in FIELDS},
            "parameters": Output(every(PREFIX), "error"),
            "open": Output(f"{PREFIX}-parameters-box", "open"),
        },
        inputs={"clicks": Input(f"{PREFIX}-ask", "n_clicks")},
        state={
            "question": _question(),
            "typed": parameter_states(PREFIX),
            "cluster_id": State("cluster-select", "value"),
        },
        prevent_initial_call=True,
        running=asking(PREFIX),
    )
    register_question(app, api, PREFIX, parts_of)


def _question() -> dict[str, State]:
    return {name: State(field_id(name), "value") for name in FIELDS}


def _register_address(app: Dash) -> None:
    in_browser(
        app,
        "whatIfOf",
        Output(f"{PREFIX}-of", "data"),
        Input(f"{PREFIX}-open", "n_clicks"),
        Input("cluster-select", "value"),
        State(f"{PREFIX}-of", "data"),
    )
    in_browser(
        app,
        "whatIfInUrl",
        Output(f"{PREFIX}-in-url", "data"),
        *(Input(field_id(name), "value") for name in FIELDS),
        Input(every(PREFIX), "value"),
        State(every(PREFIX), "id"),
        prevent_initial_call=True,
    )


def _register_offers(app: Dash, api: Api) -> None:
    opened = Input(f"{PREFIX}-of", "data")
    answer(
        app,
        partial(offer, api),
        output={
            "nodes": Output(field_id("drain"), "data"),
            "policies": Output(field_id("policy"), "data"),
            "placers": Output(field_id("placer"), "data"),
            "form": Output(f"{PREFIX}-form", "style"),
            "problem": Output(f"{PREFIX}-problem", "children"),
        },
        inputs={"cluster_id": opened},
        state={"question": _question()},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(offer_parameters, api),
        output={"fields": Output(f"{PREFIX}-parameters", "children")},
        inputs={
            "cluster_id": opened,
            "_chosen": {name: Input(field_id(name), "value") for name in OWNERS},
        },
        state={
            "question": _question(),
            "typed": parameter_states(PREFIX),
            "written": State(f"{PREFIX}-written", "data"),
        },
        prevent_initial_call=True,
    )


async def offer(api: Api, *, cluster_id: str | None, question: Question) -> Changes:
    """Offer the nodes in service and what can decide, beside what is chosen.

    To those who may not ask, say so in the place of the fields.
    """
    if not cluster_id:
        return NOTHING
    try:
        async with api.visitor() as maat:
            me, state, policies, placers = await asyncio.gather(
                maat.send(calls.me()),
                maat.send(calls.cluster_state(cluster_id)),
                maat.send(calls.policies()),
                maat.send(calls.placers()),
            )
    except Failure as error:
        return {"problem": error_state(error)}
    if MAY_ASK not in me["permissions"]:
        return {"form": HIDDEN, "problem": _not_yours(me["role"])}
    return {
        "nodes": list(dict.fromkeys([*_in_service(state), *(question["drain"] or [])])),
        "policies": _offered(policies["items"], question["policy"]),
        "placers": _offered(placers["items"], question["placer"]),
        "form": {},
        "problem": None,
    }


def _not_yours(role: str) -> html.Div:
    return html.Div(
        f"You may not ask: that needs the right {MAY_ASK}, which a {role} does not have. "
        "Ask an administrator for another role, or somebody who may, to ask for you.",
        className="hint",
    )


def _in_service(state: ClusterStateOut) -> list[str]:
    return [cell["node"] for cell in state["gpus"] if not cell["drained"]]


def _offered(known: list[DescribedOut], chosen: str | None) -> list[dict[str, str]]:
    """What there is; also one that is chosen and that there is none of, which asking then tells."""
    titles = {one["name"]: one["title"] for one in known}
    if chosen:
        titles.setdefault(chosen, chosen)
    return [{"value": name, "label": title} for name, title in titles.items()]


async def offer_parameters(
    api: Api,
    *,
    cluster_id: str | None,
    _chosen: object,
    question: Question,
    typed: Typed,
    written: Mapping[str, list[str]],
) -> Changes:
    """Show the parameters of the policy and the placer that are chosen; what was typed stays.

    Those that the cluster has begin with its values. If the card is opened by an address, all
    have those of the address.
    """
    owners = owners_of(question)
    if not cluster_id:
        return NOTHING
    if not owners:
        return {"fields": html.Div(CHOOSE_FIRST, className="hint")}
    try:
        async with api.visitor() as maat:
            cluster, policies, placers = await asyncio.gather(
                maat.send(calls.cluster(cluster_id)),
                maat.send(calls.policies()),
                maat.send(calls.placers()),
            )
    except Failure as error:
        return {"fields": error_state(error)}
    described = [
        (owners[kind], _without_interval(one))
        for kind, known in (("policy", policies["items"]), ("placer", placers["items"]))
        for one in known
        if owners.get(kind) == f"{kind}:{one['name']}"
    ]
    is_opened = ctx.triggered_id == f"{PREFIX}-of"
    begins = parameters_written(written, described) if is_opened else _held_by(cluster)
    shown = {field["of"] for field in typed["ids"]}
    given = {
        **{owner: held for owner, held in begins.items() if owner not in shown},
        **parameters_of(typed),
    }
    return {"fields": groups(PREFIX, described, None, given)}


def _without_interval(one: DescribedOut) -> DescribedOut:
    """A question has no interval of rounds: the cluster's stays."""
    return DescribedOut(**{**one, "round_seconds": None})


def _held_by(cluster: ClusterOut) -> Chosen:
    return {
        f"policy:{cluster['policy']}": cluster["policy_parameters"],
        f"placer:{cluster['placer']}": cluster["placer_parameters"],
    }


async def ask(
    api: Api, *, clicks: int | None, question: Question, typed: Typed, cluster_id: str | None
) -> Changes:
    """Ask, or show what is wrong beside its field."""
    if not clicks:
        return NOTHING
    if not cluster_id or cluster_id == NO_CLUSTER:
        return {**over(without_cluster(_NO_CLUSTER_HINT)), **_beside(typed, {})}
    wrong = wrong_bounds(question)
    if wrong:
        return {**over(None), **_beside(typed, wrong)}
    changes = changes_of(question, typed)
    if not changes:
        return {**over(html.Div(_NOTHING, className="hint")), **_beside(typed, {})}
    try:
        async with api.visitor() as maat:
            asked = await maat.ask_forecast({"cluster_id": cluster_id, "changes": changes})
    except Failure as error:
        beside, above = errors_by_field(error, partial(place_of, question), empty_name="")
        return {**over(above), **_beside(typed, beside)}
    return {**begun(asked), **_beside(typed, {})}


def _beside(typed: Typed, errors: Mapping[str, str]) -> dict[str, object]:
    told = errors_of(typed, errors)
    return {
        "errors": {name: errors.get(name, "") for name in FIELDS},
        "parameters": told,
        **({"open": True} if any(told) else {}),
    }
