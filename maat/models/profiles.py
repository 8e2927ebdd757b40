"""Reads measured profile folders: step times and gradient statistics.

A folder holds one folder per model; in it, per GPU type, `placements-<type>.csv` and
`scalability-<type>.csv`, and per total batch size `validation-<batch>.csv`. Every doubtful cell is
refused by name: a silently wrong profile would make every later figure wrong. The files may also be
given as texts, by names such as `bert/placements-aws.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maat.csv_input import CsvInput, Row
from maat.models.measurements import (
    EpochTable,
    MeasuredModel,
    StepTable,
    frozen,
    normalised_placement,
)
from maat.models.profile_files import ProfileFolder, folders_in_texts, read_rows
from maat.scheduling.arrays import FloatArray
from maat.scheduling.errors import ProfileError

GPU_TYPE_BY_SUFFIX: Mapping[str, str] = {
    "aws": "t4",
    "rtx": "rtx",
    "dgx-ext": "a100",
    "quad": "quad",
    "azure": "v100",
}
MODEL_BY_FOLDER: Mapping[str, str] = {"gpt_pmp": "gpt"}

MAX_NODES = 64
_STEP_COLUMNS = ("local_bsz", "step_time", "sync_time")
_EPOCH_COLUMNS = ("progress", "grad_sqr", "grad_var")
_PLACEMENT = re.compile(rf"[0-9]{{1,{MAX_NODES}}}")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How to read a pipeline-parallel model's profile.

    Its step column is the forward time of one stage on one micro-batch; its synchronisation is not
    part of that, so it is often larger. A replica spans one GPU per stage and runs `micro_batches`
    per pass by GPipe's schedule (Sia section 5.3); backward takes `backward_over_forward` times as
    long as forward.
    """

    stages: Mapping[str, int]
    micro_batches: int
    backward_over_forward: float


PIPELINES: Mapping[str, Pipeline] = {
    "gpt_pmp": Pipeline(stages={"a100": 2, "rtx": 8}, micro_batches=48, backward_over_forward=2.0)
}


def read_profiles(
    folder: Path, *, gpu_types: Collection[str] | None = None
) -> Mapping[str, MeasuredModel]:
    """Return every model in a profiles folder, by Maat's names.

    `gpu_types`: read step times only of these; of a model that was measured on none of them, all.
    Raises ProfileError naming file, row, field, value and remedy.
    """
    if not folder.is_dir():
        raise ProfileError(
            "is no folder",
            field="profiles",
            value=str(folder),
            remedy="Give the folder that holds one folder per model.",
        )
    folders = (ProfileFolder.at(child) for child in sorted(folder.iterdir()) if child.is_dir())
    models = [_read_model(each, gpu_types) for each in folders if each.files]
    if not models:
        raise ProfileError(
            "holds no folder with CSV files",
            field="profiles",
            value=str(folder),
            remedy="Give the folder that holds one folder per model.",
        )
    return {model.name: model for model in models}


def read_profile_texts(
    texts: Mapping[str, str], *, gpu_types: Collection[str] | None = None
) -> Mapping[str, MeasuredModel]:
    """Return every model in the texts of profile files, by Maat's names.

    `texts`: by names such as `bert/placements-aws.csv` or `bert-placements-aws.csv`; folders before
    that of the model do not count. Raises ProfileError naming file, row, field, value and remedy.
    """
    models: dict[str, MeasuredModel] = {}
    for folder in folders_in_texts(texts):
        measured = _read_model(folder, gpu_types)
        if measured.name in models:
            raise ProfileError(
                f"stands for {measured.name}, which has a folder of its own",
                field="file",
                value=folder.name,
                remedy="Keep one of the two folders.",
            )
        models[measured.name] = measured
    return models


def _read_model(folder: ProfileFolder, gpu_types: Collection[str] | None) -> MeasuredModel:
    suffixes = sorted({*folder.parts_of("placements"), *folder.parts_of("scalability")})
    if not suffixes:
        raise ProfileError(
            "is missing",
            field="placements-<type>.csv",
            source=folder.shown,
            remedy="Add step times of at least one GPU type.",
        )
    suffix_of = {GPU_TYPE_BY_SUFFIX.get(suffix, suffix): suffix for suffix in suffixes}
    wanted = (
        suffix_of
        if gpu_types is None
        else {t: suffix_of[t] for t in suffix_of if t in gpu_types} or suffix_of
    )
    steps = {gpu_type: _read_steps(folder, suffix) for gpu_type, suffix in wanted.items()}
    epochs = _read_epochs(folder)
    if folder.name in PIPELINES:
        epochs = epochs.starting_at(PIPELINES[folder.name].micro_batches)
    return MeasuredModel(MODEL_BY_FOLDER.get(folder.name, folder.name), steps, epochs)


