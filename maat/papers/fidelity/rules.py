"""What each rule of the fidelity `paper` does to Maat's figures."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from maat.papers.bench import Bench
from maat.papers.fidelity.published import RUNS, RunFigures
from maat.papers.fidelity.runs import (
    ARTIFACT,
    METRICS,
    PAPER,
    TRACES,
    Metric,
    difference,
    needs,
    percent,
    played,
    traces,
)
from maat.papers.items import Item, Outcomes, Row, Runs, Shown
from maat.papers.sia.policies import FAMILIES, TABLE_3
from maat.papers.sia.runs import firsts, of
from maat.scheduling.fitting import ACROSS_OVER_WITHIN, FitSearch
from maat.simulation.fidelity import GpuTimeRule
from maat.vocabulary import ProfilingMode

# ---- both fidelities


def _both_runs(bench: Bench) -> Runs:
    return {
        (trace, rules): played(bench, trace, rules)
        for trace in traces(bench)
        for rules in (PAPER, ARTIFACT)
    }


def _both(bench: Bench, outcomes: Outcomes) -> Shown:
    rows = [
        Row(
            (PAPER,),
            f"{metric.heading}: change against {ARTIFACT}, %",
            [
                100
                * difference(
                    _ours(outcomes, metric, t, PAPER), _ours(outcomes, metric, t, ARTIFACT)
                )
                for t in firsts(outcomes)
            ],
        )
        for metric in METRICS
    ]
    return Shown(
        ("fidelity",),
        rows,
        why=(
            "Seed 0, trace by trace: what the paper's rules change where the engine is the same. "
            "The published simulator itself is off the paper's table 3, over the traces that it "
            f"was run on, by {_simulator_off_paper()}."
        ),
    )


def _ours(outcomes: Outcomes, metric: Metric, *label: str) -> float:
    return of(outcomes, *label).figures[metric.name]


def _simulator_off_paper() -> str:
    """Return in words how far the published simulator is off the paper's means."""
    parts = []
    for family, name in FAMILIES.items():
        ran = [figures for trace, figures in RUNS.items() if trace.startswith(family)]
        published = RunFigures(*_of_sia(name))
        shares = (
            f"{percent(difference(fmean(map(metric.of, ran)), metric.of(published)))} of "
            f"{metric.heading.partition(',')[0]}"
            for metric in METRICS
            if metric.name in ("avg_jct_hours", "restarts_per_job")
        )
        parts.append(f"{' and '.join(shares)} ({name})")
    return "; ".join(parts)


def _of_sia(traces_name: str) -> tuple[float, ...]:
    """Return the metrics of table 3's row of Sia: contention is left out."""
    jct, p99, makespan, hours, _, _, restarts = TABLE_3[traces_name, "Sia"]
    return jct, p99, makespan, hours, restarts


# ---- one rule at a time

CHANGED_TRACES = ("philly-1", "saturn-1")
UNCHANGED = "none"
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "no profile before the first run": {
        "profiling": ProfilingMode.NO_PROFILE,
        "project_by_constant": True,
    },
    "every configuration known before the first run": {"profiling": ProfilingMode.ORACLE},
    "time to an epoch's end rounded to a second": {"whole_second_epochs": True},
    "batches planned up to the trace's size": {"plan_within_trace_batch": True},
    "restart seconds as the published simulator counts them": {
        "policy_restart_seconds": {"cifar10": 30.0, "yolov3": 45.0}
    },
    "scale-up from the most GPUs ever held": {
        "policy_parameters": {"sia": {"scale_up_base": "largest"}}
    },
    "costs rounded to two decimals": {"policy_parameters": {"sia": {"utility_decimals": 2}}},
    "moves between nodes free where the shape stays": {"free_moves_of_same_shape": True},
    "GPU-hours by whole rounds": {"gpu_time": GpuTimeRule.WHOLE_ROUNDS},
    "moves of young jobs free": {"policy_parameters": {"sia": {"young_move_freely": True}}},
    "several nodes believed 1.1 of one until tried": {"across_over_within": ACROSS_OVER_WITHIN},
    "fits that end early, as published": {"fit_search": FitSearch.PUBLISHED},
}


def _rule_runs(bench: Bench) -> Runs:
    ran = bench.pick(CHANGED_TRACES, quick=CHANGED_TRACES[:1])
    changed = bench.pick([*CHANGES], quick=[*CHANGES], tiny=[*CHANGES][:2])
    return {
        (change, trace): played(bench, trace, PAPER, **CHANGES.get(change, {}))
        for change in (UNCHANGED, *changed)
        for trace in ran
    }


def _rules(bench: Bench, outcomes: Outcomes) -> Shown:
    ran = firsts(outcomes, 1)
    return Shown(
        ("changed rule",),
        [
            Row(
                (change,),
                f"{metric.heading}: change, %",
                [
                    100
                    * difference(
                        _ours(outcomes, metric, change, trace),
                        _ours(outcomes, metric, UNCHANGED, trace),
                    )
                    for trace in ran
                ],
            )
            for change in firsts(outcomes)
            if change != UNCHANGED
            for metric in METRICS
        ],
        why=(
            f"Means over {' and '.join(ran)}, seed 0. Two runs that differ only in how a tie was "
            "broken differ by several per cent too (item traces), in p99 and makespan by more."
        ),
    )


ITEMS = (
    Item(
        "fidelities",
        "What the paper's rules change against the published simulator's",
        _both,
        runs=_both_runs,
        needs=needs(*TRACES),
        is_of_published_alone=True,
    ),
    Item(
        "rules",
        "Fidelity `paper` with one rule changed at a time",
        _rules,
        runs=_rule_runs,
        needs=needs(*CHANGED_TRACES),
        is_of_published_alone=True,
    ),
)
