"""Maat's fidelity `sia-artifact` beside the published simulator, over seeds that break ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from maat.colours import gpu_colour
from maat.figures.bars import grouped_bars, stacked_bars
from maat.figures.data import Estimate
from maat.papers.bench import Bench
from maat.papers.fidelity.published import (
    HOURS_BY_TYPE,
    ONE_TYPE_RUN,
    RUNS,
    SIMULATOR,
    SWITCHES,
    TYPES,
    RunFigures,
)
from maat.papers.fidelity.runs import (
    ARTIFACT,
    FIRST,
    METRICS,
    TRACES,
    Metric,
    difference,
    needs,
    percent,
    played,
    seeds,
    traces,
)
from maat.papers.gpu_hours import gpu_hours_by_type
from maat.papers.items import Item, Outcomes, Row, Runs, Shown
from maat.papers.sia.runs import HOMOGENEOUS, each, firsts
from maat.simulation.fidelity import FIDELITIES
from maat.vocabulary import ProfilingMode

ROUND_SECONDS = 60.0
TIES = (
    "its rounding lets many assignments cost the same, of which its solver takes one and Maat one "
    "at random, by the seed"
)

# ---- the five traces


def _trace_runs(bench: Bench) -> Runs:
    return {
        (trace, f"seed {seed}"): played(bench, trace, ARTIFACT, seed=seed)
        for trace in traces(bench)
        for seed in seeds(bench)
    }


def beside(outcomes: Outcomes, trace: str, published: RunFigures) -> list[Row]:
    """Return every metric of a trace over its seeds, beside the published figure."""
    return [
        Row((trace,), metric.heading, each(outcomes, metric.name, trace), metric.of(published))
        for metric in METRICS
    ]


def off_the_mean(outcomes: Outcomes, metric: Metric) -> list[float]:
    """Return the mean over the traces of a metric's difference, as a share, for each seed."""
    by_trace = [
        [difference(ours, metric.of(RUNS[trace])) for ours in each(outcomes, metric.name, trace)]
        for trace in firsts(outcomes)
    ]
    return [fmean(of_seed) for of_seed in zip(*by_trace, strict=True)]


def _traces(bench: Bench, outcomes: Outcomes) -> Shown:
    played_traces = firsts(outcomes)
    rows = [row for trace in played_traces for row in beside(outcomes, trace, RUNS[trace])]
    rows += [
        Row(
            ("mean of all",),
            f"{metric.heading}: off the published, %",
            [100 * share for share in off_the_mean(outcomes, metric)],
        )
        for metric in METRICS
    ]
    drawn = {
        metric.heading: [
            Estimate.over(
                100 * difference(ours, metric.of(RUNS[trace]))
                for ours in each(outcomes, metric.name, trace)
            )
            for trace in played_traces
        ]
        for metric in METRICS
    }
    return Shown(
        ("trace",),
        rows,
        why=f"{verdict(outcomes)} Published is {SIMULATOR}: {TIES}.",
        figure=grouped_bars(
            played_traces, drawn, x="Trace", y="Off the published (%), least to most of the seeds"
        ),
    )


def verdict(outcomes: Outcomes) -> str:
    """Name what is further off than asked, and what no seed reaches from both sides."""
    outside, beyond = [], []
    for metric in METRICS:
        for trace in firsts(outcomes):
            ours, published = each(outcomes, metric.name, trace), metric.of(RUNS[trace])
            off = difference(fmean(ours), published)
            if metric.each is not None and abs(off) > metric.each:
                outside.append(f"{metric.heading} of {trace} ({percent(off)})")
            if not min(ours) <= published <= max(ours):
                beyond.append(f"{metric.heading} of {trace}")
        mean = fmean(off_the_mean(outcomes, metric))
        if metric.mean is not None and abs(mean) > metric.mean:
            outside.append(f"{metric.heading} on the mean ({percent(mean)})")
    asked = (
        f"Further off than asked (docs/fidelity.md): {'; '.join(outside)}."
        if outside
        else "Every mean over the seeds is as near as asked (docs/fidelity.md)."
    )
    ranges = (
        f"Outside the range of the seeds: {'; '.join(beyond)}."
        if beyond
        else "Every published figure lies within the range of the seeds."
    )
    return f"{asked} {ranges}"


# ---- one GPU type


def _one_type_runs(bench: Bench) -> Runs:
    return {
        (FIRST, f"seed {seed}"): played(bench, FIRST, ARTIFACT, seed=seed, cluster=HOMOGENEOUS)
        for seed in seeds(bench)
    }


def _one_type(bench: Bench, outcomes: Outcomes) -> Shown:
    return Shown(
        ("trace",),
        beside(outcomes, FIRST, ONE_TYPE_RUN),
        why=(
            "On one type, jobs of one model differ in nothing but age, so that exchanges among "
            "them often cost the same after rounding. Maat draws again each round among such "
            "answers, and at times exchanges what two jobs hold, for a restart each; a solver that "
            "is asked the same question again gives the same answer."
        ),
    )


# ---- GPU-hours by model and GPU type


