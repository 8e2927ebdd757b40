"""Quotas, weights and priority classes: what a round makes of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError, ParameterError
from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import Allocation, Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.loop import plan_round
from maat.scheduling.owed import Owed
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.policies.las import Las
from maat.scheduling.policies.ordering import grant_chosen
from maat.scheduling.policies.requests import requests
from maat.scheduling.quotas import TenantQuota, check_quotas
from maat.scheduling.quotas.rounds import quota_limits
from maat.scheduling.reservations import Reservation, reservation_limits
from maat.scheduling.rounds import Decision, PolicyState, RoundInput
from maat.vocabulary import Adaptivity

CLUSTER = Cluster.parse("t4=4x4")
ANY = ("sia", "las", "fifo")


def asks(
    name: str,
    tenant: str,
    gpus: int = 1,
    *,
    held: tuple[int, ...] = (),
    priority: int = 0,
    preemptible: bool = True,
) -> Job:
    """A rigid job of a tenant."""
    wanted = spec(
        name,
        tenant=tenant,
        adaptivity=Adaptivity.RIGID,
        gpu_count=gpus,
        batch_size=gpus * 32,
        priority=priority,
        preemptible=preemptible,
        gpu_types=("t4",),
    )
    return job(wanted, belief(t4=0.1), held=held, started_at=0.0 if held else None)


def many(tenant: str, number: int, gpus: int = 1) -> list[Job]:
    return [asks(f"{tenant}-{i}", tenant, gpus) for i in range(number)]


def decided(policy: str, round_input: RoundInput) -> Decision:
    """What the loop would decide, placed by the policy's own placer."""
    placer = PLACERS.build(suiting_placer(policy))
    return plan_round(round_input, POLICIES.build(policy), placer).decision


def gpus_by_tenant(decision: Decision, round_input: RoundInput) -> Counter[str]:
    got: Counter[str] = Counter()
    for name, grant in decision.grants.items():
        got[round_input.job_by_id[name].spec.tenant] += grant.gpu_count
    return got


@pytest.mark.parametrize("policy", ANY)
def test_contended_gpus_are_shared_by_weight(policy: str) -> None:
    quotas = (TenantQuota(tenant="a", weight=3.0), TenantQuota(tenant="b", weight=1.0))
    full = round_of(CLUSTER, *many("a", 16), *many("b", 16), quotas=quotas)
    assert gpus_by_tenant(decided(policy, full), full) == {"a": 12, "b": 4}


@pytest.mark.parametrize("policy", ANY)
def test_a_tenant_without_a_quota_has_weight_one(policy: str) -> None:
    full = round_of(
        CLUSTER, *many("a", 16), *many("b", 16), quotas=(TenantQuota(tenant="a", weight=3.0),)
    )
    assert gpus_by_tenant(decided(policy, full), full) == {"a": 12, "b": 4}


@pytest.mark.parametrize("policy", ANY)
def test_what_one_tenant_does_not_want_others_have_whatever_their_weight(policy: str) -> None:
    quotas = (TenantQuota(tenant="a", weight=100.0), TenantQuota(tenant="b"))
    few = round_of(CLUSTER, *many("a", 2), *many("b", 20), quotas=quotas)
    assert gpus_by_tenant(decided(policy, few), few) == {"a": 2, "b": 14}


@pytest.mark.parametrize("policy", ANY)
def test_gpus_that_a_tenant_cannot_use_for_its_size_of_jobs_go_to_others(policy: str) -> None:
    """Half of 16 is 8: two jobs of 3 leave 2 of them, which b takes."""
    quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
    odd = round_of(CLUSTER, *many("a", 4, gpus=3), *many("b", 16), quotas=quotas)
    got = gpus_by_tenant(decided(policy, odd), odd)
    assert got.total() == 16
    assert got["a"] in (6, 9)


@pytest.mark.parametrize("policy", ANY)
def test_a_ceiling_may_leave_gpus_idle(policy: str) -> None:
    capped = round_of(CLUSTER, *many("a", 20), quotas=(TenantQuota(tenant="a", ceiling={"t4": 5}),))
    decision = decided(policy, capped)
    assert gpus_by_tenant(decision, capped) == {"a": 5}
    waiting = next(j.id for j in capped.jobs if j.id not in decision.grants)
    reason = decision.reasons[waiting]
    assert reason.primary is ReasonCode.WAITING_QUOTA
    assert reason.sentence == "Held by your team's quota of 5 t4: 5 in use."


