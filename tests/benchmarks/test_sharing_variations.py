"""Tests of the sharing experiment: its fixed settings, its variations and its tables.

Each variation changes one setting of the simulation.
"""

from __future__ import annotations

from dataclasses import fields

import pytest

from benchmarks.sharing.decisions import decisions_table, mean_slowdown
from benchmarks.sharing.runs import (
    CONTENDERS,
    DECISION_SEEDS,
    ELASTIC,
    Outcome,
    Run,
    decisions,
    from_row,
    wanted,
    workload,
)
from benchmarks.sharing.tables import tables
from benchmarks.sharing.variations import AS_FIXED, VARIATIONS, scaled, with_setting
from maat.simulation.interference import Interference, synthetic
from maat.simulation.world_models import catalog_models


def test_the_experiment_is_what_its_page_fixes() -> None:
    jobs = workload(240, 0).jobs
    assert (len(jobs), max(job.submit_seconds for job in jobs) < 8 * 3600) == (240, True)
    assert {run.variation for run in wanted() if run not in decisions()} == {""}


@pytest.mark.parametrize("key", [key for key in VARIATIONS if key])
def test_a_variation_changes_one_thing_and_what_is_simulated_with_it(key: str) -> None:
    setting = VARIATIONS[key]
    assert sum(getattr(setting, f.name) != getattr(AS_FIXED, f.name) for f in fields(setting)) == 1
    models = catalog_models()
    varied = (
        workload(240, 0, setting).jobs != workload(240, 0).jobs,
        any(with_setting(model, setting) != model for model in models.values()),
        scaled(synthetic(), setting.interference_scale) != synthetic(),
    )
    assert sum(varied) == 1


def test_a_scaled_table_keeps_that_share_of_what_each_pair_loses() -> None:
    table = scaled(Interference("t", {("a", "b"): {1: 3.0}}), 0.25)
    assert table.pairs["a", "b"] == {1: 1.5}
    assert mean_slowdown(AS_FIXED) == pytest.approx(1.684, abs=0.001)


def outcome(jct: float) -> Outcome:
    return Outcome(jct, jct, jct, 0.0, 0.0, 0.0, 0, 1.0)


def test_tables_are_of_the_seeds_that_all_have_played() -> None:
    found = {
        Run(name, 240, seed): outcome(1.0 + n)
        for n, name in enumerate(CONTENDERS)
        for seed in (0, 1)
    }
    found |= {Run("FIFO", 240, 2): outcome(9.0), Run("SJF-FFS", 240, 1, "1.2"): outcome(1.0)}
    texts = tables(found)
    assert "mean over 2 seeds" in texts[0]
    assert "| SJF-BSBF before SJF-FFS | 0 of 2 |" in texts[1]
    _, rows = decisions_table(found)
    assert [row[0] for row in rows] == ["one xi for all pairs: 1.2", "nothing"]
    assert rows[0][-1] == "1 of 1"
    assert tables({}) == []


def test_a_row_of_an_earlier_run_is_read_as_the_plain_experiment() -> None:
    run, _ = from_row(
        {
            "contender": "SJF",
            "jobs": 240,
            "seed": 0,
            "interference": "synthetic",
            "nodes": 16,
            **dict.fromkeys(Outcome.__slots__, 0),
        }
    )
    assert run == Run("SJF", 240, 0)
    assert len(DECISION_SEEDS) == 5


def test_only_pollux_adapts_jobs_and_every_other_policy_keeps_what_they_ask_for() -> None:
    shares = {name: tuple(one.shares.values()) for name, one in {**CONTENDERS, **ELASTIC}.items()}
    assert {shares[name] for name in CONTENDERS} == {(1.0, 0.0)}
    assert [shares[name] for name in ELASTIC] == [(0.0, 0.0), (0.0, 1.0)]


def test_the_rows_of_pollux_stand_before_the_published_one_for_their_own_seeds() -> None:
    found = {
        Run(name, 240, seed): outcome(1.0 + seed + row)
        for row, name in enumerate(ELASTIC)
        for seed in (0, 1)
    }
    (table,) = tables(found)
    lines = table.splitlines()
    assert lines[0] == "240 jobs, hours, mean over 2 seeds:"
    assert [line.split("|")[1:3] for line in lines[-3:]] == [
        [" Pollux ", " 1.50 "],
        [" Pollux, batch sizes kept ", " 2.50 "],
        [" Pollux, published ", " 1.04 "],
    ]
