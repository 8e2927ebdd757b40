"""Pollux sections 5.2 and 5.3.1: schedulers on the same workloads (table 2, figures 5 to 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from maat.figures.data import Distribution, Series
from maat.figures.distributions import cdf
from maat.figures.marks import mark
from maat.figures.panels import grid, stacked
from maat.figures.runs import gpus_in_use, mean_efficiency
from maat.figures.steps import step_lines
from maat.papers.bench import Bench
from maat.papers.items import Item, Outcomes, Published, Row, Runs, Shown
from maat.papers.observation import Columns, Observation
from maat.papers.pollux.runs import (
    CONTENDERS,
    OPTIMUS,
    POLLUX,
    THREE,
    TIRESIAS,
    USES,
    compared,
    each,
    of,
    shorter,
    traces,
)
from maat.scheduling.arrays import FloatArray

MEASURES = {
    "avg_jct_hours": "average JCT, h",
    "p99_jct_hours": "p99 JCT, h",
    "makespan_hours": "makespan, h",
}
STATED = "the paper's testbed ran a workload that is not named"

# ---- table 2

_TABLE_2: Mapping[str, Sequence[float]] = {
    POLLUX: (0.76, 11, 16),
    OPTIMUS: (1.5, 15, 20),
    TIRESIAS: (1.2, 15, 24),
    "Optimus+Oracle": (2.7, 22, 28),
    "Tiresias": (2.8, 25, 31),
    "Pollux (p = +1)": (0.83, 10, 16),
    "Pollux (p = -10)": (0.84, 12, 18),
}
# section 5.3 (simulated) and 5.2 (testbed): by how much less Pollux's average JCT is, in %
_SHORTER = {OPTIMUS: 48.0, TIRESIAS: 32.0, "Optimus+Oracle": 72.0, "Tiresias": 73.0}


def _table_2_runs(bench: Bench) -> Runs:
    return compared(bench, CONTENDERS)


def _table_2(bench: Bench, outcomes: Outcomes) -> Shown:
    rows = [
        Row((name,), measure, each(outcomes, figure, name), value)
        for name, published in _TABLE_2.items()
        for (figure, measure), value in zip(MEASURES.items(), published, strict=True)
    ]
    jct = {name: each(outcomes, "avg_jct_hours", name) for name in CONTENDERS}
    rows += [
        Row((POLLUX,), f"average JCT below {name}'s, %", shorter(jct[POLLUX], jct[name]), value)
        for name, value in _SHORTER.items()
    ]
    return Shown(
        ("policy",),
        rows,
        why=(
            f"Ours are simulated by the rules of the published simulator, while {STATED}; only the "
            "48 and 32 % are of the paper's simulations, of its eight workloads, and here they are "
            f"of {', '.join(traces(bench))}."
        ),
    )


# ---- figure 5

AVERAGED_HOURS = 0.25


def _three_runs(bench: Bench) -> Runs:
    first = next(iter(traces(bench)))
    return {label: run for label, run in compared(bench, THREE).items() if label[1] == first}


def _hours(table: Columns) -> list[float]:
    return [float(second or 0) / 3600 for second in table["time_seconds"]]


def _step_mean(table: Columns, column: str, *, since: float = 0.0, until: float) -> float | None:
    """Return the mean over time of a column where it is known; None: nowhere."""
    times = np.clip(np.append(_hours(table), until), since, until)
    values = np.array([np.nan if v is None else float(v) for v in table[column]])
    lengths = np.where(np.isnan(values), 0.0, np.diff(times))
    if lengths.sum() <= 0:
        return None
    return float((lengths * np.nan_to_num(values)).sum() / lengths.sum())


def _averaged(table: Columns, column: str, *, until: float) -> Series:
    """Return the means of a column over spans of AVERAGED_HOURS."""
    starts = np.arange(0.0, until, AVERAGED_HOURS).tolist()
    means = [
        _step_mean(table, column, since=start, until=min(start + AVERAGED_HOURS, until))
        for start in starts
    ]
    return Series([*starts, until], [*means, means[-1]])


def _cluster_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    rows: list[Row] = []
    gpus: dict[str, Series] = {}
    kept: dict[str, Series] = {}
    for label, run in outcomes.items():
        name, end = label[0], run.figures["makespan_hours"]
        used, efficiency = run.series["gpus"], run.series["efficiency"]
        gpus[name] = _averaged(used, "gpus", until=end)
        kept[name] = _averaged(efficiency, "efficiency", until=end)
        for table, column, measure, scale in (
            (used, "gpus", "GPUs in use, mean", 1),
            (efficiency, "efficiency", "statistical efficiency, mean, %", 100),
        ):
            mean = _step_mean(table, column, until=end)
            rows.append(Row((name,), measure, [] if mean is None else [scale * mean]))
    pollux = next(run for label, run in outcomes.items() if label[0] == POLLUX)
    busy, idle = _by_contention(pollux)
    if busy is not None and idle is not None:
        measure = "efficiency in the most contended quarter of rounds / in the least"
        rows.append(Row((POLLUX,), measure, [busy / idle], Published(least=1)))
    return Shown(
        ("policy",),
        rows,
        why=(
            "The paper draws lines without numbers, of its testbed: under Pollux efficiency rises "
            "while many jobs contend, and falls while few do; its dip of Tiresias, where a job of "
            "24 GPUs blocks one of 48, is of that workload. Lines are means over quarters of an "
            "hour; quarters of rounds are of those up to the last submission."
        ),
        figure=stacked(
            gpus_in_use({name: {"all": series} for name, series in gpus.items()}),
            mean_efficiency(kept),
        ),
    )


def _shares(values: Sequence[object]) -> list[float | None]:
    return [value if isinstance(value, float) else None for value in values]


def _by_contention(run: Observation) -> tuple[float | None, float | None]:
    """Return the mean efficiency in the rounds of most and of least contention, a quarter each.

    Of rounds up to the last submission: afterwards few jobs are left, late in their training.
    Rounds without a job that trains are left out; None: there are no others.
    """
    active = np.array(run.rounds["active_jobs"], dtype=np.float64)
    times = np.array(_hours(run.rounds))
    table = run.series["efficiency"]
    changes, values = np.array(_hours(table)), _shares(table["efficiency"])
    at = np.searchsorted(changes, times, side="right") - 1
    now = np.array([np.nan if i < 0 or values[i] is None else values[i] for i in at], dtype=float)
    last = max(float(second or 0) for second in run.jobs["submit_seconds"]) / 3600
    known = ~np.isnan(now) & (times <= last)
    if not known.any():
        return None, None
    low, high = np.quantile(active[known], (0.25, 0.75))
    return (
        float(now[known & (active >= high)].mean()),
        float(now[known & (active <= low)].mean()),
    )


# ---- figure 6

_SHOWN = {"imagenet": 1, "yolov3": 2}  # how many jobs of a model


def _pollux_run(bench: Bench) -> Runs:
    return {label: run for label, run in _three_runs(bench).items() if label[0] == POLLUX}


def _jobs_of(run: Observation) -> list[str]:
    """Return the jobs to show; those models that a small workload lacks are filled up."""
    names = [str(name) for name in run.jobs["name"]]
    models = [str(model) for model in run.jobs["model"]]
    chosen = [
        name
        for model, count in _SHOWN.items()
        for name in [n for n, m in zip(names, models, strict=True) if m == model][:count]
    ]
    return chosen or names[:1]


def _of_job(table: Columns, job: str, column: str) -> Series:
    """Return a column of a job's life over the hours; a restart keeps the value before it."""
    at: list[float] = []
    values: list[float | None] = []
    columns = (table[name] for name in ("job", "start_seconds", "end_seconds", column))
    end = 0.0
    for name, start, until, value in zip(*columns, strict=True):
        if name == job:
            at.append(float(start or 0) / 3600)
            before = values[-1] if values else None
            values.append(before if value is None else float(value))
            end = float(until or 0) / 3600
    return Series([*at, end], [*values, None])


