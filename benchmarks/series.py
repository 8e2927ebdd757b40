"""What recording the series of a run costs: two runs in turn, one with and one without."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import stdev

from benchmarks.table import Cell, Figures
from maat.library.run import setup_of
from maat.simulation.engine import simulate
from maat.simulation.job_recorder import JobRecorder
from maat.simulation.record import Position, SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.simulated_job import SimulatedJob

TRACE, CLUSTER = "philly/workload-1.csv", "t4=6x4,rtx=3x8,a100=2x8"
POLICIES = ("sia", "pollux", "tiresias", "las", "fifo")
PAIRS = {"las": 20}  # its runs are the shortest: few pairs tell nothing
USUAL_PAIRS = 4
JOBS = {"pollux": 20}  # of the trace, the first: a run of all takes long
TURN_ROUNDS = 10
WARM_JOBS = 5
COLUMNS = {
    "policy": "policy",
    "pairs": "pairs",
    "rounds": "rounds",
    "stretches": "stretches",
    "cpu_seconds": "CPU s",
    "more_cpu": "more CPU %",
    "error": "standard error",
    "least_more_cpu": "least of pairs",
    "most_more_cpu": "most of pairs",
    "peak_mib": "peak MiB",
    "more_memory": "more memory %",
    "series_kib": "series KiB",
}
NOTES = [
    "The two runs of a pair, one that records and one that does not, are threads of one process "
    f"that take turns, {TURN_ROUNDS} rounds each: whatever else the machine does meets both alike. "
    "User CPU seconds of each thread, without imports and reading, with the series of GPUs and "
    "efficiency worked out; the difference is of the sums over the pairs, the standard error "
    "of the mean of theirs.",
    *(f"{policy}: the first {jobs} jobs of the trace." for policy, jobs in JOBS.items()),
    "Peak memory of a whole process that plays one run.",
]
# The peak of a process cannot be had of a thread.
PEAK = """
import json, sys
from pathlib import Path
from benchmarks.series import played_alone

data, policy, recorded = sys.argv[1:]
series = played_alone(Path(data), policy, recorded=recorded == "with").series
kept = sum(values.nbytes for values in vars(series.stretches).values())
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"peak_mib": int(peak.split()[1]) / 1024, "series_kib": kept / 1024}))
"""


@dataclass
class Turns:
    """Lets two runs go on in turn, until one of them ends."""

    go: tuple[threading.Semaphore, threading.Semaphore] = field(
        default_factory=lambda: (threading.Semaphore(1), threading.Semaphore(0))
    )
    ended: bool = False

    def pass_on(self, mine: int) -> None:
        """Let the other run go on, and wait until it is this one's turn again."""
        if not self.ended:
            self.go[1 - mine].release()
            self.go[mine].acquire()

    def end(self, mine: int) -> None:
        self.ended = True
        self.go[1 - mine].release()


@dataclass
class Player(threading.Thread):
    """Plays a run in its turns. `cpu_seconds`: of its thread, with the series worked out."""

    scenario: Scenario
    recorded: bool
    turns: Turns
    place: int
    cpu_seconds: float = 0.0
    result: SimulationResult | None = None
    _rounds: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        self.turns.go[self.place].acquire()
        RECORDING.on = self.recorded
        began = user_seconds()
        try:
            self.result = worked_out(simulate(self.scenario, on_progress=self._take_turns))
        finally:
            self.cpu_seconds = user_seconds() - began
            self.turns.end(self.place)

    def _take_turns(self, position: Position) -> None:
        self._rounds += 1
        if self._rounds % TURN_ROUNDS == 0:
            self.turns.pass_on(self.place)


