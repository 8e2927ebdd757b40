"""One job: why it waits or what it holds, its GPUs over time, what happened to it, and what was asked for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from frontend.addresses import add_page
from frontend.api import Api, Failure, said
from frontend.components.cards import (
    card,
    empty_state,
    error_state,
    facts,
    graph,
    link_button,
    scrolls,
    skeleton,
)
from frontend.components.dialogs import dialog
from frontend.components.evidence import evidence_words, reason_words
from frontend.components.notices import notice, refusal
from frontend.components.states import FINAL_STATES, gpu_chip, state_chip
from frontend.figures.base import error_figure
from frontend.figures.job_timeline import job_timeline_figure
from frontend.formatting import (
    ABSENT,
    clock,
    count,
    duration,
    gpu_hours,
    number,
    parse_time,
    percent,
    plural,
)
from frontend.others import is_other
from frontend.pages.jobs import wanted
from frontend.routing import (
    aria,
    cluster_output,
    cluster_store,
    in_browser,
    one,
    path_to,
    presses,
    register_cluster,
)
from maat.client import ApiError, calls

EVENTS_SHOWN = 100


def layout(job_id: Any = "", **_query: Any) -> html.Div:
    return html.Div(
        [
            dcc.Store(id="job-id", data=one(job_id) or ""),
            cluster_store("job"),
            dcc.Store(id="job-over", data=False),
            dcc.Store(id="job-cancel-pressed"),
            dmc.Group(
                [
                    html.Div(skeleton(28), id="job-head", className="job-head"),
                    html.Div(id="job-actions"),
                ],
                justify="space-between",
                className="page-head",
            ),
            html.Div(
                [
                    html.Div(
                        [
                            html.Div(skeleton(96), id="job-why"),
                            card(
                                "GPUs and batch size over time", graph("job-timeline", height=340)
                            ),
                        ],
                        className="span-8 form-stack",
                    ),
                    html.Div(
                        [
                            card("Now", html.Div(skeleton(180), id="job-now")),
                            card("Asked for", html.Div(skeleton(150), id="job-spec")),
                        ],
                        className="span-4 form-stack",
                    ),
                    card(
                        "Events",
                        scrolls("job-events", skeleton(120), label="Events"),
                        className="span-12",
                    ),
                ],
                className="columns",
            ),
            dialog(
                "job-cancel-ask",
                "Cancel this job?",
                [
                    html.P(
                        "It stops at the next round and gives its GPUs back. Its history stays. This cannot be undone."
                    ),
                    dmc.Group(
                        [
                            dmc.Button("Keep it", id="job-cancel-no", variant="default"),
                            dmc.Button(
                                "Cancel job", id="job-cancel-yes", color="red", className="danger"
                            ),
                        ],
                        justify="flex-end",
                    ),
                ],
            ),
        ]
    )


def register(app: Dash, api: Api) -> None:
    register_cluster(app, "job")
    add_page(
        __name__, path_template="/jobs/<job_id>", name="Job", title="Job", layout=layout, takes={}
    )

    @app.callback(
        Output("job-head", "children"),
        Output("job-actions", "children"),
        Output("job-why", "children"),
        Output("job-timeline", "figure"),
        Output("job-now", "children"),
        Output("job-spec", "children"),
        Output("job-events", "children"),
        Output("job-over", "data"),
        cluster_output("job"),
        Input("live", "data"),
        Input("scheme", "data"),
        Input("job-cancel-ask", "opened"),
        State("job-id", "data"),
        State("job-over", "data"),
    )
    async def show(
        _live: Any, scheme: str | None, _asked: bool | None, job_id: str, over: bool
    ) -> tuple[Any, ...]:
        if not scheme:
            return (no_update,) * 9
        if over and ctx.triggered_id == "live":
            return (no_update,) * 9
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
        finished = job["state"] in FINAL_STATES
        actions = (
            html.Span("cancelling", className="caption")
            if job["cancel_requested"] and not finished
            else []
            if finished
            else dmc.Button(
                "Cancel job",
                id="job-cancel",
                variant="default",
                size="xs",
                **presses("job-cancel-pressed"),
            )
        )
        return (
            _head(job),
            actions,
            _why(job, explanation),
            timeline,
            _now(job),
            _spec(job),
            events_table(events["items"], job["cluster_id"]),
            finished,
            job["cluster_id"],
        )

    in_browser(
        app,
        "openOn",
        Output("job-cancel-ask", "opened", allow_duplicate=True),
        Input("job-cancel-pressed", "data"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output("job-cancel-ask", "opened"),
        Output("notices", "sendNotifications", allow_duplicate=True),
        Input("job-cancel-yes", "n_clicks"),
        Input("job-cancel-no", "n_clicks"),
        State("job-id", "data"),
        prevent_initial_call=True,
        running=[(Output("job-cancel-yes", "loading"), True, False)],
    )
    async def cancel(_yes: int | None, _no: int | None, job_id: str) -> tuple[bool, Any]:
        if ctx.triggered_id != "job-cancel-yes" or not ctx.triggered[0]["value"]:
            return False, no_update
        try:
            async with api.visitor() as maat:
                await maat.cancel_job(job_id)
        except Failure as error:
            return False, refusal(error)
        return False, notice("Cancelling", "The job stops at the next round.")


def _head(job: Mapping[str, Any]) -> dmc.Group:
    return dmc.Group(
        [
            html.H1(job["name"], className="page-title"),
            state_chip(job["state"]),
            html.Span(job["id"], className="caption"),
        ],
        gap=12,
    )


def _why(job: Mapping[str, Any], explanation: Mapping[str, Any]) -> Any:
    """The explanation, first on the page while a job waits; what it was, once the job is over."""
    primary = explanation.get("primary") or job["reason"]
    if not primary:
        return card("Why", html.Div("No round has considered it yet.", className="hint"))
    title = {True: "Why it waits", False: "Why it has this"}[
        job["allocation"] is None and job["state"] not in FINAL_STATES
    ]
    if job["state"] in FINAL_STATES:
        title = "How it ended"
    others = [
        reason for reason in explanation.get("reasons", []) if reason["code"] != primary["code"]
    ]
    sentence = _ended_words(job) if job["state"] in FINAL_STATES else primary["sentence"]
    source: list[Any] = [
        html.Span(reason_words(primary["code"]), className="caption", title=primary["code"])
    ]
    if primary.get("as_of_round") is not None:
        source.append(
            dcc.Link(
                f"round {primary['as_of_round']}",
                href=_round_path(job, primary["as_of_round"]),
                className="caption",
            )
        )
    return card(
        title,
        [
            html.Div(sentence, className="sentence"),
            html.Div(
                [
                    html.Span([html.B(name), value])
                    for name, value in evidence_words(primary["evidence"])
                ],
                className="strip",
            ),
            *[html.Div(_waited_words(reason), className="hint") for reason in others],
            *(
                [
                    html.Ul(
                        [_remedy(job, remedy) for remedy in explanation["remedies"]],
                        className="remedies",
                    )
                ]
                if explanation.get("remedies")
                else []
            ),
        ],
        aside=dmc.Group(source, gap=12),
        className="explanation",
    )


def _remedy(job: Mapping[str, Any], remedy: Mapping[str, Any]) -> html.Li:
    """What would help, with the way to the form filled so."""
    way = path_to("/submit", cluster=job["cluster_id"], like=job["id"], remedy=remedy["code"])
    return html.Li(
        [remedy["sentence"], " ", dcc.Link("Submit it so", href=way)]
        if remedy["changes"]
        else remedy["sentence"]
    )


def _waited_words(reason: Mapping[str, Any]) -> str:
    return f"Before its start, as of round {reason['as_of_round']}: {reason['sentence']}"


def _ended_words(job: Mapping[str, Any]) -> str:
    """How long it waited and ran, in the cluster's time."""
    begun, ended, submitted = (
        parse_time(job[name]) for name in ("started_at", "finished_at", "submitted_at")
    )
    if ended is None or submitted is None:
        return f"{job['state'].capitalize()}."
    if begun is None:
        return f"{job['state'].capitalize()} after {duration((ended - submitted).total_seconds())} of waiting, without ever having run."
    waited, ran = (
        duration((begun - submitted).total_seconds()),
        duration((ended - begun).total_seconds()),
    )
    return f"{job['state'].capitalize()} {ran} after its start; before, it waited {waited}."


