"""The values of the submit form in its address: those that differ from the form as it opens.

A command's environment and secrets are never among them. assets/submit_address.js writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dash import Dash, Input, Output, State, dcc
from dash.development.base_component import Component

from frontend.addresses import Check, address_note, among, quoted
from frontend.callbacks import NOTHING, Changes, answer, in_browser
from frontend.components.form_address import EMPTY, asked_values, number_in, too_long
from frontend.components.labels import wrong_labels
from frontend.components.priority import priority_choices
from frontend.forms import FormValues, wrong_number
from frontend.pages.submit import from_text, model, run_model
from frontend.pages.submit.fields import field_id
from frontend.pages.submit.later import LATER, later_id, later_sources, unfinished_later
from frontend.pages.submit.run_fields import run_id
from frontend.routing import QueryValue
from maat.api.commands import CommandBody, UtilisationBody
from maat.api.fields import Body
from maat.api.jobs import JobBody, priority_of
from maat.vocabulary import MAX_PRIORITY, PriorityClass

REPLACE = "replace"  # whether the job that a remedy is for is cancelled
PLAYED = (*model.FIELDS, *LATER, "preemptible", REPLACE)
RUN = tuple(
    name
    for name in (*run_model.FIELDS, *LATER, *run_model.SWITCHES)
    if name not in ("secrets", "env")
)
_LISTS = frozenset({"gpu_types", "labels", "after"})
_SWITCHES = frozenset({*run_model.SWITCHES, REPLACE})
_FLAGS = {"true": True, "false": False}
_NUMBERS: Mapping[str, type[Body]] = {
    **dict.fromkeys((*model.SHAPED, *model.NUMBERS, "work_scale"), JobBody),
    **run_model.NUMBERS,
}
_CHOICES = {
    "adaptivity": among("choice of what Maat may vary", (name for name, _ in model.ADAPTIVITY)),
    "workload_kind": among("kind of work", (name for name, _ in model.KINDS)),
}
_TITLES = {
    name: str(field.title)
    for body in (UtilisationBody, CommandBody, JobBody)
    for name, field in body.model_fields.items()
} | {"line": "Command", "array": "Array"}
_NO_LATER: FormValues = {"after": [], "deadline": "", "array": ""}


def untouched(*, replaces: bool) -> tuple[FormValues, FormValues]:
    """Return the form of models and that of commands as they open, without a like job."""
    command = {"argv": ["-"], "cwd": "/"}
    played, preemptible = from_text.played_values({"name": "-", "model": "-"})
    run = from_text.run_values({"name": "-", "model": "-", "run": command})
    more = {**_NO_LATER, "preemptible": preemptible}
    return (
        {**played, **more, REPLACE: replaces, "name": "", "model": ""},
        {**run, **more, **dict.fromkeys(("name", "model", "line", "cwd"), "")},
    )


def _check(name: str) -> Check:
    """Return what says whether the form can take a value of this field."""
    if name in _CHOICES:
        return _CHOICES[name]
    if name in _SWITCHES:
        return among("choice", _FLAGS)

    def check(value: str) -> str | None:
        wrong = _wrong(name, value)
        return f"{_TITLES[name]}: {quoted(value)} is not taken. {wrong}" if wrong else None

    return check


def _wrong(name: str, value: str) -> str:
    if wrong := too_long(value):
        return wrong
    if name in _NUMBERS:
        number = number_in(value)
        return wrong_number(_NUMBERS[name], name, value if number is None else number)
    if name == "priority":
        return _wrong_priority(value)
    if name == "labels":
        return wrong_labels([value])
    if name in ("deadline", "array"):
        return unfinished_later({**_NO_LATER, name: value}).get(name, "")
    return ""


def _wrong_priority(value: str) -> str:
    try:
        from_text.declared({"name": "-", "model": "-", "priority": _priority(value)})
    except ValueError:
        names = ", ".join(PriorityClass)
        return f"Write {names}, or a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}."
    return ""


def _priority(value: str) -> object:
    try:
        return int(value)
    except ValueError:
        return priority_of(value)


TAKES: Mapping[str, Check] = {
    **{name: _check(name) for name in dict.fromkeys((*PLAYED, *RUN))},
    EMPTY: among("field to empty", dict.fromkeys((*PLAYED, *RUN))),
}


def asked_of(query: Mapping[str, QueryValue]) -> FormValues:
    """Return the values of an address, by field; what the form cannot take is left out."""
    return asked_values(query, TAKES, lists=_LISTS, held=_field_value)


def _field_value(name: str, value: str) -> object:
    """Return a value as its field holds it."""
    if name in _SWITCHES:
        return _FLAGS[value]
    if name in _NUMBERS:
        return number_in(value)
    return str(_priority(value)) if name == "priority" else value


def stores(asked: FormValues, *, replaces: bool) -> list[dcc.Store]:
    """Return what the script and the callbacks that fill the form read."""
    played, run = untouched(replaces=replaces)
    return [
        dcc.Store(id=f"submit-{name}", data=dict(values))
        for name, values in (("asked", asked), ("usual", played), ("run-usual", run))
    ]


def fill_in(page: Component, asked: FormValues) -> None:
    """Put the values into the fields of both forms, and unfold the parts that have some."""
    for names, placed, prefix in ((PLAYED, field_id, "submit"), (RUN, run_id, "submit-run")):
        for name in asked.keys() & set(names):
            field = page[later_id(prefix, name) if name in LATER else placed(name)]
            setattr(field, "checked" if name in _SWITCHES else "value", asked[name])
            if name == "priority":
                field.data = priority_choices(asked[name])
        page[f"{prefix}-later"].open = bool(asked.keys() & set(LATER))
    page["submit-run-more"].open = bool(asked.keys() & (run_model.FOLDED | {"preemptible"}))


def over(values: FormValues, asked: FormValues) -> FormValues:
    """Return a form's values with those of the address in their place."""
    return {name: asked.get(name, value) for name, value in values.items()}


