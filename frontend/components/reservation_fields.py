"""The fields of a reservation, and reservations in words, for the laboratory and live clusters."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.attributes import Props
from frontend.callbacks import Changes, answer, as_inputs
from frontend.formatting import duration
from frontend.forms import FormValues, Told, not_a_number, still_wrong

FIELDS = ("type", "gpus", "for", "holder", "from", "until")


def reservation_fields(prefix: str, *, job_placeholder: str) -> list[Component]:
    """Two rows of fields. Hours count from the beginning: of the trace, or from now."""
    first: Props = {"data-autofocus": True}  # where it is in a dialog
    holder = dmc.Select(
        id=f"{prefix}-reserve-for",
        label="For",
        data=[{"value": "tenant", "label": "Tenant"}, {"value": "job", "label": "Job"}],
        value="tenant",
        allowDeselect=False,
    )
    return [
        html.Div(
            [
                dmc.NumberInput(
                    id=f"{prefix}-reserve-gpus",
                    label="GPUs",
                    value=4,
                    min=1,
                    allowDecimal=False,
                    clampBehavior="none",
                    **first,
                ),
                dmc.TextInput(id=f"{prefix}-reserve-type", label="GPU type", placeholder="a100"),
                holder,
                dmc.TextInput(
                    id=f"{prefix}-reserve-holder", label="Whose", placeholder=job_placeholder
                ),
            ],
            className="form-row wide",
        ),
        html.Div(
            [
                dmc.NumberInput(
                    id=f"{prefix}-reserve-from",
                    label="From (h)",
                    value=0,
                    min=0,
                    step=1,
                    clampBehavior="none",
                ),
                dmc.NumberInput(
                    id=f"{prefix}-reserve-until",
                    label="Until (h)",
                    placeholder="no end",
                    value="",
                    min=0,
                    step=1,
                    clampBehavior="none",
                ),
                dmc.Button(
                    "Reserve", id=f"{prefix}-reserve-add", n_clicks=0, variant="default", mt=22
                ),
            ],
            className="form-row narrow",
        ),
        dcc.Store(id=f"{prefix}-reserve-told"),
    ]


def reservation_states(prefix: str) -> dict[str, State]:
    return {name: State(f"{prefix}-reserve-{name}", "value") for name in FIELDS}


def register_reservation_errors(app: Dash, prefix: str) -> None:
    """Register what tells the errors beside the fields, from what is in `{prefix}-reserve-told`."""
    answer(
        app,
        tell,
        output={name: Output(f"{prefix}-reserve-{name}", "error") for name in FIELDS},
        inputs={
            "told": Input(f"{prefix}-reserve-told", "data"),
            "values": as_inputs(reservation_states(prefix)),
        },
        prevent_initial_call=True,
    )


async def tell(*, told: Told | None, values: FormValues) -> Changes:
    """Say what is wrong from the first press on, for as long as it is."""
    wrong = still_wrong(values, told, unfinished_reservation(values))
    return {name: wrong.get(name, "") for name in FIELDS}


def unfinished_reservation(values: FormValues) -> dict[str, str]:
    """What the fields themselves can see to be missing, by field."""
    wrong: dict[str, str] = {}
    if not (values["type"] or "").strip():
        wrong["type"] = "Name the GPU type that is reserved."
    if not isinstance(values["gpus"], int | float) or values["gpus"] < 1:
        wrong["gpus"] = "Give how many GPUs are reserved, from 1 up."
    if not (values["holder"] or "").strip():
        wrong["holder"] = f"Name the {values['for']} that the GPUs are reserved for."
    if (hours_of(values["from"]) or 0.0) < 0:
        wrong["from"] = "Give the hours until it begins, from 0 up."
    wrong |= {name: words for name in ("from", "until") if (words := not_a_number(values[name]))}
    until = hours_of(values["until"])
    if until is not None and until <= (hours_of(values["from"]) or 0.0):
        wrong["until"] = "It must end after it begins."
    return wrong


def hours_of(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def held_for(start_seconds: float, end_seconds: float | None) -> str:
    """`from 2 h until 10 h`, `always`."""
    if end_seconds is None:
        return f"from {duration(start_seconds)} on" if start_seconds else "always"
    return (
        f"from {duration(start_seconds)} until {duration(end_seconds)}"
        if start_seconds
        else f"until {duration(end_seconds)}"
    )
