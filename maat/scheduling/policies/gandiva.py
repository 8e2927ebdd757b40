"""Gandiva as Gavel implements it: time slices, and random pairs of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from maat.scheduling.job import Job, JobId
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.ordering import HeadOfLine, Walker
from maat.scheduling.policies.requests import Requests
from maat.scheduling.protocols import GpuSharing
from maat.scheduling.rounds import Decision, PolicyState, RoundInput
from maat.scheduling.solving.report import SolveReport

_SLACK = 1e-6  # seconds

Unit = tuple[Job, ...]


@dataclass(frozen=True)
class Gandiva:
    """Run jobs in turn, by equal slices of time; a pair takes turns as one job.

    A job with a used-up slice goes to the end of the queue. Pairs are formed while jobs request
    more GPUs than there are, if a GPU may hold two jobs and their slowdowns are known. A pair with
    summed speeds, relative to running alone, below the least is dropped. Profiling, migration for
    locality and growth, which the original does, are not part of Gavel's version.
    """

    slice_seconds: float = knob(
        360.0,
        "Time on GPUs after which the next job in the queue has its turn.",
        unit="s",
        source="Gavel: its rounds; Gandiva: about a minute",
        minimum=1.0,
        maximum=86400.0,
    )
    least_pair_speed: float = knob(
        1.0,
        "Summed speeds of a pair, relative to running alone, below which it is not kept.",
        source="Gavel",
        minimum=0.0,
        maximum=2.0,
    )
    pairing: bool = knob(True, "Whether jobs may share GPUs in pairs.", source="Gandiva: packing")
    head_of_line: HeadOfLine = knob(
        HeadOfLine.BACKFILL, "Whether later jobs may pass one that does not fit."
    )
    default_round_seconds: ClassVar[float] = 360.0  # Gavel
    name: str = "gandiva"

    @property
    def gpu_sharing(self) -> GpuSharing:
        """Return how it shares GPUs: in pairs of jobs, or never."""
        return GpuSharing.CHOSEN if self.pairing else GpuSharing.NEVER

    def allocate(self, round_input: RoundInput) -> Decision:
        memory = round_input.state.for_owner(self.name, parameter_hash(self))
        pairs = self._pairs(round_input, memory.data)
        active = {
            **(pairs if self.pairing and _is_crowded(round_input) else {}),
            **_pinned_pairs(round_input),
        }
        queue = _next_queue(round_input, memory.data, self.slice_seconds)
        units = _units([round_input.job_by_id[job_id] for job_id in queue], active, round_input)
        decision = self._walk(round_input, units)
        since = _slice_starts(round_input, memory.data, self.slice_seconds, decision)
        kept = sorted([a, b] for a, b in pairs.items() if a < b)
        state = PolicyState(
            memory.owner, memory.parameter_hash, {"queue": queue, "since": since, "pairs": kept}
        )
        return replace(decision, state=state)

    # ---- pairs

    def _pairs(self, round_input: RoundInput, data: Mapping[str, Any]) -> dict[JobId, JobId]:
        """Return the partner of each job: pairs kept, and new ones drawn at random.

        Both ways. Pairs of the state are kept while they hold; new ones are drawn while GPUs are
        scarce.
        """
        jobs = round_input.job_by_id
        kept = [
            (a, b)
            for a, b in data.get("pairs", ())
            if a in jobs and b in jobs and self._suit(jobs[a], jobs[b], round_input)
        ]
        partner = {one: other for a, b in kept for one, other in ((a, b), (b, a))}
        if self.pairing and round_input.cluster.jobs_per_gpu > 1 and _is_crowded(round_input):
            lonely = [job for job in round_input.jobs if job.id not in partner]
            partner |= self._random_pairs(
                [lonely[i] for i in round_input.rng.permutation(len(lonely))], round_input
            )
        return partner

    def _random_pairs(self, shuffled: Sequence[Job], round_input: RoundInput) -> dict[JobId, JobId]:
        """Pair each job with the next one that suits it."""
        partner: dict[JobId, JobId] = {}
        for i, one in enumerate(shuffled):
            if one.id not in partner:
                suits = (
                    job
                    for job in shuffled[i + 1 :]
                    if job.id not in partner and self._suit(one, job, round_input)
                )
                other = next(suits, None)
                if other is not None:
                    partner |= {one.id: other.id, other.id: one.id}
        return partner

    def _suit(self, one: Job, other: Job, round_input: RoundInput) -> bool:
        """Return whether two jobs can be a pair: equal counts, fast enough together.

        Two pinned jobs can only be a pair if they share GPUs already.
        """
        count = one.spec.requested_gpus
        if other.spec.requested_gpus != count or (
            _is_pinned(one, round_input)
            and _is_pinned(other, round_input)
            and not _share_already(one, other)
        ):
            return False
        names = one.spec.interference_name, other.spec.interference_name
        mine, theirs = (
            round_input.interference.get((*pair, count)) for pair in (names, names[::-1])
        )
        return (
            mine is not None
            and theirs is not None
            and 1 / mine + 1 / theirs >= self.least_pair_speed
        )

    # ---- turns

    def _walk(self, round_input: RoundInput, units: Sequence[Unit]) -> Decision:
        """Grant along the queue; the second job of a pair takes no GPUs.

        It takes places, under the limits that count places.
        """
        second = tuple(unit[1].id for unit in units if len(unit) == 2)
        inner = replace(
            round_input, limits=round_input.limits + _one_unit_per_gpu(round_input, second)
        )
        walker = Walker(inner, Requests(inner), "jobs whose turn it is")
        row_of = {job.id: row for row, job in enumerate(round_input.jobs)}
        together = []
        blocked = False
        for unit in units:
            first, *others = (row_of[job.id] for job in unit)
            if blocked or not walker.offer(first):
                for row in (first, *others):
                    walker.refuse_unless_granted(row)
                blocked = blocked or (
                    self.head_of_line is HeadOfLine.BLOCK and walker.could_ever_run(first)
                )
            elif others and self._joins(walker, others[0], unit, round_input):
                together.append(unit)
        return _decision(walker, together)

    def _joins(self, walker: Walker, row: int, unit: Unit, round_input: RoundInput) -> bool:
        grant = walker.grants[unit[0].id]
        if walker.offer_on(row, round_input.cluster.type_index[grant.gpu_type]):
            joined = walker.grants[unit[1].id]
            return (joined.gpu_type, joined.gpu_count) == (grant.gpu_type, grant.gpu_count)
        walker.refuse_unless_granted(row)
        return False


def _decision(walker: Walker, together: Sequence[Unit]) -> Decision:
    """Return the grants; partners name each other."""
    grants, reasons = walker.grants, walker.reasons
    for one, other in ((unit[i], unit[1 - i]) for unit in together for i in (0, 1)):
        grants[one.id] = replace(grants[one.id], share_with=(other.id,))
        reasons.add(one.id, {"shares_with": other.id})
    return Decision(grants, SolveReport(), reasons)


def _is_crowded(round_input: RoundInput) -> bool:
    """Return whether jobs request more GPUs than there are."""
    return sum(job.spec.requested_gpus for job in round_input.jobs) > int(
        round_input.cluster.usable_gpus.sum()
    )


def _is_pinned(job: Job, round_input: RoundInput) -> bool:
    return job.id in round_input.pinned


def _pinned_pairs(round_input: RoundInput) -> dict[JobId, JobId]:
    """Return pinned jobs that hold the same GPUs, both ways.

    They share GPUs already, whether GPUs are scarce or not.
    """
    by_gpus: dict[tuple[int, ...], list[JobId]] = {}
    for job_id in round_input.pinned if round_input.cluster.jobs_per_gpu > 1 else ():
        held = round_input.job_by_id[job_id].allocation
        by_gpus.setdefault(held.gpus if held is not None else (), []).append(job_id)
    return {
        one: other
        for pair in by_gpus.values()
        if len(pair) == 2
        for one, other in (pair, pair[::-1])
    }


def _share_already(one: Job, other: Job) -> bool:
    return one.allocation is not None and one.allocation == other.allocation


def _one_unit_per_gpu(round_input: RoundInput, second: tuple[JobId, ...]) -> tuple[Limit, ...]:
    """Return limits that give each GPU to one pair or one job.

    None if GPUs hold one job each.
    """
    cluster = round_input.cluster
    if cluster.jobs_per_gpu < 2:
        return ()
    return tuple(
        Limit(f"gpus:{name}", LimitKind.CAPACITY, int(count), gpu_type=name, besides_jobs=second)
        for name, count in zip(cluster.type_names, cluster.usable_gpus, strict=True)
    )


def _next_queue(
    round_input: RoundInput, data: Mapping[str, Any], slice_seconds: float
) -> list[JobId]:
    """Return the queue: known jobs, new ones, then those with a used-up slice."""
    jobs = round_input.job_by_id
    known = [job_id for job_id in data.get("queue", ()) if job_id in jobs]
    queue = known + [job.id for job in round_input.jobs if job.id not in set(known)]
    over = {
        job_id
        for job_id in queue
        if _has_used_slice(jobs[job_id], data, round_input.now, slice_seconds)
    }
    return [job_id for job_id in queue if job_id not in over] + [
        job_id for job_id in queue if job_id in over
    ]


def _has_used_slice(job: Job, data: Mapping[str, Any], now: float, slice_seconds: float) -> bool:
    return (
        job.allocation is not None
        and now - data.get("since", {}).get(job.id, now) >= slice_seconds - _SLACK
    )


def _slice_starts(
    round_input: RoundInput, data: Mapping[str, Any], slice_seconds: float, decision: Decision
) -> dict[JobId, float]:
    """Return when the present slice of each granted job began."""
    since, now = data.get("since", {}), round_input.now
    goes_on = {
        job.id
        for job in round_input.jobs
        if job.allocation is not None
        and job.id in since
        and not _has_used_slice(job, data, now, slice_seconds)
    }
    return {job_id: since[job_id] if job_id in goes_on else now for job_id in decision.grants}


def _units(
    queue: Sequence[Job], partner: Mapping[JobId, JobId], round_input: RoundInput
) -> list[Unit]:
    """Return jobs and pairs in queue order of their first member.

    In a pair, a pinned job comes first.
    """
    units: list[Unit] = []
    seen: set[JobId] = set()
    for job in queue:
        if job.id in seen:
            continue
        other = round_input.job_by_id.get(partner.get(job.id, ""))
        pair = (
            (job,)
            if other is None or other.id in seen or partner.get(other.id) != job.id
            else (job, other)
        )
        seen.update(member.id for member in pair)
        units.append(tuple(sorted(pair, key=lambda member: not _is_pinned(member, round_input))))
    return units
