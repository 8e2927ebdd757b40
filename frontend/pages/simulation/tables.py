"""The tables and sentences of a simulation's page: its runs, and what happened to their jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dash import dcc, html
from dash.development.base_component import Component

from frontend.components import fairness_rule
from frontend.components.cards import empty_state
from frontend.components.states import state_chip
from frontend.figures.simulation import no_fairness
from frontend.formatting import ABSENT, column, number, percent, plural, rho_by
from frontend.others import OTHER_JOB, is_other, told_job
from frontend.runs import run_names
from maat.api.simulation_answers import DrawnRun, RunOut
from maat.vocabulary import FairnessRule

_LEFT_OUT = " left out"  # in the sentences of traces that were not played whole
MANY_RUNS, MOST_DRAWN, MOST_NOTES = 6, 12, 20

# Field of a run's summary, heading with unit, digits.
COMPARED = (
    ("avg_jct_hours", "Mean JCT (h)", 3),
    ("median_jct_hours", "Median JCT (h)", 3),
    ("p99_jct_hours", "p99 JCT (h)", 3),
    ("makespan_hours", "Makespan (h)", 3),
    ("gpu_hours_per_job", "GPU-hours per job", 3),
    ("restarts_per_job", "Restarts per job", 2),
    ("avg_queueing_hours", "Mean queueing delay (h)", 3),
    ("avg_waiting_hours", "Mean waiting in all (h)", 3),
    ("utilisation_busy", "GPUs held (%)", 3),
    ("contention_mean", "Mean contention", 3),
    ("policy_seconds_median", "Policy time (s)", 2),
)
UNFINISHED = ("unfinished", "Unfinished", 3)
OF_FAILURES = (
    ("failures", "Failed nodes", 3),
    ("interruptions", "Interruptions", 3),
    ("lost_gpu_hours", "GPU-hours lost", 3),
)
_LIVE_JOB = re.compile("job_[0-9a-z]{26}")  # an id, which names the jobs of a cluster's history
OF_FINISHED_JOBS = frozenset({"avg_jct_hours", "median_jct_hours", "p99_jct_hours"})


def drawn_runs(runs: Sequence[RunOut]) -> list[RunOut]:
    """The runs that the figures show: all, or of many those on the first one's trace and seed."""
    if len(runs) <= MANY_RUNS:
        return list(runs)
    return [
        run for run in runs if (run["trace"], run["seed"]) == (runs[0]["trace"], runs[0]["seed"])
    ][:MOST_DRAWN]


def drawn_words(drawn: Sequence[RunOut], done: Sequence[RunOut]) -> str:
    if len(drawn) == len(done):
        return ""
    return (
        f"The figures below show {len(drawn)} of {len(done)} runs: "
        f"those on trace {drawn[0]['trace'] + 1} with seed {drawn[0]['seed']}."
    )


def runs_table(runs: Sequence[RunOut]) -> Component:
    """Runs x figures of merit. Unfinished jobs and failures have columns if there are any."""
    summaries = [_without_missing_times(run["summary"] or {}) for run in runs]
    unfinished = [UNFINISHED] if any(summary.get("unfinished") for summary in summaries) else []
    failures = OF_FAILURES if any(summary.get("failures") for summary in summaries) else ()
    compared = (*unfinished, *COMPARED, *failures)
    shown = [
        (field, head, digits)
        for field, head, digits in compared
        if any(field in summary for summary in summaries)
    ]
    head = html.Thead(
        html.Tr(
            [
                html.Th("Run"),
                html.Th("State"),
                *[html.Th(text, className="number") for _, text, _ in shown],
            ]
        )
    )
    columns = [
        column([_number(summary.get(field)) for summary in summaries], digits)
        for field, _, digits in shown
    ]
    rows = []
    for position, (name, run) in enumerate(zip(run_names(runs), runs, strict=True)):
        cells = [html.Td(texts[position], className="number") for texts in columns]
        failure = str((run["error"] or {}).get("detail") or "")
        rows.append(
            html.Tr(
                [html.Td(name), html.Td(html.Span(state_chip(run["state"]), title=failure)), *cells]
            )
        )
    return html.Table([head, html.Tbody(rows)], className="plain-table many-columns pinned")


