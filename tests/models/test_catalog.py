"""Tests of the catalog that ships: complete, plausible, and true to the fitted measurements.

A broken catalog is refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maat.models.catalog import CatalogModel, load_catalog, parse_catalog, shipped_catalog
from maat.models.catalog_builder import CATALOG_FILE, build_catalog, main, table
from maat.models.catalog_fit import (
    Measurements,
    fit_measurements,
    measurements_of,
    noise_scale_curve,
)
from maat.models.measurements import EpochTable, MeasuredModel
from maat.models.profiles import read_profiles
from maat.scheduling.errors import JobError, ProfileError
from maat.scheduling.job import JobDeclaration, MemoryLimits
from maat.scheduling.throughput import pass_seconds, step_seconds
from maat.vocabulary import Adaptivity

DATA_PARALLEL = ("cifar10", "bert", "deepspeech2", "yolov3", "imagenet", "ncf")
GPU_TYPES = {"t4", "rtx", "a100", "quad", "v100"}


def test_the_catalog_covers_the_models_and_gpu_types_of_the_papers() -> None:
    catalog = load_catalog()
    assert set(catalog) == {*DATA_PARALLEL, "gpt"}
    assert all(set(catalog[name].gpu_types) == GPU_TYPES for name in DATA_PARALLEL)
    assert set(catalog["gpt"].gpu_types) == {"a100", "rtx"}
    assert set(shipped_catalog().gpu_types) == GPU_TYPES


def test_every_row_says_where_it_comes_from_and_how_far_off_it_is() -> None:
    for model in load_catalog().values():
        assert model.provenance
        for fit in model.fits.values():
            assert fit.provenance
            assert fit.fit_error is not None
            assert 0 <= fit.fit_error.median <= fit.fit_error.p95
            assert fit.points > 0


def test_the_catalog_is_small_enough_to_ship() -> None:
    assert CATALOG_FILE.stat().st_size < 150_000


def test_loading_the_catalog_needs_nothing_that_builds_it() -> None:
    heavy = (
        "pandas",
        "scipy.interpolate",
        "maat.models.catalog_builder",
        "maat.models.catalog_fit",
        "maat.models.profiles",
    )
    load = "import sys; from maat.models.catalog import load_catalog; load_catalog()"
    code = f"{load}; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


@pytest.mark.parametrize(
    ("name", "restart_seconds", "slowdown", "initial", "largest", "epochs", "total_progress"),
    [
        ("cifar10", 50, 1.8, 128, 4096, 100, 39062.90816659533),
        ("deepspeech2", 25, 1.2, 20, 640, 80, 28536.0),
        ("bert", 120, 1.2, 12, 384, 2, 14774.0),
        ("yolov3", 80, 1.2, 8, 512, 50, 103443.97796253164),
        ("imagenet", 250, 1.2, 200, 12800, 90, 576525.594895604),
    ],
)
def test_constants_are_those_of_the_published_simulator(
    name: str,
    restart_seconds: float,
    slowdown: float,
    initial: int,
    largest: int,
    epochs: int,
    total_progress: float,
) -> None:
    model = load_catalog()[name]
    assert (model.restart_seconds, model.slowdown) == (restart_seconds, slowdown)
    assert (model.initial_batch_size, model.max_batch_size, model.epochs) == (
        initial,
        largest,
        epochs,
    )
    assert model.work == pytest.approx(total_progress * initial, rel=1e-12)


def test_a_gpt_replica_spans_two_a100_or_eight_rtx() -> None:
    gpt = load_catalog()["gpt"]
    assert gpt.gpus_per_replica == {"a100": 2, "rtx": 8}
    assert gpt.memory_limits()["a100"] == MemoryLimits(48, 48)
    assert gpt.initial_batch_size == 48


def test_more_replicas_and_larger_batches_never_make_a_pass_faster() -> None:
    for model in load_catalog().values():
        for gpu_type, fit in model.fits.items():
            batch = np.linspace(fit.smallest_per_gpu_batch_size, fit.largest_per_gpu_batch_size, 9)
            assert (np.diff(pass_seconds(model.parameters[gpu_type], batch)) >= 0).all()
            replicas = np.arange(1.0, 17.0)
            seconds = step_seconds(
                model.parameters[gpu_type], batch[0], node_count=np.ones(16), replica_count=replicas
            )
            assert (np.diff(seconds) >= -1e-12).all(), (model.name, gpu_type)


def test_noise_grows_over_training_and_is_level_beyond_the_curve() -> None:
    for model in load_catalog().values():
        assert len(model.noise_scale_curve) <= 20
        assert model.noise_scale_at(1.0) > model.noise_scale_at(0.0) > 0
        assert model.noise_scale_at(-1.0) == model.noise_scale_curve[0][1]
        assert model.noise_scale_at(2.0) == model.noise_scale_curve[-1][1]
    (left, low), (right, high) = load_catalog()["bert"].noise_scale_curve
    assert load_catalog()["bert"].noise_scale_at((left + right) / 2) == pytest.approx(
        (low + high) / 2
    )


# --- jobs of a catalog model ---


def test_a_job_takes_the_model_s_work_limits_and_restart_seconds() -> None:
    bert = load_catalog()["bert"]
    asked = JobDeclaration(name="mine", model="bert", work_scale=0.5)
    spec = bert.job_spec(asked, id="job_1", submitted_at=5.0, owner="ann", tenant="lab")
    assert (spec.id, spec.model, spec.submitted_at, spec.owner, spec.tenant) == (
        "job_1",
        "bert",
        5.0,
        "ann",
        "lab",
    )
    assert spec.work == pytest.approx(bert.work / 2)
    assert (spec.initial_batch_size, spec.max_batch_size, spec.restart_seconds) == (12, 384, 120.0)
    assert spec.memory == bert.memory_limits()
    assert spec.adaptivity is Adaptivity.ADAPTIVE
    assert (
        load_catalog()["gpt"]
        .job_spec(JobDeclaration(model="gpt"), id="g", submitted_at=0.0)
        .replica_gpus("rtx")
        == 8
    )


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"work_scale": 0.0}, "work_scale"),
        ({"work_scale": float("nan")}, "work_scale"),
        ({"batch_size": 11}, "batch_size"),
        ({"batch_size": 385}, "batch_size"),
        ({"max_batch_size": 1000}, "max_batch_size"),
        ({"gpu_types": ("h100",)}, "gpu_types"),
        ({"gpu_types": ()}, "gpu_types"),
        ({"adaptivity": Adaptivity.RIGID, "batch_size": 12}, "gpu_count"),
        ({"adaptivity": Adaptivity.STRONG_SCALING}, "batch_size"),
        ({"submitted_at": float("nan")}, "submitted_at"),
    ],
)
def test_a_job_that_the_model_could_never_run_is_refused_by_field(
    options: dict[str, Any], field: str
) -> None:
    submitted_at = options.get("submitted_at", 0.0)
    asked = JobDeclaration(
        model="bert", **{name: value for name, value in options.items() if name != "submitted_at"}
    )
    with pytest.raises(JobError) as caught:
        load_catalog()["bert"].job_spec(asked, id="j", submitted_at=submitted_at)
    assert caught.value.field == field


def test_another_name_of_a_type_is_told_with_the_one_that_is_meant() -> None:
    asked = JobDeclaration(model="bert", gpu_types=("A100", "NVIDIA Tesla T4"))
    with pytest.raises(JobError, match="Write a100 or t4"):
        load_catalog()["bert"].job_spec(asked, id="j", submitted_at=0.0)


# --- a catalog that makes no sense ---


def _drop(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return change


def _set(value: object, *path: str | int) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


T4 = ("models", "bert", "fits", "t4")


@pytest.mark.parametrize(
    "change",
    [
        _set(2, "format"),
        _drop("models"),
        _drop("models", "bert", "work"),
        _set("much", "models", "bert", "work"),
        _set(-1.0, "models", "bert", "work"),
        _set(float("nan"), "models", "bert", "slowdown"),
        _set(1, "models", "bert", "surprise"),
        _set(1000, "models", "bert", "initial_batch_size"),
        _set([], "models", "bert", "noise_scale_curve"),
        _set([[0.7, 1.0], [0.2, 1.0]], "models", "bert", "noise_scale_curve"),
        _set([[0.2, -1.0]], "models", "bert", "noise_scale_curve"),
        _set({}, "models", "bert", "fits"),
        _set(0.0, *T4, "throughput_parameters", 1),
        _set(0.5, *T4, "throughput_parameters", 6),
        _set([1.0], *T4, "throughput_parameters"),
        _set(1, *T4, "largest_per_gpu_batch_size"),
        _set(0, *T4, "gpus_per_replica"),
        _set(None, *T4, "fit_error"),
        _drop("gpu_types", "t4"),
    ],
)
def test_a_catalog_that_makes_no_sense_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads(CATALOG_FILE.read_text())
    change(data)
    with pytest.raises(ProfileError) as caught:
        parse_catalog(json.dumps(data))
    assert caught.value.remedy


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "\0"])
def test_what_is_no_catalog_at_all_is_refused(text: str) -> None:
    with pytest.raises(ProfileError):
        parse_catalog(text)


# --- fitting ---

TRUE = np.array([0.05, 0.002, 0.2, 0.01, 0.04, 0.005, 1.6])


def measurements(nodes: list[int], replicas: list[int], *, noise: float = 0.0) -> Measurements:
    """Return step times of the parameters TRUE at six batch sizes per placement.

    Each is off by a factor of up to 1 +- noise.
    """
    batch = np.tile([8.0, 16, 32, 64, 128, 256], len(nodes))
    n, k = np.repeat(np.array(nodes, float), 6), np.repeat(np.array(replicas, float), 6)
    step = step_seconds(TRUE, batch, node_count=n, replica_count=k)
    step = step * (1 + noise * np.random.default_rng(0).uniform(-1, 1, len(batch)))
    return Measurements(n, k, k, batch, step, pass_seconds(TRUE, batch))


def test_a_fit_finds_step_times_that_the_model_can_express() -> None:
    fit = fit_measurements(measurements([1, 1, 1, 2, 4], [1, 2, 8, 16, 32]))
    assert fit.p95_error < 0.005
    assert fit.parameters.beta_compute == pytest.approx(0.002, rel=0.02)


def test_a_fit_s_errors_are_those_of_the_measurements_themselves() -> None:
    fit = fit_measurements(measurements([1, 1, 1, 2, 4], [1, 2, 8, 16, 32], noise=0.2))
    assert 0.05 < fit.median_error < 0.15


def test_what_was_not_measured_across_nodes_is_a_tenth_above_what_was_within() -> None:
    fit = fit_measurements(measurements([1, 1, 1], [1, 2, 4]))
    assert not fit.across_measured
    assert fit.parameters.alpha_across_nodes == pytest.approx(
        1.1 * fit.parameters.alpha_within_node
    )
    assert fit.parameters.beta_across_nodes == pytest.approx(1.1 * fit.parameters.beta_within_node)


def test_a_curve_of_agreeing_statistics_is_their_noise_scale() -> None:
    epochs = EpochTable(
        np.array([10, 40]),
        np.array([[5.0, 10.0], [5.0, 10.0]]),
        np.ones((2, 2)),
        np.array([[3.0, 9.0], [3.0, 9.0]]),
    )
    assert np.array(noise_scale_curve(epochs)) == pytest.approx(
        np.array([[0.25, 30.0], [0.75, 90.0]]), rel=1e-3
    )


# --- against the published measurements ---


@pytest.fixture(scope="module")
def published(data_folder: Path) -> Mapping[str, MeasuredModel]:
    return read_profiles(data_folder / "sia-artifact" / "profiles")


@pytest.mark.needs_data
def test_stated_fit_errors_are_the_errors_that_are_found(
    published: Mapping[str, MeasuredModel],
) -> None:
    for name, model in load_catalog().items():
        for gpu_type, fit in model.fits.items():
            measured = measurements_of(published[name].steps[gpu_type])
            seconds = step_seconds(
                fit.parameters,
                measured.per_gpu_batch,
                node_count=measured.node_count,
                replica_count=measured.replica_count,
            )
            error = np.abs(seconds / measured.step_seconds - 1)
            assert fit.fit_error is not None
            assert (np.median(error), np.quantile(error, 0.95)) == pytest.approx(
                (fit.fit_error.median, fit.fit_error.p95), rel=1e-3, abs=1e-6
            )


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("name", "gpu_type"), [("cifar10", "a100"), ("bert", "quad"), ("gpt", "a100")]
)
def test_fitting_again_predicts_the_same_step_times(
    published: Mapping[str, MeasuredModel], name: str, gpu_type: str
) -> None:
    assert_same_predictions(
        load_catalog()[name],
        gpu_type,
        np.array(fit_measurements(measurements_of(published[name].steps[gpu_type])).parameters),
    )


@pytest.mark.long
@pytest.mark.needs_data
def test_building_the_catalog_again_gives_the_one_that_ships(data_folder: Path) -> None:
    again = parse_catalog(build_catalog(data_folder / "sia-artifact" / "profiles"))
    assert again.gpu_types == shipped_catalog().gpu_types
    for name, model in load_catalog().items():
        rebuilt = again.models[name]
        assert (rebuilt.work, rebuilt.epochs, rebuilt.gpu_types) == (
            model.work,
            model.epochs,
            model.gpu_types,
        )
        assert np.array(rebuilt.noise_scale_curve) == pytest.approx(
            np.array(model.noise_scale_curve), rel=1e-3
        )
        for gpu_type in model.gpu_types:
            assert_same_predictions(model, gpu_type, rebuilt.parameters[gpu_type])


def assert_same_predictions(model: CatalogModel, gpu_type: str, parameters: np.ndarray) -> None:
    """Parameters may differ where the data does not tell them apart; what they predict may not."""
    fit = model.fits[gpu_type]
    batch = np.geomspace(fit.smallest_per_gpu_batch_size, fit.largest_per_gpu_batch_size, 5)[
        :, None
    ]
    nodes, replicas = np.array([1.0, 1, 1, 2, 3]), np.array([1.0, 2, 4, 8, 12])
    shipped, again = (
        step_seconds(p, batch, node_count=nodes, replica_count=replicas)
        for p in (fit.parameters, parameters)
    )
    assert again == pytest.approx(shipped, rel=0.02)


def test_the_documented_table_is_the_shipped_catalog_s() -> None:
    documented = Path(__file__).parents[2] / "docs" / "catalog.md"
    assert documented.read_text(encoding="utf-8") == table(shipped_catalog())


def test_the_builder_says_what_is_wrong_with_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "--output", str(tmp_path / "catalog.json")]) == 2
    assert "holds no folder" in capsys.readouterr().err
    assert not (tmp_path / "catalog.json").exists()
