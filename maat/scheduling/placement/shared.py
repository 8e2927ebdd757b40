"""Placement for policies that share GPUs (SJF-BSBF Algorithm 1).

A job gets idle GPUs, and GPUs of the partners that the policy chose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.placeable import held_as_granted
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.outcome import in_grant_order, unplaced
from maat.scheduling.placement.packed import pack
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput


@dataclass(frozen=True)
class Shared:
    """Place new jobs on idle GPUs and on GPUs of partners; jobs keep their GPUs.

    Idle GPUs are taken on few nodes.

    At most two jobs share a GPU, and only if the grant of one names the other as a partner. If a
    grant names GPUs, the job gets exactly those or none.
    """

    keeps_pairs: ClassVar[bool] = True
    name: str = "shared"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        board = _Board(round_input)
        found: dict[JobId, Sequence[int]] = {}
        for job_id, grant in decision.grants.items():
            held = board.kept(job_id, grant)
            if held is not None:
                found[job_id] = board.take(held)
        without: dict[JobId, Reasons] = {}
        for job_id, grant in decision.grants.items():
            if job_id not in found:
                gpus = board.find(grant, found)
                if gpus is None:
                    without[job_id] = _too_few_idle(grant, board.idle_count(grant.gpu_type))
                else:
                    found[job_id] = board.take(gpus)
        return PlacementResult(in_grant_order(decision.grants, found), without, as_named=True)


def _too_few_idle(grant: Grant, idle_gpus: int) -> Reasons:
    return Reasons(
        ReasonCode.WAITING_CAPACITY, {**unplaced(grant).evidence, "idle_gpus": idle_gpus}
    )


class _Board:
    """The idle GPUs, and how many jobs hold each other GPU, while a round is placed."""

    def __init__(self, round_input: RoundInput) -> None:
        self._input = round_input
        self._idle = FreeGpus(round_input.cluster, places=1)
        self._holders: Counter[int] = Counter()
        self._node = round_input.cluster.gpu_node

    def kept(self, job_id: JobId, grant: Grant) -> tuple[int, ...] | None:
        """Return what the job holds, if it was granted, is usable, and has a place."""
        held = held_as_granted(self._input, job_id, grant)
        if held is None or grant.gpus not in (None, held):
            return None
        most = self._input.cluster.jobs_per_gpu
        return held if all(self._holders[gpu] < most for gpu in held) else None

    def take(self, gpus: Sequence[int]) -> Sequence[int]:
        self._idle.take(gpu for gpu in gpus if not self._holders[gpu])
        self._holders.update(gpus)
        return gpus

    def find(self, grant: Grant, placed: dict[JobId, Sequence[int]]) -> list[int] | None:
        """Return GPUs for a grant, without taking them.

        None if there are too few idle GPUs or GPUs of partners, or if a named GPU is taken.
        """
        if grant.gpus is not None:
            return list(grant.gpus) if self._are_open(grant, placed) else None
        shared = self._from_partners(grant, placed)
        if len(shared) < grant.shared_gpus:
            return None
        alone = grant.gpu_count - grant.shared_gpus
        idle = pack(self._idle, Grant(grant.gpu_type, alone)) if alone else []
        if idle is None:
            return None
        self._idle.give_back(idle)
        return idle + shared

    def _are_open(self, grant: Grant, placed: dict[JobId, Sequence[int]]) -> bool:
        """Return whether each named GPU is idle or held by a named partner alone."""
        partners = {gpu for partner in grant.share_with for gpu in placed.get(partner, ())}
        most = min(self._input.cluster.jobs_per_gpu, 2)
        return all(
            self._holders[g] == 0 or (g in partners and self._holders[g] < most)
            for g in grant.gpus or ()
        )

    def _from_partners(self, grant: Grant, placed: dict[JobId, Sequence[int]]) -> list[int]:
        """Return GPUs that partners hold alone, in order of the partners.

        Of the last partner only as many as are needed, on few nodes.
        """
        taken: list[int] = []
        if self._input.cluster.jobs_per_gpu < 2:
            return taken
        for partner in grant.share_with:
            alone = [
                gpu
                for gpu in placed.get(partner, ())
                if self._holders[gpu] == 1 and self._usable(gpu, grant)
            ]
            taken += self._by_node(alone, taken)[: grant.shared_gpus - len(taken)]
        return taken

    def _by_node(self, gpus: Sequence[int], besides: Sequence[int]) -> list[int]:
        """Return `gpus` sorted so that the first ones are on few nodes.

        Nodes of the GPUs `besides` come first, then nodes with most of `gpus`.
        """
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