def notes(runs: Sequence[RunOut], *, left_out: bool) -> list[html.Div]:
    """Return notes on runs: what a policy lacks, and why jobs did not finish.

    `left_out`: those on records and jobs of a trace that no run has, which stand above the figures;
    else the others.
    """
    told: dict[str, list[str]] = {}
    for name, run in zip(run_names(runs), runs, strict=True):
        summary = run["summary"] or {}
        waiting = (
            f"{OTHER_JOB if is_other(job) else job} did not finish. {why}"
            for job, why in (summary.get("unfinished_because") or {}).items()
        )
        for line in (*(summary.get("notes") or ()), *waiting):
            if (_LEFT_OUT in line) == left_out:
                told.setdefault(line, []).append(name)
    return [
        html.Div(f"{', '.join(names)}: {line}") for line, names in list(told.items())[:MOST_NOTES]
    ]


def _without_missing_times(summary: Mapping[str, object]) -> dict[str, object]:
    """Return a summary without completion times if no job completed: a zero would look best."""
    nothing_finished = bool(summary.get("jobs")) and summary.get("unfinished") == summary["jobs"]
    known = {
        field: None if nothing_finished and field in OF_FINISHED_JOBS else value
        for field, value in summary.items()
    }
    held = _number(known.get("utilisation_busy"))
    return known if held is None else known | {"utilisation_busy": 100 * held}


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


def unfinished_words(runs: Mapping[str, DrawnRun]) -> list[html.Div]:
    """Whose lines end below 100 %, and which jobs they lack."""
    lines = []
    for name, run in runs.items():
        if run["unfinished_count"]:
            more = run["unfinished_count"] - len(run["unfinished"])
            named = ", ".join(map(told_job, run["unfinished"])) + (
                f" and {more} more" if more else ""
            )
            lines.append(
                html.Div(
                    f"{name}: {plural(run['unfinished_count'], 'job')} did not finish: {named}."
                )
            )
    return lines


def fairness_words(rule: FairnessRule) -> str:
    return f"{fairness_rule.meaning(rule)} Right of rho = 1: worse off than alone."


def _worst_off(run: DrawnRun) -> list[Component | str]:
    """Name the jobs that fared worst; one of a cluster's history leads to its page."""
    told: list[Component | str] = []
    for job in run["worst_off"]:
        name = told_job(job["name"])
        leads = _LIVE_JOB.fullmatch(job["name"])
        part = dcc.Link(name, href=f"/jobs/{name}") if leads else name
        told += [*([", "] if told else []), part, f" ({number(job['rho'])})"]
    return told


def least_fair(runs: Mapping[str, DrawnRun]) -> Component:
    """Runs x worst rho, share of unfair jobs, and the jobs that fared worst."""
    worst = column([run["worst_rho"] for run in runs.values()])
    rows = [
        html.Tr(
            [
                html.Td(name),
                html.Td(rho, className="number"),
                html.Td(percent(run["unfair_fraction"]), className="number"),
                html.Td(_worst_off(run) or ABSENT, className="wraps"),
            ]
        )
        for (name, run), rho in zip(runs.items(), worst, strict=True)
    ]
    if not rows:
        return empty_state(*no_fairness(runs))
    rho = rho_by(next(iter(runs.values()))["fairness_rule"])
    heads = [
        html.Th("Run"),
        html.Th(f"Worst {rho}", className="number"),
        html.Th("Unfair jobs (rho > 1)", className="number"),
        html.Th("Worst off (rho)"),
    ]
    return html.Table([html.Thead(html.Tr(heads)), html.Tbody(rows)], className="plain-table")
