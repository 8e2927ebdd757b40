"""Workloads like the Synergy traces of PAL (section IV-B1) for a cluster of 256 GPUs.

Published: Poisson arrivals at a rate that is varied (4 to 14 jobs per hour), the GPU counts of
Philly with more than 80 % of the jobs on one GPU, figures over jobs 2000 to 3000. Published in
Blox, on which PAL is built: the lengths. Chosen: the shares of GPU counts above one, and that all
models of PAL's traces are equally frequent.
"""

from __future__ import annotations

import numpy as np

from maat.models.iteration_times import iteration_times
from maat.workloads.workloads import TraceJob, Workload

SYNERGY_JOBS = 4_000  # enough that jobs go on coming after job 3000
SYNERGY_HOURS = 500.0  # 8 jobs per hour
GPU_COUNTS = {1: 0.82, 2: 0.05, 4: 0.06, 8: 0.05, 16: 0.02}
LONG_SHARE = 0.2
# Exponents of ten of the minutes that short and long jobs take (Blox).
SHORT, LONG = (1.5, 3.0), (3.0, 4.0)


def synergy_workload(jobs: int, *, hours: float, seed: int) -> Workload:
    """Return `jobs` rigid jobs submitted within `hours`; the same arguments give the same jobs.

    Given their number, arrivals of a Poisson process are independent draws, so that the count can
    be exact. A job's length is a number of iterations of its model.
    """
    rng, seconds_of = np.random.default_rng(seed), iteration_times().seconds
    submitted = np.floor(np.sort(rng.random(jobs)) * hours * 3_600_000.0) / 1000.0
    models = rng.choice(sorted(seconds_of), size=jobs)
    counts = rng.choice(list(GPU_COUNTS), size=jobs, p=list(GPU_COUNTS.values()))
    is_long = rng.random(jobs) < LONG_SHARE
    exponent = np.where(is_long, rng.uniform(*LONG, jobs), rng.uniform(*SHORT, jobs))
    seconds = 60.0 * 10.0**exponent
    drawn = zip(submitted.tolist(), models.tolist(), counts.tolist(), seconds.tolist(), strict=True)
    return Workload(
        f"synergy-{seed}",
        tuple(
            TraceJob(
                name=f"{model}-{number}",
                submit_seconds=at,
                model=model,
                gpu_count=gpu_count,
                work_scale=float(max(round(length / seconds_of[model]), 1)),
            )
            for number, (at, model, gpu_count, length) in enumerate(drawn)
        ),
        "synergy",
    )
