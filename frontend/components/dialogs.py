"""Dialogs: a window over the page that asks or tells one thing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import ComponentType

from frontend.attributes import Props
from frontend.callbacks import (
    NOTHING,
    NOTICES,
    Changes,
    Function,
    Sources,
    answer,
    is_press_of,
)


def question(
    prefix: str, title: str, *, keeps: str, does: str, is_harmful: bool = True
) -> dmc.Modal:
    """A dialog that asks before something is deleted or costs much; ids begin with `prefix`.

    `PREFIX-ask` is the dialog, `PREFIX-ask-text` its words, `PREFIX-chosen` a store of what was
    chosen; `PREFIX-no` and `PREFIX-yes` are its buttons. `keeps`, `does`: what they say.
    `is_harmful`: whether something is lost then.
    """
    red: Props = {"color": "red", "className": "danger"} if is_harmful else {}
    first: Props = {"data-autofocus": True}  # the answer that changes nothing
    buttons = [
        dmc.Button(keeps, id=f"{prefix}-no", variant="default", **first),
        dmc.Button(does, id=f"{prefix}-yes", **red),
    ]
    content = [
        html.P(id=f"{prefix}-ask-text"),
        dmc.Group(buttons, justify="flex-end"),
        dcc.Store(id=f"{prefix}-chosen"),
    ]
    return dialog(f"{prefix}-ask", title, content, size="md")


def register_question(
    app: Dash,
    prefix: str,
    *,
    pressed: str,
    ask: Callable[[Any], str | None],
    act: Function,
    changed: Output,
    state: Sources | None = None,
) -> None:
    """Let a press open `question`, and carry out what its answer confirms.

    Args:
        pressed: The store that a button of a row fills: what was pressed.
        ask: Says of a press what to ask; None if that button asks nothing.
        act: Called with `chosen`, the press, and `state`. It names `notices`, and `changed` once
            that is done.
        changed: What the lists of the page are redrawn by.
    """

    answer(
        app,
        partial(_ask, ask),
        output={
            "asks": Output(f"{prefix}-ask", "opened"),
            "words": Output(f"{prefix}-ask-text", "children"),
            "chosen": Output(f"{prefix}-chosen", "data"),
        },
        inputs={"pressed": Input(pressed, "data")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(_close, prefix, act),
        output={
            "asks": Output(f"{prefix}-ask", "opened", allow_duplicate=True),
            "changed": changed,
            "notices": NOTICES,
        },
        inputs={
            "_yes": Input(f"{prefix}-yes", "n_clicks"),
            "_no": Input(f"{prefix}-no", "n_clicks"),
        },
        state={"chosen": State(f"{prefix}-chosen", "data"), **(state or {})},
        prevent_initial_call=True,
        running=[(Output(f"{prefix}-yes", "loading"), True, False)],
    )


async def _ask(ask: Callable[[Any], str | None], *, pressed: Any) -> Changes:
    words = ask(pressed) if pressed else None
    return NOTHING if words is None else {"asks": True, "words": words, "chosen": pressed}


async def _close(
    prefix: str, act: Function, *, _yes: int | None, _no: int | None, chosen: Any, **more: Any
) -> Changes:
    """Close the dialog, and act if that was confirmed."""
    if not is_press_of(f"{prefix}-yes") or not chosen:
        return {"asks": False}
    return {"asks": False, **await act(chosen=chosen, **more)}


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
