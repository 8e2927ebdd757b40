"""What policies keep of the weights of jobs: those that weigh, and those that do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from contracts.sampling import SOLVED_BY_CVXPY, sampled
from contracts.test_policy_contract import subject_of
from hypothesis import assume, given
from hypothesis import strategies as st

from maat.contracts.generated import round_inputs
from maat.contracts.generated_quotas import quota_rounds
from maat.contracts.subject import Trial, trials
from maat.contracts.weights import weights_change_nothing_if_it_does_not_weigh, with_weight
from maat.scheduling.explain import OF_TURN, ReasonCode
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.optimus import least_gpus
from maat.scheduling.policies.requests import Requests, requests
from maat.scheduling.protocols import Policy
from maat.scheduling.quotas.rounds import quota_limits
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.engines import Solver
from maat.scheduling.weights import weighs_jobs

Measure = Callable[[Decision, RoundInput, int], float]
"""What a decision gives the job of a row, in the policy's own measure: more is better."""

PARAMETERS = {"sia": {"tolerance": 0.0, "solve_seconds": 600.0}}
"""So that no search of these few jobs ends early."""


def by_request(decision: Decision, round_input: RoundInput, row: int) -> float:
    """The rank of the type that it runs on, its first choice highest; 0 if it waits."""
    return _by_type(decision, requests(round_input), row)


def by_growth(decision: Decision, round_input: RoundInput, row: int) -> float:
    """The rank of the type that it runs on, and on the same type its GPUs."""
    grant = decision.grants.get(round_input.jobs[row].id)
    rank = _by_type(decision, Requests(round_input, least_gpus), row)
    return rank + (0.0 if grant is None else grant.gpu_count / 1e6)


def _by_type(decision: Decision, wanted: Requests, row: int) -> float:
    grant = decision.grants.get(wanted.jobs[row].id)
    if grant is None:
        return 0.0
    types = [wanted.round_input.cluster.type_names[t] for t in wanted.types_in_order(row)]
    return float(len(types) - types.index(grant.gpu_type))


def by_value(decision: Decision, round_input: RoundInput, row: int) -> float:
    """What its configuration is worth to it, at weight 1."""
    job = round_input.jobs[row]
    if job.id not in decision.grants:
        return 0.0
    return float(decision.reasons[job.id].evidence["value"] or 0.0) / job.spec.weight


MEASURES: dict[str, Measure] = {
    **dict.fromkeys(("srtf", "sjf", "las", "tiresias"), by_request),
    "optimus": by_growth,
    "sia": by_value,
}
"""Policies whose round is a function of the weights that can be followed exactly."""
ELSEWHERE = {"gavel", "pollux", "shockwave"}
"""Their shares, searches and plans are held to it in tests/scheduling/test_job_weights.py."""


def built(name: str) -> Policy:
    return POLICIES.build(name, PARAMETERS.get(name, {}))


def by_cvxpy(name: str) -> Policy:
    return POLICIES.build(name, {**PARAMETERS.get(name, {}), "solver": Solver.CVXPY.value})


def test_every_policy_that_weighs_is_held_to_it_and_named_in_the_docs() -> None:
    weighing = {name for name in POLICIES.names if weighs_jobs(built(name))}
    assert weighing == {*MEASURES, *ELSEWHERE}
    text = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()
    section = text.partition("## Weights of jobs")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    ignoring = next(row for row in rows if "they ignore weights" in row)
    assert set(re.findall("`([a-z-]+)`", ignoring)) == set(POLICIES.names) - weighing


@pytest.mark.parametrize("name", MEASURES)
@sampled(150)
@given(data=st.data())
def test_a_job_that_weighs_more_never_gets_less(name: str, data: st.DataObject) -> None:
    more_weight_is_never_less(built(name), MEASURES[name], data)


@pytest.mark.parametrize("name", sorted({*MEASURES} & {*SOLVED_BY_CVXPY}))
@sampled(150, usual=8)
@given(data=st.data())
def test_a_job_that_weighs_more_never_gets_less_with_cvxpy_either(
    name: str, data: st.DataObject
) -> None:
    more_weight_is_never_less(by_cvxpy(name), MEASURES[name], data)


def more_weight_is_never_less(policy: Policy, measure: Measure, data: st.DataObject) -> None:
    round_input = data.draw(round_inputs())
    assume(round_input.jobs)
    row = data.draw(st.integers(0, len(round_input.jobs) - 1))
    assume(round_input.jobs[row].id not in round_input.pinned)
    heavier = data.draw(st.sampled_from((1.5, 2.0, 8.0, 1000.0)))
    light, heavy = (with_weight(round_input, row, weight) for weight in (1.0, heavier))

    before = measure(policy.allocate(light), light, row)
    after = measure(policy.allocate(heavy), heavy, row)

    assert after >= before - 1e-6 * abs(before)


@pytest.mark.parametrize("name", [n for n in POLICIES.names if not weighs_jobs(built(n))])
@sampled(40)
@given(trial=trials())
def test_a_policy_that_does_not_weigh_decides_the_same_at_any_weights(
    name: str, trial: Trial
) -> None:
    assert list(weights_change_nothing_if_it_does_not_weigh(subject_of(name), trial)) == []


@pytest.mark.parametrize("name", [n for n in SOLVED_BY_CVXPY if not weighs_jobs(built(n))])
@sampled(40, usual=4)
@given(trial=trials())
def test_a_policy_that_does_not_weigh_decides_the_same_with_cvxpy_too(
    name: str, trial: Trial
) -> None:
    subject = subject_of(name, {"solver": Solver.CVXPY.value})
    assert list(weights_change_nothing_if_it_does_not_weigh(subject, trial)) == []


@pytest.mark.parametrize("name", ["sia", "optimus", "gavel", "pollux", "shockwave"])
@sampled(40)
@given(data=st.data())
def test_no_tenant_is_dealt_more_for_the_weights_of_its_jobs(
    name: str, data: st.DataObject
) -> None:
    round_input = data.draw(quota_rounds())
    assume(round_input.jobs and round_input.quotas)
    row = data.draw(st.integers(0, len(round_input.jobs) - 1))
    weighed = with_weight(round_input, row, 1000.0)
    policy = built(name)
    assert quota_limits(weighed, policy) == quota_limits(round_input, policy)


@sampled(40)
@given(data=st.data())
def test_a_reason_names_the_weight_of_a_job_where_it_mattered(data: st.DataObject) -> None:
    round_input = data.draw(round_inputs())
    placer = PLACERS.build("packed-sticky")
    reasons = plan_round(round_input, POLICIES.build("las"), placer).reasons
    for job in round_input.jobs:
        why, weight = reasons[job.id], job.spec.weight
        matters = why.primary in OF_TURN | {ReasonCode.GRANTED} and weight != 1
        # What a placer turned away, no weight would have placed.
        expected = {weight} if matters else {None}
        assert why.evidence.get("weight") in expected, why
