"""Reasons of jobs that a quota, a share or a higher priority class holds back.

They name nobody but the job's own tenant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.quotas.outcome import Outcome
from maat.vocabulary import priority_class

QUOTA_CODES = (ReasonCode.WAITING_QUOTA, ReasonCode.EXCEEDS_QUOTA_LIMIT)


@dataclass(frozen=True)
class QuotaReasons(Mapping[JobId, Reasons]):
    """A policy's reasons; those that name a row of a quota say how full it is."""

    of_policy: Mapping[JobId, Reasons]
    outcome: Outcome
    limits: tuple[Limit, ...]

    def __getitem__(self, job_id: JobId) -> Reasons:
        reason = self.of_policy[job_id]
        row = self._rows.get(str(reason.evidence.get("binding_limit")))
        if row is None or reason.primary not in QUOTA_CODES:
            return reason
        return self._described(reason, row)

    def __iter__(self) -> Iterator[JobId]:
        return iter(self.of_policy)

    def __len__(self) -> int:
        return len(self.of_policy)

    @cached_property
    def _rows(self) -> Mapping[str, Limit]:
        return {row.name: row for row in self.limits if row.kind is LimitKind.QUOTA}

    @cached_property
    def _team_of(self) -> Mapping[str | None, int]:
        return {name: k for k, name in enumerate(self.outcome.teams.names)}

    def _described(self, reason: Reasons, row: Limit) -> Reasons:
        if row.below_priority is not None:
            evidence = {**reason.evidence, "higher_class": priority_class(row.below_priority)}
            return Reasons(ReasonCode.BEHIND_IN_ORDER, evidence)
        teams, k = self.outcome.teams, self._team_of.get(row.tenant)
        if k is None or row.gpu_type is None:
            return reason
        t = teams.round_input.cluster.type_index[row.gpu_type]
        at_ceiling = row.places >= teams.ceiling[k, t]
        code = reason.primary if at_ceiling else ReasonCode.WAITING_QUOTA
        return Reasons(
            code,
            {
                **reason.evidence,
                "quota_gpu_type": row.gpu_type,
                "quota_gpus": row.places,
                "quota_used_gpus": int(self.outcome.used[k, t]),
                "quota_by_weight": int(not at_ceiling),
            },
        )
