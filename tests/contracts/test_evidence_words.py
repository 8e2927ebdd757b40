"""Whatever a policy or a placer gives as evidence, there are words for it."""

from __future__ import annotations

import pytest
from contracts.sampling import sampled
from hypothesis import given

from maat.api.reason_words import LABELS
from maat.contracts.generated import round_inputs
from maat.contracts.generated_quotas import quota_rounds
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.protocols import Policy
from maat.scheduling.rounds import RoundInput


@pytest.fixture(params=POLICIES.names, scope="module")
def policy(request: pytest.FixtureRequest) -> Policy:
    return POLICIES.build(request.param)


@sampled(20)
@given(round_input=round_inputs() | quota_rounds())
def test_every_number_behind_a_reason_has_a_label(policy: Policy, round_input: RoundInput) -> None:
    reasons = plan_round(round_input, policy, PLACERS.build("packed-sticky")).reasons

    assert {name for why in reasons.values() for name in why.evidence} <= set(LABELS)
