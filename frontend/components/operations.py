"""How far long work is, and its cancelling: on the page of a simulation and of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.api import Api, Failure
from frontend.components.cards import card, link_button
from frontend.components.notices import notice, refusal
from frontend.components.states import FINAL_STATES
from frontend.formatting import number
from frontend.routing import aria, presses
from maat.client import calls
from maat.client.calls import Call


def progress(operation: Mapping[str, Any], *, failed: str) -> Any:
    """A bar until its end; where it failed, why, below `failed` if the service gave it no title. Nothing where all went well."""
    if operation["state"] == "failed":
        problem = operation["error"] or {}
        detail = str(problem.get("detail") or operation["message"] or "No reason was kept.")
        return dmc.Alert(detail, title=str(problem.get("title") or failed), color="red", mb=12)
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


def actions(prefix: str, operation: Mapping[str, Any], again: str, href: str) -> Any:
    """Cancel while it runs, then the way to the next one."""
    if operation["state"] in FINAL_STATES:
        return link_button(again, href)
    if operation["cancel_requested"]:
        return html.Span("cancelling", className="caption")
    return dmc.Button(
        "Cancel",
        id=f"{prefix}-cancel",
        variant="default",
        size="xs",
        **presses(f"{prefix}-cancelled"),
    )


def cancel_stores(prefix: str) -> list[dcc.Store]:
    """Where the button of `actions` is pressed, and when the service took it; both stand in the page's layout."""
    return [dcc.Store(id=f"{prefix}-cancelled"), dcc.Store(id=f"{prefix}-cancelling")]


def register_cancel(
    app: Dash, api: Api, prefix: str, find: Callable[[str], Call[Any]], *, stays: str
) -> None:
    """The callback of the button of `actions`; what draws it has `{prefix}-cancelling` among its inputs, and draws it again at once.

    `find`: the call for what has the operation.
    """

    @app.callback(
        Output(f"{prefix}-cancelling", "data"),
        Output("notices", "sendNotifications", allow_duplicate=True),
        Input(f"{prefix}-cancelled", "data"),
        State(f"{prefix}-id", "data"),
        prevent_initial_call=True,
    )
    async def cancel(pressed: dict[str, Any] | None, found_id: str) -> tuple[Any, Any]:
        if not pressed:
            return no_update, no_update
        try:
            async with api.visitor() as maat:
                found = await maat.send(find(found_id))
                await maat.send(calls.cancel_operation(found["operation_id"]))
        except Failure as error:
            return no_update, refusal(error)
        return pressed["at"], notice("Cancelling", stays)
