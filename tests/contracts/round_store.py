"""The contract of round stores, as classes of tests.

Subclass one under a name that begins with Test, and define the fixture `store`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from maat.scheduling.belief import Belief
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Job, JobSpec, MemoryLimits
from maat.scheduling.limits import capacity_limits
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.protocols import RoundStore
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import ClusterState, PolicyState, RoundInput

JOB_IDS = ("job-a", "job-b")
CLUSTER = Cluster.parse("t4=1x4")


def observed_at(number: int) -> ClusterState:
    """What an executor would show before that round: two jobs that wait."""
    return ClusterState(60.0 * number, CLUSTER, tuple(_job(job_id) for job_id in JOB_IDS))


def round_result(number: int) -> RoundResult:
    """A planned round: both jobs start; policy and placer states name the round."""
    observed = observed_at(number)
    round_input = RoundInput(
        observed.now, number, 60.0, observed.jobs, CLUSTER, capacity_limits(CLUSTER)
    )
    result = plan_round(round_input, POLICIES.build("fifo"), PLACERS.build("packed-sticky"))
    decision = replace(
        result.decision,
        state=_policy_state(number),
    )
    placement = replace(
        result.placement, state=PolicyState("packed-sticky", "def", {"job-b": number})
    )
    return replace(result, decision=decision, placement=placement)


def _policy_state(number: int) -> PolicyState:
    """What a policy remembers, and what the loop keeps beside it of what tenants are owed."""
    shares = {"at": 60.0 * number, "seconds": {"vision": 1.5}}
    return PolicyState("fifo", "abc", {"job-a": {"rounds": number, "share": 0.1}}, shares)


def _job(job_id: str) -> Job:
    memory = {"t4": MemoryLimits(1, 64)}
    return Job(
        JobSpec(
            id=job_id,
            model="cifar10",
            submitted_at=0.0,
            work=1e6,
            initial_batch_size=8,
            max_batch_size=64,
            memory=memory,
            gpu_count=2,
        ),
        Belief(),
        1e6,
    )


def commit(store: RoundStore, number: int) -> bool:
    return store.commit(round_result(number), observed_at(number))


class RoundStoreContract:
    """Every store keeps rounds in order, each once, with the states of its parts."""

    @pytest.fixture
    def store(self) -> RoundStore:
        raise NotImplementedError("give the fixture `store`: an empty store")

    def test_an_empty_store_begins_with_round_one_and_remembers_nothing(
        self, store: RoundStore
    ) -> None:
        loaded = store.load()
        assert loaded.next_round_number == 1
        assert dict(loaded.policy_state.data) == {}
        assert dict(loaded.placer_state.data) == {}

    def test_a_committed_round_is_followed_by_the_next_and_leaves_its_states(
        self, store: RoundStore
    ) -> None:
        for number in (1, 2, 3):
            assert commit(store, number)
            loaded = store.load()
            assert loaded.next_round_number == number + 1
            assert loaded.policy_state == _policy_state(number)
            assert loaded.placer_state == PolicyState("packed-sticky", "def", {"job-b": number})

    def test_a_round_is_committed_once(self, store: RoundStore) -> None:
        assert commit(store, 1)
        assert not commit(store, 1)
        assert store.load().next_round_number == 2

    def test_a_round_out_of_turn_is_not_committed(self, store: RoundStore) -> None:
        assert not commit(store, 2)
        assert store.load().next_round_number == 1

    def test_loading_changes_nothing(self, store: RoundStore) -> None:
        commit(store, 1)
        assert store.load() == store.load()


class DurableRoundStoreContract(RoundStoreContract):
    """A durable store keeps changes unapplied until they are carried out."""

    @pytest.fixture
    def reopened(self, store: RoundStore) -> RoundStore:
        raise NotImplementedError("give the fixture `reopened`: another store on the same data")

    def test_an_empty_store_has_no_changes_to_carry_out(self, store: RoundStore) -> None:
        assert list(store.unapplied()) == []

    def test_changes_wait_from_their_commit_until_they_are_applied(self, store: RoundStore) -> None:
        commit(store, 1)
        assert list(store.unapplied()) == [round_result(1).changes]
        store.applied(round_result(1).changes, ())
        assert list(store.unapplied()) == []

    def test_changes_applied_twice_are_applied_once(self, store: RoundStore) -> None:
        commit(store, 1)
        for _ in range(2):
            store.applied(round_result(1).changes, ())
        assert list(store.unapplied()) == []

    def test_changes_come_in_the_order_of_their_rounds(self, store: RoundStore) -> None:
        for number in (1, 2):
            commit(store, number)
        assert [changes.round_number for changes in store.unapplied()] == [1, 2]
        store.applied(round_result(1).changes, ())
        assert [changes.round_number for changes in store.unapplied()] == [2]

    def test_a_refused_round_leaves_no_changes(self, store: RoundStore) -> None:
        commit(store, 1)
        store.applied(round_result(1).changes, ())
        commit(store, 1)
        commit(store, 3)
        assert list(store.unapplied()) == []

    def test_another_store_on_the_same_data_goes_on_where_this_one_was(
        self, store: RoundStore, reopened: RoundStore
    ) -> None:
        commit(store, 1)
        assert reopened.load() == store.load()
        assert list(reopened.unapplied()) == list(store.unapplied())
        assert not commit(reopened, 1)
        assert commit(reopened, 2)
        assert not commit(store, 2)
