"""What if, on the page of the cluster: nodes drained, nodes added, another policy from now on.

The question stands in the address. Nodes and policies are asked for once the card is opened.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import Check, anything
from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, error_state
from frontend.components.next_step import without_cluster
from frontend.components.question import (
    asking,
    begun,
    over,
    question_answer,
    question_buttons,
    register_question,
    told_outputs,
)
from frontend.forms import errors_by_field
from frontend.pages.cluster.what_if_answer import parts_of
from frontend.routing import QueryValue, in_browser, query_value, query_values, submits
from frontend.shell import NO_CLUSTER
from maat.api.clusters import ClusterStateOut
from maat.api.policies import DescribedOut
from maat.client import calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

PREFIX = "what-if"
FIELDS = ("drain", "add", "policy")
TAKES: dict[str, Check] = dict.fromkeys(FIELDS, anything)
_HINT = "When jobs would start and end, and who would be slowed by how much. Nothing is changed."
_NOTHING = "Choose a node to drain, nodes to add, or another policy."
_NO_CLUSTER_HINT = "Then it can be asked what if it were another."
# The field of a change of the API -> field of the card.
_PLACES = {"drain_nodes": "drain", "add_shape": "add", "policy": "policy"}


class Question(TypedDict):
    """What the fields hold."""

    drain: list[str] | None
    add: str | None
    policy: str | None


def what_if_card(
    drain: QueryValue = None, add: QueryValue = None, policy: QueryValue = None
) -> Component:
    """The card, open if the address asks something."""
    nodes, shape, name = query_values(drain), query_value(add) or "", query_value(policy)
    is_asked = bool(nodes or shape or name)
    summary = html.Summary(
        "Drain nodes, add nodes, or let another policy decide",
        id=f"{PREFIX}-open",
        n_clicks=int(is_asked),
    )
    content = [
        html.Div(_fields(nodes, shape, name), className="form-row roomy"),
        html.Div(id=f"{PREFIX}-problem"),
        question_buttons(PREFIX, ask="Ask"),
        question_answer(PREFIX, hint=_HINT),
        dcc.Store(id=f"{PREFIX}-of"),
        dcc.Store(id=f"{PREFIX}-in-url"),
    ]
    box = html.Div(content, className="form-stack", **submits(f"{PREFIX}-ask"))
    folds = html.Details([summary, box], className="folded", open=is_asked)
    return card("What if", folds, className="span-12")


def _fields(nodes: list[str], shape: str, policy: str | None) -> list[Component]:
    return [
        dmc.MultiSelect(
            id=_id("drain"),
            label="Drain nodes",
            data=nodes,
            value=nodes,
            searchable=True,
            clearable=True,
        ),
        dmc.TextInput(
            id=_id("add"),
            label="Add nodes by GPU type",
            placeholder="a100=2x8",
            value=shape,
        ),
        dmc.Select(
            id=_id("policy"),
            label="Another policy",
            placeholder="as it is",
            data=[policy] if policy else [],
            value=policy,
            clearable=True,
            searchable=True,
        ),
    ]


def _id(field: str) -> str:
    return f"{PREFIX}-{field}"


def register(app: Dash, api: Api) -> None:
    fields = {name: (_id(name), "value") for name in FIELDS}
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
        *(Input(*field) for field in fields.values()),
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(offer, api),
        output={
            "nodes": Output(_id("drain"), "data"),
            "policies": Output(_id("policy"), "data"),
            "problem": Output(f"{PREFIX}-problem", "children"),
        },
        inputs={"cluster_id": Input(f"{PREFIX}-of", "data")},
        state={"chosen": State(_id("drain"), "value"), "policy": State(_id("policy"), "value")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(ask, api),
        output={
            **told_outputs(PREFIX),
            "errors": {name: Output(_id(name), "error") for name in FIELDS},
        },
        inputs={"clicks": Input(f"{PREFIX}-ask", "n_clicks")},
        state={
            "question": {name: State(*field) for name, field in fields.items()},
            "cluster_id": State("cluster-select", "value"),
        },
        prevent_initial_call=True,
        running=asking(PREFIX),
    )
    register_question(app, api, PREFIX, parts_of)


async def offer(
    api: Api, *, cluster_id: str | None, chosen: list[str] | None, policy: str | None
) -> Changes:
    """Offer the nodes in service and the policies that there are, beside what is chosen."""
    if not cluster_id:
        return NOTHING
    try:
        async with api.visitor() as maat:
            state, policies = await asyncio.gather(
                maat.send(calls.cluster_state(cluster_id)), maat.send(calls.policies())
            )
    except Failure as error:
        return {"problem": error_state(error)}
    return {
        "nodes": list(dict.fromkeys([*_in_service(state), *(chosen or [])])),
        "policies": _offered(policies["items"], policy),
        "problem": None,
    }


def _in_service(state: ClusterStateOut) -> list[str]:
    return [cell["node"] for cell in state["gpus"] if not cell["drained"]]


def _offered(policies: list[DescribedOut], chosen: str | None) -> list[dict[str, str]]:
    """The policies; also one that is chosen and that there is none of, which asking then tells."""
    titles = {one["name"]: one["title"] for one in policies}
    if chosen:
        titles.setdefault(chosen, chosen)
    return [{"value": name, "label": title} for name, title in titles.items()]


async def ask(
    api: Api, *, clicks: int | None, question: Question, cluster_id: str | None
) -> Changes:
    """Ask, or show what is wrong beside its field."""
    if not clicks:
        return NOTHING
    if not cluster_id or cluster_id == NO_CLUSTER:
        return over(without_cluster(_NO_CLUSTER_HINT))
    changes = changes_of(question)
    if not changes:
        return {**over(html.Div(_NOTHING, className="hint")), "errors": _beside({})}
    try:
        async with api.visitor() as maat:
            asked = await maat.ask_forecast({"cluster_id": cluster_id, "changes": changes})
    except Failure as error:
        beside, above = errors_by_field(error, place_of, empty_name="")
        return {**over(above), "errors": _beside(beside)}
    return {**begun(asked), "errors": _beside({})}


def changes_of(question: Question) -> RawBody:
    """The fields as changes of the API; nothing if all are empty."""
    given: RawBody = {
        "drain_nodes": question["drain"],
        "add_shape": (question["add"] or "").strip(),
        "policy": question["policy"],
    }
    return {name: value for name, value in given.items() if value}


def place_of(problem: FieldProblem) -> str | None:
    """Return the field that a refusal is about: `/changes/drain_nodes/0` is about `drain`."""
    _, _, below = problem.pointer.partition("/changes/")
    return _PLACES.get(below.split("/")[0])


def _beside(errors: dict[str, str]) -> dict[str, str]:
    return {name: errors.get(name, "") for name in FIELDS}
