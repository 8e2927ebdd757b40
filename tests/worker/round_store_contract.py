"""What every RoundStore must do, whatever it keeps rounds in. A test class inherits this and gives `stores`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from maat.scheduling.cluster import Cluster
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import ClusterState, PolicyState, RoundInput, RoundResult, RoundStore
from maat.simulation.catalog import load_catalog
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.models import catalog_models
from worker.live_executor import FixedClock

OpenStore = Callable[[], RoundStore]


def planned(number: int, *, now: float = 100.0) -> tuple[RoundResult, ClusterState]:
    """A real round of two jobs on two nodes, with the state that was observed before it."""
    clock = FixedClock(now)
    executor = SimulatedExecutor(Cluster.parse("t4=2x4"), clock, FIDELITIES["paper"])
    model = catalog_models()["cifar10"]
    for name in ("first", "second"):
        spec = load_catalog()["cifar10"].job_spec(id=name, submitted_at=0.0)
        executor.submit(spec, model.truth, restart_seconds=model.restart_seconds)
    observed = executor.observe()
    remembered = PolicyState("policy", "hash", {"first": number})
    round_input = RoundInput(now, number, 60.0, observed.jobs, observed.cluster, (), state=remembered)
    return plan_round(round_input, POLICIES.build("fifo"), PLACERS.build("packed")), observed


class RoundStoreContract:
    """`open_store` opens the same rounds anew each time, as a restarted loop or a second worker would."""

    def test_begins_with_round_one_and_remembers_nothing(self, open_store: OpenStore) -> None:
        stored = open_store().load()
        assert (stored.next_round_number, stored.policy_state, stored.placer_state) == (1, PolicyState(), PolicyState())

    def test_goes_on_after_the_round_that_was_committed_with_what_the_policy_remembered(self, open_store: OpenStore) -> None:
        result, observed = planned(1)
        assert open_store().commit(result, observed)
        stored = open_store().load()
        assert stored.next_round_number == 2
        assert stored.policy_state == result.decision.state

    def test_refuses_a_number_that_is_taken(self, open_store: OpenStore) -> None:
        assert open_store().commit(*planned(1))
        assert not open_store().commit(*planned(1, now=200.0))
        assert open_store().load().next_round_number == 2

    def test_refuses_a_number_that_is_not_next(self, open_store: OpenStore) -> None:
        assert not open_store().commit(*planned(2))
        assert open_store().load().next_round_number == 1

    def test_gives_back_the_changes_of_a_round_until_they_were_carried_out(self, open_store: OpenStore) -> None:
        result, observed = planned(1)
        assert len(result.changes.items) == 2
        assert open_store().commit(result, observed)
        assert list(open_store().unapplied()) == [result.changes]
        open_store().applied(result.changes, ())
        assert list(open_store().unapplied()) == []

    def test_takes_the_news_that_changes_were_carried_out_twice(self, open_store: OpenStore) -> None:
        result, observed = planned(1)
        open_store().commit(result, observed)
        open_store().applied(result.changes, ())
        open_store().applied(result.changes, ())
        assert list(open_store().unapplied()) == []

    def test_lets_one_of_four_commit_each_round(self, open_store: OpenStore) -> None:
        stores = [open_store() for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            for number in range(1, 6):
                result, observed = planned(number)
                assert sum(pool.map(lambda store, r=result, o=observed: store.commit(r, o), stores)) == 1
        assert open_store().load().next_round_number == 6
