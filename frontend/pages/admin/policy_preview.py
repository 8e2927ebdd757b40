"""A preview of the next round on the page of administration: both rounds side by side, and jobs."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.components.cards import scrolls
from frontend.components.names import cut_name
from frontend.components.states import gpu_chip
from frontend.formatting import count, gpus, number, plural
from frontend.pages.admin.cluster_rows import head, numeric
from maat.api.previews import (
    JobFateOut,
    PreviewedJobOut,
    PreviewResultOut,
    RoundPreviewOut,
    RoundSideOut,
    not_considered_words,
    sharing_words,
)
from maat.colours import gpu_order

UNENDED = ("queued", "running")
_SHOWN = 100
_COUNTS = {
    "gpus_in_use": "GPUs in use",
    "jobs_with_gpus": "Jobs with GPUs",
    "jobs_waiting": "Jobs that wait",
    "starts": "Jobs that start",
    "resumes": "Jobs that resume",
    "stops": "Jobs that stop",
    "moves": "Jobs that move",
    "resizes": "Jobs whose GPU count changes",
    "restarts": "Restarts of running jobs",
}
_FATES = {
    "start": "starts on",
    "resume": "resumes on",
    "rescale": "changes to",
    "migrate": "moves to",
    "keep": "stays on",
    "preempt": "stops",
    "wait": "waits",
}


def preview_view(preview: RoundPreviewOut) -> list[Component]:
    """How far it is; then its result, or why there is none."""
    if preview["state"] in UNENDED:
        words = "Waiting for a worker." if preview["state"] == "queued" else preview["message"]
        return [dmc.Group([dmc.Loader(size="xs"), html.Span(words)], gap=8)]
    if preview["result"] is None:
        mark = "" if preview["state"] == "cancelled" else "⚠ "
        return [html.P(f"{mark}{preview['message']}")]
    return _result(preview["result"])


def _result(result: PreviewResultOut) -> list[Component]:
    now = (
        f"Round {result['round_number']}, if it were now: {count(result['gpus_in_use'])} of "
        f"{count(result['gpus_in_service'])} GPUs are in use before it."
    )
    both = scrolls("admin-policy-sides", _sides(result), label="Both rounds")
    words = "What the next round would do"
    title = html.H3(words, className="card-title", style={"marginTop": 12})
    unseen = not_considered_words(result)
    notes = [*([unseen] if unseen else []), *result["with_change"]["notes"]]
    told = [html.Div(note, className="hint") for note in notes]
    return [title, html.P(now), both, *told, *_jobs(result)]


def _sides(result: PreviewResultOut) -> Component:
    sides = (result["as_it_stands"], result["with_change"])
    columns = ("As it stands", "With the change")
    rows = [_row(words, *(_cell(side, key) for side in sides)) for key, words in _COUNTS.items()]
    types = [
        html.Tr(
            [
                html.Th(gpu_chip(name, f"{name} in use"), scope="row"),
                *(numeric(count(side["gpus_by_type"].get(name, 0))) for side in sides),
            ]
        )
        for name in gpu_order(sides[0]["gpus_by_type"])
    ]
    policy = _row("Policy", *(side["policy"] for side in sides))
    placer = _row("Placer", *(side["placer"] for side in sides))
    settings = _row("Parameters", *(_parameters(side) for side in sides))
    pace = _row("Round every", *(f"{number(side['round_seconds'])} s" for side in sides))
    shared = _row("On a GPU", *map(sharing_words, sides))
    took = _row("Deciding took", *(f"{number(side['seconds'], 2)} s" for side in sides))
    body = html.Tbody([policy, placer, settings, pace, shared, *rows[:1], *types, *rows[1:], took])
    return html.Table([head(("", *columns), columns), body], className="plain-table")


def _row(words: str, *cells: str) -> html.Tr:
    return html.Tr([html.Th(words, scope="row"), *(numeric(cell) for cell in cells)])


def _parameters(side: RoundSideOut) -> str:
    given = {**side["policy_parameters"], **side["placer_parameters"]}
    return ", ".join(f"{name} {value}" for name, value in given.items()) or "default"


def _cell(side: RoundSideOut, key: str) -> str:
    value: int = side[key]  # type: ignore[literal-required]
    return count(value)


def _jobs(result: PreviewResultOut) -> list[Component]:
    """The jobs that either round changes, first those that the rounds treat differently."""
    differing = result["jobs_treated_differently"]
    words = (
        f"{plural(differing, 'job is', 'jobs are')} treated differently."
        if differing
        else "Both rounds treat every job alike."
    )
    if not result["jobs"]:
        return [html.P(words)]
    rows = [_job(job) for job in result["jobs"][:_SHOWN]]
    columns = ("Job", "Tenant", "Holds now", "As it stands", "With the change")
    table = html.Table([head(columns), html.Tbody(rows)], className="plain-table")
    more = len(result["jobs"]) + result["jobs_left_out"] - len(rows)
    note = f"{plural(more, 'more job')} would be changed." if more else ""
    return [
        html.P(words),
        scrolls("admin-policy-jobs", table, label="Jobs that the rounds change"),
        html.Div(note, className="hint"),
    ]


def _job(job: PreviewedJobOut) -> html.Tr:
    differs = job["as_it_stands"] != job["with_change"]
    name: Component | str = cut_name(job["job_name"])
    if job["job_id"].startswith("job_") and isinstance(name, str):
        name = dcc.Link(name, href=f"/jobs/{job['job_id']}")
    held = job["gpu_type"]
    cells = [
        name,
        "–" if job["tenant"] is None else cut_name(job["tenant"]),
        "nothing" if held is None else gpus(job["gpu_count"], held),
        _fate(job["as_it_stands"]),
        html.B(_fate(job["with_change"])) if differs else _fate(job["with_change"]),
    ]
    return html.Tr([html.Td(cell) for cell in cells])


def _fate(fate: JobFateOut) -> str:
    words = _FATES[fate["fate"]]
    kind = fate["gpu_type"]
    return words if kind is None else f"{words} {gpus(fate['gpu_count'], kind)}"