def _hours(bench: Bench, outcomes: Outcomes) -> Shown:
    rows: list[Row] = []
    apart: dict[str, float] = {}
    names: list[str] = []
    parts: dict[str, list[float]] = {kind: [] for kind in TYPES}
    for trace in firsts(outcomes):
        by_seed = [
            gpu_hours_by_type([run], round_seconds=ROUND_SECONDS)
            for label, run in outcomes.items()
            if label[0] == trace
        ]
        for model, published in HOURS_BY_TYPE[trace].items():
            mixes = [
                [of_seed.get(model, {}).get(kind, 0.0) for kind in TYPES] for of_seed in by_seed
            ]
            rows += [
                Row(
                    (trace, model),
                    f"GPU-hours per job on {kind}",
                    [mix[i] for mix in mixes],
                    theirs,
                )
                for i, (kind, theirs) in enumerate(zip(TYPES, published, strict=True))
            ]
            ours = [fmean(of_kind) for of_kind in zip(*mixes, strict=True)]
            moves = 100 * moved(ours, published)
            between = [100 * moved(mix, ours) for mix in mixes]
            rows.append(Row((trace, model), "on another type than published, %", [moves]))
            rows.append(Row((trace, model), "one seed against the mean of all, %", between))
            apart[f"{model} of {trace}"] = moves
            for whose, mix in (("ours", ours), ("published", published)):
                names.append(f"{trace} {model}, {whose}")
                for kind, hours in zip(TYPES, mix, strict=True):
                    parts[kind].append(100 * hours / sum(mix) if sum(mix) else 0.0)
    most = max(apart, key=lambda name: apart[name])
    return Shown(
        ("trace", "model"),
        rows,
        why=(
            f"Most apart is {most}: {apart[most]:.0f} % of its GPU-hours would have to change "
            "type for the two mixes to be the same. imagenet, yolov3 and deepspeech2 jobs are "
            "fewer and longer than those of cifar10, and so differ most, also between two of "
            "Maat's own seeds."
        ),
        figure=stacked_bars(
            names,
            parts,
            x="Share of the GPU-hours (%)",
            y="Trace, model",
            colours={kind: gpu_colour(kind) for kind in parts},
            height=120 + 22 * len(names),
        ),
    )


def moved(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return half the distance between two mixes, by shares: 0 for equal ones, 1 without overlap.

    Of a mix without anything all shares are 0.
    """
    apart = (abs(a - b) for a, b in zip(_shares(ours), _shares(theirs), strict=True))
    return sum(apart) / 2


def _shares(mix: Sequence[float]) -> list[float]:
    whole = sum(mix)
    return [value / whole if whole else 0.0 for value in mix]


# ---- one rule at a time, in both simulators

_OF_SIA = FIDELITIES[ARTIFACT].policy_parameters
UNCHANGED = "as published"
SWITCHED: Mapping[str, Mapping[str, Any]] = {
    UNCHANGED: {},
    "one-GPU speeds known before the first run": {
        "profiling": ProfilingMode.BOOTSTRAP,
        "project_by_constant": False,
    },
    "no whole-second rounding at epoch ends": {"whole_second_epochs": False},
    "batch planned up to the model's largest": {"plan_within_trace_batch": False},
    "true restart times in the policy's computation": {"policy_restart_seconds": {}},
    "no two-decimal rounding of costs": {
        "policy_parameters": {**_OF_SIA, "sia": {**_OF_SIA["sia"], "utility_decimals": None}}
    },
}


def _switch_runs(bench: Bench) -> Runs:
    switched = bench.pick([*SWITCHED], quick=[*SWITCHED], tiny=[*SWITCHED][:2])
    return {
        (name, f"seed {seed}"): played(bench, FIRST, ARTIFACT, seed=seed, **SWITCHED[name])
        for name in switched
        for seed in seeds(bench)
    }


def _switches(bench: Bench, outcomes: Outcomes) -> Shown:
    published = {UNCHANGED: RUNS[FIRST], **SWITCHES}
    return Shown(
        ("change",),
        [
            Row((change,), metric.heading, each(outcomes, metric.name, change), metric.of(figures))
            for change, figures in published.items()
            for metric in METRICS
        ],
        why=(
            f"The published simulator was run once with each rule changed, on {FIRST}: {TIES}. "
            "Its own solver exchanged, the last lines, moves its figures as far as a rule does; "
            "Maat's assignments are its own, so that it has nothing to exchange there."
        ),
    )


ITEMS = (
    Item(
        "traces",
        "Maat and the published simulator on five traces, over seeds",
        _traces,
        runs=_trace_runs,
        needs=needs(*TRACES),
        is_of_published_alone=True,
    ),
    Item(
        "one-type",
        f"The same on one GPU type, {FIRST}",
        _one_type,
        runs=_one_type_runs,
        needs=needs(FIRST),
        is_of_published_alone=True,
    ),
    Item(
        "gpu-hours",
        "GPU-hours per job of a model by GPU type, by whole rounds",
        _hours,
        runs=_trace_runs,
        needs=needs(*TRACES),
        is_of_published_alone=True,
    ),
    Item(
        "published-rules",
        f"One rule of the published simulator changed at a time, {FIRST}",
        _switches,
        runs=_switch_runs,
        needs=needs(FIRST),
        is_of_published_alone=True,
    ),
)