_ROWS: Mapping[str, tuple[str, bool]] = {
    "gpu_count": ("GPUs", False),
    "total_batch_size": ("Batch size (images)", False),
    "efficiency": ("Efficiency", True),
}


def _one_job_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    run: Observation = next(iter(outcomes.values()))
    table, chosen = run.series["job_series"], _jobs_of(run)
    sides = _sides(run, chosen)
    panels: dict[str, go.Figure] = {}
    active = Series(_hours(run.rounds), [float(jobs or 0) for jobs in run.rounds["active_jobs"]])
    for title, jobs in sides.items():
        drawn = step_lines({"all jobs": active}, x="Time (hours)", y="Active jobs")
        panels[f"{title}: active jobs"] = drawn.update_xaxes(range=_span(table, jobs))
    for column, (words, shares) in _ROWS.items():
        for title, jobs in sides.items():
            series = {job: _of_job(table, job, column) for job in jobs}
            drawn = step_lines(series, x="Time (hours)", y=words, shares=shares)
            for trace in drawn.data:  # one look for a job in all panels
                look = mark(1 + chosen.index(trace.name))
                trace.update(line={"color": look.colour, "dash": look.dash})
            panels[f"{title}: {words.partition(' (')[0]}"] = drawn.update_xaxes(
                range=_span(table, jobs)
            )
    rows = [row for job in chosen for row in _job_rows(table, job)]
    return Shown(
        ("job",),
        rows,
        why=(
            "The paper draws jobs of its testbed without numbers: where contention falls at the "
            "end, a job trains with more samples on each GPU than at the start, as its efficiency "
            "has risen; ours are the first such jobs of the workload, in simulation."
        ),
        figure=grid(panels, columns=len(sides)),
    )


