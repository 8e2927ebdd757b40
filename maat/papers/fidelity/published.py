"""Figures of Sia's published simulator on the public traces. Maat computes none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SIMULATOR = (
    "the public Sia SOSP'23 artifact simulator (siasosp23/artifacts, commit aaf7a0d), "
    "unchanged source, policy Sia, 64 GPUs, solver CBC on one thread"
)


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures of one run.

    p99: element int(0.99 n) of the sorted JCTs. GPU-hours: whole rounds, checkpoints included.
    """

    avg_jct_hours: float
    p99_jct_hours: float
    makespan_hours: float
    gpu_hours_per_job: float
    restarts_per_job: float


# SIMULATOR, Sia with p = -0.5, lambda_n = 1.1, rounds of 60 s; 160 jobs in 8 h, newtrace 960 jobs
# in 48 h.
RUNS: Mapping[str, RunFigures] = {
    "philly-1": RunFigures(0.542, 7.89, 15.53, 4.03, 4.26),
    "philly-2": RunFigures(0.747, 10.70, 13.26, 3.51, 4.54),
    "saturn-1": RunFigures(0.581, 7.71, 12.46, 3.61, 4.12),
    "saturn-2": RunFigures(0.715, 9.17, 12.98, 3.58, 4.22),
    "newtrace-1": RunFigures(0.803, 5.18, 50.98, 2.88, 4.83),
}

# SIMULATOR, the same on 16 nodes of 4 T4 each (philly-1).
ONE_TYPE_RUN = RunFigures(1.679, 16.27, 23.91, 9.07, 3.17)

# SIMULATOR: GPU-hours per job of a model on T4, RTX 2080 Ti and A100, by whole rounds.
TYPES = ("t4", "rtx", "a100")
HOURS_BY_TYPE: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "philly-1": {
        "bert": (0.03, 0.00, 0.65),
        "cifar10": (0.11, 0.11, 0.56),
        "deepspeech2": (2.34, 4.02, 0.18),
        "imagenet": (16.76, 45.57, 35.69),
        "yolov3": (11.46, 6.81, 3.12),
    },
    "philly-2": {
        "bert": (0.02, 0.01, 0.55),
        "cifar10": (0.06, 0.12, 0.50),
        "deepspeech2": (1.42, 3.20, 0.48),
        "imagenet": (0.03, 45.74, 40.07),
        "yolov3": (12.67, 4.27, 0.88),
    },
    "saturn-1": {
        "bert": (0.02, 0.02, 0.71),
        "cifar10": (0.05, 0.15, 0.51),
        "deepspeech2": (0.64, 5.03, 0.51),
        "imagenet": (5.41, 62.16, 33.84),
        "yolov3": (14.50, 0.02, 1.47),
    },
    "saturn-2": {
        "bert": (0.02, 0.01, 0.70),
        "cifar10": (0.03, 0.16, 0.48),
        "deepspeech2": (0.86, 4.09, 0.43),
        "imagenet": (7.17, 43.78, 39.12),
        "yolov3": (13.03, 2.88, 1.33),
    },
    "newtrace-1": {
        "bert": (0.03, 0.02, 0.60),
        "cifar10": (0.06, 0.10, 0.46),
        "deepspeech2": (1.81, 3.21, 0.43),
        "imagenet": (9.24, 41.47, 43.26),
        "yolov3": (11.04, 1.58, 2.09),
    },
}

# SIMULATOR on philly-1, one rule changed at a time towards Maat's fidelity `paper`; the last two
# are other choices among assignments that cost the same.
SWITCHES: Mapping[str, RunFigures] = {
    "one-GPU speeds known before the first run": RunFigures(0.537, 8.53, 15.62, 3.33, 3.09),
    "no whole-second rounding at epoch ends": RunFigures(0.559, 8.09, 15.33, 3.64, 4.38),
    "batch planned up to the model's largest": RunFigures(0.523, 8.94, 15.14, 4.42, 4.52),
    "true restart times in the policy's computation": RunFigures(0.539, 7.92, 15.33, 3.98, 3.91),
    "no two-decimal rounding of costs": RunFigures(0.543, 8.27, 15.68, 3.70, 4.36),
    "solver GLPK instead of CBC": RunFigures(0.546, 8.54, 14.86, 4.04, 4.72),
}
