"""Placement for policies that share GPUs (SJF-BSBF Algorithm 1): idle GPUs, and beside them the GPUs of chosen partners. Chooses no partner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.packed import pack
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult, RoundInput


@dataclass(frozen=True)
class Shared:
    """Jobs keep their GPUs. A new one gets GPUs that nobody holds, on few nodes; and on partners' GPUs what its grant says is to be there.

    A GPU is shared by two jobs at most, and only where a grant names the one who is on it: who names no partner never gets one. Where a grant names
    the GPUs themselves, the job gets these or none.
    """

    name: str = "shared"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        board = _Board(round_input)
        found: dict[JobId, Sequence[int]] = {}
        for job_id, grant in decision.grants.items():
            if board.may_keep(job_id, grant):
                held = round_input.job_by_id[job_id].allocation
                found[job_id] = board.take(held.gpus if held is not None else ())
        unplaced = {}
        for job_id, grant in decision.grants.items():
            if job_id not in found:
                gpus = board.find(grant, found)
                if gpus is None:
                    evidence: dict[str, float | int | str | None] = {
                        "gpu_type": grant.gpu_type,
                        "gpu_count": grant.gpu_count,
                        "idle_gpus": board.idle_count(grant.gpu_type),
                    }
                    unplaced[job_id] = Reasons(ReasonCode.WAITING_CAPACITY, evidence)
                else:
                    found[job_id] = board.take(gpus)
        placement = Placement.of(
            {job_id: found[job_id] for job_id in decision.grants if job_id in found}
        )
        return PlacementResult(placement, unplaced, as_named=True)


class _Board:
    """Which GPUs are idle and how many jobs hold each of the others, while a round is placed."""

    def __init__(self, round_input: RoundInput) -> None:
        self._input = round_input
        self._idle = FreeGpus(round_input.cluster, places=1)
        self._holders: Counter[int] = Counter()
        self._node = round_input.cluster.gpu_node

    def may_keep(self, job_id: JobId, grant: Grant) -> bool:
        """Whether the job holds just what it was granted, on GPUs that may be used and have a place for it."""
        held = self._input.job_by_id[job_id].allocation
        if (
            held is None
            or (held.gpu_type, held.gpu_count) != (grant.gpu_type, grant.gpu_count)
            or grant.gpus not in (None, held.gpus)
        ):
            return False
        cluster = self._input.cluster
        return bool(cluster.gpu_available[list(held.gpus)].all()) and all(
            self._holders[g] < cluster.jobs_per_gpu for g in held.gpus
        )

    def take(self, gpus: Sequence[int]) -> Sequence[int]:
        self._idle.take(gpu for gpu in gpus if not self._holders[gpu])
        self._holders.update(gpus)
        return gpus

    def find(self, grant: Grant, placed: dict[JobId, Sequence[int]]) -> list[int] | None:
        """GPUs for a grant, none of them taken yet; None where idle or partners' GPUs do not suffice, or named ones are taken."""
        if grant.gpus is not None:
            return list(grant.gpus) if self._to_be_had(grant, placed) else None
        shared = self._from_partners(grant, placed)
        if len(shared) < grant.shared_gpus:
            return None
        alone = grant.gpu_count - grant.shared_gpus
        idle = pack(self._idle, Grant(grant.gpu_type, alone)) if alone else []
        if idle is None:
            return None
        self._idle.give_back(idle)
        return idle + shared

    def _to_be_had(self, grant: Grant, placed: dict[JobId, Sequence[int]]) -> bool:
        """Whether each of the named GPUs is idle, or held by one of the named partners alone."""
        partners = {gpu for partner in grant.share_with for gpu in placed.get(partner, ())}
        most = min(self._input.cluster.jobs_per_gpu, 2)
        return all(
            self._holders[g] == 0 or (g in partners and self._holders[g] < most)
            for g in grant.gpus or ()
        )

    def _from_partners(self, grant: Grant, placed: dict[JobId, Sequence[int]]) -> list[int]:
        """GPUs that partners hold alone, in the partners' order; of the last one no more than are needed, together on few nodes."""
        taken: list[int] = []
        if self._input.cluster.jobs_per_gpu < 2:
            return taken
        for partner in grant.share_with:
            alone = [
                gpu
                for gpu in placed.get(partner, ())
                if self._holders[gpu] == 1 and self._usable(gpu, grant)
            ]
            taken += self._together(alone, taken)[: grant.shared_gpus - len(taken)]
        return taken

    def _together(self, gpus: Sequence[int], besides: Sequence[int]) -> list[int]:
        """These GPUs, nodes first of which some are taken already, then those with most of them; by number within a node."""
        used = set(self._node[list(besides)].tolist())
        many = Counter(self._node[list(gpus)].tolist())
        return sorted(
            gpus,
            key=lambda gpu: (int(self._node[gpu]) not in used, -many[int(self._node[gpu])], gpu),
        )

    def _usable(self, gpu: int, grant: Grant) -> bool:
        cluster = self._input.cluster
        return (
            bool(cluster.gpu_available[gpu])
            and cluster.type_names[cluster.gpu_type_of[gpu]] == grant.gpu_type
        )

    def idle_count(self, gpu_type: str) -> int:
        return int(self._idle.counts[self._idle.nodes_of_type(gpu_type)].sum())
