"""What is asked before a node with jobs is drained, on a page where one press drains others."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, is_press_of
from frontend.components.cards import refused_state
from frontend.components.dialogs import dialog
from frontend.components.node_effect import node_effect
from frontend.components.notices import notice
from maat.api.clusters import NodeEffectOut

DRAINED = "Node drained: its jobs move at the next round"


class Pressed(TypedDict, total=False):
    """A press that named the node."""

    at: int
    node: str


def drain_dialog(prefix: str) -> dmc.Modal:
    buttons = [
        dmc.Button("Leave it", id=f"{prefix}-drain-no", variant="default", n_clicks=0),
        dmc.Button("Drain", id=f"{prefix}-drain-yes", className="danger", color="red", n_clicks=0),
    ]
    content = [
        html.Div(id=f"{prefix}-drain-effect", role="status"),
        html.Div(id=f"{prefix}-drain-problem"),
        dmc.Group(buttons, justify="flex-end"),
    ]
    return dialog(f"{prefix}-drain", "Drain", dmc.Stack(content, gap=12), size="xl")


def drain_outputs(prefix: str) -> dict[str, Output]:
    """What `asked_first` changes."""
    return {
        "drain": Output(f"{prefix}-drain", "opened"),
        "drain_title": Output(f"{prefix}-drain", "title"),
        "drain_effect": Output(f"{prefix}-drain-effect", "children"),
        "drain_problem": Output(f"{prefix}-drain-problem", "children"),
    }


def asked_first(effect: NodeEffectOut, *, prefix: str) -> Changes:
    """Open the dialog: who would move, who holds it up, what it costs."""
    return {
        "drain": True,
        "drain_title": f"Drain {effect['node']}?",
        "drain_effect": node_effect(effect, table_id=f"{prefix}-drain-jobs"),
        "drain_problem": None,
    }


def register_drain(app: Dash, api: Api, prefix: str) -> None:
    """The stores `{prefix}-pressed` and `{prefix}-acted` are the page's own."""
    answer(
        app,
        partial(drain, api, prefix),
        output={
            "opened": Output(f"{prefix}-drain", "opened", allow_duplicate=True),
            "problem": Output(f"{prefix}-drain-problem", "children", allow_duplicate=True),
            "acted": Output(f"{prefix}-acted", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={
            "does": Input(f"{prefix}-drain-yes", "n_clicks"),
            "_leaves": Input(f"{prefix}-drain-no", "n_clicks"),
        },
        state={
            "pressed": State(f"{prefix}-pressed", "data"),
            "cluster_id": State("cluster-select", "value"),
        },
        prevent_initial_call=True,
        running=[(Output(f"{prefix}-drain-yes", "loading"), True, False)],
    )


async def drain(
    api: Api,
    prefix: str,
    *,
    does: int | None,
    _leaves: int | None,
    pressed: Pressed | None,
    cluster_id: str,
) -> Changes:
    """Drain the node that was pressed, or leave it."""
    if is_press_of(f"{prefix}-drain-no"):
        return {"opened": False}
    if not does or not pressed or "node" not in pressed:
        return NOTHING
    try:
        async with api.visitor() as maat:
            await maat.drain_node(cluster_id, pressed["node"])
    except Failure as error:
        return {"problem": refused_state(error)}
    return {"opened": False, "acted": pressed["at"], "notices": notice(DRAINED)}
