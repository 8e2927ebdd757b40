"""The part of a job's page that is there for a command: what it runs, attempts, logs, step times.

A page asks for the log on every beat, from where it has read to; assets/job_log.js shows it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, aria
from frontend.callbacks import NOTHING, Changes, answer, in_browser
from frontend.components.cards import card, error_state, scrolls, skeleton
from frontend.loading import by_part, loaded
from frontend.pages.job.belief import RUN_OVER, RUNS, belief_card
from frontend.pages.job.run_parts import (
    MOST_SHOWN,
    attempts_table,
    command_facts,
    samples_table,
    state_words,
)
from maat.api.attempts import AttemptOut
from maat.client import ApiError, AsyncClient

FIRST_BYTES = 256 * 1024  # of the end of a long log
MOST_PARTS = 4  # of 64 KiB, on one beat
_BEYOND = 2**53
NO_RUN = "none"  # of the store that says what the page knows of the job's command
SHOWN = {"display": "block"}


class LogAt(TypedDict):
    """How far the browser shows a log: `key` names attempt and rank; `cut`: its end alone."""

    key: str
    cut: bool
    next_offset: int
    ended: bool


def run_cards() -> html.Div:
    """Return the cards, which stay hidden until the job turns out to be a command."""
    choices = dmc.Group(
        [
            dmc.Select(id="job-log-attempt", data=[], w=200, size="xs", **aria("Attempt")),
            dmc.Select(id="job-log-rank", data=[], w=110, size="xs", **aria("Rank")),
            html.A("Download", id="job-log-download", href="", className="button-link default"),
        ],
        gap=8,
    )
    log = html.Pre(
        id="job-log", className="job-log", tabIndex=0, role="region", **aria("What it has written")
    )
    cards = [
        card("Command", html.Div(skeleton(120), id="job-command"), className="span-12"),
        card(
            "Log",
            [html.Div("Nothing is written yet.", id="job-log-note", className="hint"), log],
            aside=choices,
            className="span-12",
        ),
        card(
            "Attempts",
            scrolls("job-attempts", skeleton(80), label="Attempts"),
            className="span-12",
        ),
        belief_card(),
        card(
            "Measured step times",
            scrolls("job-samples", skeleton(80), label="Measured step times"),
            className="span-12",
        ),
    ]
    stores = [dcc.Store(id="job-is-run"), dcc.Store(id="job-log-part"), dcc.Store(id="job-log-at")]
    return html.Div([html.Div(cards, className="columns"), *stores], id="job-run", style=HIDDEN)


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show, api),
        output={
            "shown": Output("job-run", "style"),
            "is_run": Output("job-is-run", "data"),
            "command": Output("job-command", "children"),
            "attempts": Output("job-attempts", "children"),
            "samples": Output("job-samples", "children"),
            "choices": Output("job-log-attempt", "data"),
            "chosen": Output("job-log-attempt", "value"),
        },
        inputs={"_live": Input("live", "data")},
        state={
            "job_id": State("job-id", "data"),
            "is_run": State("job-is-run", "data"),
            "over": State("job-over", "data"),
            "before": State("job-log-attempt", "data"),
            "chosen": State("job-log-attempt", "value"),
        },
    )
    answer(
        app,
        partial(read, api),
        output={
            "part": Output("job-log-part", "data"),
            "ranks": Output("job-log-rank", "data"),
            "rank": Output("job-log-rank", "value"),
            "way": Output("job-log-download", "href"),
            "note": Output("job-log-note", "children"),
        },
        inputs={
            "_live": Input("live", "data"),
            "attempt": Input("job-log-attempt", "value"),
            "rank": Input("job-log-rank", "value"),
        },
        state={
            "job_id": State("job-id", "data"),
            "at": State("job-log-at", "data"),
        },
    )
    in_browser(
        app,
        "appendLog",
        Output("job-log-at", "data"),
        Input("job-log-part", "data"),
        State("job-log-at", "data"),
        prevent_initial_call=True,
    )


async def show(
    api: Api,
    *,
    _live: object,
    job_id: str,
    is_run: str | None,
    over: bool,
    before: list[dict[str, object]],
    chosen: str | None,
) -> Changes:
    """Show what runs, on every beat until the job is over; nothing of a job that is played."""
    if is_run in (NO_RUN, RUN_OVER):
        return NOTHING
    async with api.visitor() as maat:
        command, attempts, samples = await asyncio.gather(
            loaded(maat.job_command(job_id)),
            loaded(maat.attempts(job_id, sort="-number", limit=MOST_SHOWN)),
            loaded(maat.samples(job_id)),
        )
    if isinstance(command.failure, ApiError) and command.failure.status == 404:
        return {"is_run": NO_RUN}
    if command.failure and not attempts.answer:  # it may be no command at all
        return NOTHING
    whole = not any(one.failure for one in (command, attempts, samples))
    parts = by_part(
        {
            "shown": lambda: SHOWN,
            "is_run": lambda: RUN_OVER if over and whole else RUNS,
            "command": lambda: command_facts(command()),
            "attempts": lambda: attempts_table(attempts()),
            "samples": lambda: samples_table(samples()),
            "choices": lambda: [_choice(one) for one in attempts()],
        },
        failed=dict.fromkeys(("command", "attempts", "samples"), error_state),
    )
    newest_before = before[0]["value"] if before else None
    if attempts.answer and chosen in (None, newest_before):
        return {**parts, "chosen": _choice(attempts.answer[0])["value"]}
    return parts


def _choice(one: AttemptOut) -> dict[str, object]:
    """An attempt as it is chosen: its value is its number and its number of ranks."""
    label = f"Attempt {one['number']}: {state_words(one)}"
    return {"value": f"{one['number']}/{one['gpu_count']}", "label": label}


async def read(
    api: Api,
    *,
    _live: object,
    attempt: str | None,
    rank: str | None,
    job_id: str,
    at: LogAt | None,
) -> Changes:
    """Read on in the chosen log, or begin with another."""
    if not attempt:
        return NOTHING
    number, rank_count = (int(part) for part in attempt.split("/"))
    rank_number = min(int(rank or 0), rank_count - 1)
    key = f"{number}/{rank_number}"
    goes_on = at is not None and at["key"] == key
    if goes_on and at is not None and at["ended"] and ctx.triggered_id == "live":
        return NOTHING
    changes: dict[str, object] = {}
    if ctx.triggered_id != "live" or not rank:
        ranks = [{"value": str(each), "label": f"Rank {each}"} for each in range(rank_count)]
        way = f"/api/v1/jobs/{job_id}/attempts/{number}/logs/{rank_number}/download"
        changes = {"ranks": ranks, "rank": str(rank_number), "way": way}
    offset = at["next_offset"] if at is not None and goes_on else None
    try:
        async with api.visitor() as maat:
            part = await _read_on(maat, job_id, number, rank_number, offset)
    except Failure as error:
        is_absent = isinstance(error, ApiError) and error.status == 404
        note = "Nothing is written yet, or it is no longer kept." if is_absent else str(error)
        empty = {"key": key, "reset": True, "text": "", "offset": 0, "next_offset": 0}
        cleared = {} if goes_on else {"part": {**empty, "cut": False, "ended": False}}
        return {**changes, **cleared, "note": note}
    is_cut = part["cut"] if part["reset"] else at is not None and at["cut"]
    note = "This is the end of a long log: Download has more." if is_cut else ""
    if goes_on and not part["text"] and not part["ended"]:
        return {**changes, "note": note}
    return {**changes, "part": {"key": key, **part, "cut": is_cut}, "note": note}


async def _read_on(
    maat: AsyncClient, job_id: str, attempt: int, rank: int, offset: int | None
) -> dict[str, object]:
    """Read from `offset` on; without one, or far behind, the end of the log."""
    end = await maat.log(job_id, attempt, rank, offset=_BEYOND)
    is_behind = offset is not None and end["total_bytes"] - offset > 2 * FIRST_BYTES
    reset = offset is None or is_behind
    start = max(end["total_bytes"] - FIRST_BYTES, 0) if reset or offset is None else offset
    texts, first, ended, after = list[str](), start, end["ended"], start
    for index in range(MOST_PARTS):
        part = await maat.log(job_id, attempt, rank, offset=after)
        first = part["offset"] if index == 0 else first
        texts.append(part["text"])
        after, ended = part["next_offset"], part["ended"]
        if after >= part["total_bytes"] or not part["text"]:
            break
    return {
        "reset": reset,
        "cut": reset and first > 0,
        "text": "".join(texts),
        "offset": first,
        "next_offset": after,
        "ended": ended,
    }
