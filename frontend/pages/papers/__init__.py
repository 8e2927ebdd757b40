"""The papers: their tables and figures, what can be made now, and what was made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from dash import Dash, Input, Output, State

from frontend.addresses import add_page, among, anything
from frontend.api import Api
from frontend.callbacks import Changes, answer
from frontend.components.cards import error_state
from frontend.components.own_uploads import (
    LABELS,
    chosen_uploads,
    register_own_uploads,
    uploads_in,
)
from frontend.components.reproduce import MAY_RUN, changed, register_reproduce
from frontend.components.states import FINAL_STATES
from frontend.loading import by_part, loaded, may, nothing
from frontend.pages.papers.items import data_note, sections, tiles
from frontend.pages.papers.layout import layout
from frontend.pages.papers.made import made_table
from frontend.pages.papers.running import running
from frontend.papers import PAPER_NAMES
from maat.api.papers import ReproductionOut
from maat.client import AsyncClient, calls

SHOWN = 20


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/papers",
        name="Papers",
        title="Papers",
        order=9,
        layout=layout,
        takes={"paper": among("paper", PAPER_NAMES), **dict.fromkeys(LABELS, anything)},
    )
    register_reproduce(app, api)
    register_own_uploads(app, api)
    answer(
        app,
        partial(show, api),
        output={
            name: Output(f"papers-{name}", "children")
            for name in ("tiles", "data", "running", "items", "made")
        },
        inputs={"_live": Input("live", "data"), "_changed": changed(), "own": chosen_uploads()},
        state={"chosen": State("papers-chosen", "data")},
    )


async def show(
    api: Api,
    *,
    _live: object,
    _changed: int,
    chosen: str | None,
    own: Mapping[str, str | None],
) -> Changes:
    uploads = uploads_in(own)
    async with api.visitor() as maat:
        papers, found, me = await asyncio.gather(
            loaded(maat.send(calls.papers(**uploads))),
            loaded(maat.send(calls.reproductions(limit=SHOWN))),
            loaded(maat.send(calls.me())),
        )
        live = [each for each in found.answer["items"] if is_live(each)] if found.answer else []
        asked = await _cancel_requests(maat, live)
    runs = may(me, MAY_RUN)
    return by_part(
        {
            "tiles": lambda: tiles(papers()["papers"], chosen),
            "data": lambda: data_note(papers(), may_run=runs),
            "running": lambda: running(live, cancelling=asked, may_run=runs) if found() else None,
            "items": lambda: sections(papers(), chosen, may_run=runs, own=uploads),
            "made": lambda: made_table([e for e in found()["items"] if not is_live(e)]),
        },
        failed={
            "tiles": nothing,
            "data": nothing,
            "running": error_state,
            "items": error_state,
            "made": error_state,
        },
    )


def is_live(reproduction: ReproductionOut) -> bool:
    """Return whether it waits or runs."""
    return reproduction["state"] not in FINAL_STATES


async def _cancel_requests(maat: AsyncClient, live: list[ReproductionOut]) -> set[str]:
    """Return the operations of these reproductions that were asked to stop."""
    asked = await asyncio.gather(
        *(loaded(maat.send(calls.operation(each["operation_id"]))) for each in live)
    )
    answers = (each.answer for each in asked)
    return {each["id"] for each in answers if each and each["cancel_requested"]}
