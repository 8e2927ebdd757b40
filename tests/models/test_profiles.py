"""Profile folders: what is read of them, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from maat.models.measurements import MeasuredModel, normalised_placement
from maat.models.profiles import read_profiles
from maat.scheduling.errors import ProfileError

PLACEMENTS = (
    "placement,local_bsz,step_time,sync_time\n"
    "1,32,0.5,0.01\n1,64,0.8,0.01\n2,32,0.6,0.1\n44,32,0.9,0.4\n"
)
SCALABILITY = (
    "num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,24,32,1.2,0.6\n6,24,57,1.5,0.6\n"
)
VALIDATION = "progress,iteration,metric,grad_sqr,grad_var\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A profiles folder with one model `m` on T4, two epochs at two batch sizes."""
    model = tmp_path / "m"
    model.mkdir()
    (model / "placements-aws.csv").write_text(PLACEMENTS)
    (model / "scalability-aws.csv").write_text(SCALABILITY)
    (model / "validation-32.csv").write_text(VALIDATION + "10,10,0.5,1.0,3.0\n20,20,0.6,1.0,3.0\n")
    (model / "validation-64.csv").write_text(VALIDATION + "11,6,0.5,1.0,3.0\n19,11,0.6,1.0,3.0\n")
    return tmp_path