@pytest.mark.parametrize("policy", POLICIES.names)
def test_guaranteed_gpus_that_were_lent_come_back_in_one_round(policy: str) -> None:
    """b holds all 16 GPUs; a, guaranteed 8 of them, comes with jobs for 8."""
    quotas = (TenantQuota(tenant="a", guaranteed={"t4": 8}), TenantQuota(tenant="b", weight=9.0))
    lent = [asks(f"b-{i}", "b", held=(i,)) for i in range(16)]
    back = round_of(CLUSTER, *lent, *many("a", 8), quotas=quotas)
    assert gpus_by_tenant(decided(policy, back), back)["b"] <= 8


def test_jobs_that_may_not_be_preempted_keep_lent_gpus() -> None:
    quotas = (TenantQuota(tenant="a", guaranteed={"t4": 8}), TenantQuota(tenant="b"))
    lent = [asks(f"b-{i}", "b", held=(i,), preemptible=False) for i in range(16)]
    back = round_of(CLUSTER, *lent, *many("a", 8), quotas=quotas)
    assert gpus_by_tenant(decided("las", back), back) == {"b": 16}


def test_who_has_less_than_its_guarantee_is_told_when_it_comes_back() -> None:
    quotas = (TenantQuota(tenant="a", guaranteed={"t4": 8}), TenantQuota(tenant="b"))
    lent = [asks(f"b-{i}", "b", held=(i,), preemptible=False) for i in range(10)]
    back = round_of(CLUSTER, *lent, asks("a-0", "a", 8), quotas=quotas)
    decision = decided("sia", back)
    assert gpus_by_tenant(decision, back) == {"b": 10}
    assert {decision.reasons["a-0"].sentence} == {
        "Held by your team's share of 6 t4 in this round: 0 in use. It is guaranteed 8: what it "
        "lacks of these is out of service, or held by jobs that may not be moved now, and comes "
        "back in the first round in which they may."
    }


def test_a_share_is_named_as_one() -> None:
    quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
    full = round_of(CLUSTER, *many("a", 16), *many("b", 16), quotas=quotas)
    decision = decided("las", full)
    waiting = [decision.reasons[j.id] for j in full.jobs if j.id not in decision.grants]
    assert {why.sentence for why in waiting} <= {
        "Held by your team's share of 8 t4 in this round: 8 in use.",
        "Jobs that have had less service hold the GPUs that it needs, or are to have them.",
    }


@dataclass(frozen=True)
class LasWithout(Las):
    """LAS, but for one job, for which it has no GPUs whatever is free."""

    left_out: str = ""

    def allocate(self, round_input: RoundInput) -> Decision:
        wanted, found = requests(round_input), super().allocate(round_input)
        names = round_input.cluster.type_index
        chosen = [
            (row, names[found.grants[job.id].gpu_type])
            for row, job in enumerate(round_input.jobs)
            if job.id in found.grants and job.id != self.left_out
        ]
        grants, reasons = grant_chosen(round_input, wanted, chosen)
        return replace(found, grants=grants, reasons=reasons)


def test_a_job_that_the_policy_turned_down_is_not_told_that_a_quota_holds_it() -> None:
    """Its GPUs are dealt to b then: a's row becomes 0, but that is not why it waits."""
    quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
    full = round_of(CLUSTER, *many("a", 1, gpus=4), *many("b", 20), quotas=quotas)
    policy = LasWithout(left_out="a-0")
    decision = plan_round(full, policy, PLACERS.build("packed-sticky")).decision
    assert gpus_by_tenant(decision, full) == {"b": 16}
    reason = decision.reasons["a-0"]
    assert reason.primary is ReasonCode.BEHIND_IN_ORDER
    assert "quota" not in reason.sentence


