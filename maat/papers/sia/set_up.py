"""Sia sections 2 to 4: goodput by GPUs, the example matrix, the models (figure 2, tables 1, 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maat.figures.data import Estimate
from maat.figures.lines import lines
from maat.figures.panels import grid
from maat.models.truth import Truth
from maat.papers.bench import Bench
from maat.papers.items import Item, Outcomes, Row, Shown
from maat.papers.sia.runs import USES
from maat.papers.speeds import filled, progress, timed_plan
from maat.scheduling.belief import Belief
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import sia_configurations
from maat.scheduling.goodput import BestPlans
from maat.scheduling.job import Job, JobSpec, MemoryLimits
from maat.scheduling.limits import capacity_limits
from maat.scheduling.matrix import GoodputMatrix, Pairs
from maat.scheduling.policies.sia import Sia
from maat.scheduling.rounds import RoundInput

TITLES = {
    "cifar10": "ResNet18",
    "bert": "BERT",
    "deepspeech2": "DeepSpeech2",
    "yolov3": "YOLOv3",
    "imagenet": "ResNet50",
    "gpt": "2.8B GPT",
}

# ---- figure 2

_NODES = {"t4": 4, "rtx": 8, "a100": 8, "quad": 4}
_COUNTS = (1, 2, 4, 8, 12, 16)
_BATCHES = 30  # tried, in equal ratios


def goodput(truth: Truth, kind: str, count: int) -> float | None:
    """Return the goodput at the middle epoch with the best batch size, samples of progress/s.

    Nodes are filled one after the other (Pollux eq. 6 and 8 on measured times). None: not measured.
    """
    shape = filled(count, _NODES[kind])
    middle = len(truth.epoch_ends) // 2
    least = max(truth.initial_batch_size, truth.smallest_per_gpu(kind) * count)
    if kind not in truth.gpu_types() or least > truth.max_batch_size:
        return None
    best: float | None = None
    for total in np.unique(np.geomspace(least, truth.max_batch_size, _BATCHES).round()):
        timed = timed_plan(truth, kind, shape, int(total))
        if timed is None:
            continue
        plan, seconds = timed
        value = progress(truth, middle, plan.total_batch_size) / seconds
        best = value if best is None else max(best, value)
    return best


def _goodput_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    models, rows, panels = bench.sia_models(), [], {}
    for name in ("cifar10", "bert", "deepspeech2", "yolov3", "imagenet"):
        truth = models[name].truth
        alone = goodput(truth, "t4", 1)
        drawn: dict[str, list[tuple[float, Estimate]]] = {}
        for kind in _NODES:
            values = [(count, goodput(truth, kind, count)) for count in _COUNTS]
            known = [(count, value / alone) for count, value in values if value and alone]
            drawn[kind] = [(float(count), Estimate(value)) for count, value in known]
            rows += [
                Row((TITLES[name], kind), f"goodput on {count} / one t4's", [value])
                for count, value in known
                if count in (1, 16)
            ]
        panels[TITLES[name]] = lines(drawn, x="GPUs", y="Goodput / one T4's")
    return Shown(
        ("model", "GPU type"),
        rows,
        why=(
            "The paper draws the curves without numbers; ours are of the middle epoch, at the "
            "batch size of most goodput, with nodes filled one after the other."
        ),
        figure=grid(panels),
    )


# ---- table 1

_CONFIGURATIONS = ("(1, 1, A)", "(1, 2, A)", "(1, 1, B)", "(1, 2, B)", "(1, 4, B)")
_MATRIX: Sequence[Sequence[float]] = ((1, 1, 2, 3, 4), (2, 4, 1, 2, 3))
_CHOSEN = {("J1", "(1, 4, B)"), ("J2", "(1, 2, A)")}


def _matrix_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    cluster = Cluster.parse("a=1x2,b=1x4")
    jobs = tuple(Job(_spec(name), Belief(), 1e6) for name in ("J1", "J2"))
    round_input = RoundInput(0.0, 1, 60.0, jobs, cluster, capacity_limits(cluster))
    table = sia_configurations(cluster)
    row, column = np.divmod(np.arange(10), 5)
    zeros = np.zeros(10, dtype=np.int64)
    pairs = Pairs(
        row,
        table.type_index[column],
        table.gpu_count[column],
        table.node_count[column],
        column,
        np.ones(10, dtype=bool),
        BestPlans(np.array(_MATRIX, dtype=float).ravel(), zeros, zeros, zeros),
    )
    matrix = GoodputMatrix(("J1", "J2"), table, pairs)
    grants = Sia(p=1.0).decide(round_input, matrix).grants
    rows = []
    for index, job in enumerate(("J1", "J2")):
        for name, value in zip(_CONFIGURATIONS, _MATRIX[index], strict=True):
            grant = grants[job]
            chosen = name == f"(1, {grant.gpu_count}, {grant.gpu_type.upper()})"
            rows.append(Row((job, name), "chosen (1: yes)", [chosen], (job, name) in _CHOSEN))
            if chosen:
                rows.append(Row((job, name), "normalised goodput", [value]))
    total = sum(row.ours[0] for row in rows if row.measure == "normalised goodput")
    rows.append(Row(("both", "chosen"), "normalised goodput", [total], 8.0))
    return Shown(
        ("job", "configuration"),
        rows,
        why="They do not differ: the programme (eq. 2) has one optimum, and the solver proves it.",
    )


def _spec(name: str) -> JobSpec:
    return JobSpec(
        id=name,
        model="example",
        submitted_at=0.0,
        work=1e6,
        initial_batch_size=32,
        max_batch_size=1024,
        memory={kind: MemoryLimits(1, 256) for kind in ("a", "b")},
    )


# ---- table 2

_BATCH_SIZES = {
    "cifar10": (128, 4096),
    "bert": (12, 384),
    "deepspeech2": (20, 640),
    "yolov3": (8, 512),
    "imagenet": (200, 12800),
    "gpt": (48, 384),
}


def _bounds_why(rows: Sequence[Row]) -> str:
    differing = sum(row.published is not None and row.difference != 0 for row in rows)
    if not differing:
        return "They do not differ: the published profiles have the paper's bounds."
    return f"{differing} bounds differ from the paper's: they are those of the published profiles."


def _models_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    models = bench.sia_models()
    rows = []
    for name, (least, most) in _BATCH_SIZES.items():
        if name in models:
            truth = models[name].truth
            rows.append(
                Row((TITLES[name],), "least batch size", [truth.initial_batch_size], float(least))
            )
            rows.append(
                Row((TITLES[name],), "largest batch size", [truth.max_batch_size], float(most))
            )
            rows.append(Row((TITLES[name],), "epochs measured", [len(truth.epoch_ends)]))
    return Shown(
        ("model",),
        rows,
        why=_bounds_why(rows),
    )


ITEMS = (
    Item(
        "fig-2",
        "Goodput of each model by GPUs and GPU type, against one T4",
        _goodput_shown,
        uses=USES[:1],
        cpu_minutes=(0.0, 0.0),
    ),
    Item(
        "table-1",
        "The example matrix, and the pairs that Sia's programme chooses",
        _matrix_shown,
        cpu_minutes=(0.0, 0.0),
    ),
    Item(
        "table-2",
        "Models and their batch sizes",
        _models_shown,
        uses=USES[:1],
        cpu_minutes=(0.0, 0.0),
    ),
)
