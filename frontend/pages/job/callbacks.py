"""What a job's page shows of the service's answers."""

from __future__ import annotations

import asyncio
from functools import partial

from dash import Dash, Input, Output, State, ctx, html

from frontend.api import Api, Failure, error_message
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, empty_state, error_state, link_button
from frontend.components.states import FINAL_STATES
from frontend.figures.base import error_figure
from frontend.figures.job_timeline import job_timeline_figure
from frontend.formatting import ABSENT
from frontend.others import is_other
from frontend.pages.job import actions, parts
from frontend.routing import cluster_output, title_output
from maat.client import ApiError, calls


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show, api),
        output={
            "head": Output("job-head", "children"),
            "actions": Output("job-actions", "children"),
            "why": Output("job-why", "children"),
            "timeline": Output("job-timeline", "figure"),
            "now": Output("job-now", "children"),
            "spec": Output("job-spec", "children"),
            "events": Output("job-events", "children"),
            "over": Output("job-over", "data"),
            "cluster": cluster_output("job"),
            "title": title_output("job"),
        },
        inputs={
            "_live": Input("live", "data"),
            "scheme": Input("scheme", "data"),
            "_asked": Input("job-cancel-ask", "opened"),
            "_changed": Input("job-changed", "data"),
        },
        state={"job_id": State("job-id", "data"), "over": State("job-over", "data")},
    )


async def show(
    api: Api,
    *,
    _live: object,
    scheme: str | None,
    _asked: bool | None,
    _changed: object,
    job_id: str,
    over: bool,
) -> Changes:
    """Show the job on every beat until it is over."""
    if not scheme or (over and ctx.triggered_id == "live"):
        return NOTHING
    try:
        async with api.visitor() as maat:
            job, spans, events, explanation = await asyncio.gather(
                maat.job(job_id),
                maat.send(calls.allocations(job_id)),
                maat.send(calls.events(job_id)),
                maat.send(calls.explanation(job_id)),
            )
            state = await maat.send(calls.cluster_state(job["cluster_id"]))
    except Failure as error:
        return _failed(error, scheme, job_id)
    timeline = job_timeline_figure(
        spans["items"],
        now=state["now"],
        submitted_at=job["submitted_at"],
        finished_at=job["finished_at"],
        scheme=scheme,
        height=340,
    )
    return {
        "head": parts.head(job),
        "actions": actions.buttons(job),
        "why": parts.why(job, explanation),
        "timeline": timeline,
        "now": parts.now(job),
        "spec": parts.spec(job),
        "events": parts.events_table(events["items"], job["cluster_id"]),
        "over": job["state"] in FINAL_STATES,
        "cluster": job["cluster_id"],
        "title": f"{job['name']} · Job",
    }


def _failed(error: Exception, scheme: str, job_id: str) -> Changes:
    title, remedy = error_message(error)
    missing = isinstance(error, ApiError) and error.status == 404
    if missing:
        title, remedy = "Another tenant's job" if is_other(job_id) else "No such job", ""
    owners = empty_state(
        "Another tenant's job", "Its tenant and the cluster's administrators see it."
    )
    return {
        "head": html.H1(title, className="page-title"),
        "actions": link_button("All jobs", "/jobs"),
        "why": card(None, owners if is_other(job_id) else error_state(error)),
        "timeline": error_figure(scheme, title, remedy),
        "now": ABSENT,
        "spec": ABSENT,
        "events": ABSENT,
        "over": missing,
    }
