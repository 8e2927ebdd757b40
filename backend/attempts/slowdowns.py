"""What jobs on one GPU are believed to cost each other, by what jobs of several tenants measured.

Models are their tenants' own, unless an administrator shares them (`SharedModels`). What jobs
measured is compared with what the cluster declares of the same jobs: the median over tenants says
how far a pair is from that (`maat.scheduling.evidence.pooled`). Commits nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.attempts.models import SharingSample
from backend.attempts.shared_models import shared_models
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster
from backend.jobs.models import Job
from backend.moments import moment_of
from maat.scheduling.evidence import (
    FORGOTTEN_SECONDS,
    Evidence,
    ModelKey,
    SharedModels,
    pooled,
    weight_of,
)
from maat.scheduling.interference import SharingJob, Slowdowns, nearest

LEAST_REPORTS = 3
"""Of a pair, before decisions go by them: one may be of a step that a disk held up."""

Pair = tuple[ModelKey, ModelKey]


@dataclass(frozen=True)
class MeasuredSlowdowns:
    """What sharing was measured to cost on a cluster, over all of its GPU types.

    `now`: in cluster time.
    """

    samples: Sequence[SharingSample]
    shared: SharedModels
    now: float
    declared: Slowdowns | None = None

    def of_jobs(self, victim: SharingJob, partner: SharingJob, gpu_count: int) -> float | None:
        """Return what two jobs cost each other, by those of the nearest batches and GPU count.

        Of each tenant these count alone: the next smaller that it measured, else its smallest.
        None if the two models were not measured together often enough.
        """
        samples = list(self._nearest(victim, partner, gpu_count))
        if sum(each.count for each in samples) < LEAST_REPORTS:
            return None
        declared = self._declared(victim, partner, gpu_count)
        if declared == math.inf and any(map(self._fits, samples)):
            return declared
        level = declared if declared is not None and math.isfinite(declared) else None
        found = pooled(
            Evidence(
                each.tenant_id,
                each.ratio / self._level_of(each, level),
                weight_of(each.count, self.now - each.updated_seconds),
            )
            for each in samples
        )
        return max(found.ratio if level is None else level * found.believed, 1.0)

    def _nearest(
        self, victim: SharingJob, partner: SharingJob, gpu_count: int
    ) -> Iterator[SharingSample]:
        """Yield each tenant's samples of the nearest batches and GPU count, of every GPU type.

        Nobody decides alone by a batch that others did not measure.
        """
        pair = self._key(victim), self._key(partner)
        wanted = {
            "victim_batch": victim.per_gpu_batch_size,
            "partner_batch": partner.per_gpu_batch_size,
            "gpu_count": gpu_count,
        }
        for found in self._by_pair.get(pair, {}).values():
            for name, value in wanted.items():
                best = nearest(value, [getattr(each, name) for each in found])
                found = [each for each in found if getattr(each, name) == best]
            yield from found

    @cached_property
    def _by_pair(self) -> Mapping[Pair, Mapping[str, list[SharingSample]]]:
        """The samples of two models, by the tenant that reported them."""
        found: dict[Pair, dict[str, list[SharingSample]]] = defaultdict(lambda: defaultdict(list))
        for each in self.samples:
            found[pair_of(each, self.shared)][each.tenant_id].append(each)
        return found

    def _key(self, job: SharingJob) -> ModelKey:
        return self.shared.key(job.tenant, job.model)

    def _fits(self, sample: SharingSample) -> bool:
        """Return whether the cluster declares that the jobs that were measured fit on one GPU."""
        declared = self._declared_of(sample)
        return declared is not None and math.isfinite(declared)

    def _level_of(self, sample: SharingSample, level: float | None) -> float:
        """Return what a sample is compared with: what is declared of it, else of the jobs asked."""
        declared = self._declared_of(sample)
        if level is not None and declared is not None and math.isfinite(declared):
            return declared
        return 1.0 if level is None else level

    def _declared_of(self, sample: SharingSample) -> float | None:
        return self._declared(
            SharingJob(sample.victim, sample.victim_batch),
            SharingJob(sample.partner, sample.partner_batch),
            sample.gpu_count,
        )

    def _declared(self, victim: SharingJob, partner: SharingJob, gpu_count: int) -> float | None:
        """Return what is declared of two jobs: infinite if they do not fit, None if nothing is."""
        if self.declared is None:
            return None
        return self.declared.of_jobs(victim, partner, gpu_count)


def measured_slowdowns(
    session: Session, cluster: Cluster, declared: Slowdowns | None = None
) -> MeasuredSlowdowns:
    now = cluster_seconds(cluster, moment_of(session))
    samples = sharing_samples(session, cluster.id, now=now)
    return MeasuredSlowdowns(samples, shared_models(session, cluster), now, declared)


def sharing_samples(session: Session, cluster_id: str, *, now: float) -> Sequence[SharingSample]:
    """Return what jobs of a cluster measured and is not forgotten, in order of their models."""
    order = (SharingSample.victim, SharingSample.partner, SharingSample.gpu_count)
    statement = select(SharingSample).where(
        SharingSample.cluster_id == cluster_id,
        SharingSample.updated_seconds >= now - FORGOTTEN_SECONDS,
    )
    in_order = (
        *order,
        SharingSample.victim_batch,
        SharingSample.partner_batch,
        SharingSample.job_id,
    )
    return session.exec(statement.order_by(*(col(name) for name in in_order))).all()


def pair_of(sample: SharingSample, shared: SharedModels) -> Pair:
    """Return which model was slowed by which."""
    return (
        shared.key(sample.tenant_id, sample.victim),
        shared.key(sample.partner_tenant_id, sample.partner),
    )


def known_models(session: Session, principal: Principal, cluster_id: str) -> set[str] | None:
    """Return the models that the principal's tenant has jobs of; None if it may know all."""
    if principal.sees_all_tenants:
        return None
    own = (Job.cluster_id == cluster_id, Job.tenant_id == principal.tenant_id)
    return set(session.exec(select(Job.model).where(*own).distinct()))