def user_seconds() -> float:
    """Return the CPU seconds of this thread outside the kernel."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_utime


RECORDING = threading.local()


@contextmanager
def recording_by_thread() -> Iterator[None]:
    """Record a job's changes only in threads that say so: without, there is nothing to work out."""
    begin: Callable[[JobRecorder, SimulatedJob], None] = JobRecorder.begin

    def begin_if_recorded(self: JobRecorder, job: SimulatedJob) -> None:
        if RECORDING.on:
            begin(self, job)

    JobRecorder.begin = begin_if_recorded  # type: ignore[method-assign]
    try:
        yield
    finally:
        JobRecorder.begin = begin  # type: ignore[method-assign]


def measure() -> Figures:
    title = f"Recording the series of {TRACE.removesuffix('.csv')}, {CLUSTER}"
    data = os.environ.get("MAAT_DATA")
    if not data:
        why = "skipped: MAAT_DATA is not set (the folder that holds sia-artifact)"
        return Figures("series", title, COLUMNS, [], [why])
    return Figures("series", title, COLUMNS, [_row(Path(data), p) for p in POLICIES], list(NOTES))


def _row(data: Path, policy: str) -> dict[str, Cell]:
    scenario = scenario_of(data, policy)
    simulate(first_jobs(scenario, WARM_JOBS))  # what is loaded once does not count
    count = PAIRS.get(policy, USUAL_PAIRS)
    pairs = [_pair(scenario, recorded_first=number % 2 == 0) for number in range(count)]
    more = [100 * (with_.cpu_seconds / without.cpu_seconds - 1) for with_, without in pairs]
    recorded, bare = (sum(pair[place].cpu_seconds for pair in pairs) for place in (0, 1))
    result = pairs[0][0].result
    peaks = {name: _peak(data, policy, name) for name in ("with", "without")}
    return {
        "policy": policy,
        "pairs": count,
        "rounds": result.rounds if result else None,
        "stretches": len(result.series.stretches) if result else None,
        "cpu_seconds": recorded / count,
        "more_cpu": 100 * (recorded / bare - 1),
        "error": stdev(more) / count**0.5,
        "least_more_cpu": min(more),
        "most_more_cpu": max(more),
        "peak_mib": peaks["with"]["peak_mib"],
        "more_memory": 100 * (peaks["with"]["peak_mib"] / peaks["without"]["peak_mib"] - 1),
        "series_kib": peaks["with"]["series_kib"],
    }


def scenario_of(data: Path, policy: str) -> Scenario:
    folder = data / "sia-artifact"
    whole = setup_of(
        folder / "workloads" / TRACE,
        cluster=CLUSTER,
        jobs_per_gpu=None,
        policy=policy,
        placer=None,
        profiles=folder / "profiles",
        seed=0,
        round_seconds=None,
    ).scenario()
    return first_jobs(whole, JOBS.get(policy, len(whole.workload)))


def first_jobs(scenario: Scenario, count: int) -> Scenario:
    workload = scenario.workload
    return replace(scenario, workload=replace(workload, jobs=workload.jobs[:count]))


def _pair(scenario: Scenario, *, recorded_first: bool) -> tuple[Player, Player]:
    """Play two runs in turn, and return the one that recorded first; which begins alternates."""
    turns = Turns()
    first, second = (
        Player(scenario, recorded, turns, place)
        for place, recorded in enumerate((recorded_first, not recorded_first))
    )
    with recording_by_thread():
        for player in (first, second):
            player.start()
        for player in (first, second):
            player.join()
    return (first, second) if recorded_first else (second, first)


def played_alone(data: Path, policy: str, *, recorded: bool) -> SimulationResult:
    """Play one run in this thread."""
    RECORDING.on = recorded
    with recording_by_thread():
        return worked_out(simulate(scenario_of(data, policy)))


def worked_out(result: SimulationResult) -> SimulationResult:
    """Work out what figures draw of a run, if it recorded anything."""
    if len(result.series.stretches):
        _ = result.series.gpus, result.series.efficiency
    return result


def _peak(data: Path, policy: str, recorded: str) -> dict[str, float]:
    ran = subprocess.run(
        [sys.executable, "-c", PEAK, str(data), policy, recorded],
        check=True,
        capture_output=True,
        text=True,
    )
    figures: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return figures
