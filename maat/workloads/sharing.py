"""Workloads like those of SJF-BSBF's simulations (Luo et al., section VI-A).

The paper names six models, GPU counts and lengths "following Pollux", and 240 jobs of the busiest
hours of Philly; it publishes no jobs. What was chosen in its place, and from where, stands in
docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from maat.models.catalog_truth import shipped_truth
from maat.models.truth import Shape, gain
from maat.scheduling.arrays import IntArray
from maat.scheduling.goodput import plan_for_batch
from maat.workloads.workloads import TraceJob, Workload

GPU_TYPE, GPUS_PER_NODE = "t4", 4  # on which the lengths are those of a job alone
SHARING_HOURS = 8.0
SHARING_JOBS = 240  # section VI-A; figure 6a: 120 to 480
# Counts in the 480 jobs of the published Pollux workloads 1, 2 and 6.
MODELS = {"cifar10": 198, "ncf": 181, "deepspeech2": 46, "bert": 30, "yolov3": 15, "imagenet": 10}
LARGE, SMALL = {8: 4, 16: 2}, {1: 10, 2: 8, 4: 6}  # of the published 30-job trace
SHORTEST_SECONDS, LONGEST_SECONDS = 60.0, 12 * 3600.0
# Mean submissions in each hour of the published philly traces, as in the family philly.
HOURLY = (17.7, 17.0, 8.0, 20.7, 25.3, 34.7, 19.3, 17.3)


@dataclass(frozen=True, slots=True)
class SharingShape:
    """Submissions within `hours`, share of large jobs, and log-normal times alone.

    Means in hours: what table III has as JCT less queueing of SJF; sigma: 40 % of the jobs below
    500 s (figure 5a).
    """

    hours: float = SHARING_HOURS
    large_share: float = 0.12
    mean_hours_large: float = 1.74
    mean_hours_small: float = 0.55
    sigma: float = 1.6


USUAL = SharingShape()


def sharing_workload(jobs: int, *, seed: int, shape: SharingShape = USUAL) -> Workload:
    """Return `jobs` jobs; the same arguments give the same jobs.

    Jobs request 1 to 16 GPUs at the model's initial batch size per GPU, and train as long as was
    drawn, alone on that request of T4s.
    """
    rng = np.random.default_rng((seed, jobs))
    expected = np.concatenate(([0.0], np.cumsum(np.array(HOURLY))))
    hours = np.sort(np.interp(rng.random(jobs) * expected[-1], expected, np.arange(len(expected))))
    submitted = hours * 3600.0 * shape.hours / len(HOURLY)
    total = sum(MODELS.values())
    models = rng.choice(list(MODELS), size=jobs, p=np.array(list(MODELS.values())) / total)
    large = rng.random(jobs) < shape.large_share
    counts = np.where(large, _drawn(LARGE, jobs, rng), _drawn(SMALL, jobs, rng))
    mean = np.where(large, shape.mean_hours_large, shape.mean_hours_small) * 3600.0
    seconds = np.clip(
        mean * np.exp(shape.sigma * rng.standard_normal(jobs) - shape.sigma**2 / 2),
        SHORTEST_SECONDS,
        LONGEST_SECONDS,
    )
    drawn = zip(submitted.tolist(), models.tolist(), counts.tolist(), seconds.tolist(), strict=True)
    return Workload(
        f"sharing-{jobs}-{seed}",
        tuple(_job(number, *what) for number, what in enumerate(drawn)),
        "sharing",
    )


def _drawn(weights: Mapping[int, int], many: int, rng: np.random.Generator) -> IntArray:
    shares = np.array(list(weights.values())) / sum(weights.values())
    drawn: IntArray = rng.choice(list(weights), size=many, p=shares)
    return drawn


def _job(number: int, submitted: float, model: str, gpu_count: int, seconds: float) -> TraceJob:
    return TraceJob(
        name=f"{model}-{number}",
        submit_seconds=round(submitted, 3),
        model=model,
        gpu_count=gpu_count,
        batch_size=batch_size(model, gpu_count),
        work_scale=seconds / solo_seconds(model, gpu_count),
    )


@cache
def batch_size(model: str, gpu_count: int) -> int:
    """Return the model's initial batch size on every GPU, at most its largest total."""
    truth = shipped_truth(model)
    return min(truth.initial_batch_size * gpu_count, truth.max_batch_size)


@cache
def solo_seconds(model: str, gpu_count: int) -> float:
    """Return seconds of a standard training alone on T4s, nodes filled in turn.

    By the catalog's fitted step times (SJF-BSBF eq. 7).
    """
    truth, total = shipped_truth(model), batch_size(model, gpu_count)
    plan = plan_for_batch(
        total,
        replicas=gpu_count,
        largest_per_gpu=truth.largest_per_gpu(GPU_TYPE, gpu_count),
        largest_total=total,
        accumulate_above=truth.initial_batch_size,
    )
    whole, rest = divmod(gpu_count, GPUS_PER_NODE)
    shape: Shape = (GPUS_PER_NODE,) * whole + ((rest,) if rest else ())
    step = truth.step(GPU_TYPE, shape, plan.per_gpu_batch_size)
    scale = total / truth.initial_batch_size
    per_step = truth.initial_batch_size * gain(truth.gradient(0, total), scale)
    steps = truth.epoch_ends[0] / per_step + truth.steps_after(0, total)
    return steps * step.with_accumulation(plan.accumulation_steps)
