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
_OF_ROWS = (*QUOTA_CODES, ReasonCode.GRANTED, ReasonCode.PINNED)


@dataclass(frozen=True)
class QuotaReasons(Mapping[JobId, Reasons]):
    """A policy's reasons; those that name a row of a quota say how full it is.

    Rows of a second decision are drawn around what the first one granted. Where the first one
    turned a job down, and no row did, its reason is the true one: `earlier`, None for the first.
    """

    of_policy: Mapping[JobId, Reasons]
    outcome: Outcome
    limits: tuple[Limit, ...]
    earlier: Mapping[JobId, Reasons] | None = None

    def __getitem__(self, job_id: JobId) -> Reasons:
        reason = self.of_policy[job_id]
        row = self._rows.get(str(reason.evidence.get("binding_limit")))
        if row is None or reason.primary not in QUOTA_CODES:
            return reason
        before = None if self.earlier is None else self.earlier[job_id]
        if before is not None and before.primary not in _OF_ROWS and not self._at_ceiling(row):
            return before
        return self._described(reason, row, before)

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

    def _described(self, reason: Reasons, row: Limit, before: Reasons | None) -> Reasons:
        if row.below_priority is not None:
            evidence = {**reason.evidence, "higher_class": priority_class(row.below_priority)}
            return Reasons(ReasonCode.BEHIND_IN_ORDER, evidence)
        teams, k = self.outcome.teams, self._team_of.get(row.tenant)
        if k is None or row.gpu_type is None:
            return reason
        t = teams.round_input.cluster.type_index[row.gpu_type]
        at_ceiling = self._at_ceiling(row)
        code = reason.primary if at_ceiling else ReasonCode.WAITING_QUOTA
        share = row.places
        if before is not None and before.evidence.get("quota_gpu_type") == row.gpu_type:
            share = max(share, int(before.evidence["quota_gpus"] or 0))
        guaranteed = int(teams.guaranteed[k, t])
        return Reasons(
            code,
            {
                **reason.evidence,
                "quota_gpu_type": row.gpu_type,
                "quota_gpus": share,
                "quota_used_gpus": int(self.outcome.used[k, t]),
                "quota_by_weight": int(not at_ceiling),
                **({"quota_guaranteed_gpus": guaranteed} if share < guaranteed else {}),
            },
        )

    def _at_ceiling(self, row: Limit) -> bool:
        """Return whether a team's row is its ceiling, and not what it was dealt."""
        teams, k = self.outcome.teams, self._team_of.get(row.tenant)
        if k is None or row.gpu_type is None or row.below_priority is not None:
            return False
        t = teams.round_input.cluster.type_index[row.gpu_type]
        return bool(row.places >= teams.ceiling[k, t])