def _round_path(job: Mapping[str, Any], number: int) -> str:
    return path_to(f"/rounds/{number}", cluster=job["cluster_id"])


def _now(job: Mapping[str, Any]) -> html.Dl:
    held, batch = job["allocation"], (job["allocation"] or {}).get("batch") or {}
    nodes = (
        "" if not held else f" on {held['node_count']} node{'s' if held['node_count'] != 1 else ''}"
    )
    return facts(
        [
            (
                "GPUs",
                gpu_chip(held["gpu_type"], f"{held['gpu_count']} × {held['gpu_type']}{nodes}")
                if held
                else "none",
            ),
            (
                "Progress",
                dmc.Group(
                    [
                        dmc.Progress(
                            value=job["progress"] * 100, w=120, size="sm", **aria("Progress")
                        ),
                        percent(job["progress"]),
                    ],
                    gap=8,
                ),
            ),
            ("Remaining", duration(job["remaining_seconds"])),
            (
                "Goodput",
                f"{number(job['goodput'])} effective samples/s"
                if job["goodput"] is not None
                else ABSENT,
            ),
            ("Batch size", _batch_words(batch)),
            ("Waited", duration(job["wait_seconds"])),
            ("GPU-hours", gpu_hours(job["gpu_hours"])),
            ("Restarts", str(job["restarts"])),
        ]
    )