# --- step times ---


class _Measurement(NamedTuple):
    """One row of a step-time file, and where it is."""

    row: Row
    placement: str
    node_count: int
    gpu_count: int
    per_gpu_batch: float
    step_seconds: float
    sync_seconds: float


def _read_steps(folder: ProfileFolder, suffix: str) -> StepTable:
    pipeline = PIPELINES.get(folder.name)
    gpu_type = GPU_TYPE_BY_SUFFIX.get(suffix, suffix)
    stages = _stages(folder, gpu_type, pipeline)
    measure = _plain_times if pipeline is None else _pipeline_times(pipeline, stages)
    placements = _read_measurements(
        folder.table(f"placements-{suffix}.csv"),
        ("placement", *_STEP_COLUMNS),
        _by_digits,
        measure,
    )
    scalability = _read_measurements(
        folder.table(f"scalability-{suffix}.csv"),
        ("num_nodes", "num_replicas", *_STEP_COLUMNS),
        _by_counts,
        measure,
    )
    beyond = _as_points(scalability)
    return StepTable(
        by_placement=_by_placement(placements),
        points=frozen(np.concatenate((_averaged(_as_points(placements)), beyond))),
        scalability=frozen(beyond),
        gpus_per_replica=stages,
    )


def _stages(folder: ProfileFolder, gpu_type: str, pipeline: Pipeline | None) -> int:
    if pipeline is None:
        return 1
    if gpu_type not in pipeline.stages:
        raise ProfileError(
            "has no known number of pipeline stages",
            field="gpu_type",
            value=gpu_type,
            source=folder.shown,
            remedy=f"Known are {', '.join(pipeline.stages)}; remove the files of the others.",
        )
    return pipeline.stages[gpu_type]


_Place = Callable[[Row], tuple[str, int, int]]
_Times = Callable[[Row], tuple[float, float, float]]


def _read_measurements(
    table: CsvInput, columns: Sequence[str], place: _Place, times: _Times
) -> list[_Measurement]:
    return [_Measurement(row, *place(row), *times(row)) for row in read_rows(table, columns)]


def _by_digits(row: Row) -> tuple[str, int, int]:
    text = row.cells["placement"]
    key, node_count, gpu_count = _digits(text)
    if not key:
        raise row.blame(
            "is no placement",
            field="placement",
            value=text,
            row=row.line,
            remedy="Write one digit per node, the GPUs used on it: 44 is two nodes of four.",
        )
    return key, node_count, gpu_count


@lru_cache(maxsize=4096)
def _digits(text: str) -> tuple[str, int, int]:
    """Return a placement's normalised digits, nodes and GPUs.

    No digits if the text is no placement. Cached, as many rows have the same.
    """
    key = normalised_placement(text) if _PLACEMENT.fullmatch(text) else ""
    return key, len(key), sum(map(int, key))


def _by_counts(row: Row) -> tuple[str, int, int]:
    gpus = row.whole_number("num_replicas")
    return "", row.whole_number("num_nodes", maximum=gpus), gpus


def _plain_times(row: Row) -> tuple[float, float, float]:
    """Return per-GPU batch, step and sync seconds.

    A step contains its synchronisation, so it cannot be shorter.
    """
    batch = row.whole_number("local_bsz")
    step, sync = row.number("step_time", above=0.0), row.number("sync_time", minimum=0.0)
    if sync >= step:
        raise row.blame(
            "is not below step_time, which contains it",
            field="sync_time",
            value=row.cells["sync_time"],
            row=row.line,
            remedy="Measure again, or remove the row.",
        )
    return batch, step, sync


def _pipeline_times(pipeline: Pipeline, stages: int) -> _Times:
    def times(row: Row) -> tuple[float, float, float]:
        """Return the batch of one replica, its step and sync seconds.

        A step is (stages - 1 + micro-batches) slots of forward and backward, then synchronisation.
        """
        batch = row.whole_number("local_bsz") * pipeline.micro_batches
        forward, sync = row.number("step_time", above=0.0), row.number("sync_time", minimum=0.0)
        slots = stages - 1 + pipeline.micro_batches
        return batch, (1.0 + pipeline.backward_over_forward) * slots * forward + sync, sync

    return times


