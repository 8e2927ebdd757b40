"""Options that say nothing without another one: read together, and refused alone rather than ignored. Knows no command."""

from __future__ import annotations

from maat.scheduling.errors import InputError
from maat.simulation.interference import Interference, interference
from maat.simulation.tuned_jobs import TunedJobs, TuningRule


def read_tuned(rule: TuningRule | None, most_gpus: int | None) -> TunedJobs | None:
    """How jobs are tuned; None where they are not. Raises InputError for a bound on what nobody tunes."""
    if rule is not None:
        return TunedJobs(rule) if most_gpus is None else TunedJobs(rule, most_gpus)
    if most_gpus is not None:
        raise InputError(
            "bounds tuned jobs, of which there are none",
            field="tuned_gpus",
            value=most_gpus,
            remedy="Add --tuned best-batch, or leave it out.",
        )
    return None


def read_interference(given: str | None, jobs_per_gpu: int) -> Interference | None:
    """What jobs on one GPU lose. Raises InterferenceError, and InputError where no two jobs can meet on a GPU."""
    if given is not None and jobs_per_gpu == 1:
        raise InputError(
            "says what jobs on one GPU lose, but a GPU holds one job",
            field="interference",
            value=given,
            remedy="Add --jobs-per-gpu 2, or leave it out.",
        )
    return None if given is None else interference(given)


def refuse_generator_options(*, jobs: int | None, hours: float | None) -> None:
    """Where nothing is generated. Raises InputError."""
    for field, value in (("jobs", jobs), ("hours", hours)):
        if value is not None:
            raise InputError(
                "belongs to generated workloads; a trace has its own jobs",
                field=field,
                value=value,
                remedy="Use --generate philly instead of a trace, or leave it out.",
            )
