"""The words of `maat submit` for the body of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Field of a job, or of its command -> option.
OF_JOB = {
    "cluster_id": "--cluster",
    "adaptivity": "--adaptivity",
    "gpu_count": "--gpus",
    "min_gpus": "--min-gpus",
    "max_gpus": "--max-gpus",
    "batch_size": "--batch-size",
    "max_batch_size": "--max-batch-size",
    "work_scale": "--work-scale",
    "gpu_types": "--gpu-type",
    "priority": "--priority",
    "weight": "--weight",
    "labels": "--label",
    "after": "--after",
    "deadline": "--deadline",
    "external_id": "--external-id",
    "workload_kind": "--kind",
    "promised_seconds": "--promised-seconds",
    "least_stay_seconds": "--least-stay-seconds",
    "most_moves_per_hour": "--most-moves-per-hour",
}
OF_RUN = {
    "cwd": "--cwd",
    "env": "--env",
    "stop_seconds": "--stop-seconds",
    "max_retries": "--retries",
    "total_samples": "--total-samples",
    "locality_penalty": "--locality-penalty",
}


def submit_words(body: Mapping[str, Any], *, indices: Sequence[int] | None = None) -> list[str]:
    """Return the command that submits this job; as an array of these indices, if any are given.

    Secrets are named, not given: the command reads them from its own environment.
    """
    run = body.get("run") or {}
    words = ["maat", "submit", str(body["name"]), *_option("--model", body["model"])]
    for field, option in OF_JOB.items():
        words += _option(option, body.get(field))
    if body.get("preemptible") is False:
        words.append("--no-preemptible")
    if indices is not None:
        words += _option("--array", ",".join(str(index) for index in indices))
    for field, option in OF_RUN.items():
        words += _option(option, run.get(field))
    for name in run.get("secret_env") or ():
        words += _option("--secret-env", name)
    if run.get("profile") is False:
        words.append("--no-profile")
    for share, value in (run.get("utilisation") or {}).items():
        words += _option("--" + share.replace("_", "-"), value)
    return [*words, "--", *run["argv"]] if run else words


def _option(option: str, value: Any) -> list[str]:
    """Return an option with its value; several times for a list or a mapping, none for None."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        value = [f"{name}={each}" for name, each in value.items()]
    given = value if isinstance(value, list) else [value]
    # A value that begins with - would be read as an option.
    return [
        word
        for each in given
        for word in ([f"{option}={each}"] if str(each).startswith("-") else [option, str(each)])
    ]
