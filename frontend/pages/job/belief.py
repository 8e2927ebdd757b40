"""The part of a command's page that shows what Maat has learnt of it, and how sure it is."""

from __future__ import annotations

import asyncio
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html
from dash.development.base_component import Component

from frontend.api import Api
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, error_state, graph, scrolls, skeleton
from frontend.figures.step_times import step_times_figure
from frontend.loading import by_part, failed_figure, loaded, nothing
from frontend.pages.job.belief_parts import belief_words, profiles_table, restart_table

HEIGHT = 340
IS_RUN = "job-is-run"
RUNS, RUN_OVER = "runs", "over"  # of that store


def belief_card() -> Component:
    tables = [
        html.Div(id="job-profiles"),
        scrolls("job-restart", skeleton(120), label="Parts of a restart"),
    ]
    return card(
        "What Maat has learnt of it",
        [
            html.Div(skeleton(60), id="job-belief"),
            dmc.SimpleGrid(
                [graph("job-step-times", height=HEIGHT), html.Div(tables, className="form-stack")],
                cols={"base": 1, "md": 2},
            ),
        ],
        className="span-12",
    )


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show, api),
        output={
            "words": Output("job-belief", "children"),
            "chart": Output("job-step-times", "figure"),
            "restart": Output("job-restart", "children"),
            "profiles": Output("job-profiles", "children"),
        },
        inputs={
            "_live": Input("live", "data"),
            "is_run": Input(IS_RUN, "data"),
            "scheme": Input("scheme", "data"),
        },
        state={"job_id": State("job-id", "data")},
    )


async def show(
    api: Api, *, _live: object, is_run: str | None, scheme: str | None, job_id: str
) -> Changes:
    """Show it on every beat until the job is over; nothing of a job that is played."""
    is_beat = ctx.triggered_id == "live"
    if is_run not in (RUNS, RUN_OVER) or not scheme or (is_run == RUN_OVER and is_beat):
        return NOTHING
    async with api.visitor() as maat:
        belief, samples = await asyncio.gather(
            loaded(maat.belief(job_id)), loaded(maat.samples(job_id, limit=500))
        )
    return by_part(
        {
            "words": lambda: belief_words(belief()),
            "chart": lambda: step_times_figure(
                samples(), belief()["types"], scheme=scheme, height=HEIGHT
            ),
            "restart": lambda: restart_table(belief()),
            "profiles": lambda: profiles_table(belief()),
        },
        failed={
            "words": error_state,
            "chart": failed_figure(scheme, height=HEIGHT),
            **dict.fromkeys(("restart", "profiles"), nothing),
        },
    )
