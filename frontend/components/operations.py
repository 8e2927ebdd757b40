"""How far long work is, and its cancelling: on the page of each piece of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypedDict, TypeVar

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import aria, click_target
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import card, link_button
from frontend.components.notices import notice, refusal
from frontend.components.states import FINAL_STATES
from frontend.formatting import number
from maat.api.experiments import ExperimentDetail
from maat.api.operations import OperationOut
from maat.api.simulation_answers import SimulationOut
from maat.api.sweeps import SweepDetail
from maat.client import calls
from maat.client.calls import Call

Work = TypeVar("Work", SimulationOut, SweepDetail, ExperimentDetail)


class Pressed(TypedDict):
    """A press of a button of `actions`, and when."""

    at: int


def progress(operation: OperationOut, *, failed: str) -> Component | None:
    """A progress bar until the operation ends; then its error, if it failed, else nothing.

    `failed`: the title of an error to which the service gave none.
    """
    if operation["state"] == "failed":
        problem = operation["error"] or {}
        detail = str(problem.get("detail") or operation["message"] or "No reason was kept.")
        alert: Component = dmc.Alert(
            detail, title=str(problem.get("title") or failed), color="red", mb=12
        )
        return alert
    if operation["state"] in FINAL_STATES:
        return None
    done, total = operation["done"], operation["total"]
    words = (
        f"{number(done)} of {number(total)} {operation['unit']}" if total else "waits for a worker"
    )
    line = [
        html.Span(operation["message"] or operation["state"]),
        html.Span(words, className="caption"),
    ]
    bar = dmc.Progress(
        value=100 * done / total if total else 0, size="sm", mt=6, **aria("Progress")
    )
    return card(None, [dmc.Group(line, justify="space-between"), bar], mb=12)


_NOT_AGAIN = html.Span(
    "The form cannot be filled in from here: the trace came from a file or an upload, or the form "
    "offers no such runs. Choose them there again.",
    className="caption",
)


def actions(
    prefix: str, operation: OperationOut, again: str, href: str, *, same: str | None = None
) -> Component:
    """Cancel while it runs, then the way to the next one. `same`: of a form that asks for it."""
    if operation["state"] in FINAL_STATES:
        way = link_button("Change and run again", same) if same else _NOT_AGAIN
        return html.Div([way, link_button(again, href)], className="actions")
    if operation["cancel_requested"]:
        return html.Span("cancelling", className="caption")
    button: Component = dmc.Button(
        "Cancel",
        id=f"{prefix}-cancel",
        variant="default",
        size="xs",
        **click_target(f"{prefix}-cancelled"),
    )
    return button


def cancel_stores(prefix: str) -> list[dcc.Store]:
    """Stores of the page's layout: a press of the button of `actions`, and its acceptance."""
    return [dcc.Store(id=f"{prefix}-cancelled"), dcc.Store(id=f"{prefix}-cancelling")]


def register_cancel(
    app: Dash, api: Api, prefix: str, find: Callable[[str], Call[Work]], *, stays: str
) -> None:
    """Register the callback of the button of `actions`.

    What draws the button has `{prefix}-cancelling` among its inputs, so that it is drawn again.

    Args:
        find: The call for the work that has the operation.
        stays: What to say of that which the cancelling leaves.
    """
    answer(
        app,
        partial(cancel, api, find, stays),
        output={"cancelling": Output(f"{prefix}-cancelling", "data"), "notices": NOTICES},
        inputs={"pressed": Input(f"{prefix}-cancelled", "data")},
        state={"found_id": State(f"{prefix}-id", "data")},
        prevent_initial_call=True,
    )


async def cancel(
    api: Api,
    find: Callable[[str], Call[Work]],
    stays: str,
    *,
    pressed: Pressed | None,
    found_id: str,
) -> Changes:
    if not pressed:
        return NOTHING
    try:
        async with api.visitor() as maat:
            found = await maat.send(find(found_id))
            await maat.send(calls.cancel_operation(found["operation_id"]))
    except Failure as error:
        return {"notices": refusal(error)}
    return {"cancelling": pressed["at"], "notices": notice("Cancelling", stays)}