def test_a_ceiling_is_the_reason_even_if_idle_gpus_are_dealt_again() -> None:
    """Of 16 GPUs a may have 2 and b 12; the 4 of c, which is turned down, are dealt again."""
    quotas = tuple(TenantQuota(tenant=t, ceiling={"t4": n}) for t, n in (("a", 2), ("b", 12)))
    jobs = (*many("a", 3, gpus=2), *many("b", 20), *many("c", 1, gpus=4))
    full = round_of(CLUSTER, *jobs, quotas=quotas)
    decision = plan_round(full, LasWithout(left_out="c-0"), PLACERS.build("packed-sticky")).decision
    assert gpus_by_tenant(decision, full) == {"a": 2, "b": 12}
    waiting = [j.id for j in full.jobs if j.id.startswith("a") and j.id not in decision.grants]
    assert len(waiting) == 2
    assert {decision.reasons[name].sentence for name in waiting} == {
        "Held by your team's quota of 2 t4: 2 in use."
    }


def elastic(name: str, tenant: str, *, held: tuple[int, ...] = (), most: int = 8) -> Job:
    """A job of which the policy chooses the GPU count, on any type."""
    known = belief(t4=0.1, rtx=0.1, a100=0.1)
    return job(spec(name, tenant=tenant, max_gpus=most), known, held=held, started_at=0.0)


def test_a_single_job_may_use_all_of_its_tenant_s_share_on_one_type() -> None:
    """Half of 24 GPUs is a's: 4 of each type would be no more than 4 for its one job."""
    quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
    cluster = Cluster.parse("t4=1x8,rtx=1x8,a100=1x8")
    others = [elastic(f"b-{i}", "b") for i in range(30)]
    full = round_of(cluster, elastic("a-0", "a", held=(8, 9, 10, 11)), *others, quotas=quotas)
    decision = decided("sia", full)
    assert (decision.grants["a-0"].gpu_type, decision.grants["a-0"].gpu_count) == ("rtx", 8)
    assert gpus_by_tenant(decision, full) == {"a": 8, "b": 16}


def test_what_jobs_could_use_is_what_sia_would_grant_them_in_this_round() -> None:
    """A job doubles at most: no other tenant waits for GPUs that it could only use later."""
    quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
    cluster = Cluster.parse("t4=2x8")
    new, old = elastic("a-0", "a", most=16), elastic("b-0", "b", held=tuple(range(8)))
    two = round_of(cluster, replace(new, belief=belief(peak=1, t4=0.1)), old, quotas=quotas)
    assert quota_limits(two, POLICIES.build("sia")) == ()
    assert quota_limits(two) != ()


@pytest.mark.parametrize("policy", POLICIES.names)
def test_a_job_of_a_higher_class_takes_the_gpus_of_lower_ones(policy: str) -> None:
    low = [asks(f"low-{i}", "a", held=(i,)) for i in range(16)]
    urgent = asks("urgent", "a", gpus=4, priority=20)
    full = round_of(CLUSTER, *low, urgent)
    grants = decided(policy, full).grants
    assert grants["urgent"].gpu_count == 4
    assert sum(grant.gpu_count for grant in grants.values()) == 16


SHARED = replace(Cluster.parse("t4=1x4"), jobs_per_gpu=2)


@pytest.mark.parametrize("policy", POLICIES.names)
def test_a_higher_class_comes_first_in_what_reservations_leave(policy: str) -> None:
    """Two of four GPUs are for a tenant without jobs."""
    cluster = Cluster.parse("t4=1x4")
    kept = reservation_limits(cluster, (Reservation("t4", 2, tenant="elsewhere"),), 100_000.0)
    low = [asks(f"low-{i}", "a", held=(i,)) for i in range(2)]
    urgent = asks("urgent", "a", priority=20)
    grants = decided(policy, round_of(cluster, *low, urgent, limits=kept)).grants
    assert len(grants) == 2
    assert "urgent" in grants


@pytest.mark.parametrize("policy", POLICIES.names)
def test_guaranteed_gpus_come_back_out_of_what_reservations_leave(policy: str) -> None:
    cluster = Cluster.parse("t4=1x4")
    kept = reservation_limits(cluster, (Reservation("t4", 2, tenant="elsewhere"),), 100_000.0)
    lent = [asks(f"b-{i}", "b", held=(i,)) for i in range(2)]
    quotas = (TenantQuota(tenant="a", guaranteed={"t4": 2}),)
    full = round_of(cluster, *lent, *many("a", 2), limits=kept, quotas=quotas)
    assert gpus_by_tenant(decided(policy, full), full) == {"a": 2}


