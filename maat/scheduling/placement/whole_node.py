"""Sia's placement rules (section 3.1).

a) An allocation smaller than a node is on one node. b) A larger one takes whole nodes.
c) If the rest does not fit, some jobs are evicted and placed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from maat.scheduling.job import JobId
from maat.scheduling.packing import NodeRoom, pack
from maat.scheduling.parameters import knob
from maat.scheduling.placeable import held_as_granted, room_beside
from maat.scheduling.placement.evictions import Part, Resident, fewest_moves
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.outcome import outcome
from maat.scheduling.placement.packed import pack as spread
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput


class Eviction(StrEnum):
    """Which jobs move if free GPUs are scattered: the fewest, or all of the type."""

    FEWEST = "fewest"
    EVERYBODY = "everybody"


@dataclass(frozen=True)
class WholeNode:
    """Keep jobs on their GPUs if all grants fit so; else move jobs of that type.

    A job that fits a node is on one node. A larger one takes whole nodes; the remainder of a
    rigid job goes to one more node, which other jobs may use too.
    """

    evict: Eviction = knob(
        Eviction.FEWEST,
        "Which jobs move where free GPUs are scattered.",
        source="Sia section 3.1, rule c: some jobs; published simulator: all, every round",
    )
    spread: bool = knob(
        False,
        "Spread a job over any nodes if it fits no other way, even if one node could hold it.",
        source="published simulator: yes",
    )
    name: str = "whole-node"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        gpus: dict[JobId, Sequence[int]] = {}
        for gpu_type in round_input.cluster.type_names:
            wanted = {
                job_id: grant
                for job_id, grant in decision.grants.items()
                if grant.gpu_type == gpu_type
            }
            if wanted:
                placing = _OneType(round_input, gpu_type, wanted)
                gpus.update(placing.placed(self.evict, spread_rest=self.spread))
        return outcome(decision.grants, gpus)


Found = dict[JobId, Sequence[int]]


class _OneType:
    """The grants of one GPU type, and the jobs that may keep their GPUs."""

    def __init__(
        self, round_input: RoundInput, gpu_type: str, wanted: Mapping[JobId, Grant]
    ) -> None:
        self._input, self._type, self._wanted = round_input, gpu_type, wanted
        held = {
            job_id: held_as_granted(round_input, job_id, grant) for job_id, grant in wanted.items()
        }
        self._kept = {job_id: gpus for job_id, gpus in held.items() if gpus is not None}
        self._pinned = {
            job_id: gpus for job_id, gpus in self._kept.items() if job_id in round_input.pinned
        }
        self._nodes = [
            n for n, node in enumerate(round_input.cluster.nodes) if node.gpu_type == gpu_type
        ]

    def placed(self, evict: Eviction, *, spread_rest: bool) -> Found:
        """Return GPUs by job: jobs stay if the others fit too, else some move (rule c).

        Of several ways the best is the one that places most GPUs, then moves fewest jobs.
        """
        best = self._fill(self._kept)
        if len(best) < len(self._wanted):
            best = min((best, *self._with_moves(evict)), key=self._badness)
        return self._spread(best) if spread_rest and len(best) < len(self._wanted) else best

    def _badness(self, found: Found) -> tuple[int, int, float]:
        """Return (-GPUs placed, jobs moved, GPU-seconds that their restarts waste)."""
        moved = [
            job_id
            for job_id, gpus in self._kept.items()
            if tuple(sorted(found.get(job_id, ()))) != gpus
        ]
        return (
            -sum(len(gpus) for gpus in found.values()),
            len(moved),
            sum(self._waste(job_id) for job_id in moved),
        )

    def _with_moves(self, evict: Eviction) -> Iterator[Found]:
        if len(self._kept) > len(self._pinned):
            yield self._fill(self._pinned)
        if evict is Eviction.FEWEST and self._input.cluster.jobs_per_gpu == 1:
            yield from self._with_fewest_moves()
            yield from self._with_all_repacked()

    def _fill(self, kept: Mapping[JobId, tuple[int, ...]]) -> Found:
        """Keep the GPUs of `kept` and place the other jobs, largest first."""
        free = FreeGpus(self._input.cluster)
        found: Found = {}
        for job_id, gpus in kept.items():
            free.take(gpus)
            found[job_id] = gpus
        others = ((job_id, grant) for job_id, grant in self._wanted.items() if job_id not in kept)
        for job_id, grant in sorted(others, key=lambda item: -item[1].gpu_count):
            place = _whole_nodes(free, grant) or _part_of_node(
                free, grant.gpu_type, grant.gpu_count
            )
            if place is not None:
                found[job_id] = place
        return found

    def _with_fewest_moves(self) -> Iterator[Found]:
        """Yield the way in which fewest jobs move, if one is found."""
        room = self._room(self._pinned)
        room_if_all_stay = self._room(self._kept)
        residents = {
            job_id: self._resident(job_id, room)
            for job_id in self._kept
            if job_id not in self._pinned
        }
        wanted = [
            (part, job_id)
            for job_id in self._wanted
            if job_id not in self._kept
            for part in self._parts(job_id, room)
        ]
        moves = fewest_moves(room_if_all_stay.free, residents, wanted)
        if moves is not None:
            yield self._on_nodes(
                {
                    job_id: gpus
                    for job_id, gpus in self._kept.items()
                    if job_id not in moves.evicted
                },
                moves.nodes,
            )

    def _with_all_repacked(self) -> Iterator[Found]:
        """Yield a packing of all jobs but the pinned ones, if one is found."""
        room = self._room(self._pinned)
        parts = [
            (part, job_id)
            for job_id in self._wanted
            if job_id not in self._pinned
            for part in self._parts(job_id, room)
        ]
        nodes = pack(room.free, [count for count, _ in parts])
        if nodes is not None:
            yield self._on_nodes(self._pinned, list(zip(parts, nodes, strict=True)))

    def _room(self, staying: Mapping[JobId, tuple[int, ...]]) -> NodeRoom:
        return room_beside(self._input, self._type, staying.values())

    def _parts(self, job_id: JobId, room: NodeRoom) -> tuple[int, ...]:
        grant = self._wanted[job_id]
        return room.parts_of(grant.gpu_count, grant.node_count)

    def _resident(self, job_id: JobId, room: NodeRoom) -> Resident:
        gpus = self._kept[job_id]
        node_of = self._input.cluster.gpu_node[list(gpus)].tolist()
        by_node = {self._nodes.index(node): node_of.count(node) for node in dict.fromkeys(node_of)}
        return Resident(by_node, self._parts(job_id, room), self._waste(job_id))

    def _waste(self, job_id: JobId) -> float:
        return self._input.job_by_id[job_id].spec.restart_seconds * len(self._kept[job_id])

    def _on_nodes(
        self, staying: Mapping[JobId, tuple[int, ...]], nodes: Sequence[tuple[Part, int]]
    ) -> Found:
        free = FreeGpus(self._input.cluster)
        found: dict[JobId, list[int]] = {}
        for job_id, gpus in staying.items():
            free.take(gpus)
            found[job_id] = list(gpus)
        for (count, job_id), node in nodes:
            found.setdefault(job_id, []).extend(free.take_from(self._nodes[node], count))
        return dict(found)

    def _spread(self, found: Found) -> Found:
        """Place the remaining jobs on any free GPUs, each on as few nodes as possible."""
        free = FreeGpus(self._input.cluster)
        for gpus in found.values():
            free.take(gpus)
        rest = ((job_id, grant) for job_id, grant in self._wanted.items() if job_id not in found)
        for job_id, grant in sorted(rest, key=lambda item: -item[1].gpu_count):
            place = spread(free, grant)
            if place is not None:
                found = {**found, job_id: place}
        return found


def _part_of_node(
    free: FreeGpus, gpu_type: str, count: int, besides: Collection[int] = ()
) -> list[int] | None:
    """Rule a: take GPUs of the tightest node, besides those that the job has."""
    node = free.tightest(gpu_type, count, besides)
    return None if node is None else free.take_from(node, count, besides)


def _whole_nodes(free: FreeGpus, grant: Grant) -> list[int] | None:
    """Rule b: take idle nodes for a grant larger than a node.

    The remainder goes to one more node, idle or not. Returns None, with nothing taken, if there
    are too few such nodes or the grant fits a node.
    """
    nodes = free.nodes_of_type(grant.gpu_type)
    room = NodeRoom(tuple(free.whole[nodes].tolist()), tuple(free.counts[nodes].tolist()))
    if grant.gpu_count <= max(room.whole, default=0):
        return None
    taken: list[int] = []
    parts = room.parts_of(grant.gpu_count, grant.node_count)
    for number, part in enumerate(parts, start=1):
        is_remainder = number == len(parts) and part < parts[0]
        found = (
            _part_of_node(free, grant.gpu_type, part, taken)
            if is_remainder
            else _idle_node(free, grant.gpu_type, part)
        )
        if found is None:
            free.give_back(taken)
            return None
        taken += found
    return taken


def _idle_node(free: FreeGpus, gpu_type: str, count: int) -> list[int] | None:
    """Take GPUs of the smallest idle node that has at least `count`."""
    idle = free.idle_nodes(gpu_type)
    large = idle[free.whole[idle] >= count]
    return free.take_from(int(large[np.argmin(free.whole[large])]), count) if len(large) else None
