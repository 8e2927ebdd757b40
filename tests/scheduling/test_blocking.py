"""Who keeps a job from the GPUs that it needs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.blocking import Blocking, Holder, Stay, blocking

HOLDERS = st.lists(
    st.builds(
        Holder,
        job_id=st.uuids().map(str),
        gpus=st.frozensets(st.integers(0, 15), min_size=1, max_size=4),
        stay=st.sampled_from(Stay),
        ends_at=st.one_of(st.none(), st.floats(0.0, 1e6)),
    ),
    max_size=6,
)


def holder(job_id: str, gpu_count: int, stay: Stay, ends_at: float | None) -> Holder:
    """Return a job on GPUs that no other one of these tests holds."""
    first = 16 * ord(job_id[0])
    return Holder(job_id, frozenset(range(first, first + gpu_count)), stay, ends_at)


def blocked(*holders: Holder, needed: int = 16) -> Blocking | None:
    return blocking(holders, gpu_type="a100", needed=needed, in_service=16)


def test_one_gpu_that_may_not_be_preempted_blocks_a_job_that_needs_them_all() -> None:
    stays = holder("baseline", 1, Stay.NOT_PREEMPTIBLE, 32_460.0)
    found = blocked(stays, holder("large", 8, Stay.KEPT, 100.0))
    assert found is not None
    assert found.fixed
    assert found.by == (stays,)
    assert (found.free, found.possible_at) == (7, 32_460.0)


def test_jobs_that_could_be_moved_block_only_as_the_policy_prefers() -> None:
    large, small = holder("b", 8, Stay.KEPT, None), holder("a", 2, Stay.KEPT, 5.0)
    found = blocked(small, large)
    assert found is not None
    assert (found.fixed, found.by, found.possible_at) == (False, (large, small), None)


def test_it_is_possible_once_enough_have_ended() -> None:
    stay = [holder(name, 4, Stay.NOT_PREEMPTIBLE, at) for name, at in (("a", 30.0), ("b", 10.0))]
    for needed, at in ((12, 10.0), (16, 30.0)):
        found = blocked(*stay, needed=needed)
        assert found is not None
        assert found.possible_at == at
    unknown = blocked(*stay, holder("c", 1, Stay.NOT_PREEMPTIBLE, None))
    assert unknown is not None
    assert unknown.possible_at is None


@given(HOLDERS, st.integers(1, 20), st.integers(1, 3))
def test_who_blocks_holds_what_is_lacking(holders: list[Holder], needed: int, places: int) -> None:
    """Jobs may share GPUs: one is lacking once it holds as many as it has places."""

    def free_of(some: list[Holder]) -> int:
        jobs_on = Counter(gpu for one in some for gpu in one.gpus)
        return 16 - sum(jobs >= places for jobs in jobs_on.values())

    found = blocking(holders, gpu_type="t4", needed=needed, in_service=16, places=places)
    if found is None:
        assert free_of(holders) >= needed or needed > 16
        return
    assert found.free == free_of(holders) < needed
    fixed = [one for one in holders if one.stay is not Stay.KEPT]
    assert found.fixed == (free_of(fixed) < needed)
    rest = [one for one in holders if one not in found.by]
    if found.fixed:
        assert free_of(list(found.by)) < needed
        assert 16 - found.kept_gpus == free_of(list(found.by))
    else:
        assert free_of(rest) >= needed


def test_a_gpu_with_a_free_place_blocks_nobody() -> None:
    one, two = (Holder(i, frozenset({0, 1}), Stay.KEPT, None) for i in "ab")
    both = {"gpu_type": "t4", "needed": 1, "in_service": 2}
    assert blocking([one], **both, places=2) is None
    found = blocking([one, two], **both, places=2)
    assert found is not None
    assert (found.free, found.by) == (0, (one, two))
    alone = blocking([one], **both)
    assert alone is not None
    assert alone.by == (one,)


def test_shared_gpus_are_possible_once_one_of_both_ends() -> None:
    pair = [
        Holder(i, frozenset({0}), Stay.NOT_PREEMPTIBLE, at) for i, at in (("a", 9.0), ("b", 5.0))
    ]
    found = blocking(pair, gpu_type="t4", needed=1, in_service=1, places=2)
    assert found is not None
    assert (found.fixed, found.kept_gpus, found.possible_at) == (True, 1, 5.0)
