"""What every registered policy keeps, on whatever a round may be given."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from contracts.generated import NOW, SOLVED_BY_CVXPY, round_inputs, sampled
from hypothesis import given
from hypothesis import strategies as st
from scheduling.examples import belief, round_of, spec
from scheduling.examples import job as job_of

from maat.scheduling.belief import GradientStatistics
from maat.scheduling.checks import check_decision
from maat.scheduling.cluster import Cluster
from maat.scheduling.explain import ReasonCode
from maat.scheduling.limits import capacity_limits
from maat.scheduling.loop import plan_round
from maat.scheduling.matrix import evaluate_pairs
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.protocols import GpuSharing, Policy
from maat.scheduling.rounds import Decision, PolicyState, RoundInput
from maat.scheduling.solving.engines import Solver
from maat.vocabulary import Adaptivity


@pytest.fixture(params=POLICIES.names, scope="module")
def policy(request: pytest.FixtureRequest) -> Policy:
    return POLICIES.build(request.param)


def facts(round_input: RoundInput) -> bytes:
    """Everything that a policy was given, as bytes."""
    given_facts = (
        round_input.jobs,
        round_input.cluster.nodes,
        round_input.limits,
        dict(round_input.pinned),
        round_input.state,
    )
    return pickle.dumps(given_facts)


def used_places(decision: Decision, round_input: RoundInput) -> Counter[str]:
    used: Counter[str] = Counter()
    for job_id, grant in decision.grants.items():
        for limit in round_input.limits:
            if limit.counts(round_input.job_by_id[job_id].spec, grant.gpu_type, grant.gpu_count):
                used[limit.name] += grant.gpu_count
    return used


def pinned_places(round_input: RoundInput) -> Counter[str]:
    used: Counter[str] = Counter()
    for job_id, pin in round_input.pinned.items():
        for limit in round_input.limits:
            if limit.counts(round_input.job_by_id[job_id].spec, pin.gpu_type, pin.gpu_count):
                used[limit.name] += pin.gpu_count
    return used


def keeps_the_rules_of_every_round(decision: Decision, round_input: RoundInput) -> None:
    check_decision(decision, round_input)


def exceeds_no_limit_unless_pinned_jobs_already_do(
    decision: Decision, round_input: RoundInput
) -> None:
    used, pinned = used_places(decision, round_input), pinned_places(round_input)
    for limit in round_input.limits:
        assert used[limit.name] <= max(limit.places, pinned[limit.name]), limit.name


def grants_only_what_each_job_can_use(decision: Decision, round_input: RoundInput) -> None:
    for job_id, grant in decision.grants.items():
        spec = round_input.job_by_id[job_id].spec
        assert grant.gpu_type in round_input.cluster.type_names
        if job_id in round_input.pinned:
            continue
        assert grant.gpu_type in spec.memory
        assert spec.gpu_types is None or grant.gpu_type in spec.gpu_types
        assert grant.gpu_count >= spec.min_gpus
        assert spec.max_gpus is None or grant.gpu_count <= spec.max_gpus
        assert grant.gpu_count % spec.gpus_per_replica.get(grant.gpu_type, 1) == 0


def gives_a_rigid_job_exactly_what_it_asks_for_or_nothing(
    decision: Decision, round_input: RoundInput
) -> None:
    for job in round_input.jobs:
        if job.spec.is_rigid and job.id in decision.grants:
            assert decision.grants[job.id].gpu_count == job.spec.gpu_count


def leaves_a_pinned_job_what_it_holds(decision: Decision, round_input: RoundInput) -> None:
    for job in round_input.jobs:
        if job.allocation is not None and (job.restarting or not job.spec.preemptible):
            grant = decision.grants[job.id]
            assert (grant.gpu_type, grant.gpu_count) == (
                job.allocation.gpu_type,
                job.allocation.gpu_count,
            )


def breaks_no_promise_of_a_latency_bound_job_knowingly(
    decision: Decision, round_input: RoundInput
) -> None:
    cluster, grants = round_input.cluster, decision.grants
    rows = [
        r
        for r, j in enumerate(round_input.jobs)
        if j.spec.promised_seconds is not None and j.id in grants
    ]
    free = np.array(
        [r for r in rows if round_input.jobs[r].id not in round_input.pinned], dtype=np.int64
    )
    given = [grants[round_input.jobs[r].id] for r in free]
    kinds = np.array([cluster.type_index[g.gpu_type] for g in given], dtype=np.int64)
    counts = np.array([g.gpu_count for g in given], dtype=np.int64)
    nodes = np.array(
        [
            g.node_count or -(-g.gpu_count // cluster.gpus_per_node[t])
            for g, t in zip(given, kinds, strict=True)
        ],
        dtype=np.int64,
    )
    pairs = evaluate_pairs(
        round_input.jobs,
        cluster,
        job=free,
        gpu_type=kinds,
        gpu_count=counts,
        node_count=nodes,
        column=np.zeros_like(free),
        projection=round_input.projection,
    )
    assert (pairs.goodput[pairs.known] == 1.0).all()


def gives_every_job_a_reason(decision: Decision, round_input: RoundInput) -> None:
    assert set(decision.reasons) == {job.id for job in round_input.jobs}
    for job in round_input.jobs:
        reason = decision.reasons[job.id]
        assert reason.sentence
        assert all(
            value is None or isinstance(value, int | float | str)
            for value in reason.evidence.values()
        )
        if job.id in round_input.pinned:
            assert reason.primary is ReasonCode.PINNED
        else:
            assert (reason.primary is ReasonCode.GRANTED) == (job.id in decision.grants)


def has_a_certificate_that_bounds_what_was_decided(
    decision: Decision, round_input: RoundInput
) -> None:
    report = decision.report
    assert np.isfinite([report.objective, report.bound, report.gap]).all()
    assert report.bound >= report.objective - 1e-9 * abs(report.objective)
    own = set(report.prices) - {limit.name for limit in round_input.limits}
    assert all(name.startswith("shape:") for name in own), (
        "rows of a policy's own say what shapes it can place"
    )
    assert all(price >= 0 for price in report.prices.values())


def later(round_input: RoundInput, state: PolicyState, seconds: float) -> RoundInput:
    """The same jobs on the same GPUs after some work and new measurements."""
    jobs = []
    for job in round_input.jobs:
        if job.allocation is not None:
            kind, count = job.allocation.gpu_type, job.allocation.gpu_count
            served = {
                **job.attained_gpu_seconds,
                kind: job.attained_gpu_seconds.get(kind, 0.0) + seconds * count,
            }
            belief = replace(
                job.belief, gradient=GradientStatistics(1.0, 5.0), peak_replica_count=count
            )
            job = replace(
                job,
                attained_gpu_seconds=served,
                remaining_work=job.remaining_work / 2,
                belief=belief,
            )
        jobs.append(job)
    number = round_input.round_number + math.ceil(seconds / round_input.round_seconds)
    return replace(
        round_input, now=NOW + seconds, round_number=number, jobs=tuple(jobs), state=state
    )


CLAIMS = (
    keeps_the_rules_of_every_round,
    exceeds_no_limit_unless_pinned_jobs_already_do,
    grants_only_what_each_job_can_use,
    gives_a_rigid_job_exactly_what_it_asks_for_or_nothing,
    leaves_a_pinned_job_what_it_holds,
    breaks_no_promise_of_a_latency_bound_job_knowingly,
    gives_every_job_a_reason,
    has_a_certificate_that_bounds_what_was_decided,
)


@sampled(60)
@given(round_input=round_inputs(), ahead=st.floats(1.0, 1e5))
def test_a_decision_keeps_every_claim_is_made_again_and_stands_as_long_as_it_says(
    policy: Policy, round_input: RoundInput, ahead: float
) -> None:
    """All claims on the same rounds: to draw a round costs more than to decide it."""
    before = facts(round_input)
    first = policy.allocate(round_input)
    assert facts(round_input) == before, "the policy changed what it was given"

    for claim in CLAIMS:
        claim(first, round_input)

    copy = pickle.loads(pickle.dumps(round_input))  # noqa: S301 - our own bytes
    same_decision_again(first, policy.allocate(copy))

    stands_as_long_as_it_says(first, policy, round_input, ahead)


@pytest.mark.parametrize("name", SOLVED_BY_CVXPY)
@sampled(24)
@given(round_input=round_inputs())
def test_a_decision_by_cvxpy_keeps_every_claim_and_is_made_again(
    name: str, round_input: RoundInput
) -> None:
    """Fewer rounds than under Maat's own solvers, as CVXPY takes longer to state each programme."""
    policy = POLICIES.build(name, {"solver": Solver.CVXPY.value})
    before = facts(round_input)
    first = policy.allocate(round_input)
    assert facts(round_input) == before, "the policy changed what it was given"
    for claim in CLAIMS:
        claim(first, round_input)
    same_decision_again(first, policy.allocate(pickle.loads(pickle.dumps(round_input))))  # noqa: S301


