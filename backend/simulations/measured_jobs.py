"""The jobs of a stored result that its figures are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def measured_jobs(jobs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those within the window of the request; an earlier version had none."""
    return [job for job in jobs if job.get("measured", True)]
