"""A table of measured steps per second, as Gavel and Shockwave publish it.

Reads the file, and is the truth of its models. The file is JSON: GPU type -> "('<model> (batch size
<per GPU>)', <GPUs>)" -> {"null": steps/s alone, other keys: with another job}. Steps are counted
over all GPUs together: with n of them, each makes a step in n / rate seconds. A type
`<type>_unconsolidated` is the same GPU with the job spread over nodes. Jobs that share GPUs are not
read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maat.compression import problem_and_remedy
from maat.models.truth import Shape, StepTime
from maat.scheduling.belief import GradientStatistics
from maat.scheduling.errors import InputError, ProfileError

# Samples of an epoch (uw-mad-dash/shockwave): CIFAR-10, ImageNet as sampled there, Multi30k,
# WikiText-2, ML-20M, monet2photo, Pong.
EPOCH_SAMPLES: Mapping[str, int] = {
    "ResNet-18": 50_000,
    "ResNet-50": 100_000,
    "Transformer": 10_000,
    "LM": 59_675,
    "Recommendation": 117_907,
    "CycleGAN": 6_287,
    "A3C": 4,
}
MAX_FILE_BYTES = 256 * 2**20
_APART = "_unconsolidated"
_JOB_TYPE = re.compile(r"(?P<model>.+?)(?: \(batch size (?P<batch>[0-9]{1,9})\))?")
_KEY = re.compile(r"\('(?P<type>.+)', (?P<gpus>[0-9]{1,6})\)")


@dataclass(frozen=True, slots=True)
class JobType:
    """A model at one batch size per GPU. `text`: its name in the published files."""

    model: str
    per_gpu_batch_size: int

    @classmethod
    def parse(cls, text: str) -> JobType | None:
        """Parse a text such as `ResNet-18 (batch size 32)`; None if it is none.

        A model without a batch size has 1.
        """
        match = _JOB_TYPE.fullmatch(text.strip())
        if match is None or not match["model"].isprintable():
            return None
        batch = int(match["batch"] or 1)
        return cls(match["model"], batch) if batch else None


def steps_of_an_epoch(job_type: JobType) -> int:
    """Return the steps over the whole data set; the last may hold fewer samples."""
    return math.ceil(EPOCH_SAMPLES[job_type.model] / job_type.per_gpu_batch_size)


Rates = Mapping[
    str, Mapping[int, Mapping[int, float]]
]  # GPU type -> GPUs -> batch per GPU -> steps/s, batches ascending


class TableTruth:
    """One model at the measured batch sizes and GPU counts.

    Interpolates between batch sizes, never beyond them, and has no other GPU count. An epoch is an
    epoch at every batch size: a larger one loses nothing. The short batch at the end of an epoch
    takes as long as a whole one, so that an epoch takes exactly its steps.
    """

    slowdown = 1.0

    def __init__(self, model: str, rates: Rates) -> None:
        self._model, self._rates = model, rates
        sizes = [
            batch
            for by_count in rates.values()
            for by_batch in by_count.values()
            for batch in by_batch
        ]
        counts = [count for by_count in rates.values() for count in by_count]
        self.initial_batch_size = min(sizes)
        self.max_batch_size = max(sizes) * max(counts)
        self.epoch_ends: tuple[float, ...] = (float(EPOCH_SAMPLES[model]),)

    @property
    def rates(self) -> Rates:
        """Measured steps per second over all GPUs together."""
        return self._rates

    def content(self) -> object:
        """Return what this truth was made from; it identifies the truth."""
        return {"model": self._model, "rates": self._rates, "epoch": self.epoch_ends}

    def gpu_types(self) -> Sequence[str]:
        return tuple(kind for kind in self._rates if not kind.endswith(_APART))

    def step(self, gpu_type: str, shape: Shape, per_gpu_batch_size: int) -> StepTime:
        """Return the step time; on several nodes the measurement across nodes, if any.

        Raises InputError if it was not measured.
        """
        count = sum(shape)
        whole = self._seconds(gpu_type, count, per_gpu_batch_size, apart=len(shape) > 1)
        if whole is None:
            raise self._unmeasured(gpu_type, count, per_gpu_batch_size)
        alone = self._seconds(gpu_type, 1, per_gpu_batch_size, apart=False) if count > 1 else whole
        return StepTime(whole, max(whole - alone, 0.0) if alone is not None else 0.0)

    def smallest_per_gpu(self, gpu_type: str) -> int:
        return min(min(by_batch) for by_batch in self._rates[gpu_type].values())

    def largest_per_gpu(self, gpu_type: str, gpu_count: int) -> int:
        """Return the largest batch measured on that many GPUs; 0 if none was."""
        return max(self._rates[gpu_type].get(gpu_count, {0: 0.0}))

    def slowest_step(self, gpu_type: str, gpu_count: int) -> float:
        return max(
            self.step(gpu_type, (gpu_count,), batch).step_seconds
            for batch in self._rates[gpu_type][gpu_count]
        )

    def gradient(self, epoch: int, total_batch_size: int) -> GradientStatistics:
        return GradientStatistics(square=0.0, variance=1.0)

    def steps_after(self, epoch: int, total_batch_size: int) -> float:
        return max(len(self.epoch_ends) - 1 - epoch, 0) * self.epoch_ends[0] / total_batch_size

    def _seconds(self, gpu_type: str, count: int, batch: int, *, apart: bool) -> float | None:
        """The seconds of a step on `count` GPUs; None if not measured."""
        by_batch = self._rates[gpu_type].get(count)
        if apart:
            by_batch = self._rates.get(gpu_type + _APART, {}).get(count, by_batch)
        if not by_batch or not min(by_batch) <= batch <= max(by_batch):
            return None
        sizes = list(by_batch)
        return float(
            np.interp(batch, sizes, [count / by_batch[b] * self._rounded_up(b) for b in sizes])
        )

    def _rounded_up(self, batch: int) -> float:
        """The whole steps of an epoch over its samples' share of them, at least 1."""
        samples = EPOCH_SAMPLES[self._model]
        return math.ceil(samples / batch) * batch / samples

    def _unmeasured(self, gpu_type: str, count: int, batch: int) -> InputError:
        known = ", ".join(
            f"{n} with {min(b)} to {max(b)}" for n, b in self._rates[gpu_type].items()
        )
        return InputError(
            f"was never measured for {self._model} on {gpu_type}",
            field="configuration",
            value=f"{count} GPUs at {batch} samples per GPU",
            remedy=f"Measured are (GPUs, samples per GPU): {known}.",
        )


