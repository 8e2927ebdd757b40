"""Buttons that reproduce tables and figures of a paper, and cancel that; how far it is.

The list of the papers and the page of an item have them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NotRequired, TypedDict
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import aria, click_target
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.dialogs import question, register_question
from frontend.components.notices import notice, refusal
from frontend.components.states import FINAL_STATES
from frontend.formatting import plural
from frontend.papers import (
    QUICK,
    WHOLE,
    cost_of,
    item_name,
    own_words,
    paper_name,
    runs_of,
    size_of,
    whole_words,
)
from maat.api.papers import PaperItemOut, ReproductionOut
from maat.client import AsyncClient, calls
from maat.client.calls import RawBody

MAY_RUN = "simulations:run"
_PRESSED, _CANCELLED = "papers-pressed", "papers-cancelled"
_WHOLE = "papers-whole"
MOST_LISTED = 20
GOES_ALREADY = "It waits or runs already"


class Pressed(TypedDict):
    """A press of a button that reproduces. `item` empty: all of the paper; `size`: of its runs.

    `runs`: how many, in words; empty if quick. `own`: the uploads that stand in, as JSON by kind.
    """

    at: int
    paper: str
    item: str
    name: str
    size: str
    cost: str
    runs: NotRequired[str]
    own: NotRequired[str]


class Cancelled(TypedDict):
    """A press of a button that cancels."""

    at: int
    operation: str


def reproduce_parts() -> list[Component]:
    """Return what a page with these buttons has besides: stores, and the question before whole."""
    return [
        question(
            _WHOLE, "Reproduce it whole?", keeps="Not now", does="Reproduce", is_harmful=False
        ),
        *(dcc.Store(id=store) for store in (_PRESSED, _CANCELLED)),
        dcc.Store(id="papers-changed", data=0),
    ]


def changed() -> Input:
    """Return what pages with these buttons are drawn again by."""
    return Input("papers-changed", "data")


def reproduce_buttons(
    paper: str,
    items: Sequence[PaperItemOut],
    *,
    is_whole_paper: bool = False,
    most_whole: int,
    is_prominent: bool = False,
    own: Mapping[str, str] | None = None,
) -> list[Component]:
    """Return the buttons that reproduce an item, or all items that can be made of a paper.

    Quick begins at once; whole asks first. `most_whole`: how many runs the service plays for a
    whole one, and 0: it makes none; of more the button says why it begins nothing. `own`: the
    uploads that stand in for published data, by kind.
    """
    of_paper = paper_name(paper)
    key = "" if is_whole_paper else items[0]["key"]
    name = f"all of {of_paper}" if is_whole_paper else f"{item_name(key)} of {of_paper}"
    looks = ("filled", "default") if is_prominent else ("default", "subtle")
    words = ("Reproduce all" if is_whole_paper else "Reproduce", "Whole …")
    runs = {QUICK: "", WHOLE: plural(runs_of(items), "run")}
    refused = {QUICK: False, WHOLE: runs_of(items) > most_whole}
    return [
        dmc.Button(
            text,
            variant=look,
            size="xs" if is_prominent else "compact-sm",
            disabled=refused[size],
            **click_target(
                _PRESSED,
                paper=paper,
                item=key,
                name=name,
                size=size,
                cost=cost_of(items, size),
                runs=runs[size],
                own=json.dumps(own or {}),
            ),
            **aria(
                f"Reproduce {name}, " + (whole_words(items, most_whole) if refused[size] else size)
            ),
        )
        for size, text, look in zip((QUICK, WHOLE), words, looks, strict=True)
        if size == QUICK or most_whole > 0
    ]


def cancel_button(operation_id: str, name: str) -> dmc.Button:
    return dmc.Button(
        "Cancel",
        variant="default",
        size="compact-sm",
        **click_target(_CANCELLED, operation=operation_id),
        **aria(f"Cancel {name}"),
    )


def progress_bar(done: int, total: int) -> Component:
    """Return how many runs of all have ended; before they are known, an empty bar."""
    bar: Component = dmc.Progress(
        value=100 * done / total if total else 0, size="sm", mt=6, **aria("Progress")
    )
    return bar


def runs_words(state: str, done: int, total: int) -> str:
    """`3 of 5 runs`; how many it has is not known at first."""
    if total:
        return f"{done} of {total} runs"
    return "waits for a worker" if state == "queued" else "finding its runs"


def begun_words(pressed: Pressed) -> str:
    name = f"{_capital(pressed['name'])}{_of_own(pressed)}"
    return f"{name}, {pressed['size']}: {pressed['cost']}."


def question_of(pressed: Pressed) -> str | None:
    """Return what to ask before a whole reproduction; a quick one begins at once."""
    if pressed["size"] != WHOLE:
        return None
    what = "all traces and seeds of the paper" if not _own(pressed) else "all seeds of the paper"
    return (
        f"{_capital(pressed['name'])}{_of_own(pressed)} with {what}: "
        f"{pressed.get('runs', '')}, {pressed['cost']}. "
        "What was run before is not run again, and cancelling keeps what was made."
    )


def _own(pressed: Pressed) -> dict[str, str]:
    """Return the uploads that stand in, by kind."""
    own: dict[str, str] = json.loads(pressed.get("own") or "{}")
    return own


def _of_own(pressed: Pressed) -> str:
    names = _own(pressed).values()
    return f" of {' and '.join(names)}" if names else ""


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def register_reproduce(app: Dash, api: Api) -> None:
    """Register the callbacks of the buttons, once for all pages that have them."""
    register_question(
        app,
        _WHOLE,
        pressed=_PRESSED,
        ask=question_of,
        act=partial(begin_whole, api),
        changed=Output("papers-changed", "data", allow_duplicate=True),
    )
    outputs = {
        "changed": Output("papers-changed", "data", allow_duplicate=True),
        "notices": NOTICES,
    }
    for function, store in ((begin_quick, _PRESSED), (cancel, _CANCELLED)):
        answer(
            app,
            partial(function, api),
            output=outputs,
            inputs={"pressed": Input(store, "data")},
            prevent_initial_call=True,
        )


async def begin_quick(api: Api, *, pressed: Pressed | None) -> Changes:
    """Begin a quick reproduction; a whole one is asked for first."""
    return await _begin(api, pressed) if pressed and pressed["size"] == QUICK else NOTHING


async def begin_whole(api: Api, *, chosen: Pressed) -> Changes:
    return await _begin(api, chosen)


async def _begin(api: Api, pressed: Pressed) -> Changes:
    body: RawBody = {"paper": pressed["paper"], "quick": pressed["size"] == QUICK}
    body.update(_own(pressed))
    if pressed["item"]:
        body["items"] = [pressed["item"]]
    try:
        async with api.visitor() as maat:
            if any(_is_of(each, pressed) for each in await _going(maat)):
                name = _capital(pressed["name"])
                words = f"{name}, {pressed['size']}: cancel it first to begin again."
                return {"changed": pressed["at"], "notices": notice(GOES_ALREADY, words)}
            await maat.send(calls.start_reproduction(body, idempotency_key=uuid4().hex))
    except Failure as error:
        return {"notices": refusal(error)}
    return {"changed": pressed["at"], "notices": notice("Begun", begun_words(pressed))}


async def _going(maat: AsyncClient) -> list[ReproductionOut]:
    """Return the tenant's newest reproductions that wait or run."""
    newest = await maat.send(calls.reproductions(limit=MOST_LISTED))
    return [each for each in newest["items"] if each["state"] not in FINAL_STATES]


def _is_of(going: ReproductionOut, pressed: Pressed) -> bool:
    """Return whether it makes what the button would: one item, or all of a paper."""
    items = [item["key"] for item in going["items"]]
    is_same_work = items == [pressed["item"]] if pressed["item"] else len(items) > 1
    size = size_of(quick=going["quick"])
    own = own_words(going["measurements"]).removeprefix("of ")
    is_of_same = own == " and ".join(name for _, name in sorted(_own(pressed).items()))
    is_as_large = going["paper"] == pressed["paper"] and size == pressed["size"]
    return is_as_large and is_same_work and is_of_same


async def cancel(api: Api, *, pressed: Cancelled | None) -> Changes:
    if not pressed:
        return NOTHING
    try:
        async with api.visitor() as maat:
            await maat.send(calls.cancel_operation(pressed["operation"]))
    except Failure as error:
        return {"notices": refusal(error)}
    return {"changed": pressed["at"], "notices": notice("Cancelling", "What was made stays.")}


def cancelling() -> html.Span:
    return html.Span("cancelling", className="caption")
