"""`maat belief JOB`: what Maat has learnt of a job, and how sure it is."""

from __future__ import annotations

from maat.api.belief_words import missed_words, penalty_words, restart_words, unmeasured_words
from maat.api.beliefs import BeliefOut
from maat.api.shown_numbers import percent
from maat.cli.service import (
    DEFAULT_URL,
    AsJson,
    JobNamed,
    Url,
    client_of,
    job_id_of,
    show,
    table_of,
)

_FITS = ("gpu_type", "configurations", "steps", "error", "forecast_error", "fitted_at")
_PARTS = ("part", "seconds", "deviation", "measured", "assumed")
_PROFILES = ("gpu_type", "outcome", "steps_gpu_s", "start_up_gpu_s", "attempts", "reason")


def belief(
    job: JobNamed,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show what was learnt of a job: step times by GPU type, the parts of a restart, profiles."""
    with client_of(url) as maat:
        found = maat.belief(job_id_of(maat, job))
    show(found, as_json, "\n".join(belief_lines(found)))


def belief_lines(found: BeliefOut) -> list[str]:
    """Return what `maat belief` prints."""
    fits = [
        [
            fit["gpu_type"],
            str(fit["sample_count"]),
            str(fit["step_count"]),
            _percent(fit["error"]),
            _percent(fit["forecast_error"]),
            fit["fitted_at"],
        ]
        for fit in found["types"]
    ]
    parts = [
        [
            part["name"],
            f"{part['seconds']:.1f}",
            "-" if part["deviation"] is None else f"{part['deviation']:.1f}",
            str(part["measured"]),
            f"{part['assumed_seconds']:.1f}",
        ]
        for part in found["restart"]
    ]
    profiles = [
        [
            one["gpu_type"],
            one["outcome"] or one["state"],
            f"{one['stepping_gpu_seconds']:.1f}",
            f"{one['startup_gpu_seconds']:.1f}",
            str(one["attempts"]),
            one["reason"] or "-",
        ]
        for one in found["profiles"]
    ]
    lines = [table_of(_FITS, fits)] if fits else [unmeasured_words(found)]
    lines += [
        f"{fit['gpu_type']}: {missed_words(fit)}".rstrip()
        for fit in found["types"]
        if fit["missed"]
    ]
    gradient = found["gradient"]
    if gradient is not None:
        lines.append(f"Gradient noise scale: {gradient['noise_scale']:.4g} samples.")
    lines += [restart_words(found), *([table_of(_PARTS, parts)] if parts else [])]
    lines += [words] if (words := penalty_words(found)) else []
    lines += [table_of(_PROFILES, profiles)] if profiles else []
    return lines if found["profiles_ended"] is None else [*lines, found["profiles_ended"]]


def _percent(error: float | None) -> str:
    return "-" if error is None else percent(error)
