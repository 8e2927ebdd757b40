"""Pollux sections 1 and 3: single models' speed and efficiency (figures 1 to 3, table 1)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypeVar

import numpy as np
import plotly.graph_objects as go

from maat.figures.data import Estimate
from maat.figures.lines import lines
from maat.figures.panels import grid, side_by_side
from maat.models.catalog_fit import Measurements, fit_measurements
from maat.models.truth import Truth
from maat.papers.bench import Bench
from maat.papers.items import Item, Outcomes, Published, Row, Shown
from maat.papers.pollux.runs import GPU, PER_NODE, USES, traces
from maat.papers.speeds import filled, progress, timed_plan
from maat.scheduling.efficiency import efficiency, noise_scale
from maat.scheduling.throughput import step_seconds

Series = TypeVar("Series")
Line = Sequence[tuple[float, Estimate]]
# table 1: name, M0, the least and most GPU-hours of its size (section 5.1), share of jobs in %
_TABLE_1: Mapping[str, tuple[str, int, float, float, float]] = {
    "imagenet": ("ResNet-50", 200, 100, 1000, 2),
    "yolov3": ("YOLOv3", 8, 10, 100, 6),
    "deepspeech2": ("DeepSpeech2", 20, 1, 10, 10),
    "bert": ("BERT", 12, 1, 10, 10),
    "cifar10": ("ResNet18", 128, 0, 1, 36),
    "ncf": ("NeuMF", 256, 0, 1, 36),
}
TITLES = {name: row[0] for name, row in _TABLE_1.items()}
_COUNTS = (1, 2, 4, 8, 12, 16)

# ---- figure 1

_RESNET18 = "cifar10"
_BATCHES = (512, 2048)
_HALVES = ("first half of training", "second half of training")


def _throughput(truth: Truth, count: int, total: int) -> float | None:
    """Return samples per second, nodes filled one after the other; None: not measured."""
    timed = timed_plan(truth, GPU, filled(count, PER_NODE), total)
    return None if timed is None else timed[0].total_batch_size / timed[1]


def _hours(truth: Truth, count: int, total: int, epochs: Sequence[int]) -> float | None:
    """Return the hours of some epochs at a fixed total batch size; None: not measured."""
    timed = timed_plan(truth, GPU, filled(count, PER_NODE), total)
    if timed is None:
        return None
    plan, seconds = timed
    work = np.diff(truth.epoch_ends, prepend=0.0)
    steps = sum(work[epoch] / progress(truth, epoch, plan.total_batch_size) for epoch in epochs)
    return float(steps) * seconds / 3600


def _batch_sizes(truth: Truth, *, per_doubling: int = 1) -> list[int]:
    """Return batch sizes from the initial to the largest; whole doublings are the measured ones."""
    doublings = int(np.log2(truth.max_batch_size / truth.initial_batch_size) + 1e-9)
    powers = np.arange(doublings * per_doubling + 1) / per_doubling
    return [round(truth.initial_batch_size * 2**power) for power in powers]


def _best_batch(truth: Truth, count: int, epochs: Sequence[int]) -> int:
    """Return the batch size with which those epochs take least time on that many GPUs."""
    hours = {
        total: taken
        for total in _batch_sizes(truth, per_doubling=4)
        if (taken := _hours(truth, count, total, epochs)) is not None
    }
    return min(hours, key=lambda total: hours[total])


def _trade_offs(bench: Bench, outcomes: Outcomes) -> Shown:
    truth = bench.sia_models()[_RESNET18].truth
    rows = []
    speeds: dict[str, Line] = {}
    best: dict[str, Line] = {}
    for total in _BATCHES:
        known = [(n, s) for n in _COUNTS if (s := _throughput(truth, n, total)) is not None]
        name = f"batch size {total}"
        speeds[name] = [(float(count), Estimate(speed)) for count, speed in known]
        (first, slow), (last, fast) = known[0], known[-1]
        measure = f"throughput on {last} GPUs / on {first}"
        rows.append(Row((name,), measure, [fast / slow], Published(1, last / first)))
    half = len(truth.epoch_ends) // 2
    halves = (range(half), range(half, len(truth.epoch_ends)))
    for name, epochs in zip(_HALVES, halves, strict=True):
        sizes = [(count, _best_batch(truth, count, epochs)) for count in _COUNTS]
        best[name] = [(float(count), Estimate(float(size))) for count, size in sizes]
        rows += [
            Row((name,), f"best batch size on {count} GPUs", [size])
            for count, size in sizes
            if count in (1, 4, 16)
        ]
    return Shown(
        ("of",),
        rows,
        why=(
            "The paper draws lines without numbers: there the larger batch scales further, and "
            "the best batch size is larger on more GPUs and later in training; ours are those "
            "with which a half of the training takes least time by the gradients."
        ),
        figure=side_by_side(
            lines(speeds, x="GPUs", y="Throughput (images per second)"),
            lines(  # colours go by the order: those of the other panel are left to it
                {**dict.fromkeys(speeds, ()), **best},
                x="GPUs",
                y="Best batch size (images)",
                log_y=True,
            ),
        ),
    )


# ---- figure 2

_EARLY = 1 / 8  # of the training
# section 3.1: best values of all batch sizes differ by at most so much, in %
_MOST_APART = {"deepspeech2": 4.0}
BATCHES = ("initial batch", "middle batch", "largest batch")
_FALLING = ("deepspeech2", "yolov3")  # metrics of which less is better


def _efficiencies(truth: Truth, epoch: int, measured_at: int | None = None) -> list[float]:
    """Return EFFICIENCY of the measured batch sizes (Pollux eq. 6), in percent.

    By the gradients of that batch size itself; or, which predicts it, of `measured_at`.
    """
    initial, found = float(truth.initial_batch_size), []
    for total in _batch_sizes(truth):
        gradient = truth.gradient(epoch, total if measured_at is None else measured_at)
        phi = noise_scale(gradient.square, gradient.variance, initial)
        value = efficiency(phi, np.asarray(initial), np.asarray(float(total)))
        found.append(100 * float(value))
    return found


def _validations(bench: Bench, model: str) -> dict[int, list[tuple[float, float]]]:
    """Return the measured (progress, metric) of every epoch, by total batch size.

    Empty where there are no profiles, or none with metrics.
    """
    texts = bench.profile_texts(model) or {}
    found: dict[int, list[tuple[float, float]]] = {}
    for name, text in texts.items():
        kind, _, batch = name.rpartition("validation-")
        rows = list(csv.DictReader(io.StringIO(text))) if kind != name and batch else []
        if rows and "metric" in rows[0]:
            points = [(float(row["progress"]), float(row["metric"])) for row in rows]
            found[int(batch.removesuffix(".csv"))] = points
    return dict(sorted(found.items()))


def _statistical(bench: Bench, outcomes: Outcomes) -> Shown:
    models, rows, panels = bench.sia_models(), list[Row](), dict[str, go.Figure]()
    for name, title in TITLES.items():
        truth = models[name].truth
        by_epoch = [_efficiencies(truth, epoch) for epoch in range(len(truth.epoch_ends))]
        metrics = _validations(bench, name)
        if metrics:
            rows.append(_apart(name, metrics))
            panels[f"{title}: validation"] = _validation(metrics)
        else:
            bench.note("The top row (validation metrics) is of the published profiles: left out.")
        panels[f"{title}: efficiency"] = _over_training(by_epoch)
        early = int(_EARLY * len(by_epoch))
        middle = _batch_sizes(truth)[len(by_epoch[0]) // 2]
        predicted = _efficiencies(truth, early, measured_at=middle)
        panels[f"{title}: early"] = _by_batch_size(truth, by_epoch[early], predicted)
        off = [abs(a - b) for a, b in zip(predicted, by_epoch[early], strict=True)]
        late = [values[-1] for values in by_epoch[-(len(by_epoch) // 10 + 1) :]]
        rows += [
            Row((title,), "efficiency of the largest batch early, %", [by_epoch[early][-1]]),
            Row((title,), "the same in the last tenth, %", [fmean(late)]),
            Row((title,), "prediction off the measurement, percentage points", [fmean(off)]),
        ]
    validated = any(name.endswith(": validation") for name in panels)
    return Shown(
        ("model",),
        rows,
        why=(
            "The paper draws efficiencies without numbers; ours are of single epochs, by the "
            f"gradients of the {'profiles' if validated else 'fits'}. Validation metrics, where "
            "they are shown, are those of the published trainings: Maat trains nothing here. "
            "YOLOv3's is its validation loss, while the paper's 1 % is of its mAP."
        ),
        figure=grid(panels, columns=3 if validated else 2),
    )


def _three(values: Sequence[Series]) -> dict[str, Series]:
    """Return the first, the middle and the last, by the name of their batch."""
    chosen = (values[0], values[len(values) // 2], values[-1])
    return dict(zip(BATCHES, chosen, strict=True))


def _validation(metrics: Mapping[int, Sequence[tuple[float, float]]]) -> go.Figure:
    drawn = {
        name: [(at / points[-1][0], Estimate(value)) for at, value in points]
        for name, points in _three(list(metrics.values())).items()
    }
    return lines(drawn, x="Training done (share)", y="Validation metric")


def _over_training(by_epoch: Sequence[Sequence[float]]) -> go.Figure:
    places = [(epoch + 0.5) / len(by_epoch) for epoch in range(len(by_epoch))]
    drawn = {
        name: [(at, Estimate(value)) for at, value in zip(places, values, strict=True)]
        for name, values in _three(list(zip(*by_epoch, strict=True))).items()
    }
    return lines(drawn, x="Training done (share)", y="Efficiency (%)")


def _by_batch_size(
    truth: Truth, measured: Sequence[float], predicted: Sequence[float]
) -> go.Figure:
    sizes = [float(total) for total in _batch_sizes(truth)]
    unused: dict[str, Line] = dict.fromkeys(BATCHES, ())
    drawn = {
        name: [(size, Estimate(value)) for size, value in zip(sizes, values, strict=True)]
        for name, values in (("measured", measured), ("predicted", predicted))
    }
    # colours go by the order: those of the other panels are left to them
    return lines({**unused, **drawn}, x="Total batch size", y="Efficiency (%)", log_x=True)


def _apart(name: str, metrics: Mapping[int, Sequence[tuple[float, float]]]) -> Row:
    """Return by how much the best values of the batch sizes differ from their middle, in %."""
    best = min if name in _FALLING else max
    values = [best(value for _, value in points) for points in metrics.values()]
    middle = (max(values) + min(values)) / 2
    apart = 100 * (max(values) - middle) / middle
    measure = "best validation metrics apart, +- %"
    return Row((TITLES[name],), measure, [apart], Published(most=_MOST_APART.get(name, 1.0)))


# ---- figure 3


def _measured(truth: Truth) -> Measurements:
    """Return the step times of consolidated GPUs at batches from the least to the largest."""
    points = []
    for count in _COUNTS:
        shape, least = filled(count, PER_NODE), truth.smallest_per_gpu(GPU)
        most = truth.largest_per_gpu(GPU, count)
        for batch in np.unique(np.geomspace(least, most, 6).round()):
            time = truth.step(GPU, shape, int(batch))
            compute = time.step_seconds - time.sync_seconds
            points.append((len(shape), count, count, batch, time.step_seconds, compute))
    return Measurements(*np.array(points, dtype=np.float64).T)


def _throughputs(bench: Bench, outcomes: Outcomes) -> Shown:
    models, rows, panels = bench.sia_models(), [], {}
    for name, title in TITLES.items():
        truth = models[name].truth
        measured = _measured(truth)
        parameters = np.array(fit_measurements(measured).parameters)
        fitted = step_seconds(
            parameters,
            measured.per_gpu_batch,
            node_count=measured.node_count,
            replica_count=measured.replica_count,
        )
        errors = 100 * abs(fitted / measured.step_seconds - 1)
        rows.append(Row((title,), "mean error of the fit, %", [errors.mean()], Published(most=10)))
        rows.append(Row((title,), "largest error of the fit, %", [errors.max()]))
        held = min(truth.largest_per_gpu(GPU, count) for count in _COUNTS)
        panels[f"{title}: {held} per GPU"] = lines(
            _by_count(truth, parameters, held), x="GPUs", y="Seconds per step"
        )
        panels[f"{title}: 4 GPUs"] = lines(
            _by_batch(truth, parameters), x="Total batch size", y="Samples per second", log_x=True
        )
    return Shown(
        ("model",),
        rows,
        why=(
            "The paper's 10 % is of the mean error of each task over placements and batch sizes "
            "of the whole cluster; ours is over 1 to 16 GPUs on as few nodes as can be, with each "
            "locality weighted alike in the fit."
        ),
        figure=grid(panels, columns=2),
    )


def _by_count(
    truth: Truth, parameters: np.ndarray, batch: int
) -> dict[str, list[tuple[float, Estimate]]]:
    """Return seconds per step by GPUs, with that many samples on each."""
    drawn: dict[str, list[tuple[float, Estimate]]] = {"measured": [], "fitted": []}
    for count in _COUNTS:
        shape = filled(count, PER_NODE)
        fitted = step_seconds(
            parameters,
            np.asarray(float(batch)),
            node_count=np.asarray(len(shape)),
            replica_count=np.asarray(count),
        )
        seconds = truth.step(GPU, shape, batch).step_seconds
        drawn["measured"].append((float(count), Estimate(seconds)))
        drawn["fitted"].append((float(count), Estimate(float(fitted))))
    return drawn


def _by_batch(
    truth: Truth, parameters: np.ndarray, *, count: int = PER_NODE
) -> dict[str, list[tuple[float, Estimate]]]:
    """Return throughput by total batch size on one node, accumulated where it does not fit."""
    drawn: dict[str, list[tuple[float, Estimate]]] = {"measured": [], "fitted": []}
    for total in _batch_sizes(truth):
        timed = timed_plan(truth, GPU, (count,), total)
        if timed is None:
            continue
        plan, seconds = timed
        fitted = step_seconds(
            parameters,
            np.asarray(float(plan.per_gpu_batch_size)),
            node_count=np.asarray(1),
            replica_count=np.asarray(count),
            accumulation_steps=plan.accumulation_steps,
        )
        samples = plan.total_batch_size
        drawn["measured"].append((float(samples), Estimate(samples / seconds)))
        drawn["fitted"].append((float(samples), Estimate(samples / float(fitted))))
    return drawn


# ---- table 1


def _models(bench: Bench, outcomes: Outcomes) -> Shown:
    models = bench.sia_models()
    workloads = traces(bench)
    rows = []
    for name, (title, initial, least, most, share) in _TABLE_1.items():
        truth = models[name].truth
        rows.append(Row((title,), "M0, samples", [truth.initial_batch_size], float(initial)))
        epochs = range(len(truth.epoch_ends))
        hours = _hours(truth, 1, truth.initial_batch_size, epochs)
        if hours is not None:
            rows.append(Row((title,), "hours on one T4 with M0", [hours], Published(least, most)))
        shares = [
            100 * sum(job.model == name for job in workload.jobs) / len(workload.jobs)
            for workload in workloads.values()
        ]
        rows.append(Row((title,), "share of the jobs, %", shares, share))
    return Shown(
        ("model",),
        rows,
        why=(
            "The paper's sizes are GPU-hours, without the number of GPUs; shares are of single "
            f"draws of jobs ({', '.join(workloads)})."
        ),
    )


ITEMS = (
    Item(
        "fig-1",
        "Throughput of ResNet18 by GPUs and batch size, and its best batch size by GPUs and stage",
        _trade_offs,
        uses=USES[:1],
        cpu_minutes=(0.04, 0.04),
    ),
    Item(
        "fig-2",
        "Validation, measured and predicted statistical efficiency of all models",
        _statistical,
        uses=USES[:1],
        cpu_minutes=(0.04, 0.04),
    ),
    Item(
        "fig-3",
        "Measured and fitted speed of all models",
        _throughputs,
        uses=USES[:1],
        cpu_minutes=(0.05, 0.05),
    ),
    Item(
        "table-1",
        "Models: batch sizes, GPU-hours and shares of the jobs",
        _models,
        uses=USES[:2],
        cpu_minutes=(0.0, 0.0),
    ),
)
