"""Gandiva: turns of equal length, and pairs while GPUs lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation, Job
from maat.scheduling.loop import plan_round
from maat.scheduling.parameters import parameter_hash
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies.gandiva import Gandiva
from maat.scheduling.policies.ordering import HeadOfLine
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import PolicyState

Speeds = Mapping[tuple[str, str, int], float]
MILD = {("m", "m", n): 1.5 for n in (1, 2, 4)}


def asks(name: str, gpus: int, *, preemptible: bool = True) -> Job:
    return job(spec(name, gpu_count=gpus, batch_size=64, preemptible=preemptible), belief(t4=0.5))


class Played:
    """A cluster of t4 on which Gandiva decides round after round; no job ends."""

    def __init__(
        self,
        gpus: int,
        *jobs: Job,
        jobs_per_gpu: int = 1,
        interference: Speeds | None = None,
        **parameters: object,
    ) -> None:
        self.policy = Gandiva(**parameters)  # type: ignore[arg-type]
        self.cluster = replace(Cluster.parse(f"t4=1x{gpus}"), jobs_per_gpu=jobs_per_gpu)
        self.jobs = {one.id: one for one in jobs}
        self.interference = interference or {}
        self.state = PolicyState(self.policy.name, parameter_hash(self.policy))
        self.now = 0.0

    def round(self, seconds: float = 360.0) -> dict[str, tuple[int, ...]]:
        """Who holds which GPUs after one more round."""
        given = round_of(
            self.cluster,
            *self.jobs.values(),
            now=self.now,
            state=self.state,
            interference=self.interference,
        )
        result: RoundResult = plan_round(given, self.policy, PLACERS.build("together"))
        held = dict(result.placement.placement.by_job)
        for job_id, one in self.jobs.items():
            after = Allocation("t4", held[job_id]) if job_id in held else None
            self.jobs[job_id] = replace(
                one, allocation=after, started_at=0.0 if after else one.started_at
            )
        self.state, self.now = result.decision.state, self.now + seconds
        return held


def test_every_job_has_a_turn_of_the_same_length() -> None:
    played = Played(4, asks("a", 4), asks("b", 4), asks("c", 4))
    assert [list(played.round()) for _ in range(6)] == [["a"], ["b"], ["c"], ["a"], ["b"], ["c"]]


def test_a_turn_lasts_as_long_as_its_parameter_says() -> None:
    played = Played(4, asks("a", 4), asks("b", 4), slice_seconds=180.0)
    assert [list(played.round(seconds=60.0)) for _ in range(7)] == [["a"]] * 3 + [["b"]] * 3 + [
        ["a"]
    ]


def test_no_job_moves_if_every_job_fits() -> None:
    played = Played(4, asks("a", 2), asks("b", 2))
    assert [played.round() for _ in range(3)] == [{"a": (0, 1), "b": (2, 3)}] * 3


def test_a_large_job_has_its_turn_though_small_ones_would_fill_the_gaps() -> None:
    played = Played(4, asks("s1", 1), asks("s2", 1), asks("large", 4), asks("s3", 1))
    turns = [set(played.round()) for _ in range(4)]
    assert {"large"} in turns
    assert Played(
        4, asks("s1", 1), asks("large", 4), asks("s2", 1), head_of_line=HeadOfLine.BLOCK
    ).round().keys() == {"s1"}


def test_a_newcomer_waits_for_its_turn() -> None:
    played = Played(4, asks("a", 4), asks("b", 4))
    played.round()
    played.jobs["new"] = asks("new", 4)
    assert [list(played.round()) for _ in range(3)] == [["b"], ["new"], ["a"]]


def test_a_job_that_may_not_be_preempted_keeps_its_gpus() -> None:
    played = Played(4, asks("stays", 2, preemptible=False), asks("a", 2), asks("b", 2))
    turns = [set(played.round()) for _ in range(4)]
    assert turns == [{"stays", "a"}, {"stays", "b"}, {"stays", "a"}, {"stays", "b"}]


def test_where_gpus_lack_jobs_of_one_size_share_them() -> None:
    held = Played(4, asks("a", 4), asks("b", 4), jobs_per_gpu=2, interference=MILD).round()
    assert held == {"a": (0, 1, 2, 3), "b": (0, 1, 2, 3)}


def test_jobs_of_different_sizes_do_not() -> None:
    assert (
        len(Played(4, asks("a", 4), asks("b", 2), jobs_per_gpu=2, interference=MILD).round()) == 1
    )


def test_pairs_that_are_slower_than_turns_are_not_formed() -> None:
    """Summed speeds: 2 / 2.1 below 1, 2 / 2 just not."""
    slow, even = (dict.fromkeys(MILD, xi) for xi in (2.1, 2.0))
    assert (
        len(Played(4, asks("a", 4), asks("b", 4), jobs_per_gpu=2, interference=slow).round()) == 1
    )
    assert (
        len(Played(4, asks("a", 4), asks("b", 4), jobs_per_gpu=2, interference=even).round()) == 2
    )
    assert (
        len(
            Played(
                4,
                asks("a", 4),
                asks("b", 4),
                jobs_per_gpu=2,
                interference=even,
                least_pair_speed=1.1,
            ).round()
        )
        == 1
    )


def test_unmeasured_pairs_are_not_formed() -> None:
    assert len(Played(4, asks("a", 4), asks("b", 4), jobs_per_gpu=2).round()) == 1


def test_a_gpu_for_one_job_is_not_shared() -> None:
    assert len(Played(4, asks("a", 4), asks("b", 4), interference=MILD).round()) == 1


def test_pairing_may_be_left_out() -> None:
    played = Played(4, asks("a", 4), asks("b", 4), jobs_per_gpu=2, interference=MILD, pairing=False)
    assert [list(played.round()) for _ in range(2)] == [["a"], ["b"]]


def test_no_job_shares_if_every_job_fits_alone() -> None:
    held = Played(4, asks("a", 2), asks("b", 2), jobs_per_gpu=2, interference=MILD).round()
    assert held == {"a": (0, 1), "b": (2, 3)}


def test_a_pair_takes_its_turns_as_one_and_outlives_them() -> None:
    played = Played(4, *(asks(name, 4) for name in "abcd"), jobs_per_gpu=2, interference=MILD)
    turns = [frozenset(played.round()) for _ in range(4)]
    assert turns[0] == turns[2]
    assert turns[1] == turns[3]
    assert turns[0] | turns[1] == set("abcd")
    assert not turns[0] & turns[1]


def test_a_pair_is_dissolved_when_there_is_room_for_both() -> None:
    played = Played(
        4, asks("a", 2), asks("b", 2), asks("c", 2), asks("d", 2), jobs_per_gpu=2, interference=MILD
    )
    assert len(played.round()) == 4
    del played.jobs["c"], played.jobs["d"]
    held = played.round()
    assert not set(held["a"]) & set(held["b"])


def test_a_job_that_lost_a_partner_may_find_another() -> None:
    played = Played(4, *(asks(name, 4) for name in "abc"), jobs_per_gpu=2, interference=MILD)
    played.round()
    paired = {name for pair in played.state.data["pairs"] for name in pair}  # type: ignore[attr-defined]
    del played.jobs[min(paired)]
    played.round()
    assert played.state.data["pairs"] == [sorted(played.jobs)]