def test_every_policy_that_solves_a_programme_of_a_paper_offers_cvxpy() -> None:
    assert set(SOLVED_BY_CVXPY) == {"sia", "gavel", "themis", "shockwave"}


def same_decision_again(first: Decision, again: Decision) -> None:
    assert list(first.grants.items()) == list(again.grants.items())
    assert first.state == again.state
    assert {j: r.primary for j, r in first.reasons.items()} == {
        j: r.primary for j, r in again.reasons.items()
    }


def stands_as_long_as_it_says(
    first: Decision, policy: Policy, round_input: RoundInput, ahead: float
) -> None:
    second = policy.allocate(replace(round_input, state=first.state))
    until = min(second.stands_until, NOW + ahead)
    if (
        until > NOW
        and list(second.grants.items()) == list(first.grants.items())
        and second.state == first.state
    ):
        again = policy.allocate(later(round_input, first.state, until - NOW))
        assert list(again.grants.items()) == list(first.grants.items())
        assert again.state == first.state


@pytest.mark.long
@sampled(1500)
@given(round_input=round_inputs())
def test_no_round_breaks_a_rule_under_any_placer(policy: Policy, round_input: RoundInput) -> None:
    for placer in PLACERS.names:
        plan_round(round_input, policy, PLACERS.build(placer))


