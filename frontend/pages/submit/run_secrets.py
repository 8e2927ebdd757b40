"""The rows of a command's secrets: names, and values that are typed unseen and kept nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, Patch, State, html

from frontend.attributes import aria
from frontend.callbacks import NOTHING, Changes, answer
from maat.api.commands import CommandBody

ROWS = "submit-run-secrets"
_NAME, _VALUE = "submit-run-secret-name", "submit-run-secret-value"


def secret_fields() -> html.Div:
    """Return one empty row, and a button for more."""
    field = CommandBody.model_fields["secret_env"]
    return html.Div(
        [
            html.Div(field.title, className="mantine-InputWrapper-label"),
            html.Div(field.description, className="hint"),
            html.Div([secret_row()], id=ROWS, className="form-stack"),
            html.Div(id=f"{ROWS}-error", className="form-error", role="alert"),
            dmc.Button(
                "Add a secret", id=f"{ROWS}-add", n_clicks=0, variant="default", size="compact-xs"
            ),
        ],
        className="secret-fields",
        role="group",
        **aria(str(field.title)),
    )


def secret_row(name: str = "", value: str = "") -> html.Div:
    row = uuid4().hex
    return html.Div(
        [
            dmc.TextInput(
                id={"type": _NAME, "row": row},
                placeholder="WANDB_API_KEY",
                value=name,
                debounce=300,
                **aria("Name of a secret"),
            ),
            dmc.PasswordInput(
                id={"type": _VALUE, "row": row},
                placeholder="its value",
                value=value,
                debounce=300,
                autoComplete="new-password",
                **aria(f"Value of {name}" if name else "Value of the secret"),
            ),
        ],
        className="form-row wide",
    )


def secret_rows(secrets: Mapping[str, str | None]) -> list[html.Div]:
    """Return a row for each name, with its value if it has one; without a name, one empty row."""
    return [secret_row(name, value or "") for name, value in secrets.items()] or [secret_row()]


def secret_sources(kind: type[Input] | type[State]) -> dict[str, Any]:
    """Return what `secrets_of` takes."""
    return {
        "names": kind({"type": _NAME, "row": ALL}, "value"),
        "values": kind({"type": _VALUE, "row": ALL}, "value"),
    }


def register_secrets(app: Dash) -> None:
    answer(
        app,
        add,
        output={"rows": Output(ROWS, "children", allow_duplicate=True)},
        inputs={"clicks": Input(f"{ROWS}-add", "n_clicks")},
        prevent_initial_call=True,
    )


async def add(*, clicks: int | None) -> Changes:
    if not clicks:
        return NOTHING
    rows = Patch()
    rows.append(secret_row())
    return {"rows": rows}
