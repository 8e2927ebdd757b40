"""The jobs of a round by team: the tenants with quotas, or all jobs as one team if none are set.

Facts of the round as arrays: J jobs, K teams, T GPU types. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.job import JobId
from maat.scheduling.owed import TURN_SECONDS, Owed
from maat.scheduling.protocols import Policy
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.quotas.dealing import Wish
from maat.scheduling.quotas.demand import Demand, demand_of, held_by_type
from maat.scheduling.quotas.room import Room, room_of
from maat.scheduling.rounds import Grant, Order, RoundInput
from maat.vocabulary import PRIORITIES, priority_class

NO_CEILING = np.iinfo(np.int32).max
CLASSES = tuple(PRIORITIES)
_RANK = {kind: rank for rank, kind in enumerate(CLASSES)}


@dataclass(frozen=True)
class Teams:
    """Teams of jobs that want GPUs, and what they are entitled to.

    Attributes:
        names: K tenants; one None if no quotas are set.
        team, rank: Shape (J,), the team and the priority class of each job, lowest class 0.
        demand: Of J jobs.
        held: Shape (J, T), what jobs hold now.
        pinned: Shape (J,), jobs that keep what they hold.
        weights: Shape (K,).
        guaranteed, ceiling: Shape (K, T), places.
        owed: Shape (K,), GPU-seconds.
        room: The places that jobs can have.
        policy_order: That in which the policy grants; None if it has none.
    """

    round_input: RoundInput
    names: tuple[str | None, ...]
    team: IntArray
    rank: IntArray
    demand: Demand
    held: IntArray
    pinned: BoolArray
    weights: FloatArray
    guaranteed: IntArray
    ceiling: IntArray
    owed: FloatArray
    room: Room
    policy_order: Order | None = None

    @property
    def capacity(self) -> IntArray:
        """Return the places of each type, shape (T,)."""
        return self.round_input.cluster.capacity

    @cached_property
    def usable(self) -> IntArray:
        """The places of each type that jobs have whenever they want them, shape (T,)."""
        return self.room.before(self.most)

    @cached_property
    def kept(self) -> IntArray:
        """What pinned jobs keep, shape (J, T)."""
        return self.held * self.pinned[:, None]

    @cached_property
    def most(self) -> IntArray:
        """The most that each job could have, shape (J, T); what it keeps if it is pinned."""
        return np.where(self.pinned[:, None], self.held, self.demand.most)

    @cached_property
    def wanted(self) -> IntArray:
        """The most that each team could use of each type, within its ceiling, shape (K, T)."""
        within = np.minimum(self.by_team(self.most), self.ceiling)
        return np.maximum(within, self.by_team(self.kept))

    @cached_property
    def contended(self) -> BoolArray:
        """The types that teams want more of than there is, shape (T,)."""
        more: BoolArray = self.wanted.sum(axis=0) > self.usable
        return more

    def by_team(self, of_jobs: IntArray) -> IntArray:
        """Return the sums over the jobs of each team; (J, T) gives (K, T)."""
        found = np.zeros((len(self.names), of_jobs.shape[1]), dtype=np.int64)
        np.add.at(found, self.team, of_jobs)
        return found

    def by_class(self, of_jobs: IntArray) -> IntArray:
        """Return the sums over the jobs of each team and class; (J, T) gives (K, T, classes)."""
        found = np.zeros((len(self.names), len(CLASSES), of_jobs.shape[1]), dtype=np.int64)
        np.add.at(found, (self.team, self.rank), of_jobs)
        return found.transpose(0, 2, 1)

    @cached_property
    def boundaries(self) -> tuple[tuple[int, ...], ...]:
        """The classes of each team but its lowest: jobs below them wait for those from them on."""
        present = np.zeros((len(self.names), len(CLASSES)), dtype=bool)
        present[self.team, self.rank] = True
        return tuple(tuple(np.flatnonzero(row)[1:].tolist()) for row in present)

    def granted(self, grants: Mapping[JobId, Grant]) -> IntArray:
        """Return the GPUs that grants give each job of each type, shape (J, T)."""
        found, index = np.zeros_like(self.held), self.round_input.cluster.type_index
        for row, job in enumerate(self.round_input.jobs):
            grant = grants.get(job.id)
            if grant is not None:
                found[row, index[grant.gpu_type]] = grant.gpu_count
        return found

    @cached_property
    def order(self) -> IntArray:
        """The jobs in the order in which GPUs are set aside for them, shape (J,).

        Higher classes first, then in the policy's order. If it has none, running ones, then by
        submission.
        """
        waits, policy = ~np.any(self.held > 0, axis=1), self.policy_order
        if policy is None:
            place = np.argsort(
                [job.spec.submitted_at for job in self.round_input.jobs], kind="stable"
            )
        else:
            place = np.array(policy.rows, dtype=np.int64)
            waits &= policy.keep_running
        after = np.empty_like(place)
        after[place] = np.arange(len(place))
        order: IntArray = np.lexsort((after, waits, -self.rank))
        return order

    @cached_property
    def wishes(self) -> list[Wish]:
        """What each job that is not pinned could use, in the order of `order`."""
        counts, team, rank = self.demand.counts, self.team.tolist(), self.rank.tolist()
        fits = ((self.demand.least > 0) & (self.demand.least <= self.ceiling[self.team])).tolist()
        policy, every = self.policy_order, range(len(self.capacity))
        found = []
        for j in self.order[~self.pinned[self.order]].tolist():
            offered = every if policy is None else policy.types(j)
            types = [t for t in offered if fits[j][t]]
            if types:
                found.append(Wish(j, team[j], rank[j], counts[j], types, policy is not None))
        return found


def teams_of(round_input: RoundInput, policy: Policy | None) -> Teams | None:
    """Return the teams; None if neither quotas nor classes limit anything in this round.

    `policy`: the one that decides; None for one that chooses GPU counts.
    """
    jobs = round_input.jobs
    rank = np.array([_RANK[priority_class(job.spec.priority)] for job in jobs], dtype=np.int64)
    if not jobs or (not round_input.quotas and (rank == rank[0]).all()):
        return None
    held = held_by_type(round_input)
    quotas, team = _quotas_and_team(round_input)
    types = round_input.cluster.type_names
    names = tuple(None if quota is None else quota.tenant for quota in quotas)
    capacity = int(round_input.cluster.capacity.sum())
    order_of = getattr(policy, "order", None)
    return Teams(
        round_input=round_input,
        names=names,
        team=team,
        rank=rank,
        demand=demand_of(round_input, policy),
        held=held,
        pinned=np.array([job.id in round_input.pinned for job in jobs], dtype=bool),
        weights=np.array([1.0 if quota is None else quota.weight for quota in quotas]),
        guaranteed=_places(quotas, types, "guaranteed", otherwise=0),
        ceiling=_places(quotas, types, "ceiling", otherwise=NO_CEILING),
        owed=Owed.from_json(round_input.state.shares).by(
            round_input.now,
            [name or "" for name in names],
            np.bincount(team, held.sum(axis=1), len(names)).astype(np.float64),
            most=capacity * TURN_SECONDS,
        ),
        room=room_of(round_input, policy),
        policy_order=order_of(round_input) if order_of is not None else None,
    )


def _quotas_and_team(round_input: RoundInput) -> tuple[list[TenantQuota | None], IntArray]:
    """Return the quota of each team, and the team of each job, (J,).

    With quotas, a tenant that has none has weight 1, nothing guaranteed and no ceiling.
    """
    if not round_input.quotas:
        return [None], np.zeros(len(round_input.jobs), dtype=np.int64)
    given = {quota.tenant: quota for quota in round_input.quotas}
    tenants = sorted({job.spec.tenant for job in round_input.jobs})
    number = {tenant: k for k, tenant in enumerate(tenants)}
    team = np.array([number[job.spec.tenant] for job in round_input.jobs], dtype=np.int64)
    return [given.get(tenant, TenantQuota(tenant=tenant)) for tenant in tenants], team


def _places(
    quotas: list[TenantQuota | None], types: tuple[str, ...], what: str, *, otherwise: int
) -> IntArray:
    rows = [
        [
            otherwise if quota is None else getattr(quota, what).get(name, otherwise)
            for name in types
        ]
        for quota in quotas
    ]
    return np.array(rows, dtype=np.int64).reshape(len(quotas), len(types))
