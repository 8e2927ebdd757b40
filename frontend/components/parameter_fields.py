"""The part of a form with the parameters of policies and placers, as the service lists them.

It knows no parameter by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from math import isfinite
from typing import Any, TypeAlias, TypedDict

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, html
from dash.development.base_component import Component

from frontend.addresses import quoted
from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import folded_fields
from frontend.components.form_address import too_long
from frontend.formatting import as_typed
from frontend.forms import FormValues
from frontend.runs import StoredRequest
from maat.api.policies import DescribedOut, FidelityOut, ParameterOut
from maat.client import calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem
from maat.vocabulary import LEAST_ROUND_SECONDS, MOST_ROUND_SECONDS

YES_NO = {"yes": True, "no": False}
POLICY_PARAMETER, PLACER_PARAMETER = PARAMETERS = ("policy_parameter", "placer_parameter")
"""What parameters are called in the address of a form of the laboratory: `sia:p=-1`."""
ROUND = "round_seconds"  # no parameter of a policy, but typed beside them

Value: TypeAlias = float | str | bool
Chosen: TypeAlias = Mapping[str, Mapping[str, Value]]
"""`policy:sia` -> parameter -> value."""


Written: TypeAlias = Mapping[str, Mapping[str, str]]
"""The same as an address has them: as texts."""


class FieldId(TypedDict):
    """The id of a parameter's field: `of` names the owner, such as `policy:sia`."""

    parameter: str
    of: str
    name: str


class Typed(TypedDict):
    """All fields of parameters of a form, and what they hold, in the same order."""

    ids: list[FieldId]
    values: list[float | str | None]


def parameter_fields(
    prefix: str, *, hint: str = "Choose a policy first.", is_open: bool = False
) -> html.Details:
    """`prefix`: of every id. `hint`: before anything is chosen."""
    fields = html.Div(
        html.Div(hint, className="hint"),
        id=f"{prefix}-parameters",
        className="form-stack",
    )
    title, box_id = "Parameters of policies and placers", f"{prefix}-parameters-box"
    return folded_fields(title, fields, box_id=box_id, is_open=is_open)


def register_parameters(app: Dash, api: Api, prefix: str, *, policies: str, placers: str) -> None:
    """`policies`, `placers`: the fields that choose them."""
    chosen = {
        "policies": Input(policies, "value"),
        "placers": Input(placers, "value"),
        "fidelity": Input(f"{prefix}-fidelity", "value"),
    }

    answer(
        app,
        partial(offer_parameters, api, prefix),
        output={"fields": Output(f"{prefix}-parameters", "children")},
        inputs={"chosen": chosen},
        state={
            "given": parameter_states(prefix),
            "written": State(f"{prefix}-parameters-written", "data"),
        },
    )


async def offer_parameters(
    api: Api, prefix: str, *, chosen: FormValues, given: Typed, written: Written
) -> Changes:
    """Show the fields of what is chosen; what was typed stays, else what the address says."""
    try:
        async with api.visitor() as maat:
            known, places, presets = await asyncio.gather(
                maat.send(calls.policies()),
                maat.send(calls.placers()),
                maat.send(calls.fidelities()),
            )
    except Failure:
        return NOTHING
    preset = next((one for one in presets["items"] if one["name"] == chosen["fidelity"]), None)
    described = [
        (f"{kind}:{one['name']}", one)
        for kind, all_of_kind, names in (
            ("policy", known["items"], _listed(chosen["policies"])),
            ("placer", places["items"], _listed(chosen["placers"])),
        )
        for one in all_of_kind
        if one["name"] in names
    ]
    shown = {field_id["of"] for field_id in given["ids"]}
    asked, lost = asked_parameters(written, described)
    begins = {owner: values for owner, values in asked.items() if owner not in shown}
    fields = groups(prefix, described, preset, {**begins, **parameters_of(given)})
    return {"fields": [*(html.Div(words, className="hint") for words in lost), *fields]}


def is_parameter(text: str) -> str | None:
    """Return what is wrong with a parameter of an address; whether it is there is told later."""
    owner, _, rest = text.partition(":")
    name, _, value = rest.partition("=")
    if owner and name and value:
        return too_long(text) or None
    return f"There is no parameter {quoted(text)}. Give OWNER:NAME=VALUE, such as sia:p=-1."


