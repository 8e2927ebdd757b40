"""What each item of `maat reproduce` shows and no other does: a row of its table, and an axis.

Rows are those of tiny instances with the published data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Shown(NamedTuple):
    """A row by its labels and measure, its published value, and the title of an x axis.

    `published`: None where the paper gives no value; `axis`: None for a table without a figure.
    """

    of: tuple[str, ...]
    measure: str
    published: str | None
    axis: str | None


SHOWN: Mapping[str, Shown] = {
    "fidelity traces": Shown(("philly-1",), "average JCT, h", "0.542", "Trace"),
    "fidelity one-type": Shown(("philly-1",), "average JCT, h", "1.679", None),
    "fidelity gpu-hours": Shown(
        ("philly-1", "bert"), "GPU-hours per job on t4", "0.03", "Share of the GPU-hours (%)"
    ),
    "fidelity published-rules": Shown(("as published",), "average JCT, h", "0.542", None),
    "fidelity fidelities": Shown(
        ("paper",), "average JCT, h: change against sia-artifact, %", None, None
    ),
    "fidelity rules": Shown(
        ("no profile before the first run",), "average JCT, h: change, %", None, None
    ),
    "fidelity fits": Shown(("philly-1", "minimum"), "average JCT, h", None, "Jobs"),
    "comparison policies": Shown(
        ("sia + whole-node",),
        "average JCT, h",
        None,
        "JCT relative to sia + whole-node, geometric mean over jobs",
    ),
    "comparison moves": Shown(("none",), "average JCT, h", None, "Bound"),
    "sia fig-1": Shown(("non-rigid, one type", "Sia"), "average JCT, h", "1.9", "Setting"),
    "sia fig-2": Shown(("ResNet18", "t4"), "goodput on 1 / one t4's", None, "GPUs"),
    "sia table-1": Shown(("J1", "(1, 1, A)"), "chosen (1: yes)", "0", None),
    "sia table-2": Shown(("ResNet18",), "least batch size", "128", None),
    "sia table-3": Shown(("Philly", "Sia"), "average JCT, h", "0.6", None),
    "sia fig-4": Shown(
        ("Sia",), "average JCT, % of Pollux (real in the paper)", "50 to 65", "Policy"
    ),
    "sia fig-5": Shown(("deepspeech2-0",), "allocations", None, "Time (hours)"),
    "sia fig-6": Shown(
        ("cifar10", "Sia"),
        "GPU-hours per job on t4",
        None,
        "GPU-hours per job / the least of the three",
    ),
    "sia fig-7": Shown(
        ("Sia", "10"), "average JCT, % of Pollux", "35 to 50", "Jobs submitted per hour"
    ),
    "sia sec-5.3": Shown(("a100",), "throughput on 16 / on 2 GPUs", "8", "GPUs"),
    "sia table-4": Shown(("Sia",), "average JCT, h", "1.9", None),
    "sia fig-8": Shown(("Sia",), "worst rho", "1.2", "Finish-time fairness rho"),
    "sia sec-5.6": Shown(("Sia",), "median, ms", "96", None),
    "sia fig-9": Shown(("Pollux", "64"), "median / Sia's", "100", "GPUs of the cluster"),
    "sia fig-10-left": Shown(("1",), "p of the least average JCT", "-0.5", "Fairness parameter p"),
    "sia fig-10-right": Shown(
        ("300",), "average JCT, % of that at 60 s", "112", "Seconds between rounds"
    ),
    "sia fig-11": Shown(
        ("only strong scaling", "1"),
        "average JCT / that of adaptive jobs",
        "1.14943",
        "Jobs only strong scaling (%)",
    ),
    "sia sec-5.7-profiling": Shown(
        ("Oracle",), "average JCT, % of Bootstrap's", "92.5926", "What is known before a job runs"
    ),
    "sia sec-5.7-two-counts": Shown(
        ("two GPU counts",),
        "average JCT, % of Bootstrap's",
        "at least 100",
        "What is known before a job runs",
    ),
    "pollux fig-1": Shown(("batch size 512",), "throughput on 16 GPUs / on 1", "1 to 16", "GPUs"),
    "pollux fig-2": Shown(
        ("ResNet-50",), "best validation metrics apart, +- %", "at most 1", "Training done (share)"
    ),
    "pollux fig-3": Shown(("ResNet-50",), "mean error of the fit, %", "at most 10", "GPUs"),
    "pollux table-1": Shown(("ResNet-50",), "M0, samples", "200", None),
    "pollux table-2": Shown(("Pollux (p = -1)",), "average JCT, h", "0.76", None),
    "pollux fig-5": Shown(
        ("Pollux (p = -1)",),
        "efficiency in the most contended quarter of rounds / in the least",
        "at least 1",
        "Time (hours)",
    ),
    "pollux fig-6": Shown(
        ("cifar10-0",),
        "samples per GPU in the last quarter of its time / in the first",
        "at least 1",
        "Time (hours)",
    ),
    "pollux fig-7": Shown(
        ("Pollux (p = -1)",), "jobs with rho below 2, %", "99", "Finish-time fairness rho"
    ),
    "pollux fig-8a": Shown(("Pollux (p = -1)", "1"), "average JCT, h", "0.5802", "Load"),
    "pollux sec-5.3.2": Shown(("cifar10",), "JCT shorter if all is known, %", "2 to 5", "Model"),
    "pollux fig-8b": Shown(("60",), "average JCT, h", "0.5802", "Seconds between rounds"),
    "pollux fig-8c": Shown(
        ("with avoidance", "0%"),
        "average JCT, h",
        "0.5802",
        "Speed lost by distributed jobs on one node",
    ),
    "pollux fig-9": Shown(
        ("as literal as can be",), "cost / that by throughput", "0.75", "Time (hours)"
    ),
    "pollux table-3": Shown(("Pollux",), "score of the best 5, %", "95.4", None),
    "bsbf fig-1": Shown(
        ("1.25", "(a) one by one"),
        "mean JCT, min (simulated; by eq. 18 to 25)",
        "80",
        "Minutes (xi 1.25)",
    ),
    "bsbf fig-2": Shown(
        ("BERT", "1"), "throughput with twice the batch, x", "2", "Batch size per GPU"
    ),
    "bsbf fig-3": Shown(
        ("Gavel (V100, 1 GPU)", "all pairs"),
        "largest xi",
        "at most 6",
        "Batch size (Gavel, beside ResNet-18 on CIFAR10)",
    ),
    "bsbf table-2": Shown(("FIFO", "-"), "makespan, s", "2317", "JCT (hours)"),
    "bsbf fig-5": Shown(("SJF-BSBF", "all"), "jobs with a JCT below 500 s, %", "40", "JCT (hours)"),
    "bsbf table-3": Shown(("240", "FIFO"), "average JCT, h, all jobs", "2.34", "Policy (240 jobs)"),
    "bsbf fig-6a": Shown(
        ("FIFO", "240"), "average JCT, h", "2.34", "Jobs submitted within 8 hours"
    ),
    "bsbf fig-6b": Shown(
        ("xi 1", "SJF-BSBF as printed"),
        "average JCT, % of SJF-FFS's",
        "100",
        "Slowdown of every pair on one GPU (xi)",
    ),
    "pal fig-4": Shown(
        ("PM-First", "job 1 (B)"),
        "waits for a later round (1: yes)",
        "0",
        "Job, in the scheduler's order (class)",
    ),
    "pal table-1": Shown(("I", "Sia-Cluster"), "GPUs", "64", None),
    "pal fig-5": Shown(("single measurements",), "bins", "4", "Iteration time / median"),
    "pal fig-6": Shown(
        ("Longhorn", "A (ResNet-50)"),
        "slowest measurement, x median",
        "at most 3.5",
        "Iteration time / median",
    ),
    "pal table-4": Shown(("Tiresias", "1.1"), "average JCT, h (simulated)", "1.56", "JCT (hours)"),
    "pal fig-11": Shown(
        ("published draw", "PM-First", "workload 1"),
        "average JCT, % of Tiresias",
        "41 to 95",
        "Trace",
    ),
    "pal fig-12": Shown(
        ("Tiresias", "workload 1"), "mean wait of a job, h", None, "Waiting time (hours)"
    ),
    "pal fig-13": Shown(
        ("PM-First", "1"), "average JCT, % of Tiresias", "70", "Locality penalty across nodes"
    ),
    "pal sec-5b": Shown(("PM-First",), "p99 JCT, % of Tiresias", "60", "Figure"),
    "pal fig-14": Shown(
        ("FIFO", "PAL", "4"), "average JCT, % of Tiresias", "96", "Jobs submitted per hour"
    ),
    "pal fig-15": Shown(("Tiresias", "4"), "GPUs held, mean", None, "Time (hours)"),
    "pal fig-16": Shown(
        ("LAS", "PAL", "best"), "least average JCT, % of Tiresias", "85", "Jobs per hour"
    ),
    "pal fig-18": Shown(("PM-First", "64"), "placement of a round, median, s", None, "GPUs"),
}
