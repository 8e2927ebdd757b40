"""What a job's declaration refuses, and what it says of itself."""

from __future__ import annotations

import math

import pytest
from scheduling.examples import belief, job, spec, type_belief

from maat.scheduling.belief import Belief, GradientStatistics, MemoisingFitter
from maat.scheduling.errors import JobError
from maat.scheduling.fitting import Sample
from maat.vocabulary import Adaptivity

RIGID = {"adaptivity": Adaptivity.RIGID, "batch_size": 64}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"work": -1.0},
            r"work: is not a finite number of at least zero \(got -1.0\). Give a number from 0 up.",
        ),
        ({"work": math.nan}, r"work: is not a finite number .* \(got nan\)"),
        ({"submitted_at": math.inf}, r"submitted_at: is not a finite number .* \(got inf\)"),
        ({"weight": 0.0}, r"weight: is not a finite number above zero \(got 0.0\)"),
        ({"weight": float("inf")}, r"weight: is not a finite number above zero \(got inf\)"),
        (
            {"min_gpus": 0},
            r"min_gpus: must be at least 1 \(got 0\). Give a whole number from 1 up.",
        ),
        ({"initial_batch_size": 0}, r"initial_batch_size: must be at least 1"),
        ({"batch_size": 0}, r"batch_size: must be at least 1"),
        ({"gpu_count": -2}, r"gpu_count: must be at least 1 \(got -2\)"),
        (
            {"max_batch_size": 31},
            r"max_batch_size: is below the initial batch size \(got 31\). Give at least 32.",
        ),
        (
            {"min_gpus": 4, "max_gpus": 2},
            r"max_gpus: is below min_gpus \(got 2\). Give at least 4, or leave it out.",
        ),
        (
            {"gpu_count": 2, "min_gpus": 4},
            r"gpu_count: is not between min_gpus and max_gpus \(got 2\). Give 4 to any number.",
        ),
        (
            {"gpu_count": 9, "max_gpus": 8},
            r"gpu_count: is not between min_gpus and max_gpus \(got 9\). Give 1 to 8.",
        ),
        (RIGID, r"gpu_count: is missing for a rigid job. Say how many GPUs it needs."),
        (
            {"adaptivity": Adaptivity.STRONG_SCALING},
            r"batch_size: is missing for a job of fixed batch size",
        ),
    ],
)
def test_a_job_that_could_never_run_is_refused_by_field_value_and_remedy(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(JobError, match=message):
        spec(**changes)


def test_what_a_job_asks_for_is_its_gpu_count_or_else_its_minimum() -> None:
    assert spec(gpu_count=3).requested_gpus == 3
    assert spec(min_gpus=2).requested_gpus == 2


def test_age_counts_from_submission_and_is_never_negative() -> None:
    waiting = job(spec(submitted_at=100.0))
    assert waiting.age_seconds(130.0) == 30.0
    assert waiting.age_seconds(90.0) == 0.0


def test_the_first_sample_of_a_kind_stays_and_nothing_new_changes_nothing() -> None:
    fitter = MemoisingFitter()
    once = Belief().with_samples("t4", [Sample(1, 1, 32, 0.1, 0.0)], fitter=fitter)
    again = once.with_samples("t4", [Sample(1, 1, 32, 9.9, 0.0)], fitter=fitter)
    assert again is once
    more = once.with_samples("t4", [Sample(1, 2, 32, 0.2, 0.1)], fitter=fitter)
    assert [s.step_seconds for s in more.by_type["t4"].samples] == [0.1, 0.2]
    assert once.by_type["t4"].samples == (Sample(1, 1, 32, 0.1, 0.0),), (
        "a belief is a fact: it does not change"
    )


def test_the_same_samples_are_fitted_once() -> None:
    fitter = MemoisingFitter()
    samples = (Sample(1, 1, 32, 0.1, 0.0), Sample(1, 1, 64, 0.2, 0.0))
    assert fitter(samples) is fitter(samples)


def test_noise_is_zero_until_gradients_were_measured() -> None:
    assert Belief().noise_scale(32) == 0.0
    assert Belief(gradient=GradientStatistics(2.0, 4.0)).noise_scale(32) == 64.0


def test_scaling_is_known_once_two_replicas_ran() -> None:
    assert not type_belief(0.1).knows_synchronisation
    assert belief(t4=0.1).by_type["t4"].knows_synchronisation