@pytest.mark.parametrize("holder_wants", [1, 4])
@pytest.mark.parametrize("policy", POLICIES.names)
def test_guaranteed_gpus_come_back_beside_those_that_the_holder_of_a_reservation_takes(
    policy: str, holder_wants: int
) -> None:
    """Two of four GPUs are for c: what b borrows of the others is a's."""
    cluster = Cluster.parse("t4=1x4")
    kept = reservation_limits(cluster, (Reservation("t4", 2, tenant="c"),), 100_000.0)
    lent = [asks(f"b-{i}", "b", held=(i,)) for i in range(2)]
    quotas = (TenantQuota(tenant="a", guaranteed={"t4": 2}),)
    jobs = (*lent, *many("a", 2), *many("c", holder_wants))
    full = round_of(cluster, *jobs, limits=kept, quotas=quotas)
    got = gpus_by_tenant(decided(policy, full), full)
    assert got == {"a": 2, "c": min(holder_wants, 2)}


@pytest.mark.parametrize("policy", POLICIES.names)
def test_a_higher_class_comes_first_whether_or_not_a_policy_shares_gpus(policy: str) -> None:
    """Four GPUs with two places each, which only some policies fill."""
    low = [asks(f"low-{i}", "a", held=(i,)) for i in range(4)]
    urgent = [asks(f"urgent-{i}", "a", priority=20) for i in range(3)]
    grants = decided(policy, round_of(SHARED, *low, *urgent)).grants
    assert {j.id for j in urgent} <= grants.keys()
    assert len(grants) >= 4


@pytest.mark.parametrize("policy", POLICIES.names)
def test_guaranteed_gpus_come_back_whether_or_not_a_policy_shares_gpus(policy: str) -> None:
    lent = [asks(f"b-{i}", "b", held=(i,)) for i in range(4)]
    quotas = (TenantQuota(tenant="a", guaranteed={"t4": 3}), TenantQuota(tenant="b", weight=9.0))
    back = round_of(SHARED, *lent, *many("a", 3), quotas=quotas)
    got = gpus_by_tenant(decided(policy, back), back)
    assert got["a"] == 3
    assert got["b"] >= 1


def new_and_too_large(name: str, tenant: str, *, held: tuple[int, ...], priority: int = 0) -> Job:
    """A job to whose fitness under Pollux any change gives nothing, and which must change.

    It holds more GPUs than it may have, and a restart would cost all that it ever did.
    """
    young = spec(name, tenant=tenant, priority=priority, gpu_types=("t4",), submitted_at=100_000.0)
    return job(young, held=held, started_at=100_000.0)


def at_most(gpus: int) -> Limit:
    """So many GPUs in all: rows of quotas and classes do not know it."""
    return Limit("power", LimitKind.RESERVATION, gpus)


@pytest.mark.parametrize(
    ("low", "also_lent"), [((2,), {}), ((1, 1), {"low-0": 1}), ((1, 1, 1), {"low-0": 1})]
)
def test_idle_gpus_are_lent_to_lower_classes_only_beside_what_higher_ones_got(
    low: tuple[int, ...], also_lent: dict[str, int]
) -> None:
    """Three GPUs are idle after the first decision, of which one can be used."""
    urgent = new_and_too_large("urgent", "a", held=(0, 1), priority=20)
    lower = [asks(f"low-{i}", "a", gpus) for i, gpus in enumerate(low)]
    full = round_of("t4=1x4", urgent, *lower, limits=(at_most(2),))
    grants = decided("pollux", full).grants
    assert {name: g.gpu_count for name, g in grants.items()} == {"urgent": 1, **also_lent}


def test_lower_classes_are_not_lent_places_on_which_a_policy_puts_no_job() -> None:
    """Pollux puts one job on a GPU: of four GPUs, higher classes get two."""
    higher = [
        new_and_too_large("normal", "a", held=(0, 1)),
        new_and_too_large("urgent", "a", held=(2,), priority=20),
    ]
    low = [asks(f"low-{i}", "a", gpus, priority=-1) for i, gpus in enumerate((3, 1))]
    grants = decided("pollux", round_of(SHARED, *higher, *low)).grants
    assert grants.keys() == {"normal", "urgent", "low-1"}


def test_idle_gpus_are_lent_to_other_tenants_only_beside_what_a_tenant_got() -> None:
    quotas = (TenantQuota(tenant="a", weight=3.0, guaranteed={"t4": 2}),)
    own = new_and_too_large("a-0", "a", held=(0, 1))
    full = round_of("t4=1x4", own, *many("b", 3), limits=(at_most(3),), quotas=quotas)
    assert gpus_by_tenant(decided("pollux", full), full) == {"a": 1, "b": 2}


