"""What the forms of simulations and of sweeps share: name, cluster, seeds and fidelity, and what their button does. Knows neither's own fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, no_update

from frontend.api import Api, Failure
from frontend.components import conditions
from frontend.components.parameter_fields import errors_of, every, parameter_states
from frontend.forms import spread
from maat.client.calls import Call
from maat.client.errors import FieldProblem

CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"
SEEDS_LABEL = "Seeds"
SEEDS_EXAMPLE = "0, 1, 2"
SEEDS_WRONG = "Give whole numbers from 0 up, each once, with commas between."

Form = Mapping[str, Any]


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
class LaboratoryForm:
    """How one form is read and sent. `fields`: what has a value; `errors`: what can show one. `call`: sends the body under a key.

    `unfinished`, `body`: of the form, the texts of files, and the chosen cluster. `place`: the form's name for a refused field.
    """

    prefix: str
    fields: Sequence[str]
    errors: Sequence[str]
    unfinished: Callable[[Form, Sequence[str] | None, str | None], dict[str, str]]
    body: Callable[[Form, Sequence[str] | None, str | None], Any]
    call: Callable[[Any, str], Call[Any]]
    place: Callable[[FieldProblem, Any], str | None]
    address: str
    empty_name: str


def register_run(app: Dash, api: Api, form: LaboratoryForm) -> None:
    """The callback of the form's button: what is wrong beside its field, or on to what was begun."""
    prefix = form.prefix

    @app.callback(
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
            "values": {name: State(f"{prefix}-{name}", "value") for name in form.fields}
            | conditions.condition_states(prefix),
            "parameters": parameter_states(prefix),
            "texts": State(f"{prefix}-text", "data"),
            "cluster_id": State("cluster-select", "value"),
            "key": State(f"{prefix}-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output(f"{prefix}-button", "loading"), True, False)],
    )
    async def run(
        clicks: int | None,
        values: dict[str, Any],
        parameters: dict[str, Any],
        texts: list[str] | None,
        cluster_id: str | None,
        key: str,
    ) -> dict[str, Any]:
        if not clicks:
            return _untouched(form.errors, len(parameters["ids"]))
        values = values | {"parameters": parameters}
        wrong = form.unfinished(values, texts, cluster_id)
        if wrong:
            return _answered(form, values, wrong)
        body = form.body(values, texts, cluster_id)
        try:
            async with api.visitor() as maat:
                begun = await maat.send(form.call(body, key))
        except Failure as error:
            beside, problem = spread(
                error, lambda found: form.place(found, body), empty_name=form.empty_name
            )
            return _answered(form, values, beside, problem=problem, key=uuid4().hex)
        return _answered(form, values, {}, go=f"{form.address}/{begun['id']}")


def _untouched(errors: Sequence[str], parameters: int) -> dict[str, Any]:
    """Nothing happened. `parameters`: how many fields there are of them."""
    rest = ("csv", "reservations", "open", "open_parameters", "problem", "go", "key")
    return {
        "errors": dict.fromkeys(errors, no_update),
        "parameters": [no_update] * parameters,
        **dict.fromkeys(rest, no_update),
    }


def _answered(
    form: LaboratoryForm,
    values: Form,
    beside: Mapping[str, str],
    *,
    problem: Any = None,
    go: Any = no_update,
    key: Any = no_update,
) -> dict[str, Any]:
    """What was refused beside its fields, unfolding them where they are folded away; or where to go."""
    folded = {"reservations", *conditions.ERRORS} & beside.keys()
    of_parameters = errors_of(values["parameters"], beside)
    return {
        "errors": {name: beside.get(name, "") for name in form.errors},
        "parameters": of_parameters,
        "csv": beside.get("csv", ""),
        "reservations": beside.get("reservations", ""),
        "open": True if folded else no_update,
        "open_parameters": True if any(of_parameters) else no_update,
        "problem": problem,
        "go": go,
        "key": key,
    }