def written_in(asked: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return the parameters of an address, which have been checked, by their owner."""
    found: dict[str, dict[str, str]] = {}
    for parameter in PARAMETERS:
        for text in asked.get(parameter, ()):
            owner, _, rest = text.partition(":")
            name, _, value = rest.partition("=")
            found.setdefault(f"{parameter.partition('_')[0]}:{owner}", {})[name] = value
    return found


def in_address(given: Mapping[str, Mapping[str, object]]) -> dict[str, list[str]]:
    """The other way round: what an address says so that a form holds these parameters."""
    found: dict[str, list[str]] = {}
    for owner, values in given.items():
        kind, _, name = owner.partition(":")
        for parameter, value in values.items():
            text = ("yes" if value else "no") if isinstance(value, bool) else as_typed(value)
            found.setdefault(f"{kind}_parameter", []).append(f"{name}:{parameter}={text}")
    return found


def asked_parameters(
    written: Written, described: Sequence[tuple[str, DescribedOut]]
) -> tuple[Chosen, list[str]]:
    """Return what fields hold of the parameters of an address, and what is said of the others."""
    found: dict[str, dict[str, Value]] = {}
    chosen = {owner for owner, _ in described}
    lost = [
        f"The address sets {quoted(f'{name}={text}')} of {owner.partition(':')[2]}, which is not "
        "chosen."
        for owner, texts in written.items()
        if owner not in chosen
        for name, text in texts.items()
    ]
    for owner, one in described:
        known = {parameter["name"]: parameter for parameter, _ in offered(owner, one, None)}
        for name, text in written.get(owner, {}).items():
            value = _value_of(known[name], text) if name in known else None
            if value is None:
                setting = quoted(f"{name}={text}")
                lost.append(f"The address sets {setting}, which {one['title']} does not take.")
            else:
                found.setdefault(owner, {})[name] = value
    return found, lost


def _value_of(parameter: ParameterOut, text: str) -> Value | None:
    """Return what a field holds for a text of the address; None if it can hold no such thing."""
    if parameter["type"] == "boolean":
        return YES_NO.get(text)
    if parameter["choices"]:
        return text if text in parameter["choices"] else None
    if parameter["type"] == "string":
        return text
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def groups(
    prefix: str,
    described: Sequence[tuple[str, DescribedOut]],
    preset: FidelityOut | None,
    given: Chosen,
) -> list[Component]:
    """A titled group of fields for each that has parameters."""
    shown: list[Component] = [
        html.Fieldset(
            [
                html.Legend(f"{one['title']} ({owner.partition(':')[0]})", className="caption"),
                html.Div(
                    [
                        _field(prefix, owner, parameter, placed, given.get(owner, {}))
                        for parameter, placed in offered(owner, one, preset)
                    ],
                    className="form-row wide",
                ),
            ],
            className="parameter-group",
        )
        for owner, one in described
        if offered(owner, one, preset)
    ]
    return shown or [html.Div("What is chosen has no parameters.", className="hint")]


def offered(
    owner: str, one: DescribedOut, preset: FidelityOut | None
) -> list[tuple[ParameterOut, str]]:
    """What can be typed for a policy or placer, each with what holds where nothing is given."""
    fields = [(p, placeholder(owner, p, preset)) for p in one["parameters"]]
    if one["round_seconds"] is not None:
        fields.append(_rounds(one["round_seconds"], preset))
    return fields


def _rounds(default: float, preset: FidelityOut | None) -> tuple[ParameterOut, str]:
    """The field for the interval of a policy's rounds."""
    field = ParameterOut(
        name=ROUND,
        type="number",
        default=default,
        minimum=LEAST_ROUND_SECONDS,
        maximum=MOST_ROUND_SECONDS,
        choices=None,
        unit="s",
        help="Time between rounds.",
        source=None,
    )
    if preset is None or preset["round_seconds"] is None:
        return field, _words(default)
    return field, f"{preset['round_seconds']:g} ({preset['name']})"


def _field(
    prefix: str,
    owner: str,
    parameter: ParameterOut,
    placed: str,
    given: Mapping[str, Value],
) -> dmc.Select | dmc.TextInput | dmc.NumberInput:
    """Empty: what holds then stands in it as a placeholder, `placed`."""
    name = parameter["name"]
    label = name.replace("_", " ") + (f" ({parameter['unit']})" if parameter["unit"] else "")
    field_id = {"parameter": prefix, "of": owner, "name": name}
    shared: dict[str, Any] = {
        "id": field_id,
        "label": label,
        "description": described(parameter),
        "placeholder": placed,
        "inputWrapperOrder": ["label", "input", "description", "error"],
    }
    value = given.get(name)
    offered = ["yes", "no"] if parameter["type"] == "boolean" else parameter["choices"]
    if offered:
        if isinstance(value, bool):
            value = "yes" if value else "no"
        return dmc.Select(**shared, data=offered, value=value, clearable=True)
    if parameter["type"] == "string":
        return dmc.TextInput(**shared, value=value or "")
    whole = parameter["type"] == "integer"
    return dmc.NumberInput(**shared, value="" if value is None else value, allowDecimal=not whole)


def described(parameter: ParameterOut) -> str:
    """What it does, from where to where it goes, and where its default comes from."""
    low, high = parameter["minimum"], parameter["maximum"]
    if low is not None and high is not None:
        span = f"From {low:g} to {high:g}."
    elif low is not None:
        span = f"At least {low:g}."
    else:
        span = "" if high is None else f"At most {high:g}."
    source = f"Source: {parameter['source']}." if parameter["source"] else ""
    return " ".join(part for part in (parameter["help"], span, source) if part)


def placeholder(owner: str, parameter: ParameterOut, preset: FidelityOut | None) -> str:
    """What holds where nothing is given."""
    kind, _, name = owner.partition(":")
    if preset is not None:
        own = preset["policy_parameters"] if kind == "policy" else preset["placer_parameters"]
        if parameter["name"] in own.get(name, {}):
            return f"{_words(own[name][parameter['name']])} ({preset['name']})"
    return _words(parameter["default"])


def _words(value: object) -> str:
    if value is None:
        return "none"
    return (
        ("yes" if value else "no")
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def parameter_states(prefix: str) -> dict[str, State]:
    """What `parameters_of` takes."""
    return {"ids": State(every(prefix), "id"), "values": State(every(prefix), "value")}


def every(prefix: str) -> dict[str, object]:
    """The id that all fields of the form match."""
    return {"parameter": prefix, "of": ALL, "name": ALL}


def parameters_of(given: Typed) -> dict[str, dict[str, Value]]:
    """The fields that hold something, by their owner."""
    found: dict[str, dict[str, Value]] = {}
    for field_id, value in zip(given["ids"], given["values"], strict=True):
        if value not in (None, ""):
            found.setdefault(field_id["of"], {})[field_id["name"]] = (
                YES_NO.get(value, value) if isinstance(value, str) else value
            )
    return found


def about_policy(given: Mapping[str, Value]) -> RawBody:
    """What a body says of a policy: its parameters, and the interval of its rounds."""
    parameters = {name: value for name, value in given.items() if name != ROUND}
    rounds: RawBody = {ROUND: given[ROUND]} if ROUND in given else {}
    return ({"policy_parameters": parameters} if parameters else {}) | rounds


def held_by(given: Typed) -> dict[str, object]:
    """What each field holds, by the place of its error."""
    return dict(zip(map(_place, given["ids"]), given["values"], strict=True))


def errors_of(given: Typed, beside: Mapping[str, str]) -> list[str]:
    """What stands beside each field, in their order. `beside`: as `place_of` names them."""
    return [beside.get(_place(field_id), "") for field_id in given["ids"]]


def _place(field_id: FieldId) -> str:
    return f"{field_id['of']}/{field_id['name']}"


def told_parameters(request: StoredRequest) -> list[tuple[str, str]]:
    """The parameters that a request sets of its policy and of its placer, in words."""
    owners = ((name, request.get(f"{name}_parameters") or {}) for name in ("policy", "placer"))
    return [
        (
            f"Parameters of the {name}",
            ", ".join(f"{key.replace('_', ' ')} {_words(value)}" for key, value in given.items()),
        )
        for name, given in owners
        if given
    ]


def place_of(problem: FieldProblem, owners: Mapping[str, str]) -> str | None:
    """Return the form's name for a refused parameter, or for a refused interval of rounds.

    `owners`: pointer to the parameters of a policy or placer -> its key, such as `policy:sia`.
    """
    parent, _, name = problem.pointer.rpartition("/")
    if name == ROUND and f"{parent}/policy_parameters" in owners:
        return f"{owners[f'{parent}/policy_parameters']}/{ROUND}"
    return f"{owners[parent]}/{name}" if parent in owners else None


def _listed(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())