def test_a_policy_shares_gpus_as_it_says(policy: Policy) -> None:
    """Ten jobs of one GPU, on four GPUs with two places each."""
    cluster = replace(Cluster.parse("t4=1x4"), jobs_per_gpu=2)
    jobs = [
        job_of(
            spec(f"job-{i}", adaptivity=Adaptivity.RIGID, gpu_count=1, batch_size=32), belief(t4=1)
        )
        for i in range(10)
    ]
    granted = len(policy.allocate(round_of(cluster, *jobs)).grants)
    sharing = getattr(policy, "gpu_sharing", GpuSharing.PLACES_AS_GPUS)
    assert (
        granted
        in {
            GpuSharing.PLACES_AS_GPUS: (8,),
            GpuSharing.CHOSEN: range(4, 9),
            GpuSharing.NEVER: (4,),
        }[sharing]
    )


def test_without_jobs_nothing_is_granted(policy: Policy) -> None:
    cluster = Cluster.parse("t4=1x4")
    empty = RoundInput(
        now=0.0,
        round_number=1,
        round_seconds=60.0,
        jobs=(),
        cluster=cluster,
        limits=capacity_limits(cluster),
    )
    decision = policy.allocate(empty)
    assert dict(decision.grants) == {}
    assert dict(decision.reasons) == {}
