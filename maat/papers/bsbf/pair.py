"""SJF-BSBF section IV: two jobs on the same GPUs (figures 1 and 3)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go

from maat.figures.bars import grouped_bars, stacked_bars
from maat.figures.data import Estimate
from maat.figures.lines import lines
from maat.figures.panels import side_by_side
from maat.papers.bench import Bench
from maat.papers.bsbf.runs import scenario
from maat.papers.items import Item, Outcomes, Published, Row, Runs, Shown
from maat.papers.observation import Observation
from maat.scheduling.pair_rule import sequential_mean, together_mean
from maat.simulation.interference import (
    PAL_APPLICATIONS,
    PAL_STANDS_FOR,
    Interference,
    read_gavel,
    read_interference_text,
    read_table,
    synthetic,
)
from maat.simulation.iteration_models import recorded_model
from maat.vocabulary import Adaptivity, MeasurementKind
from maat.workloads.recorded import RECORDED
from maat.workloads.workloads import TraceJob, Workload

# ---- figure 1: job 2 starts at the end of job 1, with it, or in between

FIRST, SECOND = "job 1", "job 2"
MINUTES = {FIRST: 60.0, SECOND: 40.0}  # alone
MILD, SEVERE = 1.25, 2.0  # the same for both jobs
BETWEEN = 30.0  # minutes: when job 2 starts in schedule (c)
SCHEDULES = {"(a) one by one": 60.0, "(b) together": 0.0, "(c) overlapping": BETWEEN}
MEAN = "mean JCT, min (simulated; by eq. 18 to 25)"


def mean_minutes(start: float, xi: float) -> float:
    """Return the mean JCT of the two jobs in minutes if job 2 starts at `start` (eq. 18 to 25).

    Theorem 1's two schedules from then on: job 1 has done `start` minutes alone by then.
    """
    left, new = np.array(MINUTES[FIRST] - start), np.array(MINUTES[SECOND])
    if start >= MINUTES[FIRST]:
        return float(sequential_mean(np.array(MINUTES[FIRST]), new))
    slowdown = np.array(xi)
    return start + float(together_mean(left, new, slowdown, slowdown))


def _pair_runs(bench: Bench) -> Runs:
    """Both jobs are submitted at 0; job 2 is then held back by its submission alone."""
    return {
        (name, f"{xi:g}"): scenario(
            _pair(start),
            "SJF" if start >= MINUTES[FIRST] else "SJF-FFS",
            interference=Interference.constant(xi),
            cluster="rtx=1x1",
            models={RECORDED: replace(recorded_model(), restart_seconds=0.0)},
            round_seconds=10.0,
        )
        for name, start in SCHEDULES.items()
        for xi in (MILD, SEVERE)
    }


def _pair(start: float) -> Workload:
    return Workload(
        f"pair-{start:g}",
        tuple(
            TraceJob(
                name=name,
                submit_seconds=60 * start if name == SECOND else 0.0,
                model=RECORDED,
                gpu_count=1,
                work_scale=60 * MINUTES[name],
                adaptivity=Adaptivity.RIGID,
            )
            for name in MINUTES
        ),
        "sharing",
    )


def ends(run: Observation) -> Mapping[str, float]:
    """Return the minute at which each job ended."""
    named = zip(run.jobs["name"], run.jobs["finish_seconds"], strict=True)
    return {str(name): float(end or 0.0) / 60 for name, end in named}


def _pair_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    rows, panels, best = [], [], {}
    for xi in (MILD, SEVERE):
        means = {}
        for name, start in SCHEDULES.items():
            ended = ends(outcomes[name, f"{xi:g}"])
            means[name] = sum(ended.values()) / 2
            rows.append(
                Row((f"{xi:g}", name), MEAN, [means[name]], round(mean_minutes(start, xi), 3))
            )
            rows += [Row((f"{xi:g}", name), f"end of {job}, min", [ended[job]]) for job in MINUTES]
        best[xi] = min(means, key=lambda name: means[name])
        panels.append(_gantt({name: ends(outcomes[name, f"{xi:g}"]) for name in SCHEDULES}, xi))
    words = " and ".join(f"{name} at xi {xi:g}" for xi, name in best.items())
    return Shown(
        ("xi", "schedule"),
        rows,
        why=(
            "The paper sketches the schedules without numbers: the lengths and slowdowns are ours, "
            "what its equations give for them stands as published, and the simulation of two jobs "
            f"on one GPU gives the same; as theorem 1 says, (c) is never best: {words}."
        ),
        figure=side_by_side(*panels),
    )


_COLOURS = {
    "waits": "#d8dee4",
    "alone": "#0072B2",
    "both": "#D55E00",
    "alone, later": "#56B4E9",
}


def _gantt(ended: Mapping[str, Mapping[str, float]], xi: float) -> go.Figure:
    """Return a bar for each job of each schedule: when it waits, trains alone, or shares."""
    names: list[str] = []
    parts: dict[str, list[float]] = {"waits": [], "alone": [], "both": [], "alone, later": []}
    for name, start in SCHEDULES.items():
        begins = {FIRST: 0.0, SECOND: start}
        overlap = max(min(ended[name].values()) - start, 0.0)
        for job, alone in MINUTES.items():
            names.append(f"{name[:3]} {job}")
            before = start - begins[job] if overlap else alone
            parts["waits"].append(begins[job])
            parts["alone"].append(before)
            parts["both"].append(overlap)
            parts["alone, later"].append(ended[name][job] - begins[job] - before - overlap)
    return stacked_bars(
        names, parts, x=f"Minutes (xi {xi:g})", y="Schedule and job", colours=_COLOURS
    )


# ---- figure 3: the paper's pairs were measured on its 2080 Ti; public tables of other GPUs

GAVEL, PAL, DECLARED = "Gavel (V100, 1 GPU)", "PAL (1 to 8 GPUs)", "declared"
MOST_MEASURED = Published(most=6.0)  # section IV-B: "up to 6"
CIFAR10 = "ResNet-18 (batch size 64)"  # Gavel's training on CIFAR10
_TYPE = re.compile(r"(?P<model>[^(]+) \(batch size (?P<batch>\d+)\)")


def tables(bench: Bench) -> Mapping[str, Interference]:
    """Return the public tables of pairs that are there; without any, the declared one.

    One's own table stands in for both.
    """
    own = bench.data.own_of(MeasurementKind.INTERFERENCE)
    if own is not None:
        table = read_interference_text(own.text, name=own.name, gpu_type=own.gpu_type)
        return {own.name: table}
    there: dict[str, Interference] = {}
    if bench.data.has("gavel throughputs"):
        there[GAVEL] = read_gavel(bench.data.path("gavel throughputs"))
    if bench.data.has("pal pairs"):
        there[PAL] = read_table(bench.data.path("pal pairs") / "norm_speed.csv")
    for lacking in {GAVEL, PAL} - set(there):
        bench.note(f"Without the measured pairs of {lacking.split()[0]}.")
    if not there:
        bench.note("Slowdowns are declared, not measured (maat/simulation/interference.json).")
    return there or {DECLARED: synthetic()}


def measured(name: str, table: Interference) -> Mapping[tuple[str, str], Mapping[int, float]]:
    """Return the pairs of a table under the names by which they were measured."""
    if name not in (GAVEL, PAL):
        return table.pairs
    own = {
        model
        for model in {victim for victim, _ in table.pairs}
        if (_TYPE.fullmatch(model) is not None) == (name == GAVEL)
    } - ({*PAL_STANDS_FOR.values(), *PAL_APPLICATIONS} if name == PAL else set())
    return {pair: by_count for pair, by_count in table.pairs.items() if set(pair) <= own}


def _pairs_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    rows, panels = [], []
    for name, table in tables(bench).items():
        pairs = measured(name, table)
        every = [xi for by_count in pairs.values() for xi in by_count.values()]
        fitting = [xi for xi in every if math.isfinite(xi)]
        rows += [
            Row((name, "all pairs"), "largest xi", [max(fitting)], MOST_MEASURED),
            Row((name, "all pairs"), "mean xi", [sum(fitting) / len(fitting)]),
            Row((name, "all pairs"), "measured xi", [len(fitting)]),
            Row((name, "all pairs"), "do not share a GPU", [len(every) - len(fitting)]),
        ]
        victims = list(dict.fromkeys(victim for victim, _ in pairs))
        rows += [
            Row((name, victim), "xi, mean over partners", [slowdown.value])
            for victim in victims
            if (slowdown := _over_partners(pairs, victim)).value is not None
        ]
        panels.append(_beside_cifar10(pairs) if name == GAVEL else _by_count(name, pairs))
    largest = max(row.ours[0] for row in rows if row.measure == "largest xi")
    return Shown(
        ("table", "model"),
        rows,
        why=(
            "The paper's pairs on 2080 Ti are not published and need those GPUs (`maat measure "
            "pairs` measures them): these are tables of other authors, GPUs and models, whose "
            f"slowdowns reach {largest:.1f} where the paper's reach 6."
        ),
        figure=side_by_side(*panels),
    )


def _over_partners(
    pairs: Mapping[tuple[str, str], Mapping[int, float]], victim: str, count: int | None = None
) -> Estimate:
    """Return a model's slowdown over its partners, on one GPU count or on any."""
    return Estimate.over(
        xi
        for (model, _), by_count in pairs.items()
        for gpus, xi in by_count.items()
        if model == victim and count in (None, gpus) and math.isfinite(xi)
    )


