"""What became of another system's records: jobs, further runs of jobs, and what was dropped."""

from __future__ import annotations

from dataclasses import dataclass, field

from maat.workloads.workloads import TraceJob, Workload


@dataclass(frozen=True, slots=True)
class PreviewedRow:
    """One record: what it was, and what it becomes.

    `job` None: it becomes none, as `why` says. `further_run`: since its work counts with the job's
    first record; else it is dropped.
    """

    row: int
    was: str
    job: TraceJob | None
    why: str
    further_run: bool = False

    @property
    def outcome(self) -> str:
        """What became of a record that is no job of its own."""
        return self.why if self.further_run else f"dropped: {self.why}"


@dataclass(slots=True)
class DroppedRows:
    """The records dropped for one cause: how many, and the first of them.

    `gpu_hours`: what they held, of those that say it; `without_hours`: how many do not.
    """

    cause: str
    remedy: str
    column: str
    example: str
    count: int = 0
    rows: list[int] = field(default_factory=list)
    gpu_hours: float = 0.0
    without_hours: int = 0


@dataclass(frozen=True, slots=True)
class Imported:
    """A workload, and the report of how it came about.

    `rows`: records; each is a job, a further run of one (`further_runs`), or dropped. `rules`:
    sentences. `gpu_hours`: of the jobs as recorded, whatever they become.
    """

    workload: Workload
    rows: int
    further_runs: int
    rules: tuple[str, ...]
    dropped: tuple[DroppedRows, ...]
    preview: tuple[PreviewedRow, ...]
    gpu_hours: float
    longest_hours: float

    @property
    def span_seconds(self) -> float:
        """The time in which the jobs were submitted."""
        return self.workload.jobs[-1].submit_seconds

    @property
    def most_gpus(self) -> int:
        """The most GPUs of a job."""
        return max(job.gpu_count for job in self.workload.jobs)

    @property
    def dropped_gpu_hours(self) -> float:
        return sum(each.gpu_hours for each in self.dropped)

    @property
    def without_hours(self) -> int:
        """Dropped records that do not say what they held."""
        return sum(each.without_hours for each in self.dropped)

    @property
    def totals(self) -> str:
        """The totals in a sentence, so that a wrong unit is seen."""
        return (
            f"{_hours(self.gpu_hours)} GPU-hours in all, at most {self.most_gpus} GPUs a job, the "
            f"longest {_hours(self.longest_hours)} h; submitted within "
            f"{_hours(self.span_seconds / 3600.0)} h."
        )

    @property
    def losses(self) -> str:
        """What was dropped, in a sentence; "" if nothing was."""
        count = sum(each.count for each in self.dropped)
        if not count:
            return ""
        whole = self.gpu_hours + self.dropped_gpu_hours
        share = self.dropped_gpu_hours / whole if whole else 0.0
        words = f"{count} {'row' if count == 1 else 'rows'} dropped, with "
        words += f"{_hours(self.dropped_gpu_hours)} of {_hours(whole)} GPU-hours ({share:.1%})"
        unknown = self.without_hours
        if unknown:
            words += f"; {unknown} of them {'does' if unknown == 1 else 'do'} not say how many"
        return f"{words}."


def shown_seconds(seconds: float) -> str:
    """Return seconds for people, with the milliseconds that there are."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") if seconds >= 1 else f"{seconds:g}"


def _hours(hours: float) -> str:
    """Return hours with three digits or more, so that small ones do not read as 0."""
    return f"{hours:,.1f}" if hours >= 10 or not hours else f"{hours:.3g}"
