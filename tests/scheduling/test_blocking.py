"""Who keeps a job from the GPUs that it needs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.blocking import Blocking, Holder, Stay, blocking

HOLDERS = st.lists(
    st.builds(
        Holder,
        job_id=st.uuids().map(str),
        gpu_count=st.integers(1, 4),
        stay=st.sampled_from(Stay),
        ends_at=st.one_of(st.none(), st.floats(0.0, 1e6)),
    ),
    max_size=6,
)


def blocked(*holders: Holder, needed: int = 16) -> Blocking | None:
    return blocking(holders, gpu_type="a100", needed=needed, in_service=16)


def test_one_gpu_that_may_not_be_preempted_blocks_a_job_that_needs_them_all() -> None:
    stays = Holder("baseline", 1, Stay.NOT_PREEMPTIBLE, 32_460.0)
    found = blocked(stays, Holder("large", 8, Stay.KEPT, 100.0))
    assert found is not None
    assert found.fixed
    assert found.by == (stays,)
    assert (found.free, found.possible_at) == (7, 32_460.0)


def test_jobs_that_could_be_moved_block_only_as_the_policy_prefers() -> None:
    large, small = Holder("b", 8, Stay.KEPT, None), Holder("a", 2, Stay.KEPT, 5.0)
    found = blocked(small, large)
    assert found is not None
    assert (found.fixed, found.by, found.possible_at) == (False, (large, small), None)


def test_it_is_possible_once_enough_have_ended() -> None:
    stay = [Holder(name, 4, Stay.NOT_PREEMPTIBLE, at) for name, at in (("a", 30.0), ("b", 10.0))]
    for needed, at in ((12, 10.0), (16, 30.0)):
        found = blocked(*stay, needed=needed)
        assert found is not None
        assert found.possible_at == at
    unknown = blocked(*stay, Holder("c", 1, Stay.NOT_PREEMPTIBLE, None))
    assert unknown is not None
    assert unknown.possible_at is None


@given(HOLDERS, st.integers(1, 32))
def test_who_blocks_holds_what_is_lacking(holders: list[Holder], needed: int) -> None:
    held = sum(one.gpu_count for one in holders)
    in_service = held + 2
    found = blocking(holders, gpu_type="t4", needed=needed, in_service=in_service)
    if found is None:
        assert needed <= 2 or needed > in_service
        return
    assert found.by
    taken = sum(one.gpu_count for one in found.by)
    if found.fixed:
        assert in_service - taken < needed
    else:
        fixed = sum(one.gpu_count for one in holders if one.stay is not Stay.KEPT)
        assert in_service - fixed >= needed
        assert taken >= needed - found.free
