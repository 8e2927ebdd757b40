"""One simulation: its progress while it runs, then the comparison of its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from frontend.addresses import add_page, among, anything
from frontend.api import Api, Failure, said
from frontend.components import conditions, fairness_rule
from frontend.components.cards import (
    card,
    definition,
    empty_state,
    error_state,
    facts,
    graph,
    link_button,
    missing,
    scrolls,
    skeleton,
)
from frontend.components.fairness_rule import RULES
from frontend.components.operations import actions, cancel_stores, progress, register_cancel
from frontend.components.states import FINAL_STATES, state_chip
from frontend.figures.base import error_figure
from frontend.figures.simulation import (
    contention_figure,
    fairness_figure,
    gpu_hours_figure,
    jct_figure,
    no_fairness,
)
from frontend.figures.spending import decision_time_figure, model_hours_figure
from frontend.formatting import ABSENT, column, number, percent, plural, rho_by
from frontend.others import OTHER_JOB, is_other, told_job
from frontend.pages import contest, side_by_side
from frontend.routing import cluster_output, cluster_store, one, register_cluster, several
from frontend.runs import named_measurements, replayed_cluster, run_names
from maat.api.simulations import DrawnRun
from maat.client import ApiError, calls
from maat.vocabulary import FairnessRule

HEIGHT = 320
FIGURES: Mapping[str, Callable[..., Any]] = {
    "simulation-jct": partial(jct_figure, height=HEIGHT),
    "simulation-rho": partial(fairness_figure, height=HEIGHT),
    "simulation-hours": partial(gpu_hours_figure, height=HEIGHT),
    "simulation-contention": partial(contention_figure, height=side_by_side.HEIGHT),
    "simulation-decisions": partial(decision_time_figure, height=HEIGHT),
    "simulation-model-hours": model_hours_figure,
}
# The element that awaits a definition, and which of the result's definitions it joins.
DEFINED = {
    "define-comparison": ("comparison",),
    "define-jct": ("jct",),
    "define-rho": ("rho",),
    "define-fairness": ("worst_rho", "unfair_fraction", "rho"),
    "define-hours": ("comparison",),
    "define-decisions": ("policy_seconds",),
    "define-contention": ("comparison",),
}
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
OF_FINISHED_JOBS = frozenset({"avg_jct_hours", "median_jct_hours", "p99_jct_hours"})


def layout(
    simulation_id: Any = "",
    rule: Any = None,
    first: Any = None,
    second: Any = None,
    job: Any = None,
    **_query: Any,
) -> html.Div:
    return html.Div(
        [
            dcc.Store(id="simulation-id", data=one(simulation_id) or ""),
            dcc.Store(id="simulation-seen", data=""),
            cluster_store("simulation"),
            *cancel_stores("simulation"),
            dmc.Group(
                [
                    html.Div(skeleton(28), id="simulation-head", style={"minWidth": "320px"}),
                    html.Div(id="simulation-actions"),
                ],
                justify="space-between",
                className="page-head",
            ),
            html.Div(id="simulation-progress"),
            html.Div(
                [
                    *contest.contest_cards(),
                    html.Div(id="simulation-drawn", className="caption span-12"),
                    card(
                        "Job completion time",
                        [
                            graph("simulation-jct", height=HEIGHT),
                            html.Div(id="simulation-unfinished", className="caption"),
                        ],
                        aside=definition("JCT", text_id="define-jct"),
                        className="span-6",
                    ),
                    card(
                        "Finish-time fairness",
                        [
                            graph("simulation-rho", height=HEIGHT),
                            html.Div(id="simulation-rule-words", className="caption"),
                        ],
                        aside=_beside(
                            fairness_rule.selector("simulation-rule", rule),
                            definition("rho", text_id="define-rho"),
                        ),
                        className="span-6",
                    ),
                    card(
                        "Least fair to",
                        scrolls("simulation-fairness", skeleton(140), label="Least fair to"),
                        aside=definition("unfair", text_id="define-fairness"),
                        className="span-12",
                    ),
                    card(
                        "GPU-hours by type",
                        graph("simulation-hours", height=HEIGHT),
                        aside=definition("GPU-hours", text_id="define-hours"),
                        className="span-6",
                    ),
                    card(
                        "Decision time",
                        graph("simulation-decisions", height=HEIGHT),
                        aside=definition("decision time", text_id="define-decisions"),
                        className="span-6",
                    ),
                    card(
                        "GPU-hours by model and type",
                        graph("simulation-model-hours"),
                        aside=html.Span(
                            "means over the jobs of a model; every model has its own scale",
                            className="caption",
                        ),
                        className="span-12",
                    ),
                    side_by_side.pairs_card(one(first), one(second)),
                    card(
                        "Contention",
                        graph("simulation-contention", height=side_by_side.HEIGHT),
                        aside=definition("contention", text_id="define-contention"),
                        className="span-6",
                    ),
                    side_by_side.allocations_card(several(job)),
                    card(
                        "Runs",
                        [
                            scrolls("simulation-table", skeleton(140), label="Runs"),
                            html.Div(id="simulation-notes", className="caption"),
                        ],
                        className="span-12",
                    ),
                    card(
                        "What was simulated", html.Div(id="simulation-request"), className="span-12"
                    ),
                ],
                className="columns",
                id="simulation-body",
            ),
        ]
    )


def _beside(chooser: Any, button: Any) -> dmc.Group:
    return dmc.Group([chooser, button], gap=8)


def register(app: Dash, api: Api) -> None:
    register_cluster(app, "simulation")
    takes = {
        "rule": among("rule of fairness", RULES),
        "first": anything,
        "second": anything,
        "job": anything,
    }
    add_page(
        __name__,
        path_template="/simulations/<simulation_id>",
        name="Simulation",
        title="Simulation",
        layout=layout,
        takes=takes,
    )
    contest.register(app, api)
    side_by_side.register(app, api)
    fairness_rule.keep_in_address(app, "simulation-rule")
    register_cancel(app, api, "simulation", calls.simulation, stays="What has finished stays.")

    @app.callback(
        cluster_output("simulation"),
        Output("simulation-body", "style"),
        Output("simulation-head", "children"),
        Output("simulation-actions", "children"),
        Output("simulation-progress", "children"),
        Output("simulation-table", "children"),
        Output("simulation-request", "children"),
        Output("simulation-drawn", "children"),
        Output("simulation-notes", "children"),
        Output("simulation-unfinished", "children"),
        Output("simulation-rule-words", "children"),
        Output("simulation-fairness", "children"),
        *(Output(figure_id, "figure") for figure_id in FIGURES),
        *(Output(text_id, "children") for text_id in DEFINED),
        Output("simulation-seen", "data"),
        Input("live", "data"),
        Input("scheme", "data"),
        Input("simulation-cancelling", "data"),
        Input("simulation-rule", "value"),
        State("simulation-id", "data"),
        State("simulation-seen", "data"),
    )
    async def show(
        _live: Any,
        scheme: str | None,
        _cancelling: Any,
        chosen_rule: str | None,
        simulation_id: str,
        seen: str,
    ) -> tuple[Any, ...]:
        """Progress on every beat; results only when another run has finished, or the colours or the rule of fairness changed."""
        if not scheme or (seen.startswith("over") and ctx.triggered_id == "live"):
            return (no_update,) * (13 + len(FIGURES) + len(DEFINED))
        rule = fairness_rule.asked(chosen_rule)
        try:
            async with api.visitor() as maat:
                simulation = await maat.send(calls.simulation(simulation_id))
                operation = await maat.operation(simulation["operation_id"])
                done = [run for run in simulation["runs"] if run["state"] == "succeeded"]
                mark = (
                    ("over:" if operation["state"] in FINAL_STATES else "running:")
                    + str(len(done))
                    + scheme
                    + rule
                )
                drawn = drawn_runs(done)
                found = None
                if mark != seen:
                    found = await maat.send(
                        calls.figures(
                            simulation_id, runs=[run["id"] for run in drawn], fairness_rule=rule
                        )
                    )
        except Failure as error:
            return _failed(error, scheme)
        head = dmc.Group(
            [
                html.H1(simulation["name"] or simulation_id, className="page-title"),
                state_chip(operation["state"]),
            ],
            gap=12,
        )
        buttons = actions("simulation", operation, "New simulation", "/simulate")
        upper: tuple[Any, ...] = (
            replayed_cluster(simulation["request"]),
            {},
            head,
            buttons,
            progress(operation, failed="The simulation failed"),
            _table(simulation["runs"]),
            _request(simulation["request"], simulation["measurements"]),
            _drawn_words(drawn, done),
            _notes(simulation["runs"]),
        )
        if found is None:
            return (*upper, *(no_update,) * (4 + len(FIGURES) + len(DEFINED)))
        runs = dict(zip(run_names(drawn), found["runs"], strict=True)) if drawn else {}
        figures = (draw(runs, scheme=scheme) for draw in FIGURES.values())
        words = (unfinished_words(runs), fairness_words(rule), least_fair(runs))
        return (*upper, *words, *figures, *_definitions(found["definitions"]), mark)


def drawn_runs(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The runs that the figures show: all, or of many those on the first one's trace and seed."""
    if len(runs) <= MANY_RUNS:
        return list(runs)
    return [
        run for run in runs if (run["trace"], run["seed"]) == (runs[0]["trace"], runs[0]["seed"])
    ][:MOST_DRAWN]


