"""The fields of What if: in the address, in the card, and as the changes that the service takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.addresses import Check, anything
from frontend.attributes import submits
from frontend.components.cards import card
from frontend.components.form_address import number_in
from frontend.components.once_seen import OnceSeen
from frontend.components.parameter_fields import (
    Chosen,
    Typed,
    Value,
    parameter_fields,
    parameters_of,
)
from frontend.components.parameter_fields import place_of as place_of_parameter
from frontend.components.question import question_answer, question_buttons
from frontend.forms import described, wrong_number
from frontend.routing import QueryValue, query_value, query_values
from maat.api.forecasts import ClusterChangesBody
from maat.api.policies import DescribedOut
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem
from maat.vocabulary import UNBOUNDED

PREFIX = "what-if"
FIELDS = ("drain", "add", "policy", "placer", "stay", "moves")
OWNERS = ("policy", "placer")
PARAMETERS = tuple(f"{kind}_parameter" for kind in OWNERS)
TAKES: dict[str, Check] = dict.fromkeys((*FIELDS, *PARAMETERS), anything)
CHOOSE_FIRST = "Choose a policy or a placer first."
_NO_BOUND = f"For no bound give {UNBOUNDED}."
_HINT = "When jobs would start and end, and who would be slowed by how much. Nothing is changed."
_BOUNDS = {"stay": "least_stay_seconds", "moves": "most_moves_per_hour"}
# The field of a change of the API -> field of the card.
_PLACES = {
    "drain_nodes": "drain",
    "add_shape": "add",
    "policy": "policy",
    "placer": "placer",
    **{name: field for field, name in _BOUNDS.items()},
}


class Question(TypedDict):
    """What the fields hold."""

    drain: list[str] | None
    add: str | None
    policy: str | None
    placer: str | None
    stay: str | None
    moves: str | None


def field_id(field: str) -> str:
    return f"{PREFIX}-{field}"


def what_if_card(
    drain: QueryValue = None,
    add: QueryValue = None,
    policy: QueryValue = None,
    placer: QueryValue = None,
    stay: QueryValue = None,
    moves: QueryValue = None,
    **parameters: QueryValue,
) -> Component:
    """The card, open if the address asks something. `parameters`: by the names of `PARAMETERS`."""
    nodes, shape = query_values(drain), query_value(add) or ""
    chosen = [query_value(policy), query_value(placer)]
    bounds = {"stay": query_value(stay) or "", "moves": query_value(moves) or ""}
    is_asked = bool(nodes or shape or any(chosen) or any(bounds.values()))
    summary = html.Summary(
        "Drain nodes, add nodes, let another policy or placer decide, or bound how often jobs move",
        id=f"{PREFIX}-open",
        n_clicks=int(is_asked),
    )
    written = {name: query_values(parameters.get(name)) for name in PARAMETERS}
    form = [
        html.Div(_fields(nodes, shape, *chosen), className="form-row roomy"),
        html.Div([_bound(name, held) for name, held in bounds.items()], className="form-row roomy"),
        parameter_fields(PREFIX, hint=CHOOSE_FIRST, is_open=any(written.values())),
        question_buttons(PREFIX, ask="Ask"),
        question_answer(PREFIX, hint=_HINT),
    ]
    content = [
        html.Div(id=f"{PREFIX}-problem"),
        html.Div(form, id=f"{PREFIX}-form", className="form-stack", **submits(f"{PREFIX}-ask")),
        dcc.Store(id=f"{PREFIX}-of"),
        dcc.Store(id=f"{PREFIX}-in-url"),
        dcc.Store(id=f"{PREFIX}-written", data=written),
    ]
    box = html.Div(OnceSeen(content), className="form-stack")
    folds = html.Details([summary, box], className="folded", open=is_asked)
    return card("What if", folds, className="span-12")


def _fields(
    nodes: list[str], shape: str, policy: str | None, placer: str | None
) -> list[Component]:
    return [
        dmc.MultiSelect(
            id=field_id("drain"),
            label="Drain nodes",
            data=nodes,
            value=nodes,
            searchable=True,
            clearable=True,
        ),
        dmc.TextInput(
            id=field_id("add"),
            label="Add nodes by GPU type",
            placeholder="a100=2x8",
            value=shape,
        ),
        _choice("policy", policy, "as it is"),
        _choice("placer", placer, "as it is, or the policy's own"),
    ]


def _choice(name: str, chosen: str | None, otherwise: str) -> dmc.Select:
    return dmc.Select(
        id=field_id(name),
        label=f"Another {name}",
        placeholder=otherwise,
        data=[chosen] if chosen else [],
        value=chosen,
        clearable=True,
        searchable=True,
    )


def _bound(name: str, held: str) -> dmc.TextInput:
    return dmc.TextInput(
        id=field_id(name),
        label=described(ClusterChangesBody, _BOUNDS[name])["title"],
        placeholder=f"as it is; {UNBOUNDED}: no bound",
        value=held,
    )


def parameters_written(
    written: Mapping[str, list[str]], described: Iterable[tuple[str, DescribedOut]]
) -> Chosen:
    """The parameters of the address, such as `policy_parameter=power=-0.5`, by their owner."""
    found: dict[str, dict[str, Value]] = {}
    for owner, one in described:
        numbers = {p["name"] for p in one["parameters"] if p["type"] in ("integer", "number")}
        for text in written[f"{owner.partition(':')[0]}_parameter"]:
            name, _, value = text.partition("=")
            found.setdefault(owner, {})[name] = _number(value) if name in numbers else value
    return found


def _number(text: str) -> float | str:
    """What a field of a number holds; of what is none the text, which asking then tells."""
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def changes_of(question: Question, typed: Typed) -> RawBody:
    """The fields as changes of the API; nothing if all are empty."""
    given: RawBody = {
        "drain_nodes": question["drain"],
        "add_shape": (question["add"] or "").strip(),
        "policy": question["policy"],
        "placer": question["placer"],
    }
    parameters = parameters_of(typed)
    for kind, owner in owners_of(question).items():
        given[f"{kind}_parameters"] = parameters.get(owner)
    return {name: value for name, value in given.items() if value} | _bounds(question)


def _bounds(question: Question) -> RawBody:
    """Return the bounds that are typed, by their field of the API; None for no bound."""
    typed = _typed_bounds(question)
    return {_BOUNDS[n]: None if value == UNBOUNDED else value for n, value in typed.items()}


def wrong_bounds(question: Question) -> dict[str, str]:
    """Return what is wrong with a bound that is typed, by field of the card."""
    wrong = {
        name: wrong_number(ClusterChangesBody, _BOUNDS[name], value)
        for name, value in _typed_bounds(question).items()
        if value != UNBOUNDED
    }
    return {name: f"{words} {_NO_BOUND}" for name, words in wrong.items() if words}


def _typed_bounds(question: Question) -> dict[str, float | str]:
    """Return the bounds that are not empty: numbers, or the text of what is none."""
    texts = {"stay": question["stay"], "moves": question["moves"]}
    typed = {name: (text or "").strip() for name, text in texts.items()}
    numbers = {name: number_in(text) for name, text in typed.items()}
    return {n: typed[n] if number is None else number for n, number in numbers.items() if typed[n]}


def owners_of(question: Question) -> dict[str, str]:
    """`policy` -> `policy:sia`, and `placer` -> ..., of those that are chosen."""
    chosen = {"policy": question["policy"], "placer": question["placer"]}
    return {kind: f"{kind}:{name}" for kind, name in chosen.items() if name}


def place_of(question: Question, problem: FieldProblem) -> str | None:
    """Return the field that a refusal is about: `/changes/drain_nodes/0` is about `drain`."""
    owners = owners_of(question).items()
    parameters = {f"/changes/{kind}_parameters": owner for kind, owner in owners}
    _, _, below = problem.pointer.partition("/changes/")
    return place_of_parameter(problem, parameters) or _PLACES.get(below.split("/")[0])
