"""SJF-BSBF's items: values derived by hand, and settings that vary one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from statistics import fmean

import pytest

from maat.papers.bench import Bench, Size
from maat.papers.bsbf import BSBF, pair, runs, simulated
from maat.papers.bsbf.runs import CONTENDERS, POLLUXES, jobs_of
from maat.papers.bsbf.simulated import FFS
from maat.papers.bsbf.variations import DECLARED, SETTINGS, Setting
from maat.papers.catalogue import item_of
from maat.papers.data import Data
from maat.papers.observation import Observation, observe
from maat.papers.reproducing import Reproduced, make
from maat.simulation.engine import simulate
from maat.simulation.interference import synthetic
from maat.simulation.world_models import Model, catalog_models


def made(key: str) -> Reproduced:
    (item,) = make(BSBF, [item_of(BSBF, key)], data=Data(), size=Size.TINY)
    assert item.failed is None
    return item


def test_the_paper_has_eight_items_in_its_order() -> None:
    assert [(item.key, item.also) for item in BSBF.items] == [
        ("fig-1", ()),
        ("fig-2", ()),
        ("fig-3", ()),
        ("table-2", ("fig-4",)),
        ("fig-5", ()),
        ("table-3", ("table-4",)),
        ("fig-6a", ()),
        ("fig-6b", ()),
    ]


def test_a_simulated_pair_ends_when_the_papers_equations_say() -> None:
    """Jobs of 60 and 40 minutes; in (c) the second starts after 30, with 30 of the first left."""
    rows = [row for row in made("fig-1").rows if row.measure == pair.MEAN]
    by_hand = {
        ("1.25", "(a) one by one"): (60 + 100) / 2,
        ("1.25", "(b) together"): (50 + (50 + 20)) / 2,
        ("1.25", "(c) overlapping"): (30 + 37.5 + (30 + 37.5 + 10)) / 2,
        ("2", "(a) one by one"): (60 + 100) / 2,
        ("2", "(b) together"): (80 + (80 + 20)) / 2,
        ("2", "(c) overlapping"): (30 + 60 + (30 + 60 + 10)) / 2,
    }
    assert {row.of: row.published for row in rows} == by_hand
    assert {row.of: row.mean for row in rows} == pytest.approx(by_hand, rel=1e-6)


def test_a_row_is_what_its_simulation_gives_and_a_cell_that_was_misprinted_is_no_anchor() -> None:
    of = {(row.of, row.measure): row for row in made("table-3").rows}
    jobs = simulate(runs.scenario(jobs_of(Bench(size=Size.TINY), 480, 0), "FIFO")).records
    assert of[("480", "FIFO"), "average JCT, h, all jobs"].ours == pytest.approx(
        [fmean((job.finish or 0) - job.submit for job in jobs) / 3600]
    )
    assert of[("480", "FIFO"), "average queueing, h, all jobs"].published is None
    assert of[("240", "FIFO"), "average queueing, h, all jobs"].published == 1.65


def test_shares_are_of_the_same_jobs_and_the_published_one_follows_from_the_table() -> None:
    of = {(row.of, row.measure): row for row in made("table-3").rows}
    share = of[("240", f"{simulated.BSBF} against {FFS}"), simulated.JCT_SHARE]
    assert share.published == 82.1  # 1.01 / 1.23
    ours, ffs = (
        of[("240", name), "average JCT, h, all jobs"].ours[0] for name in (simulated.BSBF, FFS)
    )
    assert share.ours == pytest.approx([100 * ours / ffs])


def test_only_pollux_adapts_jobs_and_every_other_policy_keeps_what_they_ask_for() -> None:
    workload = jobs_of(Bench(size=Size.TINY), 240, 0)
    shares = {
        name: (conditions.rigid_share, conditions.strong_scaling_share)
        for name in CONTENDERS
        for conditions in [runs.scenario(workload, name).conditions]
    }
    assert {shares[name] for name in CONTENDERS if name not in POLLUXES} == {(1.0, 0.0)}
    assert [shares[name] for name in POLLUXES] == [(0.0, 0.0), (0.0, 1.0)]


def test_queueing_by_model_is_all_that_its_jobs_wait() -> None:
    bench = Bench(size=Size.QUICK)
    kept = Observation.of(observe(runs.scenario(jobs_of(bench, 120, 1), "Tiresias", seed=1)))
    by_model = [
        (sum(name == model for name in kept.jobs["model"]), simulated.queueing_of([kept], model))
        for model in simulated.MODELS
    ]
    total = sum(jobs * hours[0] for jobs, hours in by_model if hours)
    assert total / 120 == pytest.approx(kept.figures["avg_waiting_hours"])
    assert kept.figures["avg_waiting_hours"] > kept.figures["avg_queueing_hours"]


def costs(models: Mapping[str, Model]) -> Mapping[str, object]:
    return {name: (model.restart_seconds, model.memory) for name, model in models.items()}


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != DECLARED])
def test_a_setting_varies_one_thing_and_what_is_simulated_with_it(name: str) -> None:
    setting, bench = SETTINGS[name], Bench(size=Size.WHOLE)
    assert sum(getattr(setting, f.name) != getattr(Setting(), f.name) for f in fields(setting)) == 1
    varied = (
        jobs_of(bench, 240, 0, setting.shape).jobs != jobs_of(bench, 240, 0).jobs,
        costs(setting.models) != costs(catalog_models()),
        setting.interference != synthetic(),
    )
    assert sum(varied) == 1


def test_a_scaled_table_keeps_that_share_of_what_each_pair_loses() -> None:
    halved = SETTINGS["half of what each pair loses"]
    assert halved.interference.pairs["ncf", "bert"] == {
        1: pytest.approx(1 + (synthetic().pairs["ncf", "bert"][1] - 1) / 2)
    }
    assert Setting().mean_slowdown == pytest.approx(1.684, abs=0.001)
    assert halved.mean_slowdown == pytest.approx(1.342, abs=0.001)
