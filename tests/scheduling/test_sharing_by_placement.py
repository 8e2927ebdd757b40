"""SJF-BSBF by placement: times on the exact GPUs that a job would get.

A pass takes a second, synchronisation across nodes a second more.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.batch_split import Split
from maat.scheduling.belief import Belief, TypeBelief
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.fitting import Sample
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation, Job, JobSpec, MemoryLimits
from maat.scheduling.limits import capacity_limits
from maat.scheduling.loop import plan_round
from maat.scheduling.pair_rule import together_mean
from maat.scheduling.pins import pinned_grants
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.sharing.partners import Offer, Partner, added_seconds, best_site
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import RoundInput
from maat.vocabulary import Adaptivity

TWICE_APART = np.array([1.0, 1e-12, 1.0, 1e-9, 1e-9, 1e-9, 1.0])
TWO_BY_TWO = Cluster.of([Node("t4-0", "t4", 2), Node("t4-1", "t4", 2)], jobs_per_gpu=2)
FULL = 64


def job(
    name: str,
    seconds: float,
    *,
    held: tuple[int, ...] = (),
    gpus: int = 1,
    per_gpu: int = 8,
    preemptible: bool = True,
) -> Job:
    """A job that alone takes so many seconds on one node.

    Its batch is `per_gpu` of a GPU's 64 samples.
    """
    count = len(held) or gpus
    spec = JobSpec(
        id=name,
        model="m",
        submitted_at=0.0,
        work=1.0,
        initial_batch_size=per_gpu * count,
        max_batch_size=per_gpu * count,
        memory={"t4": MemoryLimits(per_gpu, FULL)},
        adaptivity=Adaptivity.RIGID,
        gpu_count=count,
        batch_size=per_gpu * count,
        preemptible=preemptible,
    )
    belief = Belief({"t4": TypeBelief((Sample(1, 1, 8, 1.0, 0.0),), lambda samples: TWICE_APART)})
    return Job(
        spec,
        belief,
        1.0,
        allocation=Allocation("t4", held) if held else None,
        remaining_steps=seconds,
    )


def planned(
    *jobs: Job, xi: float, cluster: Cluster = TWO_BY_TWO, **parameters: object
) -> RoundResult:
    table = {("m", "m", n): xi for n in range(1, 9)}
    pins = pinned_grants(jobs, cluster)
    round_input = RoundInput(
        0.0, 1, 10.0, jobs, cluster, capacity_limits(cluster), pinned=pins, interference=table
    )
    return plan_round(round_input, POLICIES.build("sjf-bsbf", parameters), PLACERS.build("shared"))


def gpus_of(result: RoundResult, name: str = "new") -> tuple[int, ...] | None:
    return result.placement.placement.by_job.get(name)


def test_a_newcomer_joins_partners_on_one_node_rather_than_those_that_end_soonest_on_two() -> None:
    """With c and a, which end soonest, it would take 40 s instead of 20.

    The nodes cost the same, so it goes where a job ends soonest.
    """
    running = (
        job("a", 100.0, held=(0,)),
        job("b", 100.0, held=(1,)),
        job("c", 50.0, held=(2,)),
        job("d", 300.0, held=(3,)),
    )
    newcomer = job("new", 20.0, gpus=2)
    assert gpus_of(planned(*running, newcomer, xi=1.1)) == (2, 3)
    assert gpus_of(planned(*running, newcomer, xi=1.1, by_placement=False)) == (0, 2)


def test_it_waits_where_sharing_pays_on_one_node_but_only_gpus_of_two_are_open() -> None:
    """20 s with 30 s at xi 1.4: 33 s on average, waiting 40 s, across nodes 47 s.

    Across nodes the job takes 40 s alone.
    """
    full = (job("x", 500.0, held=(1,), per_gpu=FULL), job("y", 500.0, held=(3,), per_gpu=FULL))
    running = (job("a", 30.0, held=(0,)), job("c", 30.0, held=(2,)))
    newcomer = job("new", 20.0, gpus=2)
    assert gpus_of(planned(*running, *full, newcomer, xi=1.4)) is None
    assert gpus_of(planned(*running, *full, newcomer, xi=1.4, by_placement=False)) == (0, 2)


def test_a_partners_time_is_that_on_its_present_gpus() -> None:
    """At xi 2 a new job shares if the other has more than twice its time left.

    80 s do not share with 100 s on one node, but with 200 s across two.
    """
    full = (job("x", 500.0, held=(1,), per_gpu=FULL), job("y", 500.0, held=(3,), per_gpu=FULL))
    spread = job("a", 100.0, held=(0, 2))
    assert gpus_of(planned(spread, *full, job("new", 80.0), xi=2.0)) == (0,)
    assert gpus_of(planned(spread, *full, job("new", 80.0), xi=2.0, by_placement=False)) is None


def test_an_idle_gpu_makes_up_a_node_with_one_that_a_partner_holds_alone() -> None:
    """Both nodes add 24 s: 22 s for the newcomer and 2 s for whom it meets."""
    grant = planned(
        job("a", 100.0, held=(0,)), job("c", 50.0, held=(2, 3)), job("new", 20.0, gpus=2), xi=1.1
    ).decision.grants["new"]
    assert (grant.gpus, grant.share_with, grant.shared_gpus) == ((0, 1), ("a",), 1)


def test_by_the_papers_text_idle_gpus_are_left_alone() -> None:
    running = (job("a", 100.0, held=(0,)), job("c", 50.0, held=(2, 3), per_gpu=FULL))
    assert gpus_of(planned(*running, job("new", 20.0, gpus=2), xi=1.1)) == (0, 1)
    assert gpus_of(planned(*running, job("new", 20.0, gpus=2), xi=1.1, idle_first=False)) is None


def test_more_gpus_than_a_node_has_are_taken_across_nodes() -> None:
    result = planned(
        job("a", 100.0, held=(0, 1)), job("c", 90.0, held=(2, 3)), job("new", 5.0, gpus=3), xi=1.1
    )
    grant = result.decision.grants["new"]
    assert gpus_of(result) == (0, 2, 3)
    assert (set(grant.share_with), grant.shared_gpus) == ({"a", "c"}, 3)


def test_a_pinned_job_whose_gpu_is_drained_moves_to_gpus_granted_to_no_other() -> None:
    cluster = Cluster.of(
        [Node("t4-0", "t4", 2, drained=frozenset({0})), Node("t4-1", "t4", 2)], jobs_per_gpu=2
    )
    result = planned(
        job("pinned", 100.0, held=(0,), preemptible=False),
        job("new", 5.0, gpus=2),
        xi=1.0,
        cluster=cluster,
    )
    assert gpus_of(result, "pinned") == (1,)
    assert gpus_of(result) == (2, 3)


def split(seconds: float, halvings: int = 0) -> Split:
    return Split(halvings, BatchPlan(8, 8, 0), 0.1, seconds, 2.0 * seconds)


def partner(name: str, seconds: float, xi: float, xi_newcomer: float) -> Partner:
    return Partner(name, 1, split(seconds), xi, xi_newcomer)


SLOWDOWNS = st.floats(1.0, 6.0)
PARTNERS = st.lists(st.tuples(st.floats(1.0, 1e4), SLOWDOWNS, SLOWDOWNS), min_size=1, max_size=5)


@given(
    newcomer=st.floats(1.0, 1e4), running=st.floats(1.0, 1e4), xi=SLOWDOWNS, xi_newcomer=SLOWDOWNS
)
def test_with_one_partner_the_added_seconds_are_those_of_the_pair_rule(
    newcomer: float, running: float, xi: float, xi_newcomer: float
) -> None:
    mean = together_mean(*(np.asarray(x) for x in (running, newcomer, xi, xi_newcomer)))
    assert added_seconds(newcomer, [partner("a", running, xi, xi_newcomer)]) == pytest.approx(
        2.0 * float(mean) - running, abs=1e-6
    )


def ends_one_after_the_other(newcomer: float, partners: list[tuple[float, float, float]]) -> float:
    """The newcomer's end and the partners' delays, event by event."""
    left, now, delay = {n: seconds for n, (seconds, _, _) in enumerate(partners)}, 0.0, 0.0
    while newcomer > 0:
        pace = max((partners[n][2] for n in left), default=1.0)
        until = min([newcomer * pace, *(left[n] * partners[n][1] for n in left)])
        now, newcomer = now + until, newcomer - until / pace
        for n in list(left):
            left[n] -= until / partners[n][1]
            if left[n] <= 1e-9 * partners[n][0] or newcomer <= 1e-9:
                delay += now + max(left.pop(n), 0.0) - partners[n][0]
        newcomer = newcomer if newcomer > 1e-9 else 0.0
    return now + delay


@given(newcomer=st.floats(1.0, 1e4), partners=PARTNERS)
def test_with_several_they_are_those_of_an_event_by_event_simulation(
    newcomer: float, partners: list[tuple[float, float, float]]
) -> None:
    known = [partner(str(n), *values) for n, values in enumerate(partners)]
    assert added_seconds(newcomer, known) == pytest.approx(
        ends_one_after_the_other(newcomer, partners), rel=1e-6, abs=1e-4
    )


@given(
    newcomer=st.floats(1.0, 1e4), partners=PARTNERS, idle=st.integers(0, 2), count=st.integers(1, 3)
)
def test_the_best_of_many_sets_is_found_without_evaluating_all(
    newcomer: float, partners: list[tuple[float, float, float]], idle: int, count: int
) -> None:
    known = [partner(str(n), *values) for n, values in enumerate(partners)]
    offers = [Offer(one, split(newcomer), added_seconds(newcomer, [one])) for one in known]
    gpus = [(100 + n, -1) for n in range(idle)] + [(n, n) for n in range(len(offers))]
    sets = list(itertools.combinations(gpus, count))
    site = best_site(sets, offers, [split(newcomer)])
    every = [added_seconds(newcomer, [known[n] for _, n in chosen if n >= 0]) for chosen in sets]
    assert (site is None) == (not every)
    if site is not None:
        assert site.added_seconds == pytest.approx(min(every), rel=1e-9)
