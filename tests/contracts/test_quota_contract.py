"""What every policy keeps of quotas, weights and priority classes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from contracts.sampling import SOLVED_BY_CVXPY, sampled
from contracts.test_policy_contract import subject_of
from hypothesis import given

from maat.contracts.generated_quotas import crowded_rounds, quota_rounds
from maat.contracts.listing import OF_CLASSES, UNDER_QUOTAS, Family
from maat.contracts.subject import Subject, Trial, class_trials, quota_trials
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.engines import Solver


@pytest.fixture(params=POLICIES.names, scope="module")
def subject(request: pytest.FixtureRequest) -> Subject:
    return subject_of(request.param)


@pytest.fixture(params=SOLVED_BY_CVXPY, scope="module")
def stated(request: pytest.FixtureRequest) -> Subject:
    """A policy whose programmes are solved by CVXPY."""
    return subject_of(request.param, {"solver": Solver.CVXPY.value})


def keeps(subject: Subject, trial: Trial, family: Family) -> None:
    for contract in family.contracts:
        assert list(contract.broken(subject, trial)) == [], contract.sentence


@sampled(20)
@given(trial=quota_trials())
def test_every_policy_keeps_quotas_and_decides_the_same_again(
    subject: Subject, trial: Trial
) -> None:
    keeps(subject, trial, UNDER_QUOTAS)


@sampled(20, usual=3)
@given(trial=quota_trials())
def test_quotas_are_kept_with_cvxpy_too(stated: Subject, trial: Trial) -> None:
    keeps(stated, trial, UNDER_QUOTAS)


@pytest.mark.parametrize("placer", PLACERS.names)
@sampled(12)
@given(round_input=quota_rounds())
def test_no_round_under_quotas_breaks_a_rule_under_any_placer(
    placer: str, round_input: RoundInput
) -> None:
    plan_round(round_input, POLICIES.build("las"), PLACERS.build(placer))


@pytest.mark.parametrize("name", ["fifo", "sjf", "srtf", "las", "tiresias"])
@sampled(20)
@given(round_input=quota_rounds() | crowded_rounds())
def test_higher_classes_get_what_they_would_get_alone(name: str, round_input: RoundInput) -> None:
    """Without quotas: as if the lower classes did not exist."""
    everyone = replace(round_input, quotas=())
    policy = POLICIES.build(name)
    placer = PLACERS.build(suiting_placer(name))
    grants = plan_round(everyone, policy, placer).decision.grants
    for boundary in (0, 10, 20):
        above = tuple(
            job
            for job in everyone.jobs
            if job.spec.priority >= boundary or job.id in everyone.pinned
        )
        alone = plan_round(replace(everyone, jobs=above), policy, placer).decision.grants
        high = {job.id for job in above if job.spec.priority >= boundary}
        assert {i: g for i, g in grants.items() if i in high} == {
            i: g for i, g in alone.items() if i in high
        }


@sampled(20)
@given(trial=class_trials())
def test_no_job_waits_for_gpus_that_lower_classes_hold(subject: Subject, trial: Trial) -> None:
    keeps(subject, trial, OF_CLASSES)


@sampled(20, usual=3)
@given(trial=class_trials())
def test_no_job_waits_for_gpus_that_lower_classes_hold_with_cvxpy_too(
    stated: Subject, trial: Trial
) -> None:
    keeps(stated, trial, OF_CLASSES)
