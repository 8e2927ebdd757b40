"""The tables and sentences of an experiment, and its tables as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from frontend.components import conditions
from frontend.components.cards import empty_state, facts
from frontend.formatting import as_typed, column, number, percent, plural
from frontend.runs import named_measurements
from maat.api.experiments import AutoscalingOut, ExperimentDetail, RentedOut, SearchOut, TuningOut
from maat.csv_output import csv_text
from maat.figures.experiments import best_scores

MOST_TRIALS = 10
NOTHING_YET = ("No run has ended yet", "Each stands here as soon as a worker has played it.")
SETTINGS = (
    ("learning_rate", "Learning rate"),
    ("annealing", "Annealing"),
    ("momentum", "Momentum"),
    ("weight_decay", "Weight decay"),
    ("width", "Width"),
)


def verdict(found: ExperimentDetail) -> str:
    """Say what the experiment shows, once both runs that it compares have ended."""
    if found["kind"] == "autoscaling":
        return _scaling_verdict(found["runs"])
    return _search_verdict(found["runs"])


def _scaling_verdict(runs: Sequence[RentedOut]) -> str:
    by = {run["run"]: run for run in runs}
    ours, theirs = by.get("goodput"), by.get("throughput")
    if ours is None or theirs is None or not theirs["node_seconds"] or not theirs["seconds"]:
        return ""
    cost = _against(ours["node_seconds"], theirs["node_seconds"], "less", "more")
    time = _against(ours["seconds"], theirs["seconds"], "less time", "more time")
    words = f"Renting by goodput costs {cost} and takes {time} than by throughput."
    beaten = [
        run
        for run in runs
        if run["nodes"] is not None
        and run["node_seconds"] <= ours["node_seconds"]
        and run["seconds"] <= ours["seconds"]
        and not run["unfinished"]
    ]
    if not any(run["nodes"] is not None for run in runs):
        return words
    if beaten:
        best = min(beaten, key=lambda run: run["node_seconds"])["title"].capitalize()
        return f"{words} {best} throughout cost and take no more than goodput."
    return f"{words} No fixed number of nodes that was tried costs and takes less than goodput."


def _search_verdict(runs: Sequence[SearchOut]) -> str:
    by = {run["run"]: run for run in runs}
    elastic, static = by.get("elastic"), by.get("static")
    if elastic is None or static is None or not static["makespan_seconds"]:
        return ""
    end = _against(elastic["makespan_seconds"], static["makespan_seconds"], "sooner", "later")
    trial = _against(elastic["avg_jct_seconds"], static["avg_jct_seconds"], "less", "more")
    return f"With elastic trials the search ends {end}; a trial takes {trial} time on average."


def _against(value: float, of: float, less: str, more: str) -> str:
    """Return `22 % less` for values of 78 and 100."""
    share = value / of - 1
    if share > 0:
        return f"{percent(share)} {more}"
    words = percent(-share)
    return f"{'over 99 %' if words == '100 %' and value > 0 else words} {less}"


def runs_table(runs: Sequence[RentedOut]) -> Component:
    """Runs x cost, time, efficiency and restarts."""
    if not runs:
        return empty_state(*NOTHING_YET)
    left = any(run["unfinished"] for run in runs)
    heads = (
        *("Nodes chosen", "Node-hours", "Hours", "Mean JCT (h)", "Efficiency", "Restarts"),
        *(("Unfinished",) if left else ()),
    )
    columns = [
        column([run["node_seconds"] / 3600 for run in runs]),
        column([run["seconds"] / 3600 for run in runs]),
        column([run["avg_jct_seconds"] / 3600 for run in runs]),
        [percent(run["efficiency"]) for run in runs],
        [str(run["restarts"]) for run in runs],
        *([[str(run["unfinished"]) for run in runs]] if left else []),
    ]
    return _table(heads, [run["title"] for run in runs], columns)


def searches_table(runs: Sequence[SearchOut]) -> Component:
    """Searches x score, times."""
    if not runs:
        return empty_state(*NOTHING_YET)
    score = f"{best_scores(max(len(run['trials']) for run in runs))} (%)"
    heads = ("Search", "Trials", score, "Mean JCT (min)", "Makespan (h)")
    columns = [
        [str(len(run["trials"])) for run in runs],
        [f"{run['top_score']:.2f}" for run in runs],
        column([run["avg_jct_seconds"] / 60 for run in runs]),
        column([run["makespan_seconds"] / 3600 for run in runs]),
    ]
    return _table(heads, [run["title"] for run in runs], columns)


def best_table(runs: Sequence[SearchOut]) -> Component:
    """The best trials of all searches, with what they chose."""
    trials = [(run, trial) for run in runs for trial in run["trials"]]
    if not trials:
        return empty_state(*NOTHING_YET)
    best = sorted(trials, key=lambda one: -one[1]["score"])[:MOST_TRIALS]
    heads = ("Trial", "Search", "Score (%)", "Ended (h)", *(words for _, words in SETTINGS))
    columns = [
        [run["run"] for run, _ in best],
        [f"{trial['score']:.2f}" for _, trial in best],
        column([trial["end_seconds"] / 3600 for _, trial in best]),
        *([number(trial["settings"].get(name)) for _, trial in best] for name, _ in SETTINGS),
    ]
    return _table(heads, [trial["name"] for _, trial in best], columns)


def _table(
    heads: Sequence[str], names: Sequence[str], columns: Sequence[Sequence[str]]
) -> Component:
    """A table whose first column has names, and the others figures."""
    head = html.Tr(
        [html.Th(text, className="number" if place else "") for place, text in enumerate(heads)]
    )
    rows = [
        html.Tr([html.Td(name), *(html.Td(texts[place], className="number") for texts in columns)])
        for place, name in enumerate(names)
    ]
    return html.Table(
        [html.Thead(head), html.Tbody(rows)], className="plain-table many-columns pinned"
    )


def request_facts(found: ExperimentDetail) -> html.Dl:
    request = found["request"]
    of_kind = _scaling_facts(found) if found["kind"] == "autoscaling" else _search_facts(found)
    used = named_measurements(found["measurements"])
    return facts(
        [
            *of_kind,
            ("Fidelity", request["fidelity"]),
            *(("Step times and gradients", one["name"]) for one in used),
        ]
    )


def _scaling_facts(found: AutoscalingOut) -> list[tuple[str, str]]:
    request = found["request"]
    trace = request["trace"]
    trained = (
        [("Model", request["model"])]
        if trace is None
        else [("Trace", conditions.trace_words(trace)), ("Policy", request["policy"])]
    )
    averaged = plural(request["window"], "decision")
    given_back = request["give_back_below"]
    return [
        *trained,
        ("Nodes to rent from", request["cluster"]),
        ("Nodes are added above", f"{percent(request['upper'])} of the ideal"),
        ("down to", f"{percent(request['lower'])} of the ideal"),
        ("Goodput's share is averaged over", averaged),
        ("Nodes are given back below", percent(given_back) if given_back else "never"),
    ]


def _search_facts(found: TuningOut) -> list[tuple[str, str]]:
    request = found["request"]
    static = f"{request['static_gpus']} GPUs, {request['static_batch_per_gpu']} samples on each"
    return [
        ("Model", request["model"]),
        ("Cluster", request["cluster"]),
        ("Trials", f"{request['trials']}, {request['at_a_time']} at a time"),
        ("Static trials", static),
        ("Length of a trial", f"{as_typed(request['work_scale'])} × the standard training"),
        ("Policy of elastic trials", request["policy"]),
        ("Seed", str(request["seed"])),
        ("Scores", found["scores"]),
    ]


def runs_csv(runs: Sequence[RentedOut]) -> str:
    names = (
        *("run", "nodes", "node_seconds", "seconds", "avg_jct_seconds"),
        *("efficiency", "restarts", "unfinished"),
    )
    return csv_text(names, [[run["title"], *(run[name] for name in names[1:])] for run in runs])  # type: ignore[literal-required]


def searches_csv(runs: Sequence[SearchOut]) -> str:
    names = ("search", "policy", "placer", "top_score", "avg_jct_seconds", "makespan_seconds")
    return csv_text(names, [[run["run"], *(run[name] for name in names[1:])] for run in runs])  # type: ignore[literal-required]


def trials_csv(runs: Sequence[SearchOut]) -> str:
    heads = ("search", "trial", "submit_seconds", "end_seconds", "score")
    rows = [
        [
            *(run["run"], trial["name"], trial["submit_seconds"], trial["end_seconds"]),
            trial["score"],
            *(trial["settings"].get(name) for name, _ in SETTINGS),
        ]
        for run in runs
        for trial in run["trials"]
    ]
    return csv_text([*heads, *(name for name, _ in SETTINGS)], rows)
