"""Slowdowns of jobs that share a GPU, by the jobs' names, where jobs come and go.

A simulation knows all its jobs and has a table of them. A live cluster looks each pair up when a
policy asks for it: first in what was measured there, then in what was declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from maat.scheduling.job import JobSpec

_NAME = re.compile(
    r"(?P<model>.+) \(batch size (?P<size>[0-9]{1,18})\)(?: of (?P<tenant>\w+))?", re.DOTALL
)


@dataclass(frozen=True, slots=True, order=True)
class SharingJob:
    """What a job is to those that share its GPUs: its model, and its batch on one GPU.

    `tenant`: the id of the tenant whose model it is; "" where names mean the same for everybody.
    """

    model: str
    per_gpu_batch_size: int
    tenant: str = ""

    @classmethod
    def of(cls, spec: JobSpec, *, tenant: str) -> SharingJob:
        """Return the job as it was submitted, with its batch spread over the GPUs it asks for."""
        return cls(spec.model, max(-(-spec.requested_batch_size // spec.requested_gpus), 1), tenant)

    @classmethod
    def named(cls, name: str) -> SharingJob:
        """Return the job of a name that `name` gave. Raises KeyError for another name."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise KeyError(name)
        return cls(match["model"], int(match["size"]), match["tenant"] or "")

    @property
    def name(self) -> str:
        """Return its name in `RoundInput.interference`."""
        name = f"{self.model} (batch size {self.per_gpu_batch_size})"
        return f"{name} of {self.tenant}" if self.tenant else name


def named_for_sharing(spec: JobSpec, *, tenant: str) -> JobSpec:
    """Return the declaration under the job's name in `RoundInput.interference`.

    `tenant`: the id of the job's.
    """
    return replace(spec, shares_as=SharingJob.of(spec, tenant=tenant).name)


class Slowdowns(Protocol):
    """A source of slowdowns: a declared table, or what was measured."""

    def of_jobs(self, victim: SharingJob, partner: SharingJob, gpu_count: int) -> float | None:
        """Return how much slower `victim` steps on its `gpu_count` GPUs beside `partner`.

        None if it is not known here; infinite if the two do not fit on one GPU.
        """
        ...


class DeclaredSlowdowns(Slowdowns, Protocol):
    """The slowdowns that a cluster declares of jobs on one GPU."""

    @property
    def worst(self) -> float: ...
    def bounded(self) -> Slowdowns:
        """Return a table in which jobs that do not fit on one GPU run at the worst slowdown."""
        ...


class SlowdownsByName(Mapping[tuple[str, str, int], float]):
    """(victim, partner, GPU count of the victim) -> slowdown, of the first source that knows it.

    `otherwise`: of pairs that no source knows; None to know nothing of them (KeyError).
    """

    def __init__(self, *sources: Slowdowns, otherwise: float | None = None) -> None:
        self._sources, self._otherwise = sources, otherwise
        self._found: dict[tuple[str, str, int], float | None] = {}

    def __getitem__(self, key: tuple[str, str, int]) -> float:
        if key not in self._found:
            self._found[key] = self._look_up(*key)
        found = self._found[key]
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """Iterate over the pairs that were looked up and are known."""
        return iter([key for key, found in self._found.items() if found is not None])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _look_up(self, victim: str, partner: str, gpu_count: int) -> float | None:
        try:
            pair = SharingJob.named(victim), SharingJob.named(partner)
        except KeyError:  # a name that no source can know
            return self._otherwise
        for source in self._sources:
            found = source.of_jobs(*pair, gpu_count)
            if found is not None:
                return found
        return self._otherwise


def nearest(wanted: int, known: Sequence[int]) -> int:
    """Return the next smaller of these numbers, or the number itself; else the smallest."""
    smaller = [number for number in known if number <= wanted]
    return max(smaller) if smaller else min(known)