def _sides(run: Observation, chosen: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the jobs of each column of panels, by its title: one model each."""
    model_of = dict(zip(run.jobs["name"], run.jobs["model"], strict=True))
    sides: dict[str, list[str]] = {}
    for job in chosen:
        sides.setdefault(str(model_of[job]), []).append(job)
    return sides


def _span(table: Columns, jobs: Sequence[str]) -> list[float]:
    ends = [
        (float(start or 0) / 3600, float(end or 0) / 3600)
        for job, start, end in zip(
            table["job"], table["start_seconds"], table["end_seconds"], strict=True
        )
        if job in jobs
    ]
    return [min(start for start, _ in ends), max(end for _, end in ends)]


def _job_rows(table: Columns, job: str) -> list[Row]:
    life: FloatArray = np.array(
        [
            (float(end or 0) - float(start or 0), float(gpus or 0), float(batch), float(kept))
            for name, start, end, gpus, batch, kept in zip(
                *(
                    table[column]
                    for column in (
                        "job",
                        "start_seconds",
                        "end_seconds",
                        "gpu_count",
                        "total_batch_size",
                        "efficiency",
                    )
                ),
                strict=True,
            )
            if name == job and batch is not None and kept is not None
        ]
    )
    seconds, gpus, batch, kept = life.T
    done = np.cumsum(seconds) / seconds.sum()
    first, last = done <= 0.25, done > 0.75
    first[0] = True

    def mean(values: FloatArray, which: np.ndarray) -> float:
        return float(np.average(values[which], weights=seconds[which]))

    per_gpu = batch / gpus
    return [
        Row((job,), "GPUs, mean", [mean(gpus, seconds > 0)]),
        Row((job,), "GPUs, most", [gpus.max()]),
        Row((job,), "batch size, least", [batch.min()]),
        Row((job,), "batch size, most", [batch.max()]),
        Row((job,), "efficiency, mean, %", [100 * mean(kept, seconds > 0)]),
        Row(
            (job,),
            "samples per GPU in the last quarter of its time / in the first",
            [mean(per_gpu, last) / mean(per_gpu, first)],
            Published(least=1),
        ),
    ]


# ---- figure 7

FIVE = (*THREE, "Pollux (p = +1)", "Pollux (p = -10)")
_RULE = "mean-of-ratios"  # of one GPU type all rules are equal


def _fairness_runs(bench: Bench) -> Runs:
    return compared(bench, FIVE)


def _rho(outcomes: Outcomes, name: str) -> list[list[float]]:
    """Return rho of all jobs, by trace."""
    return [list(run.rho[_RULE].values()) for run in of(outcomes, name)]


def _fairness(bench: Bench, outcomes: Outcomes) -> Shown:
    rho = {name: _rho(outcomes, name) for name in FIVE}
    published: Mapping[str, float] = {POLLUX: 99.0}
    tails: Mapping[str, Published] = {
        TIRESIAS: Published(least=4),
        "Pollux (p = +1)": Published(least=4),
    }
    rows: list[Row] = []
    for name, by_trace in rho.items():
        below = [100 * sum(value < 2 for value in values) / len(values) for values in by_trace]
        worst = [max(values) for values in by_trace]
        rows.append(Row((name,), "jobs with rho below 2, %", below, published.get(name)))
        rows.append(Row((name,), "worst rho", worst, tails.get(name)))
    for name in (TIRESIAS, OPTIMUS):
        ratios = [
            max(theirs) / max(ours) for theirs, ours in zip(rho[name], rho[POLLUX], strict=True)
        ]
        rows.append(Row((name,), "worst rho / that of Pollux", ratios, Published(1.5, 5.4)))
    curves = {
        name: Distribution.of(value for values in by_trace for value in values)
        for name, by_trace in rho.items()
    }
    return Shown(
        ("policy",),
        rows,
        why=(
            "rho is against the job alone, adaptive, on an equal share of the cluster, for all "
            "policies alike; the paper does not say how its isolated runs are made, and gives 1.5 "
            "and 5.4 times without saying which is Tiresias's and which Optimus's."
        ),
        figure=cdf(curves, x="Finish-time fairness rho", log_x=True),
    )


ITEMS = (
    Item(
        "table-2",
        "JCT and makespan of seven configurations (simulated)",
        _table_2,
        runs=_table_2_runs,
        uses=USES,
        cpu_minutes=(1.5, None),
        whole_runs=21,
    ),
    Item(
        "fig-5",
        "GPUs in use and mean statistical efficiency over time (simulated)",
        _cluster_shown,
        runs=_three_runs,
        uses=USES[:2],
        cpu_minutes=(0.5, None),
        whole_runs=3,
    ),
    Item(
        "fig-6",
        "GPUs, batch size and efficiency of an ImageNet job and two YOLOv3 jobs over time",
        _one_job_shown,
        runs=_pollux_run,
        uses=USES[:2],
        cpu_minutes=(0.4, 0.4),
        whole_runs=1,
    ),
    Item(
        "fig-7",
        "Finish-time fairness under five configurations",
        _fairness,
        runs=_fairness_runs,
        uses=USES[:2],
        cpu_minutes=(1.4, None),
        whole_runs=15,
    ),
)
