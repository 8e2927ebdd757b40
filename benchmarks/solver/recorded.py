"""Rounds recorded from simulations: what a policy's solver meets, to be solved again by others.

Generated traces on mixed clusters, with and without quotas, reservations, weights, priorities and
jobs that are rigid or may not be preempted. Only rounds in which the policy solves a programme.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from maat.scheduling.cluster import Cluster
from maat.scheduling.loop import RoundLoop
from maat.scheduling.parameters import parameter_hash
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.protocols import Policy
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.reservations import Reservation
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import ClusterState, Decision, RoundInput
from maat.scheduling.solving.report import SolveStatus
from maat.simulation.conditions import Conditions
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.record import Recorder
from maat.simulation.scenario import Scenario
from maat.simulation.world import World
from maat.simulation.world_models import catalog_models
from maat.workloads.generators import generate
from maat.workloads.workloads import Workload

JOBS, HOURS = 40, 0.5  # more than the clusters have room for
TENANTS = ("vision", "speech")
MOST_ROUNDS = 2_000  # of one simulation
_SOLVED = (SolveStatus.OPTIMAL, SolveStatus.WITHIN_GAP)


@dataclass(frozen=True)
class Place:
    """A cluster, and what holds on it."""

    cluster: str
    quotas: tuple[TenantQuota, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    rigid_share: float = 0.3


PLACES = (
    Place("t4=3x4,rtx=1x8,a100=1x8"),
    Place(
        "t4=4x4,a100=2x8",
        quotas=(
            TenantQuota(tenant="vision", guaranteed={"a100": 8}, ceiling={"t4": 10}),
            TenantQuota(tenant="speech", weight=2.0, guaranteed={"t4": 4}),
        ),
    ),
    Place("rtx=2x6,a100=1x8,t4=1x4", rigid_share=0.7),
    Place("t4=2x4,rtx=2x8", reservations=(Reservation("rtx", 4, tenant="speech", end=3600.0),)),
)


def recorded_rounds(
    policy: str, count: int, parameters: Mapping[str, object] | None = None
) -> list[RoundInput]:
    """Return `count` rounds in which the policy solved a programme: as many from each place."""
    each = -(-count // len(PLACES))
    rounds = [
        round_input
        for seed, place in enumerate(PLACES)
        for round_input in _recorded(policy, parameters or {}, place, seed=seed, count=each)
    ]
    return rounds[:count]


def decided_again(round_input: RoundInput, policy: Policy) -> Decision:
    """Return the policy's decision on a round that was recorded under other parameters.

    The policy reads the state as if it had left it.
    """
    state = replace(round_input.state, parameter_hash=parameter_hash(policy))
    return policy.allocate(replace(round_input, state=state))


def _recorded(
    policy: str, parameters: Mapping[str, object], place: Place, *, seed: int, count: int
) -> list[RoundInput]:
    """Return rounds of as many simulations as they need, each with the next seed."""
    rounds: list[RoundInput] = []
    while len(rounds) < count:
        rounds += _simulated(policy, parameters, place, seed=seed, count=count - len(rounds))
        seed += len(PLACES)
    return rounds


def _simulated(
    policy: str, parameters: Mapping[str, object], place: Place, *, seed: int, count: int
) -> list[RoundInput]:
    world = World.of(
        Scenario(
            workload=_workload(seed),
            models=catalog_models(),
            cluster=Cluster.parse(place.cluster),
            policy=policy,
            placer=suiting_placer(policy),
            policy_parameters=parameters,
            conditions=Conditions(rigid_share=place.rigid_share),
            seed=seed,
        )
    )
    clock = JumpingClock()
    executor = SimulatedExecutor(world.cluster, clock, world.fidelity, slowdowns=world.slowdowns)
    for job in world.submissions:
        executor.submit(
            job.spec,
            job.truth,
            restart_seconds=job.restart_seconds,
            work_scale=job.work_scale,
            regimes=job.regimes,
        )
    store = _Rounds(world, executor)
    loop = RoundLoop(
        policy=POLICIES.build(policy, parameters),
        placer=world.placer,
        executor=executor,
        store=store,
        clock=clock,
        round_seconds=world.round_seconds,
        quotas=place.quotas,
        reservations=place.reservations,
        seed=seed,
    )
    for number in range(MOST_ROUNDS):
        clock.sleep_until(number * loop.round_seconds)
        loop.step()
        if len(store.solved) == count:
            break
    return store.solved


class _Rounds(Recorder):
    """A simulation's store that also keeps the rounds in which a programme was solved."""

    def __init__(self, world: World, executor: SimulatedExecutor) -> None:
        super().__init__(
            world.scenario_with_scores, executor, None, placer_state=world.placer_state
        )
        self.solved: list[RoundInput] = []

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        committed = super().commit(result, observed)
        if _solved_a_programme(result):
            self.solved.append(result.round_input)
        return committed


def _solved_a_programme(result: RoundResult) -> bool:
    report, several = result.decision.report, len(result.round_input.jobs) > 1
    return several and report.method != "nothing to choose" and report.status in _SOLVED


def _workload(seed: int) -> Workload:
    """Return a generated workload with two tenants, weights, priorities and preemptible jobs."""
    drawn = generate("philly", jobs=JOBS, hours=HOURS, seed=seed)
    jobs = tuple(
        replace(
            job,
            tenant=TENANTS[number % 2],
            weight=(1.0, 1.0, 2.0, 0.5)[number % 4],
            priority=(0, 0, 5)[number % 3],
            preemptible=number % 10 != 7,
        )
        for number, job in enumerate(drawn.jobs)
    )
    return replace(drawn, jobs=jobs)