def rewrite(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / "m" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def refusal(folder: Path) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        read_profiles(folder)
    return caught.value


def test_a_model_is_read_with_its_gpu_types_renamed(folder: Path) -> None:
    model = read_profiles(folder)["m"]
    assert list(model.steps) == ["t4"]
    batch, step, sync = model.steps["t4"].by_placement["1"]
    assert (batch.tolist(), step.tolist(), sync.tolist()) == ([32, 64], [0.5, 0.8], [0.01, 0.01])
    assert model.epochs.batch_sizes.tolist() == [32, 64]


def test_columns_are_found_by_name_whatever_their_order(folder: Path) -> None:
    before = read_profiles(folder)["m"].steps["t4"].points
    rows = [line.split(",") for line in PLACEMENTS.splitlines()]
    (folder / "m" / "placements-aws.csv").write_text(
        "".join(",".join(reversed(row)) + "\n" for row in rows)
    )
    assert np.array_equal(read_profiles(folder)["m"].steps["t4"].points, before)


def test_an_unknown_file_suffix_is_a_gpu_type_of_its_own(folder: Path) -> None:
    for kind in ("placements", "scalability"):
        (folder / "m" / f"{kind}-aws.csv").rename(folder / "m" / f"{kind}-h100.csv")
    assert list(read_profiles(folder)["m"].steps) == ["h100"]


def test_only_the_types_that_are_asked_for_are_read_and_all_where_none_of_them_was_measured(
    folder: Path,
) -> None:
    for kind in ("placements", "scalability"):
        text = (folder / "m" / f"{kind}-aws.csv").read_text()
        (folder / "m" / f"{kind}-rtx.csv").write_text(text)
    (folder / "m" / "placements-quad.csv").write_text("no profile")
    (folder / "m" / "scalability-quad.csv").write_text("no profile")
    assert list(read_profiles(folder, gpu_types=["t4", "a100"])["m"].steps) == ["t4"]
    assert list(read_profiles(folder, gpu_types=["t4", "rtx"])["m"].steps) == ["t4", "rtx"]
    with pytest.raises(ProfileError):
        read_profiles(folder, gpu_types=["a100"])


def test_steps_are_read_where_the_files_count_them(folder: Path) -> None:
    assert read_profiles(folder)["m"].epochs.steps.tolist() == [[10, 20], [6, 11]]
    for batch, rows in (
        (32, "10,0.5,1.0,3.0\n20,0.6,1.0,3.0\n"),
        (64, "11,0.5,1.0,3.0\n19,0.6,1.0,3.0\n"),
    ):
        (folder / "m" / f"validation-{batch}.csv").write_text(
            "progress,metric,grad_sqr,grad_var\n" + rows
        )
    foretold = read_profiles(folder)["m"].epochs
    assert foretold.measured_steps is None
    assert foretold.steps[1] == pytest.approx([11 / 1.6, 19 / 1.6])


def test_points_average_placements_of_equal_size_then_append_the_scalability_rows(
    folder: Path,
) -> None:
    rewrite(folder, "placements-aws.csv", "44,32,0.9,0.4\n", "13,32,1.0,0.2\n22,32,2.0,0.4\n")
    points = read_profiles(folder)["m"].steps["t4"].points
    assert points[:, :3].tolist() == [
        [1, 1, 32],
        [1, 1, 64],
        [1, 2, 32],
        [2, 4, 32],
        [6, 24, 32],
        [6, 24, 57],
    ]
    assert points[3, 3:] == pytest.approx([1.5, 0.3])


def test_an_epoch_ends_at_the_smallest_progress_over_all_batch_sizes(folder: Path) -> None:
    epochs = read_profiles(folder)["m"].epochs
    assert epochs.boundaries.tolist() == [10, 19]
    assert epochs.total_progress == 19


def test_a_shape_has_one_name_whatever_its_rotation_and_its_idle_nodes() -> None:
    assert normalised_placement("2103") == normalised_placement("0132") == "132"
    assert normalised_placement("123") != normalised_placement("132")


def test_measurements_cannot_be_changed_by_who_reads_them(folder: Path) -> None:
    model = read_profiles(folder)["m"]
    for array in (model.steps["t4"].points, model.epochs.progress):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("file", "old", "new", "field", "row"),
    [
        ("placements-aws.csv", "step_time", "seconds", "step_time", 1),
        ("placements-aws.csv", "1,64,0.8,0.01", "1,64,0,0.01", "step_time", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "1,64,-0.8,0.01", "step_time", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "1,64,nan,0.01", "step_time", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "1,64,inf,0.01", "step_time", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "1,64,0.8,-1", "sync_time", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "1,64,0.8,0.9", "sync_time", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "1,64.5,0.8,0.01", "local_bsz", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "1,0,0.8,0.01", "local_bsz", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "4x4,64,0.8,0.01", "placement", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "00,64,0.8,0.01", "placement", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "1,32,0.8,0.01", "placement", 3),
        ("placements-aws.csv", "1,64,0.8,0.01", "1,64,0.8", "line", 3),
        ("scalability-aws.csv", "6,24,57,1.5,0.6", "25,24,57,1.5,0.6", "num_nodes", 3),
        ("scalability-aws.csv", "6,24,57,1.5,0.6", "6,0,57,1.5,0.6", "num_replicas", 3),
        ("validation-64.csv", "19,11", "11,11", "progress", 3),
        ("validation-64.csv", "19,11", "nan,11", "progress", 3),
        ("validation-64.csv", "19,11,0.6,1.0,3.0", "19,11,0.6,-1.0,3.0", "grad_sqr", 3),
        ("validation-64.csv", "grad_var", "variance", "grad_var", 1),
    ],
)
def test_a_bad_cell_is_refused_by_file_row_field_and_value(
    folder: Path, file: str, old: str, new: str, field: str, row: int
) -> None:
    rewrite(folder, file, old, new)
    error = refusal(folder)
    assert str(error.source).endswith(f"m/{file}")
    assert (error.field, error.row) == (field, row)
    assert error.remedy


def test_a_missing_validation_file_is_refused(folder: Path) -> None:
    (folder / "m" / "validation-64.csv").unlink()
    assert "validation" in refusal(folder).field


def test_a_missing_half_of_a_gpu_type_is_refused(folder: Path) -> None:
    (folder / "m" / "scalability-aws.csv").unlink()
    assert "scalability-aws.csv" in str(refusal(folder).source)


