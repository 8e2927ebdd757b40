"""Attributes of elements: names for readers of the screen, marks for scripts, hidden or not."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

Props: TypeAlias = dict[str, Any]
"""Attributes of a component that its class does not name."""


def aria(label: str) -> Props:
    """The name of a control that shows none."""
    return {"aria-label": label}


def described_by(element_id: str) -> Props:
    """The element that says more of a control."""
    return {"aria-describedby": element_id}


HIDDEN, SHOWN = {"display": "none"}, {"display": ""}
"""Styles of a part that is not shown now, and of one that is shown as its class says."""

UNHEARD: Props = {"aria-hidden": "true"}
"""Makes a screen reader pass over a part that only shows."""


def submits(button_id: str) -> Props:
    """Makes a box of fields a form: Enter in one of them presses this button."""
    return {"data-submit": button_id}


READS: Props = {"data-reads": ""}
"""Makes a press of a button of a form wait until the form knows what was typed just before."""


def click_target(store_id: str, **what: str) -> Props:
    """Makes a button put `what` it stands for, and when, into a store of its page.

    For buttons in a part that is drawn again: a drawn-again button has lost its n_clicks, and with
    them every press whose callback has not begun.
    """
    return {"data-press": store_id, "data-what": json.dumps(what)}