def _batch_words(batch: Mapping[str, Any]) -> str:
    if not batch:
        return ABSENT
    total, each = count(batch["total_batch_size"]), count(batch["per_gpu_batch_size"])
    return f"{total} samples: {each} per GPU, {plural(batch['accumulation_steps'], 'accumulation step')}"


def _spec(job: Mapping[str, Any]) -> html.Dl:
    return facts(
        [
            ("Model", job["model"]),
            ("Does", _kind(job)),
            (
                "May vary",
                {
                    "rigid": "GPU type",
                    "strong-scaling": "GPU type, GPU count",
                    "adaptive": "GPU type, GPU count, batch size",
                }.get(job["adaptivity"], job["adaptivity"]),
            ),
            ("GPUs", wanted(job)),
            ("GPU types", ", ".join(job["gpu_types"]) if job["gpu_types"] else "any"),
            (
                "Batch size",
                count(job["batch_size"])
                if job["batch_size"]
                else f"chosen, up to {count(job['max_batch_size'])}"
                if job["max_batch_size"]
                else "chosen",
            ),
            ("Work", f"{number(job['work_scale'])} × the model's standard training"),
            ("Preemptible", "yes" if job["preemptible"] else "no"),
            ("Owner", f"{job['owner']} of {job['tenant']}"),
            ("Submitted (cluster time)", clock(job["submitted_at"])),
            ("Started (cluster time)", clock(job["started_at"])),
            ("Finished (cluster time)", clock(job["finished_at"])),
        ]
    )


def _kind(job: Mapping[str, Any]) -> str:
    words = {"training": "training", "batch-inference": "batch inference"}
    if job["promised_seconds"] is not None:
        return f"inference, {job['batch_size']} requests within {number(job['promised_seconds'])} s"
    return words.get(job["workload_kind"], str(job["workload_kind"]))


def events_table(events: Sequence[Mapping[str, Any]], cluster_id: str) -> Any:
    """Newest first."""
    if not events:
        return html.Div("Nothing has happened to it yet.", className="hint")
    newest = sorted(events, key=lambda event: event["id"], reverse=True)[:EVENTS_SHOWN]
    head = html.Thead(
        html.Tr(
            [
                html.Th("Cluster time"),
                html.Th("Event"),
                html.Th("State"),
                html.Th("Round"),
                html.Th("Details"),
            ]
        )
    )
    rows = [
        html.Tr(
            [
                html.Td(clock(event["at"])),
                html.Td(event["kind"].replace("_", " ")),
                html.Td(state_chip(event["state"]) if event["state"] else ""),
                html.Td(
                    dcc.Link(
                        str(event["round_number"]),
                        href=path_to(f"/rounds/{event['round_number']}", cluster=cluster_id),
                    )
                    if event["round_number"] is not None
                    else ""
                ),
                html.Td(details(event["data"])),
            ]
        )
        for event in newest
    ]
    more = (
        [html.Div(f"The newest {EVENTS_SHOWN} of {len(events)} events.", className="hint")]
        if len(events) > EVENTS_SHOWN
        else []
    )
    return [html.Table([head, html.Tbody(rows)], className="plain-table"), *more]


def details(data: Mapping[str, Any], limit: int = 160) -> str:
    """An event's data on one line."""
    text = ", ".join(
        f"{name.replace('_', ' ')} {_value(value)}"
        for name, value in data.items()
        if value not in (None, {}, [])
    )
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return "(" + details(value, 80) + ")"
    return str(value)


def _failed(error: Exception, scheme: str, job_id: str) -> tuple[Any, ...]:
    title, remedy = said(error)
    missing = isinstance(error, ApiError) and error.status == 404
    nobody = "Another tenant's job" if is_other(job_id) else "No such job"
    back = link_button("All jobs", "/jobs")
    figure = error_figure(scheme, nobody if missing else title, "" if missing else remedy)
    return (
        html.H1(nobody if missing else title, className="page-title"),
        back,
        card(
            None,
            empty_state(nobody, "Its tenant and the cluster's administrators see it.")
            if is_other(job_id)
            else error_state(error),
        ),
        figure,
        ABSENT,
        ABSENT,
        ABSENT,
        missing,
        no_update,
    )
