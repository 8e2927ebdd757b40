"""SJF-BSBF section IV-B: throughput of the models by batch size and GPUs (figure 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from maat.figures.data import Estimate
from maat.figures.lines import lines
from maat.figures.panels import grid
from maat.models.truth import Truth
from maat.papers.bench import Bench
from maat.papers.items import Item, Outcomes, Row, Shown
from maat.simulation.iteration_models import shipped_models

TITLES = {
    "bert": "BERT",
    "cifar10": "CIFAR10",
    "deepspeech2": "DeepSpeech2",
    "imagenet": "ImageNet",
    "ncf": "NCF",
    "yolov3": "YoloV3",
}
GPU_TYPE = "rtx"  # RTX 2080 Ti, as in the paper
GPUS_PER_NODE, COUNTS = 4, (1, 2, 4, 8, 12, 16)  # 4 servers of 4 GPUs


def batches(truth: Truth, count: int) -> Sequence[int]:
    """Return batch sizes per GPU from the least, each twice the last, and the largest."""
    sizes, largest = [truth.smallest_per_gpu(GPU_TYPE)], truth.largest_per_gpu(GPU_TYPE, count)
    while 2 * sizes[-1] <= largest:
        sizes.append(2 * sizes[-1])
    return sizes if sizes[-1] == largest else [*sizes, largest]


def throughput(truth: Truth, count: int, batch: int) -> float:
    """Return samples per second of all GPUs at a batch per GPU, nodes filled in turn (eq. 14)."""
    whole, rest = divmod(count, GPUS_PER_NODE)
    shape = (GPUS_PER_NODE,) * whole + ((rest,) if rest else ())
    return count * batch / truth.step(GPU_TYPE, shape, batch).step_seconds


def _shown(bench: Bench, outcomes: Outcomes) -> Shown:
    rows, panels, models = [], {}, bench.sia_models()
    for name, title in TITLES.items():
        truth = models[name].truth
        by_count = {
            count: {batch: throughput(truth, count, batch) for batch in batches(truth, count)}
            for count in COUNTS
        }
        rows += _rows(title, by_count)
        if bench.has_published_profiles:
            rows.append(Row((title, "all"), "error of the fit, median, %", [_off(name, by_count)]))
        panels[title] = lines(
            {
                f"{count} GPU{'s' if count > 1 else ''}": [
                    (float(batch), Estimate(speed)) for batch, speed in by_batch.items()
                ]
                for count, by_batch in by_count.items()
            },
            x="Batch size per GPU",
            y="Samples per second",
            log_x=name == "ncf",
            log_y=name == "ncf",
        )
    yolo = models["yolov3"].truth.largest_per_gpu(GPU_TYPE, 1)
    doubled = [row.ours[0] for row in rows if row.published == 2.0]
    return Shown(
        ("model", "GPUs"),
        rows,
        why=(
            "The paper draws measurements of its own without numbers, and these are Sia's on the "
            "same GPU type with another network: BERT, linear in the batch size there, gives "
            f"{min(doubled):.2f} to {max(doubled):.2f} times as much when the batch is doubled to "
            "the largest, and YoloV3, which peaks at 16 samples on a GPU there, was measured up to "
            f"{yolo} here."
        ),
        figure=grid(panels),
    )


def _rows(title: str, by_count: Mapping[int, Mapping[int, float]]) -> list[Row]:
    """Return the peak on each GPU count, what doubling the batch gives, and what 16 GPUs give."""
    rows = []
    for count, by_batch in by_count.items():
        of = (title, f"{count}")
        best = max(by_batch, key=lambda batch: by_batch[batch])
        rows.append(Row(of, "most samples/s", [by_batch[best]]))
        rows.append(Row(of, "at a batch per GPU of", [float(best)]))
        largest = max(by_batch)
        half = max((batch for batch in by_batch if 2 * batch <= largest), default=None)
        if title == "BERT" and half is not None:  # "a linear increase with batch size"
            ratio = (by_batch[largest] / by_batch[half]) ** (1 / math.log2(largest / half))
            rows.append(Row(of, "throughput with twice the batch, x", [ratio], 2.0))
    most = {count: max(by_batch.values()) for count, by_batch in by_count.items()}
    rows.append(Row((title, "16 against 12"), "most samples/s, x", [most[16] / most[12]]))
    return rows


def _off(name: str, by_count: Mapping[int, Mapping[int, float]]) -> float:
    """Return how far the catalog's fit of eq. 7 is off the measured throughput, in percent."""
    fitted = shipped_models()[name].truth
    return 100 * median(
        abs(throughput(fitted, count, batch) / speed - 1)
        for count, by_batch in by_count.items()
        for batch, speed in by_batch.items()
    )


ITEMS = (
    Item(
        "fig-2",
        "Throughput by batch size and GPUs, six models on RTX 2080 Ti",
        _shown,
        uses=("sia profiles",),
        cpu_minutes=(0.0, 0.0),
    ),
)
