"""The truth of a job: step times, gradients, epochs.

Only the simulator reads it; a policy sees what was measured of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from maat.models.measurements import MeasuredModel, StepTable
from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import GradientStatistics
from maat.scheduling.errors import InputError, ProfileError
from maat.scheduling.throughput import pass_seconds, step_seconds

Value = TypeVar("Value")
Shape = tuple[int, ...]  # GPUs on each node of an allocation


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of a step without accumulation, and of its synchronisation alone."""

    step_seconds: float
    sync_seconds: float

    def with_accumulation(self, accumulation_steps: int) -> float:
        """Return the seconds of an optimiser step with that many extra passes.

        The extra passes have no synchronisation.
        """
        return self.step_seconds + accumulation_steps * (self.step_seconds - self.sync_seconds)


class Truth(Protocol):
    """One model. Progress is in effective samples; epochs are numbered from 0."""

    @property
    def initial_batch_size(self) -> int: ...
    @property
    def max_batch_size(self) -> int: ...
    @property
    def epoch_ends(self) -> Sequence[float]:
        """The effective samples done at the end of each epoch."""
        ...

    @property
    def slowdown(self) -> float:
        """Calibration: how much slower true progress is than the measured step times."""
        ...

    def gpu_types(self) -> Sequence[str]: ...
    def step(self, gpu_type: str, shape: Shape, per_gpu_batch_size: int) -> StepTime: ...
    def smallest_per_gpu(self, gpu_type: str) -> int: ...
    def largest_per_gpu(self, gpu_type: str, gpu_count: int) -> int: ...
    def slowest_step(self, gpu_type: str, gpu_count: int) -> float:
        """Return the longest known step on that many GPUs of one node, seconds."""
        ...

    def gradient(self, epoch: int, total_batch_size: int) -> GradientStatistics: ...
    def steps_after(self, epoch: int, total_batch_size: int) -> float:
        """Return the optimiser steps at that batch size after the end of an epoch."""
        ...


class _ByType(dict[str, Value]):
    """What was measured of a model, by GPU type; of another type it is an error that names it."""

    def __init__(self, model: str, values: Mapping[str, Value]) -> None:
        super().__init__(values)
        self._model = model

    def __missing__(self, gpu_type: str) -> Value:
        raise ProfileError(
            f"has no measurements of {self._model}",
            field="gpu_type",
            value=gpu_type,
            remedy=f"Measured are {', '.join(self)}: measure it there too.",
        )


class MeasuredTruth:
    """A model with measured step times and gradients.

    Interpolates between the measurements. On more nodes than were measured, a step takes as long as
    on the most that were: see `_on_measured_nodes`.
    """

    def __init__(self, model: MeasuredModel, *, smallest_per_gpu: int, slowdown: float) -> None:
        self._model = model
        self._smallest = smallest_per_gpu
        self.slowdown = slowdown
        epochs = model.epochs
        self.initial_batch_size = int(epochs.batch_sizes[0])
        self.max_batch_size = int(epochs.batch_sizes[-1])
        self.epoch_ends: tuple[float, ...] = tuple(
            (epochs.progress.min(axis=0) * self.initial_batch_size).tolist()
        )
        self._log: dict[tuple[str, Shape, int], StepTime] = {}
        self._gradients: dict[tuple[int, int], GradientStatistics] = {}
        self._surfaces: dict[str, _Surface] = {}
        self._steps = _ByType(model.name, model.steps)
        self._largest = _ByType(
            model.name, {t: _largest_by_count(table) for t, table in model.steps.items()}
        )
        self._batch_sizes = epochs.batch_sizes.astype(np.float64)

    def content(self) -> object:
        """Return what this truth was made from; it identifies the truth."""
        return {"model": self._model, "smallest": self._smallest, "slowdown": self.slowdown}

    def gpu_types(self) -> Sequence[str]:
        return tuple(self._model.steps)

    def step(self, gpu_type: str, shape: Shape, per_gpu_batch_size: int) -> StepTime:
        key = (gpu_type, shape, per_gpu_batch_size)
        found = self._log.get(key)
        if found is None:
            found = self._log[key] = self._measure(gpu_type, shape, per_gpu_batch_size)
        return found

    def smallest_per_gpu(self, gpu_type: str) -> int:
        return self._smallest

    def largest_per_gpu(self, gpu_type: str, gpu_count: int) -> int:
        """Return the largest batch measured on that many GPUs.

        If none was, on the next measured number.
        """
        by_count = self._largest[gpu_type]
        if gpu_count in by_count:
            return by_count[gpu_count]
        above = [count for count in by_count if count > gpu_count]
        return by_count[min(above) if above else max(by_count)]

    def slowest_step(self, gpu_type: str, gpu_count: int) -> float:
        points = self._steps[gpu_type].points
        return float(points[(points[:, 0] == 1) & (points[:, 1] == gpu_count), 3].max())

    def gradient(self, epoch: int, total_batch_size: int) -> GradientStatistics:
        found = self._gradients.get((epoch, total_batch_size))
        if found is None:
            found = self._gradients[epoch, total_batch_size] = self._interpolated(
                epoch, total_batch_size
            )
        return found

    def _interpolated(self, epoch: int, total_batch_size: int) -> GradientStatistics:
        table = self._model.epochs
        at = float(total_batch_size)
        square = float(np.interp(at, self._batch_sizes, table.gradient_square[:, epoch]))
        variance = float(np.interp(at, self._batch_sizes, table.gradient_variance[:, epoch]))
        return GradientStatistics(square, variance)

    def steps_after(self, epoch: int, total_batch_size: int) -> float:
        steps = self._model.epochs.steps
        at = float(total_batch_size)
        return float(
            np.interp(at, self._batch_sizes, steps[:, -1])
            - np.interp(at, self._batch_sizes, steps[:, epoch])
        )

    def _measure(self, gpu_type: str, given: Shape, batch: int) -> StepTime:
        table = self._steps[gpu_type]
        shape = _on_measured_nodes(given, table)
        rows = table.by_placement.get(placement_digits(shape))
        if rows is not None:
            batches, step, sync = rows
            if batches[0] <= batch <= batches[-1]:
                return StepTime(
                    float(np.interp(batch, batches, step)), float(np.interp(batch, batches, sync))
                )
        surface = self._surfaces.get(gpu_type)
        if surface is None:
            surface = self._surfaces[gpu_type] = _Surface(table)
        found = surface.at(len(shape), sum(shape), batch)
        if found is None:
            raise InputError(
                f"was never measured for {self._model.name} on {gpu_type}",
                field="configuration",
                value=f"{sum(given)} GPUs on {len(given)} nodes at {batch} samples per GPU",
                remedy="Use profiles that cover it, or the catalog's fitted models.",
            )
        return found


