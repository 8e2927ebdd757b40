"""What is known of a cluster's jobs and GPUs in one step: beliefs, restarts, scores of GPUs.

All of it follows from the tables. A model is fitted again where its samples have moved, and the new
fit is stored with the step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import sqlalchemy as sa

from backend.attempts.gradients import believed_gradient
from backend.attempts.locality import penalties_of
from backend.attempts.restarts import restart_parts, restart_seconds
from backend.commands.spec import command_spec
from backend.jobs.declarations import declaration_of
from backend.models import AttemptRow, JobFit
from backend.models import Job as JobRow
from maat.scheduling.belief import Belief
from maat.scheduling.cluster import Cluster
from maat.scheduling.evidence import ModelKey, OfKind, bounded_samples
from maat.scheduling.fitting import Sample
from maat.scheduling.interference import named_for_sharing
from maat.scheduling.job import JobId, JobSpec
from maat.scheduling.plausibility import Doubt, doubted_samples, slowed_by
from maat.vocabulary import Doubted
from worker.training.beliefs import belief_of, believed_samples, fit_again
from worker.training.doubts import account_of, judge, lives_of, standing
from worker.training.tables import TrainingTables
from worker.training.variability import ALL, classes_of, scores_of
from worker.writes import Write

Samples = Mapping[str, tuple[Sample, ...]]
OwnModel = tuple[str, str]
"""The id of a job's tenant, and the name of its model."""
_MOST_OF_KIND = 20  # jobs of a tenant by which what is usual of a model is known
_FITS: sa.Table = JobFit.__table__  # type: ignore[attr-defined]