def test_classes_come_first_within_their_tenant_s_share_only() -> None:
    quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
    urgent = [asks(f"a-{i}", "a", priority=20) for i in range(16)]
    full = round_of(CLUSTER, *urgent, *many("b", 16), quotas=quotas)
    assert gpus_by_tenant(decided("las", full), full) == {"a": 8, "b": 8}


def test_a_full_quota_blocks_nobody_else_in_a_blocking_order() -> None:
    """The first job of FIFO waits for its ceiling; those of b behind it start."""
    quotas = (TenantQuota(tenant="a", ceiling={"t4": 2}),)
    line = round_of(CLUSTER, *many("a", 3, gpus=2), *many("b", 4), quotas=quotas)
    assert gpus_by_tenant(decided("fifo", line), line) == {"a": 2, "b": 4}


def test_what_a_tenant_is_owed_gives_it_the_gpu_that_cannot_be_shared() -> None:
    quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
    one = Cluster.parse("t4=1x1")
    b_holds = (asks("b-0", "b", held=(0,)), asks("a-0", "a"))
    for seconds, winner in ((600.0, "b-0"), (3600.0, "a-0")):
        shares = {
            "at": 100_000.0,
            "seconds": {"a": seconds / 2, "b": -seconds / 2},
            "due": {},
            "got": {},
        }
        round_input = round_of(one, *b_holds, quotas=quotas, state=PolicyState(shares=shares))
        assert list(decided("las", round_input).grants) == [winner]


def test_what_is_owed_grows_by_what_a_round_could_not_give() -> None:
    """Two tenants share one GPU: the one that holds it owes the other half of its time."""
    quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
    one = round_of(Cluster.parse("t4=1x1"), asks("b-0", "b"), asks("a-0", "a"), quotas=quotas)
    first = decided("las", one)
    has, lacks = ("a", "b") if "a-0" in first.grants else ("b", "a")
    jobs = tuple(
        replace(j, allocation=Allocation("t4", (0,))) if j.id in first.grants else j
        for j in one.jobs
    )
    then = replace(one, now=one.now + 600.0, jobs=jobs, state=first.state)
    later = decided("las", then)
    owed = Owed.from_json(later.state.shares).seconds
    assert owed[lacks] == pytest.approx(300.0)
    assert owed.get(has, 0.0) <= 0.0


def test_without_contention_rounds_leave_no_trace() -> None:
    quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
    idle = round_of(CLUSTER, *many("a", 3), *many("b", 3), quotas=quotas)
    assert quota_limits(idle) == ()
    assert decided("las", idle).state == PolicyState()


def test_limits_are_rows_of_quotas_with_one_row_per_tenant_and_type() -> None:
    quotas = (TenantQuota(tenant="a"), TenantQuota(tenant="b"))
    full = round_of(CLUSTER, *many("a", 16), *many("b", 16), quotas=quotas)
    assert [(row.kind, row.tenant, row.gpu_type, row.places) for row in quota_limits(full)] == [
        (LimitKind.QUOTA, "a", "t4", 8),
        (LimitKind.QUOTA, "b", "t4", 8),
    ]


def test_quotas_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ParameterError, match="weight: is not a finite number above zero"):
        TenantQuota(tenant="a", weight=0.0)
    with pytest.raises(ParameterError, match=r"guaranteed\.t4: is above the ceiling of 2"):
        TenantQuota(tenant="a", guaranteed={"t4": 3}, ceiling={"t4": 2})
    with pytest.raises(ParameterError, match=r"ceiling\.t4: must be at least 0"):
        TenantQuota(tenant="a", ceiling={"t4": -1})
    with pytest.raises(ClusterError, match="is no GPU type of this cluster"):
        check_quotas([TenantQuota(tenant="a", ceiling={"h100": 1})], CLUSTER)
    with pytest.raises(ParameterError, match="has more than one quota"):
        check_quotas([TenantQuota(tenant="a"), TenantQuota(tenant="a")], CLUSTER)
    with pytest.raises(ParameterError, match="of t4 are guaranteed together"):
        check_quotas(
            [TenantQuota(tenant=name, guaranteed={"t4": 9}) for name in ("a", "b")], CLUSTER
        )
