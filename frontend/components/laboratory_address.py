"""A form of the laboratory in its page's address: all that it holds, but files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import Check, among, quoted
from frontend.callbacks import in_browser
from frontend.components import conditions
from frontend.components.form_address import EMPTY, asked_values, number_in, too_long
from frontend.components.laboratory_form import SEEDS_WRONG
from frontend.components.parameter_fields import PARAMETERS, every, is_parameter, written_in
from frontend.components.replay import wrong_hours
from frontend.components.trace_fields import FAMILIES, KINDS, MAX_TRACES
from frontend.components.trace_import import FORMATS, RULES
from frontend.forms import FormValues, parse_seeds, wrong_number
from frontend.routing import QueryValue, query_values
from maat.api.simulations import GeneratedTrace

_OF_TRACE = ("jobs", "hours", "xxl_share", "seed")
_OF_IMPORT = ("import-format", "import-rule")
_NUMBERS = (*_OF_TRACE, "draws", "window")
_CHOICES = {
    "kind": among("kind of trace", (name for name, _ in KINDS)),
    "family": among("family of traces", (name for name, _ in FAMILIES)),
    "import-format": among("format", (name for name, _ in FORMATS)),
    "import-rule": among("rule", (name for name, _ in RULES)),
}


@dataclass(frozen=True)
class LaboratoryAddress:
    """The fields of one form that stand in the address of its page, `/prefix`.

    Attributes:
        prefix: Of every id.
        form: The fields of the form but those of conditions, by their ids without the prefix.
        lists: Those of several values.
        offered: Those whose choices the service lists after the page has opened.
        choices: Those that take one of some words, beside those that choose the trace.
    """

    prefix: str
    form: Sequence[str]
    lists: frozenset[str] = frozenset()
    offered: Sequence[str] = ()
    choices: Mapping[str, Check] = field(default_factory=dict)

    @cached_property
    def names(self) -> Sequence[str]:
        """What the fields, and those of an import and of conditions, are called in the address.

        There `cluster` is the cluster that is shown; that of a simulation is `gpus`.
        """
        form = ("gpus" if name == "cluster" else name for name in self.form)
        return [*form, *_OF_IMPORT, *conditions.VALUES]

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """The id of each field, by its name in the address."""
        return {
            name: f"{self.prefix}-{'cluster' if name == 'gpus' else name}" for name in self.names
        }

    @cached_property
    def takes(self) -> Mapping[str, Check]:
        """What the address takes, each with its check."""
        known = {**_CHOICES, **conditions.takes_of_address(), **self.choices}
        return {
            **{name: known.get(name) or partial(_check, name) for name in self.names},
            conditions.RESERVATION: known[conditions.RESERVATION],
            **dict.fromkeys(PARAMETERS, is_parameter),
            EMPTY: among("field to empty", self.names),
        }

    @property
    def _all_offered(self) -> Sequence[str]:
        return (*self.offered, "profiles", "interference", "variability")

    def asked_of(self, query: Mapping[str, QueryValue]) -> FormValues:
        """Return the values of an address, by field; what the form cannot take is left out."""
        lists = self.lists | {conditions.RESERVATION, *PARAMETERS}
        return asked_values(query, self.takes, lists=lists, held=_field_value)

    def values_of(self, form: Component) -> FormValues:
        """Return what the fields of a form hold."""
        return {name: form[field_id].value for name, field_id in self.fields.items()}

    def fill_in(self, form: Component, asked: FormValues) -> None:
        """Put the values of an address into the fields."""
        for name in filter(asked.__contains__, self.names):
            value, held = asked[name], form[self.fields[name]]
            held.value = value
            if name in self._all_offered:
                known = {one["value"] if isinstance(one, dict) else one for one in held.data}
                chosen: Sequence[str] = value if isinstance(value, list) else [value]
                held.data = [*held.data, *(one for one in chosen if one and one not in known)]
        self._fill_in_folded(form, asked)

    def _fill_in_folded(self, form: Component, asked: FormValues) -> None:
        """Put reservations and parameters into the form, and unfold what the address sets."""
        reserved = conditions.reservations_in(asked.get(conditions.RESERVATION, ()))
        form[f"{self.prefix}-reservations"].data = reserved
        listed = conditions.reservation_list(self.prefix, reserved)
        form[f"{self.prefix}-reservations-list"].children = listed
        if reserved or asked.keys() & set(conditions.VALUES):
            form[f"{self.prefix}-conditions"].open = True
        if asked.keys() & set(PARAMETERS):
            form[f"{self.prefix}-parameters-box"].open = True

    def parts(self, usual: FormValues, asked: FormValues) -> list[Component]:
        """Return what the script reads, and where it says what is too long for the address.

        `usual`: what the form holds by itself. `asked`: what the address says.
        """
        names = {name: query_values(asked[name]) for name in self._all_offered if asked.get(name)}
        return [
            dcc.Store(id=f"{self.prefix}-usual", data=dict(usual)),
            dcc.Store(id=f"{self.prefix}-asked-names", data=names),
            dcc.Store(id=f"{self.prefix}-parameters-written", data=written_in(asked)),
            html.Div(id=f"{self.prefix}-long", className="hint", role="status"),
        ]

    def register(self, app: Dash) -> None:
        """Register that the address follows the form."""
        in_browser(
            app,
            "laboratoryInUrl",
            Output(f"{self.prefix}-long", "children"),
            Input(f"{self.prefix}-usual", "data"),
            Input(f"{self.prefix}-reservations", "data"),
            Input(every(self.prefix), "value"),
            *[Input(field_id, "value") for field_id in self.fields.values()],
            State(f"{self.prefix}-parameters-written", "data"),
        )


def _check(name: str, value: str) -> str | None:
    """Return why the form cannot take a value of this field."""
    wrong = _wrong(name, value)
    return f"{name.capitalize()}: {quoted(value)} is not taken. {wrong}" if wrong else None


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
    return number_in(value) if name in _NUMBERS else None


def _field_value(name: str, value: str) -> object:
    """Return a value as its field holds it."""
    if name in conditions.VALUES:
        return conditions.held_of_address(name, value)
    return _number(name, value) if name in _NUMBERS else value
