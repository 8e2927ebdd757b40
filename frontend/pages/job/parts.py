"""What a job's page says: why the job waits, what it holds, what was asked for, its events."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component, ComponentType

from frontend.attributes import aria
from frontend.components.cards import facts
from frontend.components.events import details, event_words, with_state_before
from frontend.components.labels import label_texts
from frontend.components.priority import priority_words
from frontend.components.states import FINAL_STATES, gpu_chip, state_chip
from frontend.formatting import (
    ABSENT,
    clock,
    count,
    duration,
    gpu_hours,
    number,
    percent,
    plural,
)
from frontend.pages.jobs.rows import is_unmeasured, wanted
from frontend.routing import path_to
from maat.api.job_answers import (
    AllocationOut,
    BatchPlanOut,
    JobEventOut,
    JobOut,
)
from maat.api.job_words import sharing_words, state_in_words
from maat.vocabulary import JobState

EVENTS_SHOWN = 100
MAY_VARY = {
    "rigid": "GPU type",
    "strong-scaling": "GPU type, GPU count",
    "adaptive": "GPU type, GPU count, batch size",
}


def head(job: JobOut) -> dmc.Group:
    return dmc.Group(
        [
            html.H1(job["name"], className="page-title"),
            state_chip(job["state"], state_in_words(job)),
            html.Span(job["id"], className="caption"),
        ],
        gap=12,
    )


def now(job: JobOut) -> html.Dl:
    """What the job holds and how far it is; of one that has ended, what it took in all."""
    held = job["allocation"]
    bar = dmc.Progress(value=job["progress"] * 100, w=120, size="sm", **aria("Progress"))
    share = [bar, percent(job["progress"])]
    batch = _batch_words(held["batch"] if held else None)
    lives = job["state"] not in FINAL_STATES
    return facts(
        [
            *([("GPUs", _allocation_value(held))] if lives else []),
            ("Progress", "not known" if is_unmeasured(job) else dmc.Group(share, gap=8)),
            *([("Remaining", _remaining_words(job))] if lives else []),
            *([("Goodput", _goodput_words(job))] if lives else []),
            *([("Batch size", batch)] if lives else []),
            ("Waited", duration(job["wait_seconds"])),
            *([("Paused", _paused_words(job))] if job["pause_requested"] else []),
            *([("Deadline", _deadline(job))] if job["deadline"] else []),
            ("GPU-hours", _gpu_hours(job)),
            ("Restarts", str(job["restarts"])),
        ]
    )


def _gpu_hours(job: JobOut) -> ComponentType:
    """The GPU-hours, with how GPUs count that it shares."""
    hours, held = gpu_hours(job["gpu_hours"]), job["allocation"]
    if not held or not held["shared_with"]:
        return hours
    rule = "GPUs that it shares count whole here; usage and reports divide them among their jobs."
    return html.Div([hours, html.Div(rule, className="caption")])


def _remaining_words(job: JobOut) -> str:
    left = job["remaining_seconds"]
    return "not known yet" if left is None and _stands_still(job) else duration(left)


def _goodput_words(job: JobOut) -> str:
    goodput = job["goodput"]
    if goodput is None:
        return f"none yet here: it is {job['state']}" if _stands_still(job) else ABSENT
    return f"{number(goodput)} effective samples/s"


def _stands_still(job: JobOut) -> bool:
    """Whether it has GPUs and has not run on them yet: what it did on others says nothing."""
    return job["goodput"] is None and job["state"] in (JobState.STARTING, JobState.RESTARTING)


def _deadline(job: JobOut) -> str:
    late = duration(job["deadline_seconds_late"])
    words = {
        "on-time": "on time",
        "late": f"will be missed by {late}",
        "unknown": "unknown yet",
        "met": "met",
        "missed": f"missed by {late}",
    }
    outlook = words.get(job["deadline_outlook"] or "")
    return clock(job["deadline"]) + (f": {outlook}" if outlook else "")


def _paused_words(job: JobOut) -> str:
    at = job["paused_at"]
    since = "from the next round on" if at is None else f"since {clock(at)}"
    return since if job["paused_by"] is None else f"{since}, by {job['paused_by']}"


def _allocation_value(held: AllocationOut | None) -> ComponentType:
    if not held:
        return "none"
    nodes = plural(held["node_count"], "node")
    chip: Component = gpu_chip(
        held["gpu_type"], f"{held['gpu_count']} × {held['gpu_type']} on {nodes}"
    )
    shared = [html.Div(words, className="caption") for words in sharing_words(held["shared_with"])]
    return html.Div([chip, *shared]) if shared else chip


def _batch_words(batch: BatchPlanOut | None) -> str:
    if not batch:
        return ABSENT
    total, each = count(batch["total_batch_size"]), count(batch["per_gpu_batch_size"])
    steps = plural(batch["accumulation_steps"], "accumulation step")
    return f"{total} samples: {each} per GPU, {steps}"


def spec(job: JobOut) -> html.Dl:
    """What was asked for."""
    work = f"{number(job['work_scale'])} × the model's standard training"
    does = [] if job["runs_command"] else [("Does", _kind(job)), ("Work", work)]
    return facts(
        [
            ("Model", job["model"]),
            *does,
            ("May vary", MAY_VARY.get(job["adaptivity"], job["adaptivity"])),
            ("GPUs", wanted(job)),
            ("GPU types", ", ".join(job["gpu_types"]) if job["gpu_types"] else "any"),
            ("Batch size", _wanted_batch(job)),
            ("Preemptible", "yes" if job["preemptible"] else "no"),
            ("Priority", priority_words(job["priority"])),
            ("Weight", number(job["weight"])),
            *_bounds(job),
            *([("Labels", ", ".join(label_texts(job["labels"])))] if job["labels"] else []),
            *([("Array", _array(job))] if job["array_id"] else []),
            *([("Starts after", _needs(job))] if job["after"] else []),
            ("Owner", f"{job['owner']} of {job['tenant']}"),
            ("Submitted (cluster time)", clock(job["submitted_at"])),
            ("Started (cluster time)", clock(job["started_at"])),
            ("Finished (cluster time)", clock(job["finished_at"])),
        ]
    )


def _bounds(job: JobOut) -> list[tuple[str, str]]:
    """Return how long it asks to stay, and how seldom to move."""
    stay, moves = job["least_stay_seconds"], job["most_moves_per_hour"]
    return [
        *([] if stay is None else [("Least stay", duration(stay))]),
        *([] if moves is None else [("Most moves in an hour", count(moves))]),
    ]


def _array(job: JobOut) -> dcc.Link:
    way = path_to("/jobs", cluster=job["cluster_id"], q=job["array_id"])
    return dcc.Link(f"index {job['array_index']} of {job['array_id']}", href=way)


def _needs(job: JobOut) -> list[Component]:
    return [
        html.Div(dcc.Link(need, href=path_to(f"/jobs/{need}", cluster=job["cluster_id"])))
        for need in job["after"]
    ]


def _wanted_batch(job: JobOut) -> str:
    if job["batch_size"] and not (job["runs_command"] and job["adaptivity"] == "adaptive"):
        return count(job["batch_size"])
    if job["runs_command"] and job["adaptivity"] == "rigid":
        return "the script's own"
    start = f", from {count(job['batch_size'])}" if job["batch_size"] else ""
    most = f", up to {count(job['max_batch_size'])}" if job["max_batch_size"] else ""
    return f"chosen{start}{most}"


def _kind(job: JobOut) -> str:
    words = {"training": "training", "batch-inference": "batch inference"}
    if job["promised_seconds"] is not None:
        return f"inference, {job['batch_size']} requests within {number(job['promised_seconds'])} s"
    return words.get(job["workload_kind"], str(job["workload_kind"]))


def events_table(events: Sequence[JobEventOut], cluster_id: str) -> list[Component] | Component:
    """The newest events, newest first."""
    if not events:
        return html.Div("Nothing has happened to it yet.", className="hint")
    newest = [*with_state_before(events)][::-1][:EVENTS_SHOWN]
    heads = ("Cluster time", "State", "What happened", "Round", "Details")
    head = html.Thead(html.Tr([html.Th(text) for text in heads]))
    rows = [_event_row(event, before, cluster_id) for event, before in newest]
    table = html.Table([head, html.Tbody(rows)], className="plain-table")
    if len(events) <= EVENTS_SHOWN:
        return [table]
    words = f"The newest {EVENTS_SHOWN} of {len(events)} events."
    return [table, html.Div(words, className="hint")]


def _event_row(event: JobEventOut, before: str | None, cluster_id: str) -> html.Tr:
    words = event_words(event["kind"], event["data"], state=event["state"], before=before)
    number = event["round_number"]
    way = path_to(f"/rounds/{number}", cluster=cluster_id)
    return html.Tr(
        [
            html.Td(clock(event["at"])),
            html.Td(state_chip(event["state"]) if event["state"] else ""),
            html.Td(words, className="wraps"),
            html.Td("" if number is None else dcc.Link(str(number), href=way)),
            html.Td(details(event["data"])),
        ]
    )