def _beside_cifar10(pairs: Mapping[tuple[str, str], Mapping[int, float]]) -> go.Figure:
    """Return throughput beside CIFAR10, by model and batch size: the figure's upper half."""
    drawn: dict[str, list[tuple[float, Estimate]]] = {}
    for (victim, partner), by_count in pairs.items():
        kind = _TYPE.fullmatch(victim)
        if partner == CIFAR10 and kind is not None and math.isfinite(by_count[1]):
            point = (float(kind["batch"]), Estimate(100 / by_count[1]))
            drawn.setdefault(kind["model"], []).append(point)
    return lines(
        {model: sorted(points) for model, points in drawn.items()},
        x="Batch size (Gavel, beside ResNet-18 on CIFAR10)",
        y="Throughput (% of that alone)",
        log_x=True,
    )


def _by_count(name: str, pairs: Mapping[tuple[str, str], Mapping[int, float]]) -> go.Figure:
    """Return slowdowns by model and GPU count, from least to most of the partners."""
    victims = [
        victim
        for victim in dict.fromkeys(victim for victim, _ in pairs)
        if _over_partners(pairs, victim).value is not None
    ]
    counts = sorted({count for by_count in pairs.values() for count in by_count})
    return grouped_bars(
        victims,
        {
            f"{count} GPU{'s' if count > 1 else ''}": [
                _over_partners(pairs, victim, count) for victim in victims
            ]
            for count in counts
        },
        x=f"Model, pairs of {name}",
        y="Slowdown by a partner (xi)",
    )


ITEMS = (
    Item(
        "fig-1",
        "Three schedules of two jobs on one GPU",
        _pair_shown,
        runs=_pair_runs,
        cpu_minutes=(0.1, None),
        whole_runs=6,
    ),
    Item(
        "fig-3",
        "Throughput beside CIFAR10, and slowdowns by model and GPU count (public tables)",
        _pairs_shown,
        uses=("gavel throughputs", "pal pairs"),
        cpu_minutes=(0.0, 0.0),
    ),
)
