"""Two runs of a simulation side by side, job by job. The address keeps what is chosen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html
from dash.development.base_component import Component

from frontend.addresses import address_note, quoted
from frontend.api import Api, Failure, error_message
from frontend.attributes import aria
from frontend.callbacks import NOTHING, Changes, answer, in_browser
from frontend.components.cards import card, graph, many_charts
from frontend.figures.over_time import job_series_figure
from frontend.figures.side_by_side import allocations_figure, paired_figure
from frontend.others import is_other, told_job
from frontend.runs import run_names
from maat.api.simulation_answers import RunOut, RunResult
from maat.client import AsyncClient, calls
from maat.figures.base import error_figure

HEIGHT, CAPTION_HEIGHT = 420, 20
MOST_JOBS = 8
OFFERED_JOBS = 2000  # of a larger simulation, those that held most GPU-hours
FIRST_JOBS = 3


class Asked(TypedDict):
    """Ids of runs and names of jobs that the address names."""

    runs: list[str]
    jobs: list[str]


def pairs_card(first: str | None, second: str | None) -> Component:
    """Job against job, with the two runs that the address chose."""
    runs = [
        dmc.Select(
            id=f"compare-{name}",
            data=[],
            value=value,
            size="xs",
            w=168,
            comboboxProps={"width": "max-content", "position": "bottom-start"},
            allowDeselect=False,
            **aria(f"{name} run"),
        )
        for name, value in (("first", first), ("second", second))
    ]
    versus = dmc.Group([runs[0], html.Span("against", className="caption"), runs[1]], gap=8)
    content = [
        html.Div("\u00a0", id="compare-sentence", className="caption"),
        graph("compare-pairs", height=HEIGHT - CAPTION_HEIGHT),
    ]
    return card("Two runs, job by job", content, aside=versus, className="span-6")


def allocations_card(jobs: Sequence[str]) -> Component:
    """Allocations of the jobs that the address chose, under the same two runs."""
    chooser = dmc.MultiSelect(
        id="compare-jobs",
        data=list(jobs),
        value=list(jobs),
        maxValues=MOST_JOBS,
        limit=100,
        searchable=True,
        clearable=True,
        size="xs",
        miw=320,
        placeholder="Jobs",
        **aria("Jobs"),
    )
    content = [many_charts("compare-allocations"), dcc.Store(id="compare-in-url")]
    return card("Allocations over time", content, aside=chooser, className="span-12")


def job_series_card() -> Component:
    """GPUs, batch size, efficiency and slowdown over time of the jobs chosen above."""
    says = html.Span("of the same jobs, under the same two runs", className="caption")
    return card(
        "Batch size and efficiency over time",
        many_charts("compare-series"),
        aside=says,
        className="span-12",
    )


def asked_note(first: str | None, second: str | None, jobs: Sequence[str]) -> html.Div:
    """Where the runs and jobs of the address that there are none of are named."""
    asked = {"runs": [run for run in (first, second) if run], "jobs": list(jobs)}
    return html.Div([html.Div(id="compare-unknown"), dcc.Store(id="compare-asked", data=asked)])


def register(app: Dash, api: Api) -> None:
    in_browser(
        app,
        "comparisonInUrl",
        Output("compare-in-url", "data"),
        Input("compare-first", "value"),
        Input("compare-second", "value"),
        Input("compare-jobs", "value"),
        prevent_initial_call=True,
    )

    shown = {
        "_seen": Input("simulation-seen", "data"),
        "first": Input("compare-first", "value"),
    }
    answer(
        app,
        partial(offer, api),
        output={
            "firsts": Output("compare-first", "data"),
            "first": Output("compare-first", "value"),
            "seconds": Output("compare-second", "data"),
            "second": Output("compare-second", "value"),
            "offered": Output("compare-jobs", "data"),
            "jobs": Output("compare-jobs", "value"),
            "unknown": Output("compare-unknown", "children"),
        },
        inputs=shown,
        state={
            "asked": State("compare-asked", "data"),
            "simulation_id": State("simulation-id", "data"),
            "second": State("compare-second", "value"),
            "jobs": State("compare-jobs", "value"),
        },
    )
    answer(
        app,
        partial(compare, api),
        output={
            "pairs": Output("compare-pairs", "figure"),
            "allocations": Output("compare-allocations", "figure"),
            "series": Output("compare-series", "figure"),
            "sentence": Output("compare-sentence", "children"),
        },
        inputs={
            **shown,
            "second": Input("compare-second", "value"),
            "jobs": Input("compare-jobs", "value"),
        },
        state={
            "scheme": State("scheme", "data"),
            "simulation_id": State("simulation-id", "data"),
        },
    )


async def offer(
    api: Api,
    *,
    _seen: str,
    first: str | None,
    simulation_id: str,
    asked: Asked,
    second: str | None,
    jobs: list[str] | None,
) -> Changes:
    """Offer the runs that have finished, and the jobs of the first one.

    The second run is of the same trace as the first. A choice stays as long as it is offered.
    """
    try:
        async with api.visitor() as maat:
            runs = (await maat.send(calls.simulation(simulation_id)))["runs"]
            done = _finished(runs)
            if not done:
                return NOTHING
            one = next((run for run in done if run["id"] == first), done[0])
            result = await maat.send(calls.run_result(simulation_id, one["id"]))
    except Failure:
        return NOTHING
    names = dict(zip((run["id"] for run in done), run_names(done), strict=True))
    partners = partners_of(one, done)
    offered = offered_jobs(result)
    known = {option["value"] for option in offered}
    chosen = {
        "first": one["id"],
        "second": second if second in partners else next(iter(partners), None),
        "jobs": [name for name in jobs or [] if name in known] or telling_jobs(result),
    }
    before = {"first": first, "second": second, "jobs": jobs}
    return {
        "firsts": _options(names, names),
        "seconds": _options(names, partners),
        "offered": offered,
        # What stays is not sent: the reader may have chosen another since this was asked.
        **{field: value for field, value in chosen.items() if value != before[field]},
        **_unknown(asked, runs, result, simulation_id),
    }


def _unknown(
    asked: Asked, runs: Sequence[RunOut], result: RunResult, simulation_id: str
) -> Changes:
    """Name what the address asks for that there is none of; what is chosen later, there is."""
    if ctx.triggered_id == "compare-first":
        return NOTHING
    kinds = (
        ("run", asked["runs"], {run["id"] for run in runs}),
        ("job", asked["jobs"], {job["name"] for job in result["jobs"]}),
    )
    sentences = [
        f"There is no {noun} {quoted(name)} in this simulation."
        for noun, names, known in kinds
        for name in names
        if name not in known
    ]
    way = (f"/simulations/{simulation_id}", "Simulation without it")
    return {"unknown": address_note(sentences, *way) if sentences else None}


async def compare(
    api: Api,
    *,
    _seen: str,
    first: str | None,
    second: str | None,
    jobs: list[str] | None,
    scheme: str | None,
    simulation_id: str,
) -> Changes:
    """Draw the two chosen runs against each other, and the allocations of the chosen jobs."""
    if not scheme:
        return NOTHING
    try:
        async with api.visitor() as maat:
            results = await _chosen(maat, simulation_id, [first, second], jobs or [])
    except Failure as error:
        figure = error_figure(scheme, *error_message(error), height=HEIGHT)
        return {"pairs": figure, "allocations": figure, "series": figure, "sentence": "\u00a0"}
    pairs = paired_figure(results, scheme=scheme, height=HEIGHT - CAPTION_HEIGHT)
    return {
        "pairs": pairs,
        "allocations": allocations_figure(results, jobs or [], scheme=scheme),
        "series": job_series_figure(results, jobs or [], scheme=scheme),
        "sentence": _sentence(list(results), pairs.layout.meta or {}),
    }


def partners_of(one: RunOut, runs: Sequence[RunOut]) -> list[str]:
    """Runs of the same trace, whose jobs are the same, those of the same seed first."""
    same = [run for run in runs if run["trace"] == one["trace"] and run["id"] != one["id"]]
    return [run["id"] for run in sorted(same, key=lambda run: run["seed"] != one["seed"])]


def _options(names: Mapping[str, str], ids: Iterable[str]) -> list[dict[str, str]]:
    return [{"value": run_id, "label": names[run_id]} for run_id in ids]


def _finished(runs: Iterable[RunOut]) -> list[RunOut]:
    return [run for run in runs if run["state"] == "succeeded"]


async def _chosen(
    maat: AsyncClient, simulation_id: str, run_ids: Sequence[str | None], jobs: Sequence[str]
) -> dict[str, RunResult]:
    """Return run -> result with the allocations of these jobs, for runs that have finished."""
    done = _finished((await maat.send(calls.simulation(simulation_id)))["runs"])
    names = dict(zip((run["id"] for run in done), run_names(done), strict=True))
    wanted = [run_id for run_id in dict.fromkeys(run_ids) if run_id in names]
    traces = {run["id"]: run["trace"] for run in done}
    wanted = [run_id for run_id in wanted if traces[str(run_id)] == traces[str(wanted[0])]]
    answers = await asyncio.gather(
        *(maat.send(calls.run_result(simulation_id, str(run_id), jobs=jobs)) for run_id in wanted)
    )
    return {names[run_id]: answer for run_id, answer in zip(wanted, answers, strict=True)}


def offered_jobs(result: RunResult) -> list[dict[str, str]]:
    """Jobs to choose from, those that held most GPU-hours first."""
    jobs = sorted(result["jobs"], key=lambda job: -sum(job["gpu_hours_by_type"].values()))[
        :OFFERED_JOBS
    ]
    return [
        {
            "value": job["name"],
            "label": told_job(job["name"])
            if is_other(job["name"])
            else f"{job['name']} ({job['model']})",
        }
        for job in jobs
    ]


def telling_jobs(result: RunResult, count: int = FIRST_JOBS) -> list[str]:
    """Return the jobs shown at first: the largest of each model that took most GPU-hours."""
    totals = {
        model: sum(hours.values()) for model, hours in result["gpu_hours_by_model_type"].items()
    }
    models = sorted(totals, key=lambda model: -totals[model])[:count]
    of_model = {model: [job for job in result["jobs"] if job["model"] == model] for model in models}
    return [
        max(jobs, key=lambda job: sum(job["gpu_hours_by_type"].values()))["name"]
        for jobs in of_model.values()
        if jobs
    ]


def _sentence(names: Sequence[str], counted: Mapping[str, int]) -> str:
    if len(names) < 2 or "jobs" not in counted:
        return "\u00a0"
    return (
        f"{names[0]} finished {counted['sooner']} of {counted['jobs']} jobs sooner than "
        f"{names[1]}, and {counted['later']} later."
    )