def _on_measured_nodes(shape: Shape, table: StepTable) -> Shape:
    """Return a shape on more nodes than were measured as one on the most that were.

    The published simulator does so on large clusters (cluster.py of the Sia artifact): it spreads
    the GPUs evenly over the nodes that it has profiles of. It offers no job more GPUs of a type
    than were measured, and neither does Maat (`JobSpec.most_gpus_by_type`); a job that asks for
    more by itself has the step times of the most that were measured. Where all was measured on one
    node, nothing is known of the network, and the shape stays as it is.
    """
    nodes = table.most_nodes
    if len(shape) <= nodes or nodes == 1:
        return shape
    left = min(sum(shape), table.most_gpus)
    on_each = -(-left // nodes)
    return tuple(min(on_each, left - taken) for taken in range(0, left, on_each))


class FittedTruth:
    """A model known by its fitted throughput parameters and its noise-scale curve.

    The catalog ships these.
    """

    def __init__(
        self,
        *,
        initial_batch_size: int,
        max_batch_size: int,
        work: float,
        epochs: int,
        parameters: Mapping[str, FloatArray],
        smallest_per_gpu: Mapping[str, int],
        largest_per_gpu: Mapping[str, int],
        gpus_per_replica: Mapping[str, int],
        noise_scale_curve: Sequence[tuple[float, float]],
        slowdown: float = 1.0,
    ) -> None:
        self.initial_batch_size, self.max_batch_size, self.slowdown = (
            initial_batch_size,
            max_batch_size,
            slowdown,
        )
        self.epoch_ends: tuple[float, ...] = tuple(work * (e + 1) / epochs for e in range(epochs))
        self._parameters, self._smallest, self._largest, self._replica = (
            parameters,
            smallest_per_gpu,
            largest_per_gpu,
            gpus_per_replica,
        )
        self._log: dict[tuple[str, Shape, int], StepTime] = {}
        share, phi = np.array(noise_scale_curve, dtype=np.float64).T
        at = (np.arange(epochs) + 0.5) / epochs
        self._variance = [float(v) / initial_batch_size for v in np.interp(at, share, phi)]

    def content(self) -> object:
        """Return what this truth was made from; it identifies the truth."""
        return {
            "batch_sizes": (self.initial_batch_size, self.max_batch_size),
            "epoch_ends": self.epoch_ends,
            "parameters": self._parameters,
            "per_gpu": (self._smallest, self._largest, self._replica),
            "variance": self._variance,
            "slowdown": self.slowdown,
        }

    def gpu_types(self) -> Sequence[str]:
        return tuple(self._parameters)

    def step(self, gpu_type: str, shape: Shape, per_gpu_batch_size: int) -> StepTime:
        key = (gpu_type, shape, per_gpu_batch_size)
        found = self._log.get(key)
        if found is None:
            found = self._log[key] = self._evaluate(gpu_type, shape, per_gpu_batch_size)
        return found

    def _evaluate(self, gpu_type: str, shape: Shape, per_gpu_batch_size: int) -> StepTime:
        parameters = self._parameters[gpu_type]
        batch = np.asarray(float(per_gpu_batch_size))
        replicas = np.asarray(max(sum(shape) // self._replica.get(gpu_type, 1), 1))
        whole = float(
            step_seconds(
                parameters, batch, node_count=np.asarray(len(shape)), replica_count=replicas
            )
        )
        return StepTime(whole, max(whole - float(pass_seconds(parameters, batch)), 0.0))

    def smallest_per_gpu(self, gpu_type: str) -> int:
        return self._smallest[gpu_type]

    def largest_per_gpu(self, gpu_type: str, gpu_count: int) -> int:
        return self._largest[gpu_type]

    def slowest_step(self, gpu_type: str, gpu_count: int) -> float:
        return self.step(
            gpu_type, (gpu_count,), self.largest_per_gpu(gpu_type, gpu_count)
        ).step_seconds

    def gradient(self, epoch: int, total_batch_size: int) -> GradientStatistics:
        return GradientStatistics(1.0, self._variance[epoch])

    def steps_after(self, epoch: int, total_batch_size: int) -> float:
        scale = total_batch_size / self.initial_batch_size
        steps = 0.0
        for e in range(epoch + 1, len(self.epoch_ends)):
            work = self.epoch_ends[e] - self.epoch_ends[e - 1]
            steps += (
                work / self.initial_batch_size / gain(self.gradient(e, total_batch_size), scale)
            )
        return steps


class BoundedTruth:
    """A truth with a lower memory limit, or without its calibration.

    `largest`: by GPU type, samples; other types keep their limit.
    """

    def __init__(self, truth: Truth, *, largest: Mapping[str, int], slowdown: float) -> None:
        self._truth, self._largest = truth, largest
        self.slowdown = slowdown
        self.initial_batch_size, self.max_batch_size, self.epoch_ends = (
            truth.initial_batch_size,
            truth.max_batch_size,
            truth.epoch_ends,
        )
        self.gpu_types, self.smallest_per_gpu = truth.gpu_types, truth.smallest_per_gpu
        self.step, self.gradient, self.steps_after = truth.step, truth.gradient, truth.steps_after

    def largest_per_gpu(self, gpu_type: str, gpu_count: int) -> int:
        held = self._truth.largest_per_gpu(gpu_type, gpu_count)
        return min(held, self._largest.get(gpu_type, held))

    def slowest_step(self, gpu_type: str, gpu_count: int) -> float:
        if gpu_type not in self._largest:
            return self._truth.slowest_step(gpu_type, gpu_count)
        return self.step(
            gpu_type, (gpu_count,), self.largest_per_gpu(gpu_type, gpu_count)
        ).step_seconds


def gain(gradient: GradientStatistics, scale: float) -> float:
    """Return the progress of one step at `scale` x M0, in steps at M0.

    (var + sqr) / (var / scale + sqr) (Pollux eq. 6 times scale).
    """
    denominator = gradient.variance / scale + gradient.square
    return (gradient.variance + gradient.square) / denominator if denominator > 0 else 1.0


def placement_digits(shape: Shape) -> str:
    """Return a shape as the profiles name it: one digit per node.

    It is the lexicographically smallest rotation.
    """
    digits = [d for d in shape if d]
    return (
        min("".join(map(str, digits[i:] + digits[:i])) for i in range(len(digits)))
        if digits
        else ""
    )


def _largest_by_count(table: StepTable) -> dict[int, int]:
    largest: dict[int, int] = {}
    for _, count, batch, _, _ in table.points:
        largest[int(count)] = max(largest.get(int(count), 0), int(batch))
    return largest


MOST_PROFILED_NODES = 16


class _Surface:
    """Piecewise-linear interpolation over (nodes, GPUs, per-GPU batch).

    It is for placements that were not measured themselves.
    """

    def __init__(self, table: StepTable) -> None:
        from scipy.spatial import (
            Delaunay,
            QhullError,
        )  # a third faster to import than the interpolator that scipy builds on it

        self._times = table.points[:, 3:]
        try:
            self._simplices = Delaunay(table.points[:, :3])
        except QhullError:  # all on one plane, as with one node: no points to interpolate
            self._simplices = None

    def at(self, node_count: int, gpu_count: int, batch: int) -> StepTime | None:
        """Return the mean of the four measurements around, by barycentric coordinates.

        None outside of all.
        """
        if self._simplices is None:
            return None
        point = np.array([min(node_count, MOST_PROFILED_NODES), gpu_count, batch], dtype=np.float64)
        simplex = int(self._simplices.find_simplex(point))
        if simplex < 0:
            return None
        transform = self._simplices.transform[simplex]
        three = transform[:3] @ (point - transform[3])
        weights = np.append(three, 1.0 - three.sum())
        step, sync = (weights @ self._times[self._simplices.simplices[simplex]]).tolist()
        return StepTime(step, sync)