def _as_points(measurements: Sequence[_Measurement]) -> FloatArray:
    return np.array(
        [
            (m.node_count, m.gpu_count, m.per_gpu_batch, m.step_seconds, m.sync_seconds)
            for m in measurements
        ],
        dtype=np.float64,
    )


def _averaged(points: FloatArray) -> FloatArray:
    """Return means over rows of equal (nodes, GPUs, batch), in ascending order."""
    keys, group = np.unique(points[:, :3], axis=0, return_inverse=True)
    counts = np.bincount(group)
    means = np.stack(
        [np.bincount(group, weights=points[:, column]) / counts for column in (3, 4)], axis=1
    )
    return np.concatenate((keys, means), axis=1)


def _by_placement(
    measurements: Sequence[_Measurement],
) -> Mapping[str, tuple[FloatArray, FloatArray, FloatArray]]:
    groups: dict[str, dict[float, _Measurement]] = {}
    for m in measurements:
        group = groups.setdefault(m.placement, {})
        if m.per_gpu_batch in group:
            raise m.row.blame(
                f"was measured twice (also in row {group[m.per_gpu_batch].row.line}) "
                f"at local_bsz {m.row.cells['local_bsz']}",
                field="placement",
                value=m.row.cells["placement"],
                row=m.row.line,
                remedy="Keep one row, or their mean.",
            )
        group[m.per_gpu_batch] = m
    return {
        placement: _columns([group[batch] for batch in sorted(group)])
        for placement, group in groups.items()
    }


def _columns(rows: Sequence[_Measurement]) -> tuple[FloatArray, FloatArray, FloatArray]:
    return (
        frozen(np.array([m.per_gpu_batch for m in rows], dtype=np.float64)),
        frozen(np.array([m.step_seconds for m in rows])),
        frozen(np.array([m.sync_seconds for m in rows])),
    )


# --- epochs ---


def _read_epochs(folder: ProfileFolder) -> EpochTable:
    batches = sorted(_batch_size(folder, text) for text in folder.parts_of("validation"))
    files = [(batch, f"validation-{batch}.csv") for batch in batches]
    if len(files) < 2:
        raise ProfileError(
            "are needed at two batch sizes at least, the initial and the largest; "
            f"found {len(files)}",
            field="validation-<batch>.csv",
            source=folder.shown,
            remedy="Add the missing validation files.",
        )
    tables = [_read_epoch_file(folder.table(file)) for _, file in files]
    for (_, file), table in zip(files, tables, strict=True):
        if len(table) != len(tables[0]):
            raise ProfileError(
                f"differs from the {len(tables[0])} epochs of {files[0][1]}",
                field="rows",
                value=len(table),
                source=folder.path_of(file),
                remedy="Give every batch size the same number of epochs.",
            )
    progress, square, variance, steps = (
        frozen(np.stack([table[:, column] for table in tables])) for column in range(4)
    )
    batch_sizes = np.array([batch for batch, _ in files], dtype=np.int64)
    batch_sizes.setflags(write=False)
    return EpochTable(
        batch_sizes, progress, square, variance, None if np.isnan(steps).any() else steps
    )


def _batch_size(folder: ProfileFolder, text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise ProfileError(
            "names no batch size",
            field="file",
            value=f"validation-{text}.csv",
            source=folder.path_of(f"validation-{text}.csv"),
            remedy="Name it validation-<total batch size>.csv.",
        )
    return int(text)


def _read_epoch_file(table: CsvInput) -> FloatArray:
    """Return the statistics at the end of each epoch, shape (E, 4).

    Progress, squared gradient, gradient variance, optimiser steps (NaN if absent).
    """
    epochs: list[tuple[float, float, float, float]] = []
    reached = 0.0
    for row in read_rows(table, _EPOCH_COLUMNS):
        progress = row.number("progress")
        if progress <= reached:
            raise row.blame(
                f"does not grow beyond the {reached:g} of the epoch before",
                field="progress",
                value=row.cells["progress"],
                row=row.line,
                remedy="Progress counts up; sort the epochs or correct the row.",
            )
        reached = progress
        # The published deepspeech2 files hold squared gradients of exactly 0 if the estimate was
        # clipped: a very large noise scale.
        square, variance = row.number("grad_sqr", minimum=0.0), row.number("grad_var", minimum=0.0)
        epochs.append(
            (
                progress,
                square,
                variance,
                row.number("iteration", minimum=0.0) if "iteration" in row.cells else np.nan,
            )
        )
    return np.array(epochs, dtype=np.float64)
