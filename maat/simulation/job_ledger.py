"""The ledger of a simulated job: what has truly happened to it. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from maat.scheduling.stability import HOUR_SECONDS


@dataclass
class JobLedger:
    """Work, GPU time, waiting, restarts and interruptions of one job.

    All times are simulated seconds. `done_work`: effective samples; `processed_samples`: samples of
    all steps, those whose work was lost included; `epoch`: number of the present epoch.
    `saved_work`: the work in the last checkpoint, taken at the end of every epoch and whenever the
    scheduler takes GPUs away or moves the job; `unsaved_gpu_seconds`: GPU seconds since then;
    `lost_work`: effective samples undone by failures. `restart_left`: seconds of the present
    restart still to pay. `waited_seconds`: without GPUs, up to the last time it received some;
    `waiting_since`: start of the present wait, None while the job holds GPUs. `held_since`: its
    last start, None if unknown. `moved_at`: its moves of the last hour before the latest.
    `held_seconds`: with GPUs; `restarting_seconds`, `restarting_gpu_seconds`: of these, in starts
    and restarts.
    """

    waiting_since: float | None
    done_work: float = 0.0
    epoch: int = 0
    restart_left: float = 0.0
    restarts: int = 0
    started_at: float | None = None
    finished_at: float | None = None
    gpu_seconds: dict[str, float] = field(default_factory=dict)
    profiling_gpu_seconds: dict[str, float] = field(default_factory=dict)
    saved_work: float = 0.0
    unsaved_gpu_seconds: float = 0.0
    interruptions: int = 0
    lost_gpu_seconds: float = 0.0
    waited_seconds: float = 0.0
    processed_samples: float = 0.0
    lost_work: float = 0.0
    held_seconds: float = 0.0
    restarting_seconds: float = 0.0
    restarting_gpu_seconds: float = 0.0
    held_since: float | None = None
    moved_at: tuple[float, ...] = ()

    def copy(self) -> JobLedger:
        """Return a ledger that later entries do not change."""
        same = object.__new__(JobLedger)  # a live round copies every ledger: as cheap as it gets
        vars(same).update(vars(self))
        same.gpu_seconds = dict(self.gpu_seconds)
        same.profiling_gpu_seconds = dict(self.profiling_gpu_seconds)
        return same

    @property
    def total_gpu_seconds(self) -> Mapping[str, float]:
        """GPU seconds by type, profiling included."""
        both = {**self.gpu_seconds, **self.profiling_gpu_seconds}
        return {
            t: self.gpu_seconds.get(t, 0.0) + self.profiling_gpu_seconds.get(t, 0.0) for t in both
        }

    def spend(self, gpu_type: str, gpu_count: int, seconds: float) -> None:
        """Enter time on GPUs since the last checkpoint."""
        gpu_seconds = seconds * gpu_count
        self.gpu_seconds[gpu_type] = self.gpu_seconds.get(gpu_type, 0.0) + gpu_seconds
        self.unsaved_gpu_seconds += gpu_seconds
        self.held_seconds += seconds

    def pay_restart(self, gpu_type: str, gpu_count: int, seconds: float) -> None:
        """Enter time on GPUs in a start or restart."""
        self.restart_left -= seconds
        self.restarting_seconds += seconds
        self.restarting_gpu_seconds += seconds * gpu_count
        self.spend(gpu_type, gpu_count, seconds)

    def save(self) -> None:
        """Enter a checkpoint of all work done."""
        self.saved_work, self.unsaved_gpu_seconds = self.done_work, 0.0

    def end_epoch(self, done_work: float) -> None:
        """Enter the end of the present epoch, with `done_work` by then, and a checkpoint."""
        self.done_work = done_work
        self.save()
        self.epoch += 1

    def start(self, now: float, *, restart_seconds: float) -> None:
        """Enter a start; each one after the first counts as a restart."""
        self.restart_left, self.held_since = restart_seconds, now
        if self.started_at is None:
            self.started_at = now
        else:
            self.restarts += 1

    def move(self, now: float) -> None:
        """Enter that a round takes or changes the job's GPUs."""
        self.moved_at = (*(at for at in self.moved_at if at + HOUR_SECONDS > now), now)

    def wait(self, now: float) -> None:
        """Enter the loss of all GPUs."""
        self.restart_left, self.waiting_since = 0.0, now

    def end_wait(self, now: float) -> None:
        """Enter that the job holds GPUs, if it was waiting."""
        if self.waiting_since is not None:
            self.waited_seconds = self.waited_seconds + now - self.waiting_since
            self.waiting_since = None

    def interrupt(self, now: float) -> None:
        """Enter the failure of a node: the work since the last checkpoint is lost."""
        self.interruptions += 1
        self.lost_gpu_seconds += self.unsaved_gpu_seconds
        self.lost_work += self.done_work - self.saved_work
        self.done_work, self.unsaved_gpu_seconds = self.saved_work, 0.0
        self.wait(now)
