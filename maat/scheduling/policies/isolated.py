"""The speed of each job's request by GPU type, and its time on an equal share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.efficiency import efficiency
from maat.scheduling.job import Job, JobId
from maat.scheduling.matrix import NO_LOSS
from maat.scheduling.policies.requests import Requests
from maat.scheduling.rounds import PolicyState, RoundInput


class ThroughputUnit(StrEnum):
    """What a sum of throughputs adds up.

    STEPS: optimiser steps. SAMPLES: samples. RELATIVE: each job's share of its own best goodput.
    """

    STEPS = "steps"
    SAMPLES = "samples"
    RELATIVE = "relative"


class IsolatedRule(StrEnum):
    """How the time that a job takes alone on its equal share is computed.

    CUMULATIVE: summed over the rounds, with the share of each. WHOLE_JOB: for the whole job with
    the share of now.
    """

    CUMULATIVE = "cumulative"
    WHOLE_JOB = "whole-job"


@dataclass(frozen=True)
class Speeds:
    """The speed of J jobs at their own requests on T types, shapes (J, T).

    `steps`: steps/s; `samples`: samples/s; `goodput`: effective samples/s. Zero if the job cannot
    run.

    A job without a requested batch size gets another on each type: its steps count in units of its
    largest batch. On a type without a model, a job counts as fast as the fastest known one, so that
    it is tried there.
    """

    steps: FloatArray
    samples: FloatArray
    goodput: FloatArray

    @classmethod
    def of(cls, round_input: RoundInput, wanted: Requests) -> Speeds:
        """Return measured speeds where the request was measured, else modelled ones."""
        pairs, shape = wanted.pairs, wanted.goodput.shape
        total = np.maximum(pairs.plans.total_batch_size, 1).astype(np.float64)
        worth = _worth_of_a_sample(wanted, total)
        modelled = np.divide(
            pairs.goodput, worth * total, out=np.zeros(len(pairs)), where=worth > 0
        )
        steps = np.where(pairs.goodput > 0, _measured(round_input, wanted, modelled), 0.0)
        promised = np.array(
            [job.spec.promised_seconds is not None for job in wanted.jobs], dtype=bool
        )[pairs.job]
        by_pair = (
            steps * _part_of_a_step(wanted, total),
            steps * total,
            np.where(promised, pairs.goodput, steps * total * worth),
        )
        found = []
        for values in by_pair:
            wide = np.zeros(shape)
            wide[pairs.job, pairs.gpu_type] = np.where(
                pairs.known, values, values.max(initial=0.0) or 1.0
            )
            found.append(wide)
        return cls(*found)

    def in_unit(self, unit: ThroughputUnit) -> FloatArray:
        """Return the speeds in a unit, shape (J, T)."""
        match unit:
            case ThroughputUnit.STEPS:
                return self.steps
            case ThroughputUnit.SAMPLES:
                return self.samples
            case ThroughputUnit.RELATIVE:
                best = self.goodput.max(axis=1, initial=0.0, keepdims=True)
                relative: FloatArray = np.divide(
                    self.goodput, best, out=np.zeros_like(self.goodput), where=best > 0
                )
                return relative


def _part_of_a_step(wanted: Requests, total: FloatArray) -> FloatArray:
    """Return how much a step of each pair counts, shape (P,).

    1, or the part of the job's largest batch if the job requests no batch size.
    """
    at = wanted.pairs.job
    largest = np.zeros(len(wanted.jobs))
    np.maximum.at(largest, at, total)
    free = np.array([job.spec.batch_size is None for job in wanted.jobs], dtype=bool)
    return np.where(free[at], total / largest[at], 1.0)


def _worth_of_a_sample(wanted: Requests, total: FloatArray) -> FloatArray:
    """Return progress per sample relative to the initial batch, shape (P,)."""
    at = wanted.pairs.job
    phi = [
        job.belief.noise_scale(job.spec.initial_batch_size) if job.spec.learns else NO_LOSS
        for job in wanted.jobs
    ]
    initial = [
        job.spec.initial_batch_size if job.spec.learns else job.spec.max_batch_size
        for job in wanted.jobs
    ]
    worth: FloatArray = efficiency(
        np.array(phi, dtype=np.float64)[at], np.array(initial, dtype=np.float64)[at], total
    )
    return worth


def _measured(round_input: RoundInput, wanted: Requests, modelled: FloatArray) -> FloatArray:
    """Return steps/s of each pair, shape (P,), measured if possible.

    A sample counts if it has the same nodes, replicas and batch size.
    """
    pairs, names = wanted.pairs, round_input.cluster.type_names
    steps = modelled.copy()
    for p, (j, t) in enumerate(zip(pairs.job.tolist(), pairs.gpu_type.tolist(), strict=True)):
        job, plan = wanted.jobs[j], pairs.plans
        known = job.belief.by_type.get(names[t])
        if known is not None:
            key = (
                int(pairs.node_count[p]),
                int(pairs.gpu_count[p]) // job.spec.replica_gpus(names[t]),
                int(plan.per_gpu_batch_size[p]),
            )
            sample = next((s for s in known.samples if s[:3] == key), None)
            if sample is not None:
                extra = int(plan.accumulation_steps[p]) * (
                    sample.step_seconds - sample.sync_seconds
                )
                steps[p] = 1.0 / (sample.step_seconds + extra)
    return steps


@dataclass(frozen=True)
class IsolatedTimes:
    """How J jobs would run alone on an equal share: W_t / J GPUs of each type.

    `isolated_rate`: effective samples/s with those GPUs; `equal_rate`: with an equal split of the
    time on all types; `so_far`: seconds that its work until now would have taken alone;
    `remaining`: remaining work. Shapes (J,).
    """

    job_ids: tuple[JobId, ...] = ()
    isolated_rate: FloatArray = field(default_factory=lambda: np.zeros(0))
    equal_rate: FloatArray = field(default_factory=lambda: np.zeros(0))
    so_far: FloatArray = field(default_factory=lambda: np.zeros(0))
    remaining: FloatArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def at(
        cls, state: PolicyState, round_input: RoundInput, wanted: Requests, goodput: FloatArray
    ) -> IsolatedTimes:
        """Return this round's times, from the state that `data` wrote last round.

        `goodput`: effective samples/s, shape (J, T).
        """
        gpus = round_input.cluster.usable_gpus.astype(np.float64)
        asked = np.array([job.spec.requested_gpus for job in wanted.jobs], dtype=np.float64)
        share = gpus / np.maximum(len(wanted.jobs), 1) / asked[:, None]
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1.0)
        remaining = np.array([job.remaining_work for job in wanted.jobs], dtype=np.float64)
        ids = tuple(job.id for job in wanted.jobs)
        so_far = np.array(
            [
                _so_far(state, job_id, left)
                for job_id, left in zip(ids, remaining.tolist(), strict=True)
            ],
            dtype=np.float64,
        )
        return cls(
            ids,
            (goodput * share).sum(axis=1),
            goodput @ (gpus / max(gpus.sum(), 1.0)),
            so_far,
            remaining,
        )

    def data(self) -> dict[str, list[float]]:
        """Return JSON data by job: seconds so far, remaining work, rate."""
        columns = zip(
            self.so_far.tolist(), self.remaining.tolist(), self.isolated_rate.tolist(), strict=True
        )
        return {job_id: list(row) for job_id, row in zip(self.job_ids, columns, strict=True)}

    def seconds(self, rule: IsolatedRule, jobs: Sequence[Job]) -> FloatArray:
        """Return each job's total time alone, shape (J,).

        Infinite if it can run on no type.
        """
        rate = self.isolated_rate
        if rule is IsolatedRule.WHOLE_JOB:
            start = np.array([job.spec.restart_seconds for job in jobs], dtype=np.float64)
            return start + _seconds_for(
                np.array([job.spec.work for job in jobs], dtype=np.float64), rate
            )
        return self.so_far + _seconds_for(self.remaining, rate)


def _so_far(state: PolicyState, job_id: JobId, remaining: float) -> float:
    rows = state.data.get("isolated")
    if not isinstance(rows, Mapping) or job_id not in rows:
        return 0.0
    seconds, before, rate = rows[job_id]
    return float(seconds + (max(before - remaining, 0.0) / rate if rate > 0 else 0.0))


def _seconds_for(work: FloatArray, rate: FloatArray) -> FloatArray:
    seconds: FloatArray = np.divide(work, rate, out=np.full(len(rate), np.inf), where=rate > 0)
    return seconds
