"""Counts of idle GPUs and of GPUs that one job holds alone, while a sharing policy grants them."""

from __future__ import annotations

from maat.scheduling.policies.sharing.gpu_counts import GpuCounts, Holder


def test_a_job_on_idle_gpus_takes_them_and_may_be_joined_on_them() -> None:
    counts = GpuCounts([4], shareable=True)
    counts.start(Holder("new", 0, 3, alone=3), shared={})
    assert (counts.idle(0), counts.joinable(0)) == (1, 3)
    assert [holder.job_id for holder in counts.holders(0)] == ["new"]


def test_a_joined_gpu_may_not_be_joined_again_and_is_not_idle() -> None:
    counts = GpuCounts([1, 2], shareable=True)
    counts.keep(Holder("old", 0, 2, alone=2))
    counts.start(Holder("new", 0, 3, alone=1), shared={"old": 2})
    assert (counts.idle(0), counts.idle(1), counts.joinable(0)) == (0, 2, 1)
    assert [(holder.job_id, holder.alone) for holder in counts.holders(0)] == [("new", 1)]


def test_on_gpus_for_one_job_each_nothing_may_be_joined() -> None:
    counts = GpuCounts([2], shareable=False)
    counts.start(Holder("new", 0, 2, alone=2), shared={})
    assert counts.joinable(0) == 0
    assert list(counts.holders(0)) == []


def test_every_start_shows_in_changes_so_that_remembered_partners_are_dropped() -> None:
    counts = GpuCounts([2], shareable=True)
    before = counts.changes
    counts.start(Holder("new", 0, 2, alone=2), shared={})
    assert counts.changes > before