def register(app: Dash) -> None:
    """The address follows the form; what it asks for and the cluster lacks is told."""
    values = [Input(field_id(name), "value") for name in model.FIELDS]
    values += [Input(field_id(name), "checked") for name in ("preemptible", REPLACE)]
    values += later_sources("submit", Input).values()
    values += [
        Input(run_id(name), "checked" if name in _SWITCHES else "value")
        for name in RUN
        if name not in LATER
    ]
    values += later_sources("submit-run", Input).values()
    in_browser(
        app,
        "submitInUrl",
        Output("submit-long", "children"),
        Input("submit-usual", "data"),
        Input("submit-run-usual", "data"),
        Input("submit-models", "data"),
        Input("submit-run", "opened"),
        *values,
    )
    answer(
        app,
        tell,
        output={"note": Output("submit-absent", "children")},
        inputs={
            "models": Input("submit-models", "data"),
            "runs": Input("submit-run", "opened"),
        },
        state={
            "capacity": State("submit-capacity", "data"),
            "asked": State("submit-asked", "data"),
            "chosen": State("submit-model", "value"),
            "told": State("submit-absent", "children"),
        },
        prevent_initial_call=True,
    )


async def tell(
    *,
    models: Sequence[model.Model],
    runs: bool,
    capacity: model.Capacity | None,
    asked: FormValues,
    chosen: str | None,
    told: object,
) -> Changes:
    """Say once which model and GPU types of the address there are none of here."""
    if not models or not capacity or told:
        return NOTHING
    types = asked.get("gpu_types", [])
    if runs:
        sentences = [f"The cluster has no {quoted(name)}." for name in _absent(types, capacity)]
    else:
        sentences = _absent_for(models, capacity, asked, chosen)
    return {"note": address_note(sentences, "/submit", "Submit without it")} if sentences else {}


def _absent_for(
    models: Sequence[model.Model],
    capacity: model.Capacity,
    asked: FormValues,
    chosen: str | None,
) -> list[str]:
    wanted = asked.get("model") or chosen
    known = model.named_model(models, wanted)
    if known is None:
        return [f"No model {quoted(wanted or '')} runs on this cluster."]
    absent = _absent(asked.get("gpu_types", []), model.types_of(known, capacity))
    return [f"{known['name']} cannot use {quoted(name)} on this cluster." for name in absent]


def _absent(names: Iterable[str], known: Iterable[str]) -> list[str]:
    there = set(known)
    return [name for name in names if name not in there]
