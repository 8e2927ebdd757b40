"""Dialogs: a window over the page that asks or tells one thing."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash.development.base_component import ComponentType


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
