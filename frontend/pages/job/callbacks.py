"""What a job's page shows of the service's answers."""

from __future__ import annotations

from functools import partial

from dash import Dash, Input, Output, State, ctx, html
from dash.development.base_component import Component

from frontend.api import Api, error_message
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, error_state, link_button, missing
from frontend.components.states import FINAL_STATES
from frontend.figures.job_timeline import job_timeline_figure
from frontend.formatting import ABSENT
from frontend.loading import by_part, failed_figure, loaded, may, nothing
from frontend.others import is_other
from frontend.pages.job import actions, parts
from frontend.pages.job.flags import MAY_DISMISS, flags_view, is_flagged
from frontend.pages.job.ledger import ledger, restarts_of
from frontend.pages.job.reading import read_parts
from frontend.pages.job.why import why
from frontend.routing import cluster_output, title_output
from maat.client import ApiError, calls
from maat.figures.base import error_figure


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show, api),
        output={
            "head": Output("job-head", "children"),
            "actions": Output("job-actions", "children"),
            "missing": Output("job-missing", "children"),
            "body": Output("job-body", "style"),
            "flags": Output("job-flags", "children"),
            "why": Output("job-why", "children"),
            "timeline": Output("job-timeline", "figure"),
            "ledger": Output("job-ledger", "children"),
            "ledger_style": Output("job-ledger-card", "style"),
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
    async with api.visitor() as maat:
        read = await read_parts(maat, job_id)
        job, spans, events, explanation = read.job, read.spans, read.events, read.explanation
        if job.failure is not None:
            return failed(job.failure, scheme, job_id)
        cluster_id = job()["cluster_id"]
        state = await loaded(maat.send(calls.cluster_state(cluster_id)))
        flagged = is_flagged(job())
        may_dismiss = flagged and may(await loaded(maat.send(calls.me())), MAY_DISMISS)
    whole = not any(one.failure for one in (spans, events, explanation, state))
    return by_part(
        {
            "head": lambda: parts.head(job()),
            "actions": lambda: actions.buttons(job()),
            "missing": lambda: None,
            "body": dict,
            "flags": lambda: flags_view(job(), may_dismiss=may_dismiss),
            "why": lambda: why(job(), explanation()),
            "timeline": lambda: job_timeline_figure(
                spans()["items"],
                events=events()["items"],
                now=state()["now"],
                submitted_at=job()["submitted_at"],
                finished_at=job()["finished_at"],
                scheme=scheme,
            ),
            "ledger": lambda: ledger(restarts_of(spans()["items"]), cluster_id),
            "ledger_style": lambda: {} if restarts_of(spans()["items"]) else HIDDEN,
            "now": lambda: parts.now(job()),
            "spec": lambda: parts.spec(job()),
            "events": lambda: parts.events_table(events()["items"], cluster_id),
            "over": lambda: whole and job()["state"] in FINAL_STATES,
            "cluster": lambda: cluster_id,
            "title": lambda: f"{job()['name']} · Job",
        },
        failed={
            "flags": nothing,
            "why": lambda error: card(None, error_state(error)),
            "timeline": failed_figure(scheme),
            "ledger_style": lambda _: HIDDEN,
            "events": error_state,
        },
    )


def failed(error: Exception, scheme: str, job_id: str) -> Changes:
    """Return what to show of a failure. A job that does not exist has no cards."""
    if isinstance(error, ApiError) and error.status == 404:
        absent = _others_job() if is_other(job_id) else _no_such_job()
        return {"head": "", "actions": None, "missing": absent, "body": HIDDEN, "over": True}
    title, remedy = error_message(error)
    return {
        "head": html.H1(title, className="page-title"),
        "actions": link_button("All jobs", "/jobs"),
        "missing": None,
        "body": {},
        "why": card(None, error_state(error)),
        "timeline": error_figure(scheme, title, remedy),
        "now": ABSENT,
        "spec": ABSENT,
        "events": ABSENT,
        "over": False,
    }


def _no_such_job() -> Component:
    remedy = "It may belong to another tenant, or the link is mistyped."
    return missing("No such job", remedy, "All jobs", "/jobs")


def _others_job() -> Component:
    remedy = "Its tenant and the cluster's administrators see it."
    return missing("Another tenant's job", remedy, "All jobs", "/jobs")