def test_epochs_that_differ_between_batch_sizes_are_refused(folder: Path) -> None:
    rewrite(folder, "validation-64.csv", "19,11,0.6,1.0,3.0\n", "")
    assert refusal(folder).field == "rows"


def test_a_validation_file_without_a_batch_size_in_its_name_is_refused(folder: Path) -> None:
    (folder / "m" / "validation-64.csv").rename(folder / "m" / "validation-big.csv")
    assert "validation-big.csv" in str(refusal(folder))


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0",
        b"placement,local_bsz\n\xff\xfe\n",
        b"",
        b"placement,local_bsz,step_time,sync_time\n",
    ],
)
def test_a_file_that_is_no_table_is_refused(folder: Path, content: bytes) -> None:
    (folder / "m" / "placements-aws.csv").write_bytes(content)
    assert str(refusal(folder).source).endswith("placements-aws.csv")


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_folder_without_models_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / name).field == "profiles"


# --- the published profiles ---


@pytest.fixture(scope="module")
def published(data_folder: Path) -> Mapping[str, MeasuredModel]:
    return read_profiles(data_folder / "sia-artifact" / "profiles")


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("name", "batch_sizes", "epochs", "total_progress"),
    [
        ("cifar10", (128, 4096), 100, 39062.90816659533),
        ("deepspeech2", (20, 640), 80, 28536.0),
        ("bert", (12, 384), 2, 14774.0),
        ("yolov3", (8, 512), 50, 103443.97796253164),
        ("imagenet", (200, 12800), 90, 576525.594895604),
    ],
)
def test_published_models_have_the_published_simulator_s_training_length(
    published: Mapping[str, MeasuredModel],
    name: str,
    batch_sizes: tuple[int, int],
    epochs: int,
    total_progress: float,
) -> None:
    table = published[name].epochs
    assert (table.initial_batch_size, table.max_batch_size) == batch_sizes
    assert table.epoch_count == epochs
    assert table.total_progress == pytest.approx(total_progress, rel=1e-9)


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("name", "gpu_type", "samples_per_second"),
    [
        ("cifar10", "t4", 1458.497218901385),
        ("bert", "a100", 140.44154119115825),
        ("deepspeech2", "rtx", 52.51220774465864),
    ],
)
def test_published_models_have_the_published_simulator_s_one_gpu_speed(
    published: Mapping[str, MeasuredModel], name: str, gpu_type: str, samples_per_second: float
) -> None:
    assert published[name].steps[gpu_type].one_replica_reference == pytest.approx(
        samples_per_second, rel=1e-9
    )


@pytest.mark.needs_data
def test_a_pipeline_s_step_is_gpipe_s_schedule_of_48_micro_batches_and_then_synchronisation(
    published: Mapping[str, MeasuredModel],
) -> None:
    gpt = published["gpt"]
    a100, rtx = gpt.steps["a100"], gpt.steps["rtx"]
    assert (a100.gpus_per_replica, rtx.gpus_per_replica) == (2, 8)
    batch, step, sync = a100.by_placement["2"]
    assert batch.tolist() == [48, 96]
    assert step[0] == pytest.approx(3 * (2 - 1 + 48) * 0.144 + 0.01617)
    assert sync[0] == pytest.approx(0.01617)
    assert rtx.by_placement["8"][1][0] == pytest.approx(3 * (8 - 1 + 48) * 0.099 + 0.3275)


@pytest.mark.needs_data
def test_training_that_starts_at_a_larger_batch_takes_as_many_steps_as_were_counted_at_that_batch(
    published: Mapping[str, MeasuredModel], data_folder: Path
) -> None:
    later = published["bert"].epochs.starting_at(48)
    lines = (
        (data_folder / "sia-artifact" / "profiles" / "bert" / "validation-48.csv")
        .read_text()
        .splitlines()
    )
    counted = float(lines[-1].split(",")[lines[0].split(",").index("iteration")])
    assert later.initial_batch_size == 48
    assert later.progress[0, -1] == pytest.approx(counted, rel=0.02)