def read_throughput_table(path: Path) -> Mapping[str, TableTruth]:
    """Return every model in a file of throughputs, by its published name.

    Raises ProfileError naming file, field, value and remedy.
    """
    return read_throughput_text(_content_of(path), name=str(path))


def read_throughput_text(content: str | bytes, *, name: str) -> Mapping[str, TableTruth]:
    """Return every model in the content of such a file; `name`: as errors show it."""
    rates: dict[str, dict[str, dict[int, dict[int, float]]]] = {}
    for gpu_type, job_type, count, rate in _measurements(_parsed(content, name), name):
        by_count = rates.setdefault(job_type.model, {}).setdefault(gpu_type, {})
        by_count.setdefault(count, {})[job_type.per_gpu_batch_size] = rate
    models = {
        model: by_type
        for model, by_type in rates.items()
        if any(not kind.endswith(_APART) for kind in by_type)
    }
    if not models:
        raise _blame(
            name,
            "holds no throughput above zero",
            field="null",
            remedy="Measure at least one job type alone.",
        )
    return {model: TableTruth(model, _ascending(by_type)) for model, by_type in models.items()}


def _ascending(by_type: Mapping[str, Mapping[int, Mapping[int, float]]]) -> Rates:
    whole = {
        kind: counts for kind, counts in by_type.items() if kind.removesuffix(_APART) in by_type
    }
    return {
        kind: {count: dict(sorted(counts[count].items())) for count in sorted(counts)}
        for kind, counts in whole.items()
    }


def _content_of(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise _blame(
                str(path),
                f"is larger than {MAX_FILE_BYTES // 2**20} MiB",
                field="file",
                remedy="Give the table alone.",
            )
        content = path.read_bytes()
    except OSError as problem:
        raise _blame(
            str(path), f"cannot be read: {problem.strerror}", field="file", remedy="Check the path."
        ) from problem
    if packed := problem_and_remedy(content):
        raise _blame(str(path), packed[0], field="file", remedy=packed[1])
    return content


def _parsed(content: str | bytes, name: str) -> Mapping[str, Any]:
    try:
        read = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise _blame(
            name,
            "is no JSON",
            field="file",
            remedy="Give a folder of measured profiles, or a JSON table of throughputs.",
        ) from problem
    if (
        not isinstance(read, dict)
        or not read
        or not all(isinstance(rows, dict) for rows in read.values())
    ):
        raise _blame(
            name,
            "is no table of throughputs",
            field="file",
            remedy="Give an object: GPU type -> job type -> throughputs.",
        )
    return read


def _measurements(table: Mapping[str, Any], name: str) -> Iterator[tuple[str, JobType, int, float]]:
    """Yield (GPU type, job type, GPUs, steps/s) of every job that ran alone.

    A rate of zero means that it did not fit.
    """
    for gpu_type, rows in table.items():
        for key, row in rows.items():
            job_type, count = _parsed_key(key, name)
            rate = row.get("null") if isinstance(row, dict) else None
            if (
                isinstance(rate, bool)
                or not isinstance(rate, int | float)
                or not math.isfinite(rate)
                or rate < 0
            ):
                raise _blame(
                    name,
                    "is no throughput",
                    field=f"{gpu_type}: {key}: null",
                    value=rate,
                    remedy="Give steps per second, 0 for none.",
                )
            if rate > 0:
                yield gpu_type, job_type, count, float(rate)


def _parsed_key(key: str, name: str) -> tuple[JobType, int]:
    match = _KEY.fullmatch(key)
    job_type = JobType.parse(match["type"]) if match else None
    if match is None or job_type is None or int(match["gpus"]) < 1:
        raise _blame(
            name,
            "is no job type",
            field="key",
            value=key,
            remedy="Write ('ResNet-18 (batch size 32)', 1): name, batch, GPUs.",
        )
    if job_type.model not in EPOCH_SAMPLES:
        raise _blame(
            name,
            "has no known epoch",
            field="model",
            value=job_type.model,
            remedy=f"Known are {', '.join(EPOCH_SAMPLES)}; leave others out.",
        )
    return job_type, int(match["gpus"])


def _blame(
    source: str, problem: str, *, field: str, remedy: str, value: object = None
) -> ProfileError:
    return ProfileError(problem, field=field, value=value, remedy=remedy, source=source)
