"""Sia sections 5.1 and 5.3: what single jobs hold over time (figure 5, the GPT job)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import plotly.graph_objects as go

from maat.colours import gpu_colour
from maat.figures.base import figure
from maat.figures.data import Estimate
from maat.figures.lines import lines
from maat.figures.panels import side_by_side, stacked
from maat.models.truth import Truth
from maat.papers.bench import Bench
from maat.papers.items import Item, Outcomes, Row, Runs, Shown
from maat.papers.observation import Observation
from maat.papers.sia.runs import PHYSICAL, USES, scenario
from maat.papers.speeds import filled
from maat.workloads.workloads import TraceJob, Workload

Held = list[tuple[float, float, str, int]]
"""Start and end in hours, GPU type, GPUs; without GPUs it is left out."""


def held_by(run: Observation, job: str) -> Held:
    """Return what a job holds over time."""
    columns = ("job", "start_seconds", "end_seconds", "gpu_type", "gpu_count")
    return [
        (start / 3600, end / 3600, kind, gpus)
        for name, start, end, kind, gpus in zip(*(run.spans[c] for c in columns), strict=True)
        if name == job and kind is not None and end is not None
    ]


def held_figure(held: Held, title: str) -> go.Figure:
    """Return GPUs held over time, an area in the colour of each GPU type."""
    areas: list[Any] = []
    for kind in dict.fromkeys(span[2] for span in held):
        x: list[float | None] = []
        y: list[float | None] = []
        for start, end, of_kind, gpus in held:
            if of_kind == kind:
                x += [start, start, end, end, None]
                y += [0, gpus, gpus, 0, None]
        areas.append(
            go.Scatter(
                name=kind,
                x=x,
                y=y,
                mode="lines",
                fill="tozeroy",
                line={"color": gpu_colour(kind), "width": 1},
            )
        )
    return figure(None, x="Time (hours)", y=title, traces=areas)


def active_figure(run: Observation) -> go.Figure:
    """Return the number of active jobs over time."""
    hours = [float(second or 0) / 3600 for second in run.rounds["time_seconds"]]
    line = go.Scatter(
        name="active jobs",
        x=hours,
        y=run.rounds["active_jobs"],
        mode="lines",
        line={"shape": "hv", "color": "#59636e"},
    )
    return figure(None, x="Time (hours)", y="Active jobs", traces=[line])


# ---- figure 5

_MODELS = ("imagenet", "deepspeech2", "cifar10")


def _three_runs(bench: Bench) -> Runs:
    bench.note("The paper's trace of 30 jobs in 3 hours is not published: ours is generated.")
    workload = bench.generated("philly", jobs=30, hours=3.0, seed=0)
    return {("Sia",): scenario(bench, workload, cluster=PHYSICAL)}


def _three_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    run: Observation = outcomes[("Sia",)]
    moves = dict(zip(run.jobs["name"], run.jobs["restarts"], strict=True))
    chosen = [job for model in _MODELS if (job := _most_moved(run, model, moves)) is not None]
    rows, panels = [], []
    for job in chosen:
        held = held_by(run, job)
        panels.append(held_figure(held, f"GPUs of {job}"))
        rows.append(Row((job,), "allocations", [len(held)]))
        rows.append(Row((job,), "most GPUs", [max((span[3] for span in held), default=0)]))
        rows.append(Row((job,), "GPU types held", [len({span[2] for span in held})]))
    return Shown(
        ("job",),
        rows,
        why=(
            "The paper shows three jobs of its own trace without numbers; these are, of each "
            "model, the job that was moved most."
        ),
        figure=stacked(*panels, active_figure(run)),
    )


def _most_moved(run: Observation, model: str, moves: dict[Any, Any]) -> str | None:
    of_model = [
        str(name)
        for name, each in zip(run.jobs["name"], run.jobs["model"], strict=True)
        if each == model
    ]
    return max(of_model, key=lambda name: moves[name], default=None)


# ---- section 5.3: a hybrid-parallel job among others

GPT = "gpt-xxl"
CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"
STAGES = {"a100": 2, "rtx": 8}  # GPUs of a replica


def _gpt_runs(bench: Bench) -> Runs:
    models = bench.sia_models()
    workload, truth = bench.sia_trace("philly", 1, models), models["gpt"].truth
    for kind, stages in STAGES.items():
        truth.largest_per_gpu(kind, stages)  # profiles that lack the type are refused before a run
    return {("Sia",): scenario(bench, _with_gpt(workload, truth.initial_batch_size))}


def _with_gpt(workload: Workload, batch_size: int) -> Workload:
    job = TraceJob(name=GPT, submit_seconds=0.0, model="gpt", gpu_count=2, batch_size=batch_size)
    return replace(workload, jobs=(job, *workload.jobs), name=f"{workload.name} and a GPT")


def _step_seconds(truth: Truth, kind: str, count: int, batch: int) -> float:
    """Return the seconds of a step on nodes of eight, filled one after the other."""
    return truth.step(kind, filled(count, 8), batch).step_seconds


def _gpt_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    run: Observation = outcomes[("Sia",)]
    truth = bench.sia_models()["gpt"].truth
    drawn: dict[str, list[tuple[float, Estimate]]] = {}
    rows = []
    for kind, stages in STAGES.items():
        batch = truth.smallest_per_gpu(kind)  # 48 micro-batches a replica
        most = min(24, truth.max_batch_size // batch * stages)
        known = [
            (count, count // stages * batch / _step_seconds(truth, kind, count, batch))
            for count in range(stages, most + 1, stages)
            if count <= 8 or count % 8 == 0  # whole nodes were measured beyond one
        ]
        drawn[kind] = [(float(count), Estimate(speed)) for count, speed in known]
        if len(known) > 1:
            (first, slow), (last, fast) = known[0], known[-1]
            rows.append(
                Row((kind,), f"throughput on {last} / on {first} GPUs", [fast / slow], last / first)
            )
    held = held_by(run, GPT)
    rows += [
        Row(("Sia",), "most GPUs of the GPT job", [max((span[3] for span in held), default=0)]),
        Row(("Sia",), "fewest GPUs while it runs", [min((span[3] for span in held), default=0)]),
        Row(("Sia",), "allocations of the GPT job", [len(held)]),
    ]
    return Shown(
        ("of",),
        rows,
        why=(
            "Scaling is as linear as the published step times are; the paper's trace around the "
            "GPT job is not published, so that ours is scaled down and up at other hours."
        ),
        figure=side_by_side(
            lines(drawn, x="GPUs", y="Samples per second"),
            held_figure(held, "GPUs of the GPT job"),
        ),
    )


ITEMS = (
    Item(
        "fig-5",
        "What three jobs hold over time on 44 GPUs, and the active jobs (simulated)",
        _three_shown,
        runs=_three_runs,
        uses=USES[:1],
        cpu_minutes=(0.01, None),
        whole_runs=1,
    ),
    Item(
        "sec-5.3",
        "A hybrid-parallel GPT job: throughput by GPUs, and what it holds over time",
        _gpt_shown,
        runs=_gpt_runs,
        uses=USES[:2],
        cpu_minutes=(0.1, None),
        whole_runs=1,
    ),
)
