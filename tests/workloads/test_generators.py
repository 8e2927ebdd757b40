"""Generated workloads: the same seed, the same jobs; arrivals and mixes as documented."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.models.catalog import load_catalog
from maat.models.iteration_times import iteration_times
from maat.scheduling.errors import ParameterError, UnknownNameError
from maat.scheduling.job import JobDeclaration
from maat.workloads.formats.sia import write_workload
from maat.workloads.generators import (
    FAMILIES,
    MAX_SEED,
    PAPER_FAMILIES,
    SIZE_CLASS_OF,
    SizeClass,
    generate,
    size_at,
)
from maat.workloads.reading import read_workload
from maat.workloads.sharing import solo_seconds

SEEDS = range(30)


@given(
    family=st.sampled_from(sorted(FAMILIES)),
    jobs=st.integers(1, 300),
    hours=st.floats(0.01, 200.0),
    seed=st.integers(0, MAX_SEED),
)
def test_a_workload_has_exactly_the_jobs_asked_for_within_its_hours(
    family: str, jobs: int, hours: float, seed: int
) -> None:
    workload = generate(family, jobs=jobs, hours=hours, seed=seed)
    times = [job.submit_seconds for job in workload.jobs]
    assert len(times) == jobs
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] <= hours * 3600
    assert len({job.name for job in workload.jobs}) == jobs


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_gives_the_same_workload_and_another_seed_another(family: str) -> None:
    assert generate(family, seed=7) == generate(family, seed=7)
    assert generate(family, seed=7).jobs != generate(family, seed=8).jobs


@pytest.mark.parametrize(
    ("family", "jobs", "hours"), [("philly", 160, 8), ("helios", 160, 8), ("newtrace", 960, 48)]
)
def test_a_family_submits_twenty_jobs_per_hour_over_its_window_by_default(
    family: str, jobs: int, hours: int
) -> None:
    workload = generate(family, seed=1)
    assert len(workload) == jobs
    assert workload.jobs[-1].submit_seconds > 0.9 * hours * 3600


@pytest.mark.parametrize("family", FAMILIES)
def test_models_come_in_the_family_s_shares(family: str) -> None:
    counts = Counter(
        job.model for seed in SEEDS for job in generate(family, jobs=500, seed=seed).jobs
    )
    total, weights = sum(counts.values()), FAMILIES[family].models
    for model, weight in weights.items():
        share = weight / sum(weights.values())
        # Bursts repeat a model, so jobs are not independent: five times the usual deviation.
        assert counts[model] / total == pytest.approx(share, abs=5 * math.sqrt(share / total))


@pytest.mark.parametrize(
    ("family", "small"), [("philly", 0.783), ("helios", 0.827), ("newtrace", 0.504)]
)
def test_small_jobs_are_most_of_the_eight_hour_families_and_half_of_the_two_day_one(
    family: str, small: float
) -> None:
    jobs = [job for seed in SEEDS for job in generate(family, jobs=400, seed=seed).jobs]
    share = sum(SIZE_CLASS_OF[job.model] is SizeClass.SMALL for job in jobs) / len(jobs)
    assert share == pytest.approx(small, abs=0.03)


def hourly_counts(family: str, seed: int) -> np.ndarray:
    hours = int(FAMILIES[family].hours)
    return np.bincount(
        [int(job.submit_seconds // 3600) for job in generate(family, seed=seed).jobs],
        minlength=hours,
    )[:hours]


@pytest.mark.parametrize("family", ["philly", "helios"])
def test_arrivals_follow_the_family_s_hourly_profile(family: str) -> None:
    mean = np.mean([hourly_counts(family, seed) for seed in range(200)], axis=0)
    profile = np.array(FAMILIES[family].hourly)
    assert mean == pytest.approx(profile / profile.sum() * 160, abs=2.0)


def test_the_two_day_family_has_quiet_and_crowded_hours() -> None:
    counts = [hourly_counts("newtrace", seed) for seed in SEEDS]
    dispersion = np.mean([c.var() / c.mean() for c in counts])
    assert 4.0 < dispersion < 8.0  # the published trace: 5.5; independent arrivals: 1
    assert np.mean([c.min() for c in counts]) < 6
    assert 40 < np.mean([c.max() for c in counts]) < 100


def test_jobs_of_one_burst_ask_for_the_same() -> None:
    close = same = 0
    for seed in SEEDS:
        jobs = generate("newtrace", seed=seed).jobs
        for earlier, later in itertools.pairwise(jobs):
            if later.submit_seconds - earlier.submit_seconds < 5:
                close += 1
                same += (earlier.model, earlier.gpu_count, earlier.batch_size) == (
                    later.model,
                    later.gpu_count,
                    later.batch_size,
                )
    assert same / close > 0.5  # by chance, under a tenth


def test_models_can_be_mixed_otherwise_in_whatever_order_they_are_named() -> None:
    workload = generate("philly", jobs=50, seed=3, models={"ncf": 1.0, "gpt": 1.0, "bert": 0.0})
    assert workload.models == {"ncf", "gpt"}
    assert workload == generate(
        "philly", jobs=50, seed=3, models={"bert": 0.0, "gpt": 3.0, "ncf": 3.0}
    )


def test_training_can_be_shortened_for_all_jobs() -> None:
    assert {job.work_scale for job in generate("philly", jobs=5, work_scale=0.1).jobs} == {0.1}


@given(
    family=st.sampled_from(sorted(PAPER_FAMILIES)),
    jobs=st.integers(1, 300),
    hours=st.floats(0.01, 200.0),
    seed=st.integers(0, MAX_SEED),
)
def test_a_workload_of_a_paper_too_has_the_jobs_asked_for_within_its_hours(
    family: str, jobs: int, hours: float, seed: int
) -> None:
    workload = generate(family, jobs=jobs, hours=hours, seed=seed)
    times = [job.submit_seconds for job in workload.jobs]
    assert (len(times), times) == (jobs, sorted(times))
    assert 0 <= times[0] <= times[-1] <= hours * 3600 + 0.001
    assert workload == generate(family, jobs=jobs, hours=hours, seed=seed)


def test_the_sharing_workload_is_of_small_jobs_and_lasts_as_long_as_was_drawn() -> None:
    workload = generate("sharing", jobs=4_000, seed=1)
    assert set(workload.models) == set(SIZE_CLASS_OF) - {"gpt"}
    large = [job for job in workload.jobs if job.gpu_count > 4]
    assert {job.gpu_count for job in workload.jobs} == {1, 2, 4, 8, 16}
    assert len(large) / 4_000 == pytest.approx(0.12, abs=0.02)
    seconds = [job.work_scale * solo_seconds(job.model, job.gpu_count) for job in workload.jobs]
    assert min(seconds) == pytest.approx(60.0)
    assert max(seconds) == pytest.approx(12 * 3600.0)
    assert len(generate("sharing")) == 240


def test_the_synergy_workload_has_philly_s_one_gpu_jobs_and_lengths_of_two_kinds() -> None:
    workload = generate("synergy", jobs=4_000, seed=1)
    alone = sum(job.gpu_count == 1 for job in workload.jobs) / 4_000
    assert 0.8 < alone < 0.85
    seconds = iteration_times().seconds
    minutes = np.array([job.work_scale * seconds[job.model] / 60 for job in workload.jobs])
    assert (minutes > 1_000).mean() == pytest.approx(0.2, abs=0.02)
    assert 10**1.5 * 0.99 < minutes.min() < minutes.max() < 10_000 * 1.01
    assert {job.model for job in workload.jobs} == set(seconds)


def test_another_rate_of_the_synergy_workload_keeps_its_jobs_and_changes_the_time() -> None:
    assert size_at("synergy", jobs=None, hours=None, jobs_per_hour=10) == (4_000, 400.0)
    assert size_at("synergy", jobs=3_000, hours=None, jobs_per_hour=4) == (3_000, 750.0)
    assert size_at("sharing", jobs=None, hours=None, jobs_per_hour=60) == (480, 8.0)
    with pytest.raises(ParameterError, match="jobs_per_hour: says how many jobs there are"):
        size_at("sharing", jobs=240, hours=None, jobs_per_hour=60)


def test_a_share_of_the_jobs_is_of_the_xxl_class() -> None:
    workload = generate("helios", jobs=1_000, seed=1, xxl_share=0.1)
    many = [job for job in workload.jobs if SIZE_CLASS_OF[job.model] is SizeClass.XXL]
    assert len(many) == pytest.approx(100, abs=30)
    assert {job.gpu_count for job in many} == {8, 16}
    assert generate("helios", xxl_share=0.0) == generate("helios")
    assert generate("philly", jobs=5, xxl_share=1.0).models == {"gpt"}


@pytest.mark.parametrize(
    ("family", "given", "says"),
    [
        ("philly", {"xxl_share": 1.5}, "xxl_share: is no share from 0 to 1"),
        ("philly", {"xxl_share": math.nan}, "xxl_share: is no share from 0 to 1"),
        ("sharing", {"xxl_share": 0.1}, "xxl_share: has no effect on the family sharing"),
        ("synergy", {"models": {"bert": 1}}, "models: has no effect on the family synergy"),
        ("sharing", {"jobs": 0}, "jobs: is no whole number from 1"),
        ("synergy", {"hours": 0}, "hours: is no number above 0"),
    ],
)
def test_what_a_family_has_no_use_for_is_refused(
    family: str, given: dict[str, Any], says: str
) -> None:
    with pytest.raises(ParameterError, match=re.escape(says)):
        generate(family, **given)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_generated_workload_can_be_written_and_read_again(family: str) -> None:
    workload = generate(family, jobs=100, seed=2)
    assert (
        read_workload(write_workload(workload), known_models=load_catalog()).jobs == workload.jobs
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_every_request_is_one_that_the_model_can_run(family: str) -> None:
    catalog = load_catalog()
    assert set(FAMILIES[family].models) <= set(catalog)
    for name, requests in FAMILIES[family].requests.items():
        for request in requests:
            asked = JobDeclaration(
                model=name, gpu_count=request.gpu_count, batch_size=request.batch_size
            )
            spec = catalog[name].job_spec(asked, id="j", submitted_at=0.0)
            assert spec.batch_size == request.batch_size


def test_an_unknown_family_is_refused_naming_those_there_are() -> None:
    with pytest.raises(UnknownNameError) as caught:
        generate("borg")
    assert "philly, helios, newtrace" in caught.value.remedy


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"jobs": 0}, "jobs"),
        ({"jobs": -1}, "jobs"),
        ({"jobs": 200_001}, "jobs"),
        ({"jobs": 1.5}, "jobs"),
        ({"jobs": True}, "jobs"),
        ({"hours": 0}, "hours"),
        ({"hours": math.nan}, "hours"),
        ({"hours": math.inf}, "hours"),
        ({"hours": 1e6}, "hours"),
        ({"seed": -1}, "seed"),
        ({"work_scale": 0.0}, "work_scale"),
        ({"models": {"vgg19": 1.0}}, "models"),
        ({"models": {}}, "models"),
        ({"models": {"bert": 0.0}}, "models"),
        ({"models": {"bert": -1.0}}, "models[bert]"),
        ({"models": {"bert": math.nan}}, "models[bert]"),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_its_name(options: dict, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        generate("philly", **options)
    assert caught.value.field == field
