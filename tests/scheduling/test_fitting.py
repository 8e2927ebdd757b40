"""Fitting throughput models.

The published simulator's fits, the analytic gradient, and the priors for what was not measured.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maat.scheduling.arrays import FloatArray
from maat.scheduling.fitting import (
    ACROSS_OVER_WITHIN,
    FitSearch,
    Sample,
    SampleError,
    fit_throughput,
    weight_of_mean,
)
from maat.scheduling.fitting.loss import LOWER, UPPER, FitLoss
from maat.scheduling.throughput import NEGLIGIBLE_SECONDS, step_seconds, sync_seconds

ANCHORS = json.loads(
    (Path(__file__).parent.parent / "data" / "sia_anchors.json").read_text(encoding="utf-8")
)["fit"]


def predicted(parameters: FloatArray, samples: list[Sample]) -> FloatArray:
    nodes, replicas, batch = (np.array([float(s[i]) for s in samples]) for i in range(3))
    return step_seconds(parameters, batch, node_count=nodes, replica_count=replicas)


@pytest.mark.parametrize(
    "anchor", ANCHORS, ids=lambda row: f"{row[0]}-{row[1]}-{len(row[2])}-samples"
)
def test_a_fit_predicts_the_step_times_of_the_published_simulators_fit(
    anchor: tuple[str, str, list[list[float]], list[float]],
) -> None:
    samples = [Sample(int(n), int(k), int(m), step, sync) for n, k, m, step, sync in anchor[2]]
    ours, theirs = fit_throughput(samples, search=FitSearch.PUBLISHED), np.array(anchor[3])
    assert predicted(ours, samples) == pytest.approx(predicted(theirs, samples), rel=0.01)


sample_lists = st.lists(
    st.builds(
        Sample,
        node_count=st.integers(1, 3),
        replica_count=st.integers(1, 16),
        per_gpu_batch_size=st.integers(1, 512),
        step_seconds=st.floats(0.02, 5.0),
        sync_seconds=st.floats(0.0, 0.01),
        weight=st.floats(0.01, 1.0),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize(
    "anchor",
    [a for a in ANCHORS if len(a[2]) > 1],
    ids=lambda row: f"{row[0]}-{row[1]}-{len(row[2])}-samples",
)
def test_a_fit_ends_where_the_published_simulators_ends(
    anchor: tuple[str, str, list[list[float]], list[float]],
) -> None:
    # The search ends early, so its path decides the result, and a few per mille decide the batch
    # size of a job.
    samples = [Sample(int(n), int(k), int(m), step, sync) for n, k, m, step, sync in anchor[2]]
    ours = fit_throughput(
        samples, across_over_within=ACROSS_OVER_WITHIN, search=FitSearch.PUBLISHED
    )
    assert ours == pytest.approx(np.array(anchor[3]), rel=1e-5, abs=1e-12)


interior = st.tuples(*[st.floats(1e-3, 1.0)] * 6, st.floats(1.05, 9.0)).map(np.array)


@settings(max_examples=60)
@given(parameters=interior, samples=sample_lists)
def test_the_analytic_gradient_is_that_of_the_loss(
    parameters: FloatArray, samples: list[Sample]
) -> None:
    loss = FitLoss(samples)
    _, gradient = loss(parameters)
    for i in range(7):
        # The error of central differences is the square of the step, relative to the loss's terms.
        step = 1e-6 * parameters[i]
        above, below = parameters.copy(), parameters.copy()
        above[i] += step
        below[i] -= step
        slope = (loss(above)[0] - loss(below)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, rel=2e-4, abs=2e-8 / step + 1e-7)


@settings(max_examples=30)
@given(samples=sample_lists, search=st.sampled_from(FitSearch))
def test_a_fit_is_within_its_bounds(samples: list[Sample], search: FitSearch) -> None:
    found = fit_throughput(samples, search=search)
    assert (found >= LOWER * (1 - 1e-9)).all()
    assert (found <= UPPER * (1 + 1e-9)).all()
    assert np.isfinite(predicted(found, samples)).all()


def test_samples_of_one_gpu_promise_perfect_scaling() -> None:
    found = fit_throughput([Sample(1, 1, 32, 0.1, 0.0), Sample(1, 1, 64, 0.18, 0.0)])
    for nodes, replicas in ((1, 2), (1, 8), (4, 16)):
        assert float(sync_seconds(found, np.asarray(nodes), np.asarray(replicas))) < 1e-6


def test_without_samples_across_nodes_crossing_costs_nothing_or_a_tenth_more_than_within() -> None:
    samples = [Sample(1, 1, 32, 0.1, 0.0), Sample(1, 2, 32, 0.15, 0.05), Sample(1, 4, 32, 0.2, 0.1)]
    found = fit_throughput(samples, across_over_within=ACROSS_OVER_WITHIN)
    assert found[2] == pytest.approx(1.1 * found[4])
    assert found[3] == pytest.approx(1.1 * found[5])
    paper = fit_throughput(samples)
    assert paper[2:4].tolist() == [NEGLIGIBLE_SECONDS] * 2, (
        "as the paper has it, a job is tried across nodes before that costs anything"
    )
    assert np.delete(paper, (2, 3)).tolist() == np.delete(found, (2, 3)).tolist()


def test_the_passes_of_one_gpu_are_recovered_from_its_step_times() -> None:
    samples = [Sample(1, 1, batch, 0.05 + 0.002 * batch, 0.0) for batch in (16, 32, 64, 128, 256)]
    assert predicted(fit_throughput(samples), samples) == pytest.approx(
        [s.step_seconds for s in samples], rel=0.01
    )


def test_no_samples_are_refused() -> None:
    with pytest.raises(SampleError, match="at least one sample"):
        fit_throughput([])


possible = Sample(1, 2, 32, 0.2, 0.05)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("step_seconds", math.nan, "Measure the step again"),
        ("step_seconds", 0.0, "Measure the step again"),
        ("step_seconds", -1.0, "Measure the step again"),
        ("step_seconds", math.inf, "Measure the step again"),
        ("sync_seconds", math.nan, "Give 0"),
        ("sync_seconds", -0.1, "Give 0"),
        ("sync_seconds", 0.3, "more than the whole step takes (0.2 s)"),
        ("replica_count", 0, "no count"),
        ("node_count", 0, "no count"),
        ("step_seconds", 1e-12, "no time that a step can take"),
        ("per_gpu_batch_size", 0, "no count"),
        ("weight", 0.0, "Give 1"),
        ("weight", math.nan, "Give 1"),
    ],
)
def test_a_sample_that_cannot_have_been_measured_is_refused_by_its_field(
    field: str, value: float, says: str
) -> None:
    with pytest.raises(SampleError) as refused:
        fit_throughput([possible, possible._replace(**{field: value})])
    assert (refused.value.field, refused.value.row) == (field, 2)
    assert says in str(refused.value)


def test_a_mean_of_few_or_scattered_steps_counts_less() -> None:
    many, few = weight_of_mean(10_000, 0.1, 0.02), weight_of_mean(3, 0.1, 0.02)
    assert weight_of_mean(100, 0.1, 0.2) < weight_of_mean(100, 0.1, 0.02) < many < 1
    assert weight_of_mean(1, 0.1, 0.0) < few < 0.5
    assert many > 0.99


def test_a_fit_follows_the_samples_that_are_known_best() -> None:
    # One line cannot go through all three: the doubtful one is passed by.
    line = [Sample(1, 1, 10, 0.2, 0.0), Sample(1, 1, 40, 0.5, 0.0)]
    odd = Sample(1, 1, 20, 0.6, 0.0)
    doubtful = odd._replace(weight=weight_of_mean(1, 0.6, 0.0))
    trusting, careful = fit_throughput([*line, odd]), fit_throughput([*line, doubtful])
    truth = np.array([each.step_seconds for each in line])
    error = [np.abs(predicted(fit, line) / truth - 1).max() for fit in (trusting, careful)]
    assert error[1] < error[0] / 2