def _drawn_words(drawn: Sequence[Mapping[str, Any]], done: Sequence[Mapping[str, Any]]) -> str:
    if len(drawn) == len(done):
        return ""
    return f"The figures below show {len(drawn)} of {len(done)} runs: those on trace {drawn[0]['trace'] + 1} with seed {drawn[0]['seed']}."


def _table(runs: Sequence[Mapping[str, Any]]) -> Any:
    """Runs x figures of merit. Jobs that did not finish, and failures, have columns where there are any."""
    summaries = [_known(run["summary"] or {}) for run in runs]
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


def _notes(runs: Sequence[Mapping[str, Any]]) -> list[html.Div]:
    """What a reader of the figures should know: what a policy lacks, and what keeps jobs that did not finish from GPUs."""
    told: dict[str, list[str]] = {}
    for name, run in zip(run_names(runs), runs, strict=True):
        summary = run["summary"] or {}
        waiting = (
            f"{OTHER_JOB if is_other(job) else job} did not finish. {why}"
            for job, why in (summary.get("unfinished_because") or {}).items()
        )
        for line in (*(summary.get("notes") or ()), *waiting):
            told.setdefault(line, []).append(name)
    return [
        html.Div(f"{', '.join(names)}: {line}") for line, names in list(told.items())[:MOST_NOTES]
    ]


