"""The round loop: the only way in which Maat decides, simulated or live.

rounds.py and protocols.py define its data and its parts.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence

from maat.scheduling.bootstrap import Projection, project_by_profile
from maat.scheduling.checks import check_decision, check_placement
from maat.scheduling.cluster import Cluster
from maat.scheduling.gpu_places import cluster_for, place_beside_pairs, with_pairs_that_stay
from maat.scheduling.job import Allocation, Job
from maat.scheduling.limits import Limit, capacity_limits
from maat.scheduling.pins import pinned_grants
from maat.scheduling.protocols import Clock, Executor, Placer, Policy, RoundStore
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.quotas.rounds import decide
from maat.scheduling.rescue import decision_after_failure, keeping_what_runs
from maat.scheduling.reservations import Reservation, reservation_limits, room_comes_later
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import (
    Change,
    ChangeKind,
    Changes,
    ClusterState,
    Decision,
    Grant,
    PlacementResult,
    RoundInput,
    RoundSeconds,
    StoredState,
)
from maat.scheduling.stability import NO_BOUNDS, Stability, required_stays, with_stays
from maat.scheduling.standing import RoundGrid, RoundsAhead, stands_until
from maat.scheduling.weights import with_weights

log = logging.getLogger(__name__)

SkipRounds = Callable[[RoundsAhead], int]
"""Advances jobs through rounds that would repeat the last one, without scheduling.

