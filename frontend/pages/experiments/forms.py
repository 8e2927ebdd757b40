"""What both forms hold, what they send, and what of it stands in the page's address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from frontend.addresses import Check, among, quoted
from frontend.components.form_address import number_in, too_long
from frontend.components.trace_fields import FAMILIES
from frontend.forms import FormValues, not_a_number, wrong_number
from maat.api.experiments import AutoscalingBody, TuningBody
from maat.api.fields import Body
from maat.api.simulations import GeneratedTrace
from maat.client import calls
from maat.client.calls import Call, RawBody
from maat.client.errors import FieldProblem

AUTOSCALING, TUNING = "autoscaling", "tuning"
KINDS = ((AUTOSCALING, "Auto-scaling"), (TUNING, "Hyper-parameter search"))
TRAINED = (
    ("model", "One model"),
    ("generated", "Generated workload"),
    ("uploaded", "Uploaded trace"),
)
CATALOG = "catalog"  # no uploaded profiles
OF_TRACE = ("family", "jobs", "hours", "xxl_share", "seed")
TRACE_NUMBERS = OF_TRACE[1:]
EMPTY = "Fill this in."
SIZES_WRONG = "Give whole numbers of nodes from 1 up, with commas between; or leave it empty."
MOST_DIGITS = 6  # of a number of nodes


@dataclass(frozen=True)
class ExperimentForm:
    """One form.

    Attributes:
        prefix: Of every id; its kind.
        body_type: What it sends.
        fields: What has a value, by its id without the prefix.
        numbers: The fields that are numbers of the body.
        offered: The fields whose choices the service lists.
        unfinished: What the form itself can see to be wrong, by field.
        body: The API's body of its values.
        call: The call that sends a body under an idempotency key.
    """

    prefix: str
    body_type: type[Body]
    fields: Sequence[str]
    numbers: Sequence[str]
    offered: Sequence[str]
    unfinished: Callable[[FormValues], dict[str, str]]
    body: Callable[[FormValues], RawBody]
    call: Callable[[RawBody, str], Call[Any]]

    def place(self, problem: FieldProblem) -> str | None:
        """Return where the form shows a refused field."""
        parts = problem.pointer.split("/")[1:]
        if parts and parts[0] == "fixed_nodes":
            return "fixed_nodes"
        name = "uploaded" if parts[-1:] == ["measurement"] or parts == ["trace"] else parts[-1]
        return name if name in self.fields and name not in ("trained", "family") else None


def wrong_numbers(form: ExperimentForm, values: FormValues) -> dict[str, str]:
    """Return what is wrong with the numbers of the body; one without a default may be empty."""
    fields = form.body_type.model_fields
    return {
        name: wrong
        for name in form.numbers
        if not (fields[name].default is None and values.get(name) in ("", None))
        and (wrong := _wrong_number(form.body_type, name, values.get(name)))
    }


def _wrong_number(body: type[Body], name: str, value: object) -> str:
    if value in ("", None):
        return EMPTY
    return not_a_number(value) or wrong_number(body, name, value)


def missing(values: FormValues, *names: str) -> dict[str, str]:
    return {name: EMPTY for name in names if not values.get(name)}


def autoscaling_unfinished(values: FormValues) -> dict[str, str]:
    wrong = wrong_numbers(FORMS[AUTOSCALING], values) | missing(values, "cluster", "fidelity")
    if sizes_of(values["fixed_nodes"]) is None:
        wrong["fixed_nodes"] = SIZES_WRONG
    match values["trained"]:
        case "model":
            return wrong | missing(values, "model")
        case "uploaded":
            found = {} if values["uploaded"] else {"uploaded": "Choose an uploaded trace."}
            return wrong | found | missing(values, "policy")
    drawn = {
        name: problem
        for name in TRACE_NUMBERS
        if (problem := _wrong_number(GeneratedTrace, name, values.get(name)))
    }
    return wrong | drawn | missing(values, "policy")


def autoscaling_body(values: FormValues) -> RawBody:
    return {
        "name": values["name"] or "",
        "cluster": values["cluster"] or "",
        "fidelity": values["fidelity"],
        **_trained(values),
        **{name: values[name] for name in FORMS[AUTOSCALING].numbers},
        **_without_absent(fixed_nodes=sizes_of(values["fixed_nodes"]) or None),
        **_profiles(values),
    }


def _trained(values: FormValues) -> RawBody:
    if values["trained"] == "model":
        return {"model": values["model"]}
    trace: RawBody = (
        {"kind": "uploaded", "measurement": values["uploaded"] or ""}
        if values["trained"] == "uploaded"
        else {"kind": "generated", **{name: values[name] for name in OF_TRACE}}
    )
    return {"trace": trace, "policy": values["policy"]}


def tuning_unfinished(values: FormValues) -> dict[str, str]:
    return wrong_numbers(FORMS[TUNING], values) | missing(
        values, "model", "cluster", "policy", "fidelity"
    )


def tuning_body(values: FormValues) -> RawBody:
    return {
        "name": values["name"] or "",
        **{name: values[name] for name in ("model", "cluster", "policy", "fidelity")},
        **{name: values[name] for name in FORMS[TUNING].numbers if values[name] not in ("", None)},
        **_profiles(values),
    }


def _profiles(values: FormValues) -> RawBody:
    chosen = values["profiles"]
    return {} if chosen in (None, CATALOG) else {"profiles": chosen}


def _without_absent(**values: object) -> RawBody:
    return {name: value for name, value in values.items() if value is not None}


def sizes_of(text: str | None) -> list[int] | None:
    """Return numbers of nodes with commas between; None if one of them is none."""
    parts = (text or "").replace(",", " ").split()
    if not all(part.isdecimal() and len(part) <= MOST_DIGITS and int(part) for part in parts):
        return None
    return [int(part) for part in parts]


FORMS: Mapping[str, ExperimentForm] = {
    AUTOSCALING: ExperimentForm(
        prefix=AUTOSCALING,
        body_type=AutoscalingBody,
        fields=(
            *("name", "trained", "model", "uploaded", *OF_TRACE),
            *("policy", "cluster", "fixed_nodes"),
            *("upper", "lower", "window", "give_back_below", "profiles", "fidelity"),
        ),
        numbers=("upper", "lower", "window", "give_back_below"),
        offered=("model", "uploaded", "policy", "profiles", "fidelity"),
        unfinished=autoscaling_unfinished,
        body=autoscaling_body,
        call=lambda body, key: calls.start_autoscaling(body, idempotency_key=key),
    ),
    TUNING: ExperimentForm(
        prefix=TUNING,
        body_type=TuningBody,
        fields=(
            *("name", "model", "cluster", "policy", "trials", "at_a_time"),
            *("static_gpus", "static_batch_per_gpu", "work_scale", "seed"),
            *("profiles", "fidelity"),
        ),
        numbers=(
            *("trials", "at_a_time", "static_gpus"),
            *("static_batch_per_gpu", "work_scale", "seed"),
        ),
        offered=("model", "policy", "profiles", "fidelity"),
        unfinished=tuning_unfinished,
        body=tuning_body,
        call=lambda body, key: calls.start_tuning(body, idempotency_key=key),
    ),
}

_CHOICES: Mapping[str, Check] = {
    "kind": among("kind of experiment", (kind for kind, _ in KINDS)),
    "trained": among("kind of work", (name for name, _ in TRAINED)),
    "family": among("family of traces", (name for name, _ in FAMILIES)),
}


def takes_of_address() -> dict[str, Check]:
    """Return what the address takes: the kind, and fields, where `cluster` is called `gpus`."""
    names = dict.fromkeys(name for form in FORMS.values() for name in form.fields)
    fields = ("gpus" if name == "cluster" else name for name in names)
    return {**{name: partial(_check, name) for name in fields}, **_CHOICES}


def _check(name: str, value: str) -> str | None:
    """Return why no form can take a value of this field."""
    wrong = too_long(value)
    if not wrong and name in _numbers() and number_in(value) is None:
        wrong = "Give a number."
    return f"{name.capitalize()}: {quoted(value)} is not taken. {wrong}" if wrong else None


def field_value(name: str, value: str) -> object:
    """Return a value of the address as its field holds it."""
    return number_in(value) if name in _numbers() else value


def _numbers() -> set[str]:
    return {*(name for form in FORMS.values() for name in form.numbers), *TRACE_NUMBERS}
