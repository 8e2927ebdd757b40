"""Builds a job's declaration from its request or its row: the only mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from backend.jobs.models import Job
from maat.api.jobs import JobBody
from maat.scheduling.job import JobDeclaration, declared
from maat.vocabulary import Adaptivity, WorkloadKind

# JSON and columns hold plain values; the engine has types of its own.
_TYPES: Mapping[str, Callable[[Any], object]] = {
    "adaptivity": Adaptivity,
    "workload_kind": WorkloadKind,
    "gpu_types": tuple,
    "labels": lambda labels: tuple(f"{key}={value}" for key, value in labels.items()),
}


def declaration_of(source: JobBody | Job) -> JobDeclaration:
    """Return what the owner declared, from a new request or a stored row."""
    values = declared(source)
    typed = {
        name: convert(values[name]) for name, convert in _TYPES.items() if values[name] is not None
    }
    return JobDeclaration(**values | typed)
