"""How the policies of a simulation compare over all traces and seeds, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import aria
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components import fairness_rule
from frontend.components.cards import (
    card,
    definition,
    empty_state,
    error_state,
    graph,
    scrolls,
    skeleton,
)
from frontend.figures.contest import ratio_figure, row_id
from frontend.formatting import ABSENT, number, percent, plural, rho_by
from frontend.pages.simulation.verdict import sentences
from maat.api.simulation_answers import (
    ComparedContestant,
    Comparison,
    Interval,
    PairedDifference,
    Spread,
)
from maat.client import ApiError, calls
from maat.figures.base import empty_figure, error_figure

WORST_RHO = "worst_rho"
# Field, heading with unit, digits.
FIGURES = (
    ("avg_jct_hours", "Mean JCT (h)", 3),
    ("p99_jct_hours", "p99 JCT (h)", 2),
    ("makespan_hours", "Makespan (h)", 2),
    ("gpu_hours_per_job", "GPU-hours per job", 2),
    ("restarts_per_job", "Restarts per job", 2),
    ("avg_queueing_hours", "Queueing delay (h)", 3),
    ("avg_waiting_hours", "Waiting in all (h)", 3),
    ("contention_mean", "Contention", 1),
    (WORST_RHO, "Worst rho", 2),
)
CANNOT_RUN = ("cannot_run", "Cannot run", 1)  # a mean over runs
UNFINISHED = ("unfinished", "Unfinished", 1)
BASES = {
    "traces": (
        "Intervals (95 %) are over the traces: what another trace like these would show. "
        "Seeds of one trace count once, by their mean."
    ),
    "seeds": (
        "Intervals (95 %) are over the seeds of this one trace: they say nothing of other traces."
    ),
    "jobs": (
        "Intervals (95 %) are over the jobs of this one run: they say nothing of other traces. "
        "Simulate several seeds or traces for that."
    ),
}
# Title, what the means say below it, what the differences say.
NOTHING_YET = (
    "No run has finished yet",
    "The comparison shows when the first has.",
    "It shows when two have.",
)
NOTHING_FINISHED = (
    "No run has finished",
    "The simulation ended before. Runs, below, says how each ended.",
    "There is nothing to compare.",
)
VERDICTS = {
    "faster": "lower",
    "slower": "higher",
    "not told apart": "not told apart",
    "not all jobs can run": "not all jobs can run",
}


def contest_cards() -> list[Component]:
    baseline = dmc.Select(
        id="contest-baseline",
        data=[],
        value=None,
        size="xs",
        w=260,
        allowDeselect=False,
        **aria("Baseline"),
    )
    against = dmc.Group([html.Span("against", className="caption"), baseline], gap=8)
    return [
        card(
            "Comparison",
            scrolls("contest-means", skeleton(140), label="Comparison"),
            aside=definition("each column", text_id="define-comparison"),
            className="span-12",
        ),
        card(
            "Differences, job by job",
            [
                html.Div("\u00a0", id="contest-basis", className="caption"),
                graph("contest-ratios"),
                scrolls("contest-paired", label="Differences, job by job"),
            ],
            aside=against,
            className="span-12",
        ),
    ]


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show, api),
        output={
            "verdict": Output("simulation-verdict", "children"),
            "means": Output("contest-means", "children"),
            "paired": Output("contest-paired", "children"),
            "ratios": Output("contest-ratios", "figure"),
            "basis": Output("contest-basis", "children"),
            "offered": Output("contest-baseline", "data"),
            "baseline": Output("contest-baseline", "value"),
        },
        inputs={
            "seen": Input("simulation-seen", "data"),
            "baseline": Input("contest-baseline", "value"),
        },
        state={
            "scheme": State("scheme", "data"),
            "simulation_id": State("simulation-id", "data"),
            "rule": State("simulation-rule", "value"),
        },
    )


async def show(
    api: Api,
    *,
    seen: str,
    baseline: str | None,
    scheme: str | None,
    simulation_id: str,
    rule: str | None,
) -> Changes:
    """Compare all runs that have finished with those of the chosen baseline."""
    if not scheme:
        return NOTHING
    call = calls.comparison(
        simulation_id,
        baseline=None if baseline is None else int(baseline),
        fairness_rule=fairness_rule.asked(rule),
    )
    try:
        async with api.visitor() as maat:
            found = await maat.send(call)
    except Failure as error:
        return failed(error, scheme, over=seen.startswith("over"))
    names = [contestant["name"] for contestant in found["contestants"]]
    return {
        "verdict": [html.Div(told, className="sentence") for told in sentences(found)],
        "means": means(found),
        "paired": differences(found),
        "ratios": ratio_figure(found, scheme=scheme),
        "basis": next((BASES[row["basis"]] for row in found["paired"]), "\u00a0"),
        "offered": [{"value": str(i), "label": name} for i, name in enumerate(names)],
        "baseline": str(found["baseline"]),
    }


def failed(error: Exception, scheme: str, *, over: bool) -> Changes:
    """Return what to show of a failure. `over`: the simulation has ended, so no run will follow."""
    if isinstance(error, ApiError) and error.status == 409:
        title, means_say, ratios_say = NOTHING_FINISHED if over else NOTHING_YET
        shown: Component = empty_state(title, means_say)
        figure = empty_figure(scheme, title, ratios_say, height=200)
    else:
        shown = error_state(error)
        figure = error_figure(scheme, "No comparison", height=200)
    return {"verdict": None, "means": shown, "paired": None, "ratios": figure, "basis": "\u00a0"}


def means(comparison: Comparison) -> Component:
    """Contestants x figures: mean ± sample standard deviation over runs."""
    contestants = comparison["contestants"]
    left = any(_left_jobs(contestant) for contestant in contestants)
    never = any(_cannot_run(contestant) for contestant in contestants)
    offered = (*((CANNOT_RUN,) if never else ()), *((UNFINISHED,) if left else ()), *FIGURES)
    shown = [
        (field, head, digits)
        for field, head, digits in offered
        if any(field in c["figures"] for c in contestants)
    ]
    heads = [
        html.Th("Policy + placer"),
        html.Th("Runs", className="number"),
        *(html.Th(_head(comparison, field, head), className="number") for field, head, _ in shown),
    ]
    rows = [
        html.Tr(
            [
                html.Td(contestant["name"]),
                html.Td(str(contestant["figures"]["jobs"]["runs"]), className="number"),
                *(
                    html.Td(_figure_text(contestant, field, digits), className="number")
                    for field, _, digits in shown
                ),
            ]
        )
        for contestant in contestants
    ]
    table = html.Table(
        [html.Thead(html.Tr(heads)), html.Tbody(rows)],
        className="plain-table pinned many-columns",
    )
    return (
        html.Div([table, html.Div("* of the jobs that finished", className="caption")])
        if left
        else table
    )


def _head(comparison: Comparison, field: str, head: str) -> str:
    return f"Worst {rho_by(comparison['fairness_rule'])}" if field == WORST_RHO else head


def _left_jobs(contestant: ComparedContestant) -> bool:
    """Return whether a run left jobs unfinished: its mean JCT is then of fewer jobs."""
    unfinished = contestant["figures"].get("unfinished")
    return unfinished is not None and unfinished["mean"] > 0


def _cannot_run(contestant: ComparedContestant) -> bool:
    never = contestant["figures"].get("cannot_run")
    return never is not None and never["mean"] > 0


def _figure_text(contestant: ComparedContestant, field: str, digits: int) -> str:
    text = spread_text(contestant["figures"].get(field), digits)
    return (
        f"{text}*"
        if field == "avg_jct_hours" and text != ABSENT and _left_jobs(contestant)
        else text
    )


def spread_text(spread: Spread | None, digits: int) -> str:
    if spread is None:
        return ABSENT
    mean = f"{spread['mean']:.{digits}f}"
    return mean if spread["deviation"] is None else f"{mean} ± {spread['deviation']:.{digits}f}"


def differences(comparison: Comparison) -> Component | None:
    """Contestants x difference of JCT, ratio, share of jobs sooner, and the verdict."""
    if not comparison["paired"]:
        return None
    names = [contestant["name"] for contestant in comparison["contestants"]]
    heads = (
        "Policy + placer",
        "JCT difference (h)",
        "JCT ratio",
        "Jobs sooner",
        "Compared",
        "Mean JCT is",
    )
    rows = [_difference(row, names[row["contestant"]]) for row in comparison["paired"]]
    head = html.Tr(
        [
            html.Th(heads[0]),
            *(html.Th(text, className="number") for text in heads[1:-1]),
            html.Th(heads[-1]),
        ]
    )
    table = html.Table([html.Thead(head), html.Tbody(rows)], className="plain-table pinned")
    notes = [
        html.Div(row["note"], className="caption")
        for row in comparison["paired"]
        if row.get("note")
    ]
    return html.Div([table, *notes])


def _difference(row: PairedDifference, name: str) -> html.Tr:
    compared = f"{plural(row['jobs'], 'job')} in {plural(row['runs'], 'run')}"
    if row["left_out"]:
        compared += f", {number(row['left_out'])} left out"
    cells: Sequence[str] = (
        interval_text(row["difference_hours"], "+.3f"),
        interval_text(row["ratio"], ".3f"),
        percent(row["sooner"]),
        compared,
    )
    return html.Tr(
        [
            html.Td(name),
            *(html.Td(text, className="number") for text in cells),
            html.Td(_side(row)),
        ],
        id=row_id(row["contestant"]),
    )


def _side(row: PairedDifference) -> str:
    """On which side of the baseline's the mean JCT is, as far as its basis tells."""
    if row["verdict"] == "not told apart" and row["basis"] == "jobs":
        return "not certain on one seed"
    return VERDICTS[row["verdict"]]


def interval_text(interval: Interval, form: str) -> str:
    if interval["low"] is None or interval["high"] is None:
        return f"{interval['estimate']:{form}} (unknown)"
    return f"{interval['estimate']:{form}} [{interval['low']:{form}}, {interval['high']:{form}}]"
