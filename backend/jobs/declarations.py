"""A job's declaration from the request or the row that holds it: the one mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from backend.jobs.models import Job
from maat.api.jobs import JobBody
from maat.scheduling.job import JobDeclaration, declared
from maat.vocabulary import Adaptivity, WorkloadKind

# JSON and columns have plain values where the engine has types of its own.
_TYPES: Mapping[str, Callable[[Any], object]] = {
    "adaptivity": Adaptivity,
    "workload_kind": WorkloadKind,
    "gpu_types": tuple,
}


def declaration_of(source: JobBody | Job) -> JobDeclaration:
    """Return what the owner said, whether it was just sent or is stored."""
    values = declared(source)
    typed = {
        name: convert(values[name]) for name, convert in _TYPES.items() if values[name] is not None
    }
    return JobDeclaration(**values | typed)