def _known(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A summary without completion times where no job completed: a zero would win the comparison."""
    nothing_finished = bool(summary.get("jobs")) and summary.get("unfinished") == summary["jobs"]
    known = {
        field: None if nothing_finished and field in OF_FINISHED_JOBS else value
        for field, value in summary.items()
    }
    held = known.get("utilisation_busy")
    return known if held is None else known | {"utilisation_busy": 100 * held}


def _number(value: Any) -> float | None:
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
    return f"{fairness_rule.meaning(rule)} Right of ρ = 1: worse off than alone."


def least_fair(runs: Mapping[str, DrawnRun]) -> Any:
    """Runs x worst rho, share of unfair jobs, and the jobs that fared worst."""
    worst = column([run["worst_rho"] for run in runs.values()])
    rows = [
        html.Tr(
            [
                html.Td(name),
                html.Td(rho, className="number"),
                html.Td(percent(run["unfair_fraction"]), className="number"),
                html.Td(
                    ", ".join(
                        f"{told_job(job['name'])} ({number(job['rho'])})"
                        for job in run["worst_off"]
                    )
                    or ABSENT,
                    className="wraps",
                ),
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
        html.Th("Unfair jobs (ρ > 1)", className="number"),
        html.Th("Worst off (ρ)"),
    ]
    return html.Table([html.Thead(html.Tr(heads)), html.Tbody(rows)], className="plain-table")


def _definitions(known: Mapping[str, str]) -> list[Any]:
    """One text for every button, in the order of DEFINED; they come with the first run that finished, for they are what its code said."""
    if not known:
        return [no_update] * len(DEFINED)
    return [
        "\n\n".join(known[name] for name in names if name in known) for names in DEFINED.values()
    ]


def _request(request: Mapping[str, Any], measurements: Sequence[Mapping[str, Any]]) -> html.Dl:
    traces = request["traces"] if "traces" in request else [request["trace"]]
    told = [
        ", ".join(f"{name} {value}" for name, value in trace.items() if value is not None)
        for trace in traces
    ]
    return facts(
        [
            ("Traces" if len(told) > 1 else "Trace", "; ".join(told)),
            ("Cluster", request["cluster"]),
            ("Fidelity", request.get("fidelity") or ABSENT),
            *conditions.told(request, named_measurements(measurements)),
        ]
    )


def _failed(error: Exception, scheme: str) -> tuple[Any, ...]:
    """A simulation that there is none of has no panels."""
    if isinstance(error, ApiError) and error.status == 404:
        state = missing(
            "No such simulation",
            "It may belong to another tenant, or the link is mistyped.",
            "All simulations",
            "/simulate",
        )
        texts = (no_update, {"display": "none"}, "", None, state, *("",) * 7)
        return (*texts, *(no_update,) * (len(FIGURES) + len(DEFINED)), "over:missing")
    title, remedy = said(error)
    figure = error_figure(scheme, title, remedy, height=HEIGHT)
    head: tuple[Any, ...] = (
        no_update,
        {},
        html.H1(title, className="page-title"),
        link_button("All simulations", "/simulate"),
        None,
        error_state(error),
        *("",) * 6,
    )
    return (*head, *(figure,) * len(FIGURES), *(no_update,) * len(DEFINED), "failed")
