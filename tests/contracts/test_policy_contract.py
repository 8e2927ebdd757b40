"""What every registered policy keeps, on whatever a round may be given."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from contracts.sampling import SOLVED_BY_CVXPY, sampled
from hypothesis import given

from maat.contracts.generated import round_inputs
from maat.contracts.listing import ANY_ROUND, FIXED
from maat.contracts.repeating import jobs_on_shared_gpus
from maat.contracts.small_rounds import round_of
from maat.contracts.subject import Subject, Trial, trials
from maat.scheduling.cluster import Cluster
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.protocols import GpuSharing
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.engines import Solver


def subject_of(name: str, parameters: Mapping[str, object] | None = None) -> Subject:
    return Subject(lambda: POLICIES.build(name, parameters), suiting_placer(name))


@pytest.fixture(params=POLICIES.names, scope="module")
def subject(request: pytest.FixtureRequest) -> Subject:
    return subject_of(request.param)


def keeps_every_contract(subject: Subject, trial: Trial) -> None:
    """All of them on the same rounds: to draw a round costs more than to decide it."""
    for contract in ANY_ROUND.contracts:
        assert list(contract.broken(subject, trial)) == [], contract.sentence


@sampled(60)
@given(trial=trials())
def test_a_decision_keeps_every_contract_is_made_again_and_stands_as_long_as_it_says(
    subject: Subject, trial: Trial
) -> None:
    keeps_every_contract(subject, trial)


@pytest.mark.parametrize("name", SOLVED_BY_CVXPY)
@sampled(24)
@given(round_input=round_inputs())
def test_a_decision_by_cvxpy_keeps_every_contract_and_is_made_again(
    name: str, round_input: RoundInput
) -> None:
    """Fewer rounds than under Maat's own solvers, as CVXPY takes longer to state each programme."""
    trial = Trial(round_input, seconds_ahead=0.0)  # how long it stands, the solver does not say
    keeps_every_contract(subject_of(name, {"solver": Solver.CVXPY.value}), trial)


def test_every_policy_that_solves_a_programme_of_a_paper_offers_cvxpy() -> None:
    assert set(SOLVED_BY_CVXPY) == {"sia", "gavel", "themis", "shockwave"}


@pytest.mark.long
@sampled(1500)
@given(round_input=round_inputs())
def test_no_round_breaks_a_rule_under_any_placer(subject: Subject, round_input: RoundInput) -> None:
    for placer in PLACERS.names:
        plan_round(round_input, subject.policy, PLACERS.build(placer))


def test_a_policy_shares_gpus_as_it_says(subject: Subject) -> None:
    """Those of Maat also leave no place free that they say they use."""
    sharing = getattr(subject.policy, "gpu_sharing", GpuSharing.PLACES_AS_GPUS)
    allowed = {
        GpuSharing.PLACES_AS_GPUS: (8,),
        GpuSharing.CHOSEN: range(4, 9),
        GpuSharing.NEVER: (4,),
    }
    assert jobs_on_shared_gpus(subject) in allowed[sharing]


def test_without_jobs_nothing_is_granted(subject: Subject) -> None:
    nothing = Trial(round_of(Cluster.parse("t4=1x4"), []))
    for contract in FIXED:
        assert list(contract.broken(subject, nothing)) == [], contract.sentence
