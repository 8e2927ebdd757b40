"""Tests of the auto-scaling tables and of the readings of the paper that they list.

The runs are tested in laboratory/test_rented.py.
"""

from __future__ import annotations

from dataclasses import fields

from benchmarks.autoscaling import LOWER, SINGLE, OneByOne, Outcome, Reading, grid, tables
from maat.scheduling.autoscaling import FastBatch, Ideal, ScalingInput, ThroughputAutoscaler
from maat.scheduling.cluster import Cluster

FAR = Outcome((60.0, 8.0), (60.0, 4.0))
NEAR = Outcome((75.0, 5.3), (100.0, 5.0))


def test_a_reading_is_near_where_both_figures_are() -> None:
    assert NEAR.is_near
    assert not FAR.is_near
    assert not Outcome((75.0, 8.0), (100.0, 5.0)).is_near, "the cost alone"


def test_tables_count_and_list_the_readings_that_are_near() -> None:
    close = Reading(nodes=8, ideal=Ideal.ONE_NODE, fast_batch=FastBatch.MOST_THROUGHPUT)
    said = tables({**dict.fromkeys([*SINGLE.values(), *grid()], FAR), close: NEAR})
    assert "| as literal as can be | 60.0 | 60.0 | +0% | 8.00 | 4.00 | +100% |" in said
    assert f"All {len(grid())} combinations" in said
    assert ": 1 are within 5% of both" in said
    assert "| 8 | the largest | -25% to +0% | +6% to +100% | 1 of 12 |" in said
    assert "| 8 | the largest | one node | L | all step times | -25% | +6% |" in said


def test_the_first_reading_is_the_default_and_each_other_changes_something() -> None:
    first, *others = SINGLE.values()
    assert first == Reading()
    assert len({first, *others}) == len(SINGLE)
    changed = {
        field.name
        for field in fields(Reading)
        for other in others
        if getattr(other, field.name) != getattr(first, field.name)
    }
    assert changed == {field.name for field in fields(Reading)} - {"fast_batch"}, (
        "at 16 nodes the GPUs hold the largest batch"
    )
    assert {reading.target for reading in grid()} > {LOWER}


def test_readings_that_differ_in_one_autoscaler_share_the_run_of_the_other() -> None:
    reading = Reading(
        target=0.6, ideal=Ideal.ONE_NODE, fast_batch=FastBatch.MOST_THROUGHPUT, one_by_one=True
    )
    assert reading.by_goodput() == Reading(target=0.6, ideal=Ideal.ONE_NODE)
    assert reading.by_throughput() == Reading(fast_batch=FastBatch.MOST_THROUGHPUT, one_by_one=True)


def test_one_node_at_a_time_goes_where_the_other_would_have_gone() -> None:
    class Ten(ThroughputAutoscaler):
        def node_count(self, scaling: ScalingInput) -> int:
            return 10

    def wanted(now: int) -> int:
        return OneByOne(Ten()).node_count(ScalingInput((), Cluster.parse("t4=16x4"), now))

    assert [wanted(now) for now in (1, 2, 9, 10)] == [2, 3, 10, 10]