Returns how many rounds were skipped before an event that a round must see.
"""


def plan_round(round_input: RoundInput, policy: Policy, placer: Placer) -> RoundResult:
    """Decide one round.

    Pure: the same input gives the same answer, live and simulated. The result's input has the
    limits that quotas and priority classes set.

    Raises:
        ContractViolation: The policy or the placer broke a rule. Nothing has changed then.
    """
    began = time.process_time()
    decided = decide(round_input, policy)
    round_input, decision = decided.round_input, decided.decision
    check_decision(decision, round_input)
    policy_ended = time.process_time()
    placed = place_beside_pairs(placer, decision, round_input)
    check_placement(placed, decision, round_input)
    ended = time.process_time()
    decision = with_weights(decided.settled(placed), round_input, policy)
    decision = with_stays(decision, round_input)
    changes = difference(round_input, decision, placed)
    return RoundResult(
        round_input,
        decision,
        placed,
        changes,
        RoundSeconds(policy_ended - began, ended - policy_ended),
    )


def keep_round(
    round_input: RoundInput, policy: str, placer: Placer, error: Exception
) -> RoundResult:
    """Decide a round whose policy failed with this error: every job keeps the GPUs that it holds.

    Raises ContractViolation if the placer breaks a rule.
    """
    kept = keeping_what_runs(round_input)
    decision = decision_after_failure(kept, policy, error)
    placed = place_beside_pairs(placer, decision, kept)
    check_placement(placed, decision, kept)
    changes = difference(kept, decision, placed)
    return RoundResult(kept, decision, placed, changes, RoundSeconds(0.0, 0.0))


def difference(round_input: RoundInput, decision: Decision, placed: PlacementResult) -> Changes:
    """Return what the placement changes against what jobs hold now."""
    by_job = placed.placement.by_job
    items = []
    for job in round_input.jobs:
        gpus = by_job.get(job.id, ())
        after = _held_after(job, gpus, round_input.cluster) if gpus else None
        grant = decision.grants.get(job.id) if after else None
        kind = _change_kind(job, after, grant)
        if kind is not None:
            items.append(Change(job.id, kind, job.allocation, after, grant))
    return Changes(round_input.round_number, round_input.now, tuple(items))


def _held_after(job: Job, gpus: tuple[int, ...], cluster: Cluster) -> Allocation:
    if job.allocation is not None and job.allocation.gpus == gpus:
        return job.allocation
    return Allocation(cluster.type_names[cluster.gpu_type_of[gpus[0]]], gpus)


def _change_kind(job: Job, after: Allocation | None, grant: Grant | None) -> ChangeKind | None:
    before = job.allocation
    if before == after:
        return ChangeKind.BATCH if grant is not None and grant.batch is not None else None
    if after is None:
        return ChangeKind.PREEMPT
    if before is None:
        return ChangeKind.START if job.started_at is None else ChangeKind.RESUME
    if before.gpu_type == after.gpu_type and before.gpu_count != after.gpu_count:
        return ChangeKind.RESCALE
    return ChangeKind.MIGRATE


class RoundLoop:
    """Runs rounds: the worker's periodic task calls `step`, the simulator `run`."""

    def __init__(
        self,
        *,
        policy: Policy,
        placer: Placer,
        executor: Executor,
        store: RoundStore,
        clock: Clock,
        round_seconds: float | None = None,
        extra_limits: Sequence[Limit] = (),
        reservations: Sequence[Reservation] = (),
        quotas: Sequence[TenantQuota] = (),
        stability: Stability = NO_BOUNDS,
        interference: Mapping[tuple[str, str, int], float] | None = None,
        projection: Projection = project_by_profile,
        seed: int = 0,
        skip_rounds: SkipRounds | None = None,
        outlives_policy: bool = False,
    ) -> None:
        """Create a loop over these parts.

        Args:
            round_seconds: Interval of rounds; None takes the policy's default.
            extra_limits: Limits of every round beyond the cluster's capacity.
            quotas: What tenants may hold, one of each tenant at most. They hold for every round of
                this loop; the live worker makes a loop for each round, with those of the moment.
            stability: How long jobs stay where they are, whatever the policy.
            skip_rounds: Advances jobs through rounds of `run` that need no scheduling; None
                schedules every round.
            outlives_policy: Whether a round whose policy fails keeps what runs and says why;
                otherwise its error ends the loop.
        """
        self._policy, self._placer = policy, placer
        self._executor, self._store, self._clock = executor, store, clock
        self.round_seconds = (
            policy.default_round_seconds if round_seconds is None else round_seconds
        )
        self._extra_limits = tuple(extra_limits)
        self._reservations = tuple(reservations)
        self._quotas = tuple(quotas)
        self._stability = stability
        self._interference = {} if interference is None else interference
        self._projection = projection
        self._seed = seed
        self._skip_rounds = skip_rounds
        self._outlives_policy = outlives_policy
        self._seen: tuple[Cluster, Cluster, tuple[Limit, ...]] | None = None

    def step(self) -> tuple[RoundResult, ClusterState] | None:
        """Run one round; return None if another worker committed it first.

        Changes that a killed worker left are applied before.
        """
        for left_over in self._store.unapplied():
            self._store.applied(left_over, self._executor.apply(left_over))
        observed = self._executor.observe()
        stored = self._store.load()
        result = self._planned(self._input(observed, stored))
        if not self._store.commit(result, observed):
            return None
        self._store.applied(result.changes, self._executor.apply(result.changes))
        return result, observed

    def _planned(self, round_input: RoundInput) -> RoundResult:
        try:
            return plan_round(round_input, self._policy, self._placer)
        except Exception as error:  # whatever the policy, which may be anybody's, raises
            if not self._outlives_policy:
                raise
            log.exception("round %d keeps what runs", round_input.round_number)
            return keep_round(round_input, self._policy.name, self._placer, error)

    def run(self, *, until: float = float("inf")) -> None:
        """Run rounds until `until` (cluster time) or until no later round can differ.

        The latter holds if no job holds or gets a GPU, no job is to come and no reservation is to
        end: the jobs that are left can never run.
        """
        grid, number = RoundGrid(self._clock.now(), self.round_seconds), 0
        while grid.time(number) <= until:
            self._clock.sleep_until(grid.time(number))
            stepped = self.step()
            number += 1
            if stepped is None:
                continue
            result, observed = stepped
            if not result.placement.placement.job_ids and not self._more_later(observed):
                return
            end = min(stands_until(result, self._reservations), math.nextafter(until, math.inf))
            if self._skip_rounds is not None and grid.time(number) < end:
                number += self._skip_rounds(RoundsAhead(grid, number, end))

    def _more_later(self, observed: ClusterState) -> bool:
        return observed.jobs_to_come or (
            bool(observed.jobs) and room_comes_later(self._reservations, observed.now)
        )

    def _input(self, observed: ClusterState, stored: StoredState) -> RoundInput:
        jobs = observed.jobs
        cluster, limits = self._places(observed.cluster)
        stays = required_stays(jobs, cluster, now=observed.now, stability=self._stability)
        pinned = pinned_grants(jobs, cluster, stays)
        return RoundInput(
            now=observed.now,
            round_number=stored.next_round_number,
            round_seconds=self.round_seconds,
            jobs=jobs,
            cluster=cluster,
            limits=with_pairs_that_stay(limits, cluster, jobs, pinned)
            + reservation_limits(cluster, self._reservations, observed.now),
            pinned=pinned,
            stays=stays,
            interference=self._interference,
            state=stored.policy_state,
            placer_state=stored.placer_state,
            projection=self._projection,
            seed=self._seed,
            quotas=self._quotas,
        )

    def _places(self, observed: Cluster) -> tuple[Cluster, tuple[Limit, ...]]:
        """Return the cluster with the places that the policy uses, and its standing limits.

        They are the same objects while the observed cluster is: data is cached for each.
        """
        if self._seen is None or self._seen[0] is not observed:
            cluster = cluster_for(self._policy, observed)
            self._seen = (observed, cluster, capacity_limits(cluster) + self._extra_limits)
        return self._seen[1:]
