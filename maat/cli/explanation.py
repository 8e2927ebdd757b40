"""An explanation as `maat explain` prints it, with the commands for each remedy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maat.api.job_answers import ExplanationOut, JobOut

# Field of a job -> option of `maat submit`.
_OPTIONS = {
    "model": "--model",
    "cluster_id": "--cluster",
    "adaptivity": "--adaptivity",
    "gpu_count": "--gpus",
    "min_gpus": "--min-gpus",
    "max_gpus": "--max-gpus",
    "batch_size": "--batch-size",
    "max_batch_size": "--max-batch-size",
    "work_scale": "--work-scale",
    "workload_kind": "--kind",
    "promised_seconds": "--promised-seconds",
    "gpu_types": "--gpu-type",
}


def explanation_lines(job: JobOut, explanation: ExplanationOut) -> list[str]:
    """Return sentence, evidence, last lines of a failure, and remedies with their commands."""
    primary = explanation["primary"]
    shown = [
        f"  {name.replace('_', ' ')}: {value}"
        for name, value in primary["evidence"].items()
        if value is not None
    ]
    written = [f"  | {line}" for line in explanation["last_lines"]]
    lines = [primary["sentence"], *shown, *written]
    if job["deadline"] is not None:
        lines.append(deadline_words(job))
    for remedy in explanation["remedies"]:
        lines.append(f"- {remedy['sentence']}")
        if remedy["changes"]:
            again = shlex.join(
                ["maat", "submit", job["name"], *_options({**job, **remedy["changes"]})]
            )
            lines.append(f"    {again} && maat cancel {job['id']}")
    return lines


def deadline_words(job: JobOut) -> str:
    """`Deadline 2026-12-01T08:00:00.000Z: it will be missed by 2.0 h.`"""
    hours = f"{(job['deadline_seconds_late'] or 0.0) / 3600:.1f} h"
    words = {
        "on-time": "on time",
        "late": f"it will be missed by {hours}",
        "unknown": "unknown yet",
        "met": "met",
        "missed": f"missed by {hours}",
    }
    outlook = words.get(job["deadline_outlook"] or "")
    return f"Deadline {job['deadline']}{f': {outlook}' if outlook else ''}."


def _options(declared: Mapping[str, Any]) -> list[str]:
    """Return the options of `maat submit`, without those at their defaults."""
    defaults = {
        "min_gpus": 1,
        "work_scale": 1.0,
        "workload_kind": "training",
        "adaptivity": "adaptive",
    }
    words = []
    for field, option in _OPTIONS.items():
        value = declared[field]
        if value is None or defaults.get(field) == value:
            continue
        for one in value if isinstance(value, list) else [value]:
            words += [option, f"{one:g}" if isinstance(one, float) else str(one)]
    return words if declared["preemptible"] else [*words, "--no-preemptible"]
