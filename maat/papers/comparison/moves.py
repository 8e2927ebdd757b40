"""What a least stay of jobs, and a most of moves in an hour, cost under Sia."""

from __future__ import annotations

from collections.abc import Mapping

from maat.figures.bars import grouped_bars
from maat.figures.data import Estimate
from maat.papers.bench import Bench
from maat.papers.items import Item, Outcomes, Row, Runs, Shown
from maat.papers.sia.runs import USES, firsts, of, scenario
from maat.scheduling.stability import NO_BOUNDS, Stability

BOUNDS: Mapping[str, Stability] = {
    "none": NO_BOUNDS,
    "least stay 10 min": Stability(least_stay_seconds=600.0),
    "least stay 30 min": Stability(least_stay_seconds=1800.0),
    "4 moves an hour": Stability(most_moves_per_hour=4),
    "2 moves an hour": Stability(most_moves_per_hour=2),
}
FIGURES = {
    "avg_jct_hours": "average JCT, h",
    "median_jct_hours": "median JCT, h",
    "p99_jct_hours": "p99 JCT, h",
    "gpu_hours_per_job": "GPU-hours per job",
    "restarts_per_job": "restarts per job",
}


def _runs(bench: Bench) -> Runs:
    workload = bench.sia_trace("philly", 1, bench.sia_models())
    bounds = bench.pick([*BOUNDS], quick=[*BOUNDS], tiny=[*BOUNDS][:2])
    return {(name,): scenario(bench, workload, stability=BOUNDS[name]) for name in bounds}


def _shown(bench: Bench, outcomes: Outcomes) -> Shown:
    names = firsts(outcomes)
    jct = [Estimate(of(outcomes, name).figures["avg_jct_hours"]) for name in names]
    return Shown(
        ("bound",),
        [
            Row((name,), title, [of(outcomes, name).figures[figure]])
            for name in names
            for figure, title in FIGURES.items()
        ],
        why=(
            "Nobody published this: Sia on philly-1, seed 0, where a job stays on its GPUs for a "
            "least time, or is moved at most so often in an hour (--least-stay-seconds, "
            "--most-moves-per-hour of maat simulate)."
        ),
        figure=grouped_bars(names, {"Sia": jct}, x="Bound", y="Average JCT (hours)"),
    )


ITEMS = (
    Item(
        "moves",
        "What it costs to move jobs less often",
        _shown,
        runs=_runs,
        uses=USES[:2],
        cpu_minutes=(0.7, 0.7),
    ),
)
