"""Dialogs: a window over the page that asks or tells one thing."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import ComponentType


def question(prefix: str, title: str, *, keeps: str, does: str) -> dmc.Modal:
    """A dialog that asks before something is deleted; ids begin with `prefix`.

    `PREFIX-ask` is the dialog, `PREFIX-ask-text` its words, `PREFIX-chosen` a store of what was
    chosen; `PREFIX-no` and `PREFIX-yes` are its buttons. `keeps`, `does`: what they say.
    """
    buttons = [
        dmc.Button(keeps, id=f"{prefix}-no", variant="default"),
        dmc.Button(does, id=f"{prefix}-yes", color="red", className="danger"),
    ]
    content = [
        html.P(id=f"{prefix}-ask-text"),
        dmc.Group(buttons, justify="flex-end"),
        dcc.Store(id=f"{prefix}-chosen"),
    ]
    return dialog(f"{prefix}-ask", title, content)


def dialog(
    dialog_id: str, title: str, children: ComponentType, *, size: str | None = None
) -> dmc.Modal:
    """A dialog that `opened` opens; a screen reader hears its close button as "Close"."""
    closes: Any = {"aria-label": "Close"}
    return dmc.Modal(
        children,
        id=dialog_id,
        title=title,
        closeButtonProps=closes,
        transitionProps={"duration": 0},
        size=size,
    )
