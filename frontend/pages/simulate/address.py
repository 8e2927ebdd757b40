"""The plain values of the simulate form in its address: those that differ from the form as opened.

Files, conditions and parameters of policies are not among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dash import Dash, Input, Output, dcc, html
from dash.development.base_component import Component

from frontend.addresses import Check, among, quoted
from frontend.components.form_address import EMPTY, asked_values, number_of, too_long
from frontend.components.laboratory_form import SEEDS_WRONG
from frontend.components.replay import wrong_hours
from frontend.components.trace_fields import FAMILIES, KINDS, MAX_TRACES
from frontend.forms import FormValues, parse_seeds, wrong_number
from frontend.routing import QueryValue, in_browser
from maat.api.simulations import GeneratedTrace

# In an address `cluster` is the cluster that is shown; that of a simulation is `gpus`.
FIELDS: Mapping[str, str] = {
    **{name: f"simulate-{name}" for name in ("name", "kind", "family", "jobs", "hours", "seed")},
    "gpus": "simulate-cluster",
    **{name: f"simulate-{name}" for name in ("draws", "window", "policies", "placers", "seeds")},
    "fidelity": "simulate-fidelity",
}
_LISTS = frozenset({"policies", "placers"})
_OFFERED = ("policies", "placers", "fidelity")  # what there is of these comes later
_OF_TRACE = ("jobs", "hours", "seed")
_NUMBERS = (*_OF_TRACE, "draws", "window")
_CHOICES = {
    "kind": among("kind of trace", (name for name, _ in KINDS)),
    "family": among("family of traces", (name for name, _ in FAMILIES)),
}


def _check(name: str) -> Check:
    """Return what says whether the form can take a value of this field."""

    def check(value: str) -> str | None:
        wrong = _wrong(name, value)
        return f"{name.capitalize()}: {quoted(value)} is not taken. {wrong}" if wrong else None

    return _CHOICES.get(name, check)


def _wrong(name: str, value: str) -> str:
    if wrong := too_long(value):
        return wrong
    number = _number(name, value)
    if name in _OF_TRACE:
        return wrong_number(GeneratedTrace, name, value if number is None else number)
    if name == "draws":
        fits = isinstance(number, int) and 1 <= number <= MAX_TRACES
        return "" if fits else f"Give a whole number from 1 to {MAX_TRACES}."
    if name == "window":
        return wrong_hours(value if number is None else number)
    return SEEDS_WRONG if name == "seeds" and parse_seeds(value) is None else ""


def _number(name: str, value: str) -> float | None:
    """Return a number of the form; draws are whole as jobs are, a window is in hours."""
    if name not in _NUMBERS:
        return None
    kind = {"draws": "jobs", "window": "hours"}.get(name, name)
    number = number_of(GeneratedTrace, kind, value)
    return int(number) if number is not None and number == int(number) else number


TAKES: Mapping[str, Check] = {
    **{name: _check(name) for name in FIELDS},
    EMPTY: among("field to empty", FIELDS),
}


def asked_of(query: Mapping[str, QueryValue]) -> FormValues:
    """Return the values of an address, by field; what the form cannot take is left out."""
    return asked_values(query, TAKES, lists=_LISTS, held=_held)


def _held(name: str, value: str) -> object:
    return _number(name, value) if name in _NUMBERS else value


def values_of(form: Component) -> FormValues:
    """Return what the fields of a form hold."""
    return {name: form[field].value for name, field in FIELDS.items()}


def fill_in(form: Component, asked: FormValues) -> None:
    """Put the values of an address into the fields."""
    for name, value in asked.items():
        field = form[FIELDS[name]]
        field.value = value
        if name in _OFFERED:
            chosen: Sequence[str] = value if isinstance(value, list) else [value]
            field.data = list(dict.fromkeys([*field.data, *filter(None, chosen)]))


def parts_of(usual: FormValues, asked: FormValues, *, cluster: str | None) -> list[Component]:
    """Return what the script reads, and where it says what is too long for the address.

    `usual`: what the form holds by itself. `cluster`: the one that the address names; a replay of
    it leaves what the address says.
    """
    kept = {"cluster": cluster, "fields": [name for name in FIELDS if name in asked]}
    return [
        dcc.Store(id="simulate-usual", data=dict(usual)),
        dcc.Store(id="simulate-asked", data=kept),
        html.Div(id="simulate-long", className="hint", role="status"),
    ]


def register_address(app: Dash) -> None:
    in_browser(
        app,
        "simulateInUrl",
        Output("simulate-long", "children"),
        Input("simulate-usual", "data"),
        *[Input(field, "value") for field in FIELDS.values()],
    )
