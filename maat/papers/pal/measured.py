"""PAL sections III-B and IV-C: what was measured of single GPUs (figures 5 to 7)."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np

from maat.figures.data import Distribution
from maat.figures.pm_scores import binned_scores, score_shares
from maat.papers.bench import Bench
from maat.papers.items import Item, Outcomes, Published, Row, Shown
from maat.scheduling.arrays import FloatArray
from maat.scheduling.variability import BinRule, binned

CLASSES = {"resnet": "A (ResNet-50)", "bert": "B (BERT)", "pagerank": "C (PageRank)"}
CLUSTERS = {"Frontera": "rtx5000", "Longhorn": "v100"}
BINNED_GPUS = 128  # figure 5
PAPERS_SCORES = "single measurements"
SLOWEST = {("Longhorn", CLASSES["resnet"]): Published(most=3.5)}  # section II-A


def _figure_5(bench: Bench, outcomes: Outcomes) -> Shown:
    measured = bench.variability("v100").measured["v100", "resnet"]
    kinds = {PAPERS_SCORES: np.array(measured.rows()), "medians of GPUs": measured.medians()}
    rows: list[Row] = []
    for name, scores in kinds.items():
        drawn = np.sort(np.random.default_rng(0).permutation(scores)[:BINNED_GPUS])
        bins = binned(drawn, BinRule.SILHOUETTE)
        distinct = np.unique(bins)
        rows.append(Row((name,), "bins", [len(distinct)], 4.0))
        rows.append(Row((name,), "slowest GPU, x median", [drawn.max()], Published(least=2.5)))
        nearest = distinct[np.argmin(abs(distinct - 0.99))]
        rows.append(Row((name,), "score of the bin around the median", [nearest], 0.99))
        if name == PAPERS_SCORES:
            figure = binned_scores(drawn.tolist(), bins.tolist())
    return Shown(
        ("scores",),
        rows,
        why=(
            "The paper draws 128 GPUs, without saying which, from single measurements: the "
            "slowest is beyond 2.5 times the median and has a bin of its own; no GPU's median is "
            f"beyond {measured.medians().max():.2f}."
        ),
        figure=figure,
    )


def _geometric_spread(values: FloatArray) -> float:
    """Return the geometric mean of how far measurements are off the median, in percent."""
    return 100 * (math.exp(fmean(abs(math.log(value)) for value in values)) - 1)


def _profiles(bench: Bench, outcomes: Outcomes) -> Shown:
    rows, drawn = [], {}
    for cluster, kind in CLUSTERS.items():
        measured = bench.variability(kind).measured
        for application, title in CLASSES.items():
            if (kind, application) not in measured:
                continue
            each = np.array(measured[kind, application].rows())
            published = (
                Published(most=3.5) if (cluster, application) == ("Longhorn", "resnet") else None
            )
            of = (cluster, title)
            rows.append(Row(of, "slowest measurement, x median", [each.max()], published))
            rows.append(Row(of, "off the median (geometric mean), %", [_geometric_spread(each)]))
            rows.append(Row(of, "standard deviation, %", [100 * float(each.std(ddof=1))]))
            drawn[f"{cluster}, {title}"] = Distribution.of(each.tolist())
    return Shown(
        ("cluster", "class"),
        rows,
        why=(
            "The order is the paper's: class A varies most, C hardly; its 22 % geometric mean for "
            "class A (section II-A) is over five clusters of another study, not over these two."
        ),
        figure=score_shares(drawn, of="measurements"),
    )


ITEMS = (
    Item(
        "fig-5",
        "Bins of PM scores of 128 GPUs for class A",
        _figure_5,
        needs=("pal variability",),
        cpu_minutes=(0.0, 0.0),
    ),
    Item(
        "fig-6",
        "Performance of single GPUs of Frontera and of Longhorn, by class",
        _profiles,
        also=("fig-7",),
        needs=("pal variability",),
        cpu_minutes=(0.0, 0.0),
    ),
)
