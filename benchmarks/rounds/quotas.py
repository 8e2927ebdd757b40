"""Quotas: a day's shares of GPUs by weight, and what rows of quotas cost a round."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from backend.fairness.shares import (
    Capacity,
    Holding,
    Shares,
    Wanting,
    Weights,
    shares_over,
)
from benchmarks.rounds.round import planned_rounds
from benchmarks.table import Cell, Figures
from maat.scheduling.arrays import FloatArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.rounds import RoundInput
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.workloads.generators import generate
from maat.workloads.workloads import Workload

DAY = 86_400.0
WEIGHTS = {"blue": 1.0, "green": 2.0, "red": 4.0, "grey": 1.0, "white": 1.0}
JOB_SHARES = {"blue": 0.14, "green": 0.24, "red": 0.49, "grey": 0.12, "white": 0.01}
JOBS_PER_HOUR = 30
WORK_SCALE = 2.0
WAITING_HOURS = 4.0  # of arrivals that wait already when the day begins
MOST_GPUS = 64  # of a job that does not say
CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"
SHARE_COLUMNS = {
    "policy": "policy",
    "tenant": "tenant",
    "weight": "weight",
    "demanded": "demanded",
    "deserved": "deserved",
    "actual": "actual",
    "off": "off",
    "restarts_per_job": "restarts per job",
}
SHARE_POLICIES = ("sia", "las", "fifo")
COST_POLICIES = ("sia", "las", "fifo")
TIMES = 9
SHARE_NOTES = [
    f"A simulated day on {CLUSTER}: {JOBS_PER_HOUR} jobs an hour, each of {WORK_SCALE:g} times the "
    f"usual work, more than it can run; those of {WAITING_HOURS:g} hours wait when it begins.",
    "Shares are of the GPU time in use; deserved: weighted max-min of the GPUs in use at every "
    "moment, by what jobs declare.",
    "off: actual / deserved - 1. white seldom has a job; the others always do.",
]
COST_NOTES = [
    f"CPU seconds of plan_round and all reasons, medians of {TIMES} pairs of rounds. ratio: median "
    "of the pairs; least, most: of one pair.",
    "Every tenant has a weight, guaranteed GPUs and a ceiling of each type; the types are "
    "contended.",
]
COST_COLUMNS = {
    "policy": "policy",
    "tenants": "tenants",
    "jobs": "jobs",
    "gpus": "GPUs",
    "rows": "rows",
    "plain_seconds": "without (s)",
    "quota_seconds": "with (s)",
    "ratio": "ratio",
    "least_ratio": "least",
    "most_ratio": "most",
}


def workload(hours: float, *, seed: int = 0) -> Workload:
    """Jobs of five tenants: white wants little, the others more than their shares all the time."""
    drawn = generate(
        "philly",
        jobs=int(JOBS_PER_HOUR * (WAITING_HOURS + hours)),
        hours=WAITING_HOURS + hours,
        seed=seed,
        work_scale=WORK_SCALE,
    )
    rng = np.random.default_rng(seed)
    tenants = rng.choice(list(JOB_SHARES), p=list(JOB_SHARES.values()), size=len(drawn))
    jobs = tuple(
        replace(
            job,
            tenant=str(tenant),
            submit_seconds=max(job.submit_seconds - WAITING_HOURS * 3600.0, 0.0),
        )
        for job, tenant in zip(drawn.jobs, tenants, strict=True)
    )
    return replace(drawn, jobs=jobs)


def day_of(policy: str, hours: float = 24.0) -> SimulationResult:
    """Simulate so many hours of contention under quotas that are weights alone."""
    quotas = tuple(TenantQuota(tenant=name, weight=weight) for name, weight in WEIGHTS.items())
    return simulate(
        Scenario(
            workload=workload(hours),
            models=catalog_models(),
            cluster=Cluster.parse(CLUSTER),
            policy=policy,
            placer=suiting_placer(policy),
            conditions=Conditions(quotas=quotas),
            max_rounds=1,
        )
    )


def shares_of(result: SimulationResult, *, begin: float, end: float) -> Shares:
    """Return what tenants deserved by weighted max-min, and held, from `begin` to `end`."""
    scenario = result.scenario
    jobs = {job.name: job for job in scenario.workload.jobs}
    chooses = bool(getattr(POLICIES.entry(scenario.policy).cls, "chooses_gpu_counts", False))
    wanting, holding, last = [], [], {}
    for record in result.records:
        job = jobs[record.name]
        most = (job.max_gpus or MOST_GPUS) if chooses else job.gpu_count
        until = end if record.finish is None else record.finish
        wanting.append(Wanting(job.tenant, job.submit_seconds, until, most))
        last[record.name] = until
    spans: dict[str, list[tuple[float, int]]] = {}
    for span in result.spans:
        spans.setdefault(span.job, []).append((span.start, span.gpu_count))
    for name, mine in spans.items():
        ends = [start for start, _ in mine[1:]] + [last[name]]
        for (start, gpus), stop in zip(mine, ends, strict=True):
            if gpus:
                holding.append(Holding(jobs[name].tenant, start, stop, gpus))
    return shares_over(
        [begin, end], wanting, holding, in_use(holding), weights=[Weights(begin, WEIGHTS)]
    )


def in_use(holding: Sequence[Holding]) -> list[Capacity]:
    """Return how many GPUs jobs held, from each moment on at which that changed."""
    changes = sorted(
        [(one.begin, one.gpus) for one in holding] + [(one.end, -one.gpus) for one in holding]
    )
    times = np.array([time for time, _ in changes])
    gpus = np.cumsum([count for _, count in changes])
    last = np.flatnonzero(np.append(np.diff(times) > 0, True))
    return [
        Capacity(0.0, 0.0),
        *(Capacity(float(times[i]), float(gpus[i])) for i in last.tolist()),
    ]


def with_tenants(round_input: RoundInput, tenants: int) -> RoundInput:
    """Return the round with its jobs dealt to tenants, each with a quota of its own.

    Jobs request 1 to 8 GPUs, together more than there are: policies that give what is requested
    have contention too.
    """
    jobs = tuple(
        replace(
            job,
            spec=replace(
                job.spec,
                tenant=f"tenant-{i % tenants}",
                gpu_count=min(1 << (i // tenants) % 4, job.spec.max_gpus or MOST_GPUS),
            ),
        )
        for i, job in enumerate(round_input.jobs)
    )
    each = {
        name: max(int(places) // tenants, 1)
        for name, places in zip(
            round_input.cluster.type_names, round_input.cluster.capacity.tolist(), strict=True
        )
    }
    quotas = tuple(
        TenantQuota(
            tenant=f"tenant-{k}",
            weight=1.0 + k % 3,
            guaranteed={name: n // 2 for name, n in each.items()},
            ceiling={name: 4 * n for name, n in each.items()},
        )
        for k in range(tenants)
    )
    return replace(round_input, jobs=jobs, quotas=quotas)


def paired_seconds(
    plain: RoundInput, quotas: RoundInput, policy: str, *, times: int
) -> tuple[FloatArray, int]:
    """Return CPU seconds of a round without and with quotas, (times, 2), and its rows of quotas.

    All reasons are read. The two take turns, so that both see the same machine; the first pair,
    which fills caches, does not count.
    """
    chosen, placer = POLICIES.build(policy), PLACERS.build(suiting_placer(policy))
    spent, rows = np.zeros((times + 1, 2)), 0
    for i in range(times + 1):
        for column, round_input in enumerate((plain, quotas)):
            gc.collect()
            began = time.process_time()
            result = plan_round(round_input, chosen, placer)
            dict(result.reasons)
            spent[i, column] = time.process_time() - began
            rows = len(result.round_input.limits) - len(round_input.limits)
    return spent[1:], rows


def measure_shares(policies: Sequence[str] = SHARE_POLICIES, hours: float = 24.0) -> Figures:
    """Simulate a day under each policy; compare what tenants deserved and held."""
    rows: list[dict[str, Cell]] = []
    for policy in policies:
        result = day_of(policy, hours)
        found = shares_of(result, begin=0.0, end=hours * 3600.0)
        restarts = dict.fromkeys(WEIGHTS, 0)
        jobs = {job.name: job.tenant for job in result.scenario.workload.jobs}
        for record in result.records:
            restarts[jobs[record.name]] += record.restarts
        for k, tenant in enumerate(found.tenants):
            due, held = (float(v[0, k] / found.held.sum()) for v in (found.deserved, found.held))
            rows.append(
                {
                    "policy": policy,
                    "tenant": tenant,
                    "weight": WEIGHTS[tenant],
                    "demanded": float(found.demanded[0, k] / found.held.sum()),
                    "deserved": due,
                    "actual": held,
                    "off": held / due - 1.0,
                    "restarts_per_job": restarts[tenant]
                    / max(sum(name == tenant for name in jobs.values()), 1),
                }
            )
    return Figures("quota-shares", "Shares of a day by weight", SHARE_COLUMNS, rows, SHARE_NOTES)


def measure_cost(*, tenants: int = 200, jobs: int = 1000, gpus: int = 2048) -> Figures:
    """Measure a round with quotas of many tenants beside the same round without."""
    plain = planned_rounds(gpus, jobs, odd=False, stored=1)[-1].result.round_input
    quotas = with_tenants(plain, tenants)
    plain = replace(quotas, quotas=())
    rows: list[dict[str, Cell]] = []
    for policy in COST_POLICIES:
        spent, limits = paired_seconds(plain, quotas, policy, times=TIMES)
        ratios = spent[:, 1] / spent[:, 0]
        rows.append(
            {
                "policy": policy,
                "tenants": tenants,
                "jobs": jobs,
                "gpus": gpus,
                "rows": limits,
                "plain_seconds": float(np.median(spent[:, 0])),
                "quota_seconds": float(np.median(spent[:, 1])),
                "ratio": float(np.median(ratios)),
                "least_ratio": float(ratios.min()),
                "most_ratio": float(ratios.max()),
            }
        )
    return Figures("quota-cost", "What rows of quotas cost a round", COST_COLUMNS, rows, COST_NOTES)