class Knowledge:
    """What the tables of one step say."""

    def __init__(self, cluster: Cluster) -> None:
        self._bare = self._cluster = cluster
        self._beliefs: dict[JobId, Belief] = {}
        self._writes: list[Write] = []
        self._models: Mapping[JobId, OwnModel] = {}
        self._of_kind: dict[ModelKey, list[tuple[JobId, str, Samples]]] = {}
        self._judged: dict[JobId, object] = {}

    def go_on(self, tables: TrainingTables, models: Mapping[JobId, OwnModel]) -> None:
        """Take up the tables of the next step; `models`: of every job."""
        self._tables, self._beliefs = tables, {}
        self._models, self._of_kind = models, {}
        self._classes = classes_of(
            {
                tables.shared.key(*models[job_id]): command.utilisation
                for job_id, command in tables.commands.items()
                if command.utilisation is not None and job_id in models
            }
        )
        scores = scores_of(self._bare, tables.scores, self._classes)
        if scores != self._cluster.scores:
            self._cluster = replace(self._bare, scores=scores)

    @property
    def cluster(self) -> Cluster:
        """Return the cluster with what is known of its GPUs: the same object while that holds."""
        return self._cluster

    def belief(self, job_id: JobId, *, now: float) -> Belief:
        found = self._beliefs.get(job_id)
        if found is None:
            found = self._beliefs[job_id] = self._belief(job_id, now)
        return found

    def spec(self, row: JobRow, tenant: str, attempts: Sequence[AttemptRow]) -> JobSpec:
        spec = command_spec(
            declaration_of(row),
            id=row.id,
            submitted_at=row.submitted_seconds,
            gpu_types=self._bare.type_names,
            work=self._tables.commands[row.id].total_samples,
            out_of_memory_at=self._tables.memory.get(row.id, {}),
            owner=row.owner_id,
            tenant=tenant,
            restart_seconds=restart_seconds(restart_parts(attempts)),
            step_penalty=self._penalties(row),
        )
        if self._cluster.jobs_per_gpu > 1:
            spec = named_for_sharing(spec, tenant=row.tenant_id)
        known = self._cluster.scores
        name = self._classes.get(self._tables.shared.key(row.tenant_id, row.model), ALL)
        return replace(spec, variability_class=name if name in known else ALL) if known else spec

    def doubts(
        self, job_id: JobId, attempts: Sequence[AttemptRow], *, now: float
    ) -> Sequence[Doubt]:
        """Return what is unlikely of a job; nothing if it has not reported since it was asked."""
        heard = [(one.reported_seconds, one.finished) for one in attempts]
        if not any(at for at, _ in heard) or self._judged.get(job_id) == heard:
            return ()
        self._judged[job_id] = heard
        rows = self._tables.samples.get(job_id, ())
        measured = believed_samples(rows)
        return judge(
            account_of(
                attempts,
                rows,
                self._tables.commands[job_id],
                samples=measured,
                of_kind={kind: self._kind(job_id, kind) for kind in measured},
                now=now,
            )
        )

    def forget(self, job_id: JobId) -> None:
        """Forget a job that has ended."""
        self._judged.pop(job_id, None)

    def take_writes(self) -> list[Write]:
        writes, self._writes = self._writes, []
        return writes

    def _penalties(self, row: JobRow) -> Mapping[str, float]:
        """Return what a step of the job costs across nodes, where that is more than 1."""
        declared = self._tables.commands[row.id].locality_penalty
        tables = self._tables
        measured = tables.penalties.get(tables.shared.key(row.tenant_id, row.model), {})
        found = penalties_of(self._bare.type_names, declared, measured)
        return {one.gpu_type: one.penalty for one in found if one.penalty > 1}

    def flags(self, job_id: JobId) -> Collection[Doubted]:
        """Return what a job is flagged for, and nobody has dismissed."""
        return standing(self._tables.flags.get(job_id, {}))

    def _belief(self, job_id: JobId, now: float) -> Belief:
        """Return what is believed; of a flagged job no speed beyond the usual, and no noise."""
        tables = self._tables
        flags, attempts = self.flags(job_id), tables.attempts.get(job_id, ())
        measured = believed_samples(tables.samples.get(job_id, ()))
        if flags:
            slower = slowed_by(lives_of(attempts, now)) if Doubted.SPEED in flags else 1.0
            samples = {
                kind: doubted_samples(mine, self._others(job_id, kind), slower=slower)
                for kind, mine in measured.items()
            }
        else:
            samples = {
                kind: bounded_samples(mine, self._kind(job_id, kind))
                for kind, mine in measured.items()
            }
        known = tables.fits.get(job_id, {})
        fresh = fit_again(job_id, samples, known, now=now)
        for kind, fit in fresh.items():
            mine = sa.and_(_FITS.c.job_id == job_id, _FITS.c.gpu_type == kind)
            store = sa.update(_FITS).where(mine) if kind in known else sa.insert(_FITS)
            self._writes.append(Write(store.values(**fit.model_dump())))
        known_gradients = () if flags else tables.gradients.get(job_id, ())
        gradient = believed_gradient(known_gradients, now)
        return belief_of(samples, {**known, **fresh}, gradient, attempts)

    def _kind(self, job_id: JobId, gpu_type: str) -> OfKind:
        """Return what the latest jobs of this one's model measured on a GPU type, by tenant."""
        jobs = self._jobs_of_kind(job_id)
        return [(tenant, each.get(gpu_type, ())) for _, tenant, each in jobs]

    def _others(self, job_id: JobId, gpu_type: str) -> OfKind:
        """Return the same of the other jobs that are not flagged."""
        return [
            (tenant, each.get(gpu_type, ()))
            for other, tenant, each in self._jobs_of_kind(job_id)
            if other != job_id and not self.flags(other)
        ]

    def _jobs_of_kind(self, job_id: JobId) -> Sequence[tuple[JobId, str, Samples]]:
        if job_id not in self._models:
            return ()
        model = self._key(job_id)
        if model not in self._of_kind:
            of_tenant: dict[str, list[tuple[JobId, str, Samples]]] = defaultdict(list)
            for other in sorted(self._models):
                if self._key(other) == model:
                    found = believed_samples(self._tables.samples.get(other, ()))
                    tenant = self._models[other][0]
                    of_tenant[tenant] += [(other, tenant, found)] if found else []
            self._of_kind[model] = [
                each for jobs in of_tenant.values() for each in jobs[-_MOST_OF_KIND:]
            ]
        return self._of_kind[model]

    def _key(self, job_id: JobId) -> ModelKey:
        return self._tables.shared.key(*self._models[job_id])
