"""Which jobs are profiled, where, and at which batch sizes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from backend.attempts.profiles import why_given_up
from backend.commands.spec import command_spec
from backend.models import AttemptRow
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.job import JobDeclaration, JobSpec
from maat.vocabulary import Adaptivity, AttemptKind, AttemptState, Outcome
from worker.training.profiling import (
    Gpu,
    Room,
    Wish,
    assign,
    profile_sizes,
    rooms_of,
    types_to_profile,
)

TYPES = ("t4", "a100")


def spec_of(**declared: Any) -> JobSpec:
    fields = {"model": "m", "batch_size": 32, "max_batch_size": 256} | declared
    return command_spec(
        JobDeclaration(**fields), id="job", submitted_at=0.0, gpu_types=TYPES, work=None
    )


def profile(outcome: Outcome | None, *, gpu_type: str = "t4", reported: bool = True) -> AttemptRow:
    state = AttemptState.RUNNING if outcome is None else AttemptState.ENDED
    return AttemptRow(
        kind=AttemptKind.PROFILE.value,
        job_id="job",
        cluster_id="c",
        number=1,
        round_number=0,
        state=state.value,
        outcome=None if outcome is None else outcome.value,
        reports=True,
        reported_seconds=1.0 if reported else None,
        gpu_type=gpu_type,
        gpus_by_node={f"{gpu_type}-0": [0]},
        gpu_count=1,
        ordered_seconds=0.0,
    )


def wanted(*attempts: AttemptRow, believed: tuple[str, ...] = (), **declared: Any) -> list[str]:
    return list(types_to_profile(spec_of(**declared), believed, attempts, gpu_types=TYPES))


def test_a_new_job_is_profiled_on_every_type_that_it_may_use() -> None:
    assert wanted() == ["t4", "a100"]
    assert wanted(gpu_types=("a100",)) == ["a100"]
    assert wanted(believed=("t4",)) == ["a100"]


def test_a_job_that_does_not_adapt_or_has_trained_is_not_profiled() -> None:
    assert wanted(adaptivity=Adaptivity.RIGID, gpu_count=2) == []
    trains = profile(Outcome.STOPPED)
    trains.kind = AttemptKind.TRAIN.value
    assert wanted(trains) == []


def test_one_failed_profile_is_tried_again_two_are_not() -> None:
    failed = profile(Outcome.FAILED)
    assert wanted(failed) == ["t4", "a100"]
    assert wanted(failed, profile(Outcome.STOPPED, gpu_type="a100")) == []
    assert why_given_up((), [failed, failed]) is not None


def test_a_profile_that_measured_before_it_failed_has_done_its_work() -> None:
    assert wanted(profile(Outcome.FAILED), profile(Outcome.FAILED), believed=("t4",)) == ["a100"]


def test_a_script_that_never_reported_is_profiled_no_further() -> None:
    assert wanted(profile(Outcome.SUCCEEDED, reported=False)) == []


def test_a_profile_that_was_lost_with_its_node_is_no_failure_but_not_repeated_for_ever() -> None:
    lost = profile(Outcome.LOST, reported=False)
    assert wanted(lost, lost) == ["t4", "a100"]
    assert wanted(lost, lost, lost) == ["a100"]


gpus = st.sets(st.tuples(st.sampled_from("ab"), st.integers(0, 7)), max_size=16)
rooms = st.builds(
    lambda free, held, profiling: (sorted(free), len(free) + held, profiling),
    gpus,
    st.integers(0, 8),
    st.integers(0, 4),
)


@examples(max_examples=100)
@given(
    wishes=st.lists(st.lists(st.sampled_from(TYPES), unique=True), max_size=12),
    by_type=st.tuples(rooms, rooms),
)
def test_no_gpu_is_given_twice_and_only_free_ones_of_wanted_types(
    wishes: list[list[str]], by_type: tuple[Any, Any]
) -> None:
    jobs = [Wish(f"job-{index}", kinds) for index, kinds in enumerate(wishes)]
    room = {
        kind: Room([Gpu(f"{kind}-{node}", index) for node, index in free], total, profiling)
        for kind, (free, total, profiling) in zip(TYPES, by_type, strict=True)
    }
    found = assign(jobs, room)
    assert len({gpu for _, gpu in found.values()}) == len(found)
    began = Counter(kind for kind, _ in found.values())
    for job in jobs:
        kind, gpu = found.get(job.job_id, (None, None))
        if kind is not None:
            assert kind in job.gpu_types
            assert gpu in room[kind].free
        else:  # there was no room for it
            assert all(
                began[kind] == len(room[kind].free)
                or began[kind] + room[kind].profiling >= max(room[kind].in_service // 4, 1)
                for kind in job.gpu_types
            )
    for kind in TYPES:
        at_once = max(room[kind].in_service // 4, 1)
        assert began[kind] <= max(at_once - room[kind].profiling, 0)


def test_gpus_that_are_held_or_out_of_service_are_no_room() -> None:
    cluster = Cluster.of([Node("t4-0", "t4", 4, frozenset({3})), Node("a100-0", "a100", 2)])
    held = profile(None)
    held.gpus_by_node = {"t4-0": [0]}
    found = rooms_of(cluster, [held])
    assert found["t4"] == Room([Gpu("t4-0", 1), Gpu("t4-0", 2)], 3, 1)
    assert found["a100"] == Room([Gpu("a100-0", 0), Gpu("a100-0", 1)], 2, 0)


def test_nodes_with_few_free_gpus_are_used_first() -> None:
    free = [Gpu("whole", 0), Gpu("whole", 1), Gpu("used", 3)]
    assert assign([Wish("job", ["t4"])], {"t4": Room(free, 4, 0)}) == {
        "job": ("t4", Gpu("used", 3))
    }


@pytest.mark.parametrize(
    ("declared", "sizes"),
    [
        ({}, [32, 8, 64, 128, 256]),
        ({"max_batch_size": 33}, [32, 8, 33]),
        ({"batch_size": 2, "max_batch_size": 4096}, [2, 32, 512, 4096]),
        ({"batch_size": 1, "max_batch_size": 1}, [1]),
        ({"adaptivity": Adaptivity.STRONG_SCALING, "max_batch_size": None}, [32, 8]),
    ],
)
def test_sizes_begin_with_the_jobs_own_and_rise_until_memory_may_end(
    declared: dict[str, Any], sizes: list[int]
) -> None:
    assert list(profile_sizes(spec_of(**declared), "t4")) == sizes


@examples(max_examples=100)
@given(batch=st.integers(1, 4096), factor=st.integers(1, 512))
def test_sizes_are_few_and_within_what_the_job_allows(batch: int, factor: int) -> None:
    spec = spec_of(batch_size=batch, max_batch_size=batch * factor)
    sizes = profile_sizes(spec, "t4")
    assert 1 <= len(sizes) == len(set(sizes)) <= 6
    assert sizes[0] == batch
    assert max(sizes) == batch * factor
    assert min(sizes) >= 1
