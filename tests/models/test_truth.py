"""Tests of the true step times: against the published simulator, and fitted models by formula."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maat.models.measurements import EpochTable, MeasuredModel, StepTable
from maat.models.truth import FittedTruth, MeasuredTruth, StepTime, Truth, placement_digits
from maat.scheduling.belief import GradientStatistics
from maat.scheduling.errors import InputError
from maat.simulation.world_models import Model, catalog_models, measured_models

GPU_TYPES = {"aws": "t4", "rtx": "rtx", "dgx-ext": "a100"}
GAINS = json.loads(
    (Path(__file__).parent.parent / "data" / "sia_anchors.json").read_text(encoding="utf-8")
)["gain"]


@pytest.fixture(scope="module")
def anchors(data_folder: Path) -> Mapping[str, Any]:
    path = data_folder.parent / "reference" / "sia-anchors.json"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))["unit_anchors"]
    return found


@pytest.fixture(scope="module")
def measured(data_folder: Path) -> Mapping[str, Model]:
    return measured_models(data_folder / "sia-artifact" / "profiles")


def gain(gradient: GradientStatistics, scale: float) -> float:
    """Progress of a step at `scale` times the initial batch size (Pollux eq. 6 times the scale)."""
    return (gradient.variance + gradient.square) / (gradient.variance / scale + gradient.square)


# ---- against the published simulator


@pytest.mark.needs_data
def test_every_step_time_is_the_published_simulators(
    anchors: Mapping[str, Any], measured: Mapping[str, Model]
) -> None:
    # Where a placement was not measured itself, the reference interpolates over a triangulation
    # that is not unique, so a small difference would be right too. With the same library
    # underneath there is none.
    assert len(anchors["throughput"]) == 285
    for model, suffix, shape, batch, step_seconds, sync_seconds in anchors["throughput"]:
        found = measured[model].truth.step(GPU_TYPES[suffix], tuple(shape), batch)
        assert found.step_seconds == pytest.approx(step_seconds, rel=1e-6), (
            model,
            suffix,
            shape,
            batch,
        )
        assert found.sync_seconds == pytest.approx(sync_seconds, rel=1e-6, abs=1e-12), (
            model,
            suffix,
            shape,
            batch,
        )


@pytest.mark.needs_data
def test_every_gradient_is_the_published_simulators(measured: Mapping[str, Model]) -> None:
    assert len(GAINS) == 42
    for model, batch, epoch, square, variance, expected in GAINS:
        truth = measured[model].truth
        found = truth.gradient(epoch, batch)
        assert (found.square, found.variance) == pytest.approx((square, variance), rel=1e-9)
        assert gain(found, batch / truth.initial_batch_size) == pytest.approx(expected, rel=1e-9)


def best_rate(
    truth: Truth, gpu_type: str, shape: Sequence[int], epoch: int
) -> tuple[float, int, int, int]:
    """Return the best progress per second over sixty geometrically spaced batch sizes.

    With it come the total batch size, the batch size per GPU and the accumulation steps.
    """
    gpus, initial, largest = (
        sum(shape),
        truth.initial_batch_size,
        truth.largest_per_gpu(gpu_type, sum(shape)),
    )
    low = max(initial, truth.smallest_per_gpu(gpu_type) * gpus)
    best = (0.0, 0, 0, 0)
    for i in range(60):
        local = round(low * (truth.max_batch_size / low) ** (i / 59)) / gpus
        extra = max(
            math.ceil(local / largest - 1e-8) - 1, 1 if gpus == 1 and local > initial else 0
        )
        batch = min(
            math.ceil(local / (extra + 1) - 1e-8), truth.max_batch_size // (gpus * (extra + 1))
        )
        if truth.smallest_per_gpu(gpu_type) <= batch <= largest:
            total = gpus * batch * (extra + 1)
            seconds = (
                truth.step(gpu_type, tuple(shape), batch).with_accumulation(extra) * truth.slowdown
            )
            best = max(
                best,
                (
                    gain(truth.gradient(epoch, total), total / initial) / seconds,
                    total,
                    batch,
                    extra,
                ),
                key=lambda row: row[0],
            )
    return best


@pytest.mark.needs_data
def test_the_best_progress_in_every_configuration_is_the_published_simulators(
    anchors: Mapping[str, Any], measured: Mapping[str, Model]
) -> None:
    assert len(anchors["steady"]) == 190
    for model, suffix, shape, epoch, rate, total, per_gpu, extra in anchors["steady"]:
        found = best_rate(measured[model].truth, GPU_TYPES[suffix], shape, epoch)
        assert found[0] == pytest.approx(rate, rel=1e-9), (model, suffix, shape, epoch)
        assert found[1:] == (total, per_gpu, extra), (model, suffix, shape, epoch)


@pytest.mark.needs_data
def test_every_models_constants_are_the_published_simulators(
    anchors: Mapping[str, Any], measured: Mapping[str, Model]
) -> None:
    for name, expected in anchors["constants"].items():
        model, suffix = name.split("/")
        found, kind = measured[model], GPU_TYPES[suffix]
        truth = found.truth
        assert (truth.initial_batch_size, truth.max_batch_size) == (
            expected["init_batch"],
            expected["max_batch"],
        )
        assert len(truth.epoch_ends) == expected["epochs"]
        assert found.work / truth.initial_batch_size == pytest.approx(
            expected["total_progress"], rel=1e-9
        )
        assert found.restart_seconds == expected["restart_delay_s"]
        assert truth.slowdown == expected["slowdown"]
        assert found.memory[kind].smallest_per_gpu == expected["min_local"]
        assert found.reference_throughput[kind] == pytest.approx(
            expected["one_gpu_ref_throughput"], rel=1e-9
        )
        for shape, largest in expected["max_local_by_config"].items():
            assert truth.largest_per_gpu(kind, sum(map(int, shape.split("x")))) == largest, (
                name,
                shape,
            )


@pytest.mark.needs_data
def test_the_ratios_of_two_types_are_the_published_simulators(
    anchors: Mapping[str, Any], measured: Mapping[str, Model]
) -> None:
    for model, by_type in anchors["ratios"].items():
        reference = measured[model].reference_throughput
        for one, others in by_type.items():
            for other, ratio in others.items():
                assert reference[GPU_TYPES[one]] / reference[GPU_TYPES[other]] == pytest.approx(
                    ratio, rel=1e-9
                )


# ---- a model measured by hand


@pytest.fixture
def by_hand() -> MeasuredTruth:
    """One GPU and two at 10 and 20 samples, four on two nodes known from scalability alone."""
    placements = {
        "1": (np.array([10.0, 20.0]), np.array([1.0, 2.0]), np.array([0.0, 0.0])),
        "2": (np.array([10.0, 20.0]), np.array([1.2, 2.2]), np.array([0.2, 0.2])),
    }
    rows = [
        (1, 1, 10, 1.0, 0.0),
        (1, 1, 20, 2.0, 0.0),
        (1, 2, 10, 1.2, 0.2),
        (1, 2, 20, 2.2, 0.2),
        (2, 4, 10, 2.0, 0.8),
        (2, 4, 16, 3.0, 0.8),
    ]
    epochs = EpochTable(
        batch_sizes=np.array([10, 30]),
        progress=np.array([[100.0, 200.0], [90.0, 210.0]]),
        gradient_square=np.array([[1.0, 0.5], [3.0, 1.5]]),
        gradient_variance=np.array([[2.0, 4.0], [4.0, 8.0]]),
    )
    points = np.array(rows, dtype=float)
    model = MeasuredModel(
        "m",
        {"t4": StepTable(by_placement=placements, points=points, scalability=points[4:])},
        epochs,
    )
    return MeasuredTruth(model, smallest_per_gpu=10, slowdown=1.5)


def test_between_two_measured_batches_time_is_interpolated(by_hand: MeasuredTruth) -> None:
    assert by_hand.step("t4", (1,), 15) == StepTime(1.5, 0.0)
    assert by_hand.step("t4", (2,), 15).step_seconds == pytest.approx(1.7)


def test_accumulation_adds_passes_without_synchronisation() -> None:
    assert StepTime(1.7, 0.2).with_accumulation(2) == pytest.approx(1.7 + 2 * 1.5)


def test_a_placement_that_was_not_measured_is_interpolated_over_nodes_and_gpus(
    by_hand: MeasuredTruth,
) -> None:
    found = by_hand.step("t4", (2, 2), 13)
    assert found.step_seconds == pytest.approx(2.5)
    assert found.sync_seconds == pytest.approx(0.8)


def test_where_all_was_measured_on_one_node_nothing_is_guessed_for_two(
    by_hand: MeasuredTruth,
) -> None:
    table = by_hand.content()["model"].steps["t4"]  # type: ignore[index]
    one_node = replace(table, points=table.points[:4], scalability=table.points[:0])
    model = replace(by_hand.content()["model"], steps={"t4": one_node})  # type: ignore[index]
    with pytest.raises(InputError, match="was never measured for m on t4"):
        MeasuredTruth(model, smallest_per_gpu=10, slowdown=1.0).step("t4", (1, 1), 10)


def test_on_more_nodes_than_were_measured_a_step_is_that_on_the_most_that_were(
    by_hand: MeasuredTruth,
) -> None:
    measured = by_hand.step("t4", (2, 2), 13)
    assert by_hand.step("t4", (1, 1, 1, 1), 13) == measured
    assert by_hand.step("t4", (4, 4, 4), 13) == measured, "no more GPUs than were measured"


def test_beyond_the_measurements_nothing_is_guessed(by_hand: MeasuredTruth) -> None:
    with pytest.raises(
        InputError,
        match=(
            r"configuration: was never measured for m on t4 \(got '8 GPUs on 2 nodes at 10 samples "
            r"per GPU'\)"
        ),
    ):
        by_hand.step("t4", (4, 4), 10)


def test_an_epoch_ends_where_the_quickest_of_all_batch_sizes_ended_it(
    by_hand: MeasuredTruth,
) -> None:
    assert by_hand.epoch_ends == (900.0, 2000.0), "steps at the initial batch size x 10 samples"


def test_gradients_are_interpolated_between_batch_sizes_and_level_beyond(
    by_hand: MeasuredTruth,
) -> None:
    assert by_hand.gradient(0, 20) == GradientStatistics(2.0, 3.0)
    assert by_hand.gradient(1, 500) == GradientStatistics(1.5, 8.0)


def test_the_largest_batch_is_that_of_the_gpu_count_or_of_the_next_that_was_measured(
    by_hand: MeasuredTruth,
) -> None:
    assert [by_hand.largest_per_gpu("t4", n) for n in (1, 2, 3, 4, 9)] == [20, 20, 16, 16, 16]


def test_a_placement_is_named_by_its_smallest_rotation() -> None:
    assert placement_digits((4, 2, 1)) == "142"
    assert placement_digits((2, 0, 1)) == "12"
    assert placement_digits((8, 8)) == "88"
    assert placement_digits(()) == ""


# ---- a fitted model


@pytest.fixture
def fitted() -> FittedTruth:
    return FittedTruth(
        initial_batch_size=32,
        max_batch_size=1024,
        work=1000.0,
        epochs=4,
        parameters={"t4": np.array([0.1, 0.01, 0.4, 0.05, 0.2, 0.02, 1.0])},
        smallest_per_gpu={"t4": 4},
        largest_per_gpu={"t4": 64},
        gpus_per_replica={"t4": 2},
        noise_scale_curve=[(0.0, 32.0), (1.0, 320.0)],
        slowdown=1.0,
    )


def test_a_fitted_step_follows_the_model_and_counts_replicas(fitted: FittedTruth) -> None:
    assert fitted.step("t4", (2,), 10).step_seconds == pytest.approx(0.2)
    assert fitted.step("t4", (8,), 10).step_seconds == pytest.approx(0.2 + 0.2 + 0.02 * 2)
    across = fitted.step("t4", (8, 8), 10)
    assert across.step_seconds == pytest.approx(0.2 + 0.4 + 0.05 * 6)
    assert across.sync_seconds == pytest.approx(0.4 + 0.05 * 6)


def test_work_is_cut_into_equal_epochs_whose_noise_follows_the_curve(fitted: FittedTruth) -> None:
    assert fitted.epoch_ends == (250.0, 500.0, 750.0, 1000.0)
    noise = [fitted.gradient(epoch, 64) for epoch in range(4)]
    phi = [32 * g.variance / g.square for g in noise]
    assert phi == pytest.approx([32 + 288 * share for share in (0.125, 0.375, 0.625, 0.875)])


def test_every_model_of_the_catalog_trains_on_all_its_types() -> None:
    for name, model in catalog_models().items():
        truth = model.truth
        for kind in truth.gpu_types():
            unit = model.gpus_per_replica.get(kind, 1)
            step = truth.step(kind, (unit,), truth.largest_per_gpu(kind, unit))
            assert 0 <= step.sync_seconds <= step.step_seconds < 1000, (name, kind)
            assert model.reference_throughput[kind] > 0
