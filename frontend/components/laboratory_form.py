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
from dash import Dash, Input, Output, State, dcc

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, Sources, answer, as_inputs
from frontend.components import conditions
from frontend.components.parameter_fields import (
    Typed,
    errors_of,
    every,
    held_by,
    parameter_states,
)
from frontend.forms import FormValues, Told, errors_by_field, still_wrong
from maat.api.simulation_answers import SimulationOut
from maat.api.sweeps import SweepDetail
from maat.client import ApiError
from maat.client.calls import Call, RawBody
from maat.client.errors import FieldProblem

Begun = TypeVar("Begun", SimulationOut, SweepDetail)
Texts: TypeAlias = Sequence[str] | None

CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"
SEEDS_LABEL = "Seeds"
SEEDS_EXAMPLE = "0, 1, 2"
SEEDS_WRONG = "Give whole numbers from 0 up, each once, with commas between."
# No field of the API: the service refuses a body for it, and says what else is wrong in the body.
UNFINISHED: RawBody = {"unfinished": True}


def form_stores(prefix: str) -> list[dcc.Store]:
    """Stores of the page's layout: the key of the next press, and what the last one met."""
    return [
        dcc.Store(id=f"{prefix}-key", data=uuid4().hex),
        dcc.Store(id=f"{prefix}-told"),
    ]


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
        unfinished: What the form itself can see to be wrong, by field; from its values, the
            digests of files, and the chosen cluster.
        body: The API's body; from its values, the texts of files, and the chosen cluster.
        call: The call that sends a body under an idempotency key.
        place: The form's name for a refused field of a body.
        address: Of the pages of what the form begins.
        empty_name: What to say of an empty name.
    """

    prefix: str
    fields: Sequence[str]
    errors: Sequence[str]
    unfinished: Callable[[FormValues, Sequence[str], str | None], dict[str, str]]
    body: Callable[[FormValues, Texts, str | None], RawBody]
    call: Callable[[RawBody, str], Call[Begun]]
    place: Callable[[FieldProblem, RawBody], str | None]
    address: str
    empty_name: str


def register_run(app: Dash, api: Api, form: LaboratoryForm[Begun]) -> None:
    """Register the callbacks of the form's button and of the errors beside its fields."""
    prefix = form.prefix
    state: dict[str, State | Sources] = {
        "values": {
            **{name: State(f"{prefix}-{name}", "value") for name in form.fields},
            **conditions.condition_states(prefix),
        },
        "parameters": parameter_states(prefix),
        "files": State(f"{prefix}-files", "data"),
        "cluster_id": State("cluster-select", "value"),
    }
    answer(
        app,
        partial(run, api, form),
        output={
            "told": Output(f"{prefix}-told", "data"),
            "open": Output(f"{prefix}-conditions", "open"),
            "open_parameters": Output(f"{prefix}-parameters-box", "open"),
            "problem": Output(f"{prefix}-problem", "children"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "key": Output(f"{prefix}-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input(f"{prefix}-button", "n_clicks")},
        state={
            **state,
            "texts": State(f"{prefix}-text", "data"),
            "key": State(f"{prefix}-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output(f"{prefix}-button", "loading"), True, False)],
    )
    answer(
        app,
        partial(tell, form),
        output={
            "errors": {name: Output(f"{prefix}-{name}", "error") for name in form.errors},
            "parameters": Output(every(prefix), "error"),
            "csv": Output(f"{prefix}-csv-refused", "children"),
            "import": Output(f"{prefix}-import-refused", "children"),
            "reservations": Output(f"{prefix}-reservations-refused", "children"),
        },
        inputs={"told": Input(f"{prefix}-told", "data"), **as_inputs(state)},
        prevent_initial_call=True,
    )


async def run(
    api: Api,
    form: LaboratoryForm[Begun],
    *,
    clicks: int | None,
    values: FormValues,
    parameters: Typed,
    files: list[str],
    texts: list[str] | None,
    cluster_id: str | None,
    key: str,
) -> Changes:
    """Begin what the form asks for and go to its page, or show what is wrong beside its field."""
    if not clicks:
        return NOTHING
    filled: FormValues = {**values, "parameters": parameters}
    seen = form.unfinished(filled, files, cluster_id)
    body = form.body(filled, texts, cluster_id) | (UNFINISHED if seen else {})
    try:
        async with api.visitor() as maat:
            begun = await maat.send(form.call(body, key))
    except Failure as error:
        beside, problem = errors_by_field(
            error, lambda found: form.place(found, body), empty_name=form.empty_name
        )
        if seen and isinstance(error, ApiError) and error.errors:
            problem = None
        refused = {field: words for field, words in beside.items() if field not in seen}
        told = Told(values=_value_by_place(values, parameters, files), errors=refused)
        opened = _unfolded(parameters, {**refused, **seen})
        return {**opened, "told": told, "problem": problem, "key": uuid4().hex}
    return {"told": None, "problem": None, "go": f"{form.address}/{begun['id']}"}


async def tell(
    form: LaboratoryForm[Begun],
    *,
    told: Told | None,
    values: FormValues,
    parameters: Typed,
    files: list[str],
    cluster_id: str | None,
) -> Changes:
    """Say what is wrong from the first press on, for as long as it is."""
    seen = form.unfinished({**values, "parameters": parameters}, files, cluster_id)
    wrong = still_wrong(_value_by_place(values, parameters, files), told, seen)
    imports = values["kind"] == "import"
    return {
        "errors": {name: wrong.get(name, "") for name in form.errors},
        "parameters": errors_of(parameters, wrong),
        "csv": wrong.get("csv", ""),
        "import": wrong.get("import") or (wrong.get("csv", "") if imports else ""),
        "reservations": wrong.get("reservations", ""),
    }


def _value_by_place(
    values: FormValues, parameters: Typed, files: Sequence[str]
) -> dict[str, object]:
    """What each place of an error holds."""
    return {**values, **held_by(parameters), "csv": files, "import": files}


def _unfolded(parameters: Typed, wrong: Mapping[str, str]) -> dict[str, object]:
    """Unfold the folded parts with something wrong in them."""
    return {
        part: True
        for part, is_wrong in (
            ("open", {"reservations", *conditions.ERRORS} & wrong.keys()),
            ("open_parameters", any(errors_of(parameters, wrong))),
        )
        if is_wrong
    }
