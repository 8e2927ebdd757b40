"""The common part of the forms of simulations and sweeps: name, cluster, seeds and fidelity.

It also holds the callback of their button. It knows neither form's own fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeAlias, TypeVar
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, no_update

from frontend.api import Api, Failure
from frontend.callbacks import Changes, answer
from frontend.components import conditions
from frontend.components.parameter_fields import Typed, errors_of, every, parameter_states
from frontend.forms import FormValues, errors_by_field
from maat.api.simulations import SimulationOut
from maat.api.sweeps import SweepDetail
from maat.client.calls import Call, RawBody
from maat.client.errors import FieldProblem

Begun = TypeVar("Begun", SimulationOut, SweepDetail)
Texts: TypeAlias = Sequence[str] | None

CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"
SEEDS_LABEL = "Seeds"
SEEDS_EXAMPLE = "0, 1, 2"
SEEDS_WRONG = "Give whole numbers from 0 up, each once, with commas between."


def name_field(prefix: str, value: str) -> dmc.TextInput:
    return dmc.TextInput(id=f"{prefix}-name", label="Name", value=value)


def cluster_field(prefix: str) -> dmc.TextInput:
    return dmc.TextInput(
        id=f"{prefix}-cluster", label="Cluster (GPU type = nodes × GPUs)", value=CLUSTER
    )


def seeds_field(prefix: str, value: str, *, says: str | None = None) -> dmc.TextInput:
    return dmc.TextInput(
        id=f"{prefix}-seeds",
        label=SEEDS_LABEL,
        description=says,
        value=value,
        placeholder=SEEDS_EXAMPLE,
    )


@dataclass(frozen=True)
class LaboratoryForm(Generic[Begun]):
    """How one form is read and sent.

    Attributes:
        prefix: Of every id.
        fields: What has a value.
        errors: What can show an error.
        unfinished: What the form itself can see to be wrong, by field; from its values, the texts
            of files, and the chosen cluster.
        body: The API's body, from the same.
        call: The call that sends a body under an idempotency key.
        place: The form's name for a refused field of a body.
        address: Of the pages of what the form begins.
        empty_name: What to say of an empty name.
    """

    prefix: str
    fields: Sequence[str]
    errors: Sequence[str]
    unfinished: Callable[[FormValues, Texts, str | None], dict[str, str]]
    body: Callable[[FormValues, Texts, str | None], RawBody]
    call: Callable[[RawBody, str], Call[Begun]]
    place: Callable[[FieldProblem, RawBody], str | None]
    address: str
    empty_name: str


def register_run(app: Dash, api: Api, form: LaboratoryForm[Begun]) -> None:
    """Register the callback of the form's button."""
    prefix = form.prefix
    values = {name: State(f"{prefix}-{name}", "value") for name in form.fields}
    answer(
        app,
        partial(run, api, form),
        output={
            "errors": {name: Output(f"{prefix}-{name}", "error") for name in form.errors},
            "parameters": Output(every(prefix), "error"),
            "csv": Output(f"{prefix}-csv-error", "children", allow_duplicate=True),
            "reservations": Output(
                f"{prefix}-reservations-error", "children", allow_duplicate=True
            ),
            "open": Output(f"{prefix}-conditions", "open"),
            "open_parameters": Output(f"{prefix}-parameters-box", "open"),
            "problem": Output(f"{prefix}-problem", "children"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "key": Output(f"{prefix}-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input(f"{prefix}-button", "n_clicks")},
        state={
            "values": {**values, **conditions.condition_states(prefix)},
            "parameters": parameter_states(prefix),
            "texts": State(f"{prefix}-text", "data"),
            "cluster_id": State("cluster-select", "value"),
            "key": State(f"{prefix}-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output(f"{prefix}-button", "loading"), True, False)],
    )


async def run(
    api: Api,
    form: LaboratoryForm[Begun],
    *,
    clicks: int | None,
    values: FormValues,
    parameters: Typed,
    texts: list[str] | None,
    cluster_id: str | None,
    key: str,
) -> Changes:
    """Begin what the form asks for and go to its page, or show what is wrong beside its field."""
    if not clicks:
        return {"parameters": [no_update] * len(parameters["ids"])}
    filled: FormValues = {**values, "parameters": parameters}
    wrong = form.unfinished(filled, texts, cluster_id)
    if wrong:
        return _beside(form, parameters, wrong)
    body = form.body(filled, texts, cluster_id)
    try:
        async with api.visitor() as maat:
            begun = await maat.send(form.call(body, key))
    except Failure as error:
        beside, problem = errors_by_field(
            error, lambda found: form.place(found, body), empty_name=form.empty_name
        )
        refused = _beside(form, parameters, beside)
        return {**refused, "problem": problem, "key": uuid4().hex}
    return {**_beside(form, parameters, {}), "go": f"{form.address}/{begun['id']}"}


def _beside(
    form: LaboratoryForm[Begun], parameters: Typed, wrong: Mapping[str, str]
) -> dict[str, object]:
    """Return what stands beside the fields; folded parts with something wrong are unfolded."""
    of_parameters = errors_of(parameters, wrong)
    changes: dict[str, object] = {
        "errors": {name: wrong.get(name, "") for name in form.errors},
        "parameters": of_parameters,
        "csv": wrong.get("csv", ""),
        "reservations": wrong.get("reservations", ""),
        "problem": None,
    }
    if {"reservations", *conditions.ERRORS} & wrong.keys():
        changes["open"] = True
    if any(of_parameters):
        changes["open_parameters"] = True
    return changes
