"""Search for the jobs that a newcomer may share GPUs with."""

from __future__ import annotations

import math
from collections.abc import Iterator

from maat.scheduling.job import Job, JobSpec
from maat.scheduling.policies.sharing.batches import Batches
from maat.scheduling.policies.sharing.gpu_counts import GpuCounts, Holder
from maat.scheduling.policies.sharing.gpu_holders import GpuHolders
from maat.scheduling.policies.sharing.partners import Partner, Partners
from maat.scheduling.rounds import RoundInput


class PartnerSearch:
    """Partners by newcomer's name, GPU count and type; remembered until a job starts."""

    def __init__(
        self,
        round_input: RoundInput,
        batches: Batches,
        counts: GpuCounts,
        holders: GpuHolders | None,
    ) -> None:
        self._input, self._batches = round_input, batches
        self._counts, self._holders = counts, holders
        self._row_of = {job.id: row for row, job in enumerate(round_input.jobs)}
        self._found: dict[tuple[str, int, int], Partners] = {}
        self._found_at = counts.changes

    def partners(self, spec: JobSpec, t: int) -> Partners:
        """Return the jobs that hold GPUs of a type alone and leave room.

        The interference table says which jobs do not fit on one GPU.
        """
        if self._found_at != self._counts.changes:
            self._found, self._found_at = {}, self._counts.changes
        key = spec.interference_name, spec.requested_gpus, t
        if key not in self._found:
            self._found[key] = Partners(tuple(self._search(spec, t)))
        return self._found[key]

    def _search(self, spec: JobSpec, t: int) -> Iterator[Partner]:
        for holder in self._counts.holders(t):
            partner = self._partner(spec, t, holder)
            if partner is not None and _fits(partner):
                yield partner

    def _partner(self, spec: JobSpec, t: int, holder: Holder) -> Partner | None:
        row = self._row_of[holder.job_id]
        other = self._input.jobs[row]
        split = self._batches.running_way(row, t) if may_share(other) else None
        if split is None:
            return None
        if self._holders is not None and self._holders.node_count(holder.job_id) > 1:
            split = split.apart()
        newcomer, running = spec.interference_name, other.spec.interference_name
        return Partner(
            holder.job_id,
            holder.alone,
            split,
            self._input.interference.get((running, newcomer, holder.gpu_count)),
            self._input.interference.get((newcomer, running, spec.requested_gpus)),
        )


def may_share(job: Job) -> bool:
    """Return whether a job may share GPUs; one that has promised a latency may not."""
    return job.spec.promised_seconds is None


def _fits(partner: Partner) -> bool:
    """Return False if the interference table says that the two never fit."""
    if partner.xi is None or partner.xi_newcomer is None:
        return True
    return math.isfinite(partner.xi + partner.xi_newcomer)
