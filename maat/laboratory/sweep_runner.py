"""Runs the points of a sweep in parallel processes, each content at most once.

Each process stores a point in the cache as soon as it ends, so that a killed sweep can continue.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import wait as wait_for
from pathlib import Path

from maat.laboratory.axes import AxisValue
from maat.laboratory.content import digest, has_known_content
from maat.laboratory.figures import Figures, figures_of
from maat.laboratory.sweep import FailedPoint, Point, Row, rows_of
from maat.scheduling.errors import InputError, MaatError
from maat.scheduling.protocols import Policy
from maat.simulation.engine import simulate
from maat.simulation.record import Progress
from maat.simulation.scenario import Scenario

_Results = Iterator[tuple[str, Figures | MaatError]]
SimulatePoint = Callable[[Scenario], Figures]


class Origin(StrEnum):
    """The source of a point's figures.

    REPAIRED: its cache entry was damaged, so it was simulated again.
    """

    SIMULATED = "simulated"
    CACHE = "cache"
    REPAIRED = "repaired"


@dataclass(frozen=True)
class PointResult:
    """A point with its figures."""

    settings: Mapping[str, AxisValue]
    seed: int
    key: str
    figures: Figures
    origin: Origin


@dataclass(frozen=True)
class SweepResult:
    """All points that were simulated, in the sweep's order, and those that failed."""

    points: tuple[PointResult, ...]
    failed: tuple[FailedPoint, ...] = ()

    def rows(self) -> tuple[Row, ...]:
        return rows_of([(point.settings, point.seed, point.figures) for point in self.points])


@dataclass(frozen=True, slots=True)
class SweepPosition:
    """The progress of a sweep: `done` of `total` points, `simulated` of them run now."""

    done: int
    total: int
    simulated: int


def simulate_point(scenario: Scenario, *, on_progress: Progress | None = None) -> Figures:
    """Simulate one point. Its figures do not depend on the machine."""
    return figures_of(simulate(scenario, on_progress=on_progress))


class ResultCache:
    """Figures by content key, one file each, in a folder that processes may share."""

    def __init__(self, folder: Path) -> None:
        """Create the folder. Raises InputError if it cannot be written."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as failed:
            raise InputError(
                f"cannot be written ({failed.strerror})",
                field="cache",
                value=str(folder),
                remedy="Name a folder that can be.",
            ) from failed

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def load(self, key: str) -> Figures | None:
        """Return the figures, or None if there is no entry.

        Raises CorruptedEntry if the entry is not what was written.
        """
        path = self.path(key)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as unreadable:
            raise CorruptedEntry(path) from unreadable
        try:
            entry = json.loads(text)
            figures: Figures = entry["figures"]
            sound = entry["key"] == key and entry["digest"] == digest(figures)
        except (ValueError, KeyError, TypeError) as broken:
            raise CorruptedEntry(path) from broken
        if not sound:
            raise CorruptedEntry(path)
        return figures

    def store(self, key: str, figures: Figures) -> None:
        """Store an entry atomically: write another file, then rename it.

        Raises MaatError if it cannot be written.
        """
        try:
            self._write(key, figures)
        except OSError as failed:
            raise MaatError(
                f"cache: {self.folder} cannot be written ({failed.strerror}). "
                "Make room, or name another folder."
            ) from failed

    def _write(self, key: str, figures: Figures) -> None:
        path = self.path(key)
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, suffix=".part", encoding="utf-8", delete=False
        ) as file:
            json.dump({"key": key, "digest": digest(figures), "figures": dict(figures)}, file)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(path)


class CorruptedEntry(Exception):
    """A cache entry is not what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is damaged")
        self.path = path


def run_sweep(
    points: Sequence[Point],
    *,
    workers: int = 1,
    executor: Executor | None = None,
    cache: ResultCache | None = None,
    on_progress: Callable[[SweepPosition], None] | None = None,
) -> SweepResult:
    """Return the figures of every point: cached, or from up to `workers` processes.

    `executor`: what runs them instead; it is not shut down. Points of the same content run
    once. Points that cannot be simulated are told beside the others; if none can be, raises the
    error of the first.
    """
    found, damaged = _kept([point.key for point in points], cache)
    left = {point.key: point.scenario for point in points if point.key not in found}
    origin = dict.fromkeys(found, Origin.CACHE) | {
        key: Origin.REPAIRED if key in damaged else Origin.SIMULATED for key in left
    }
    counts = {point.key: 0 for point in points}
    for point in points:
        counts[point.key] += 1

    def report() -> None:
        if on_progress is not None:
            simulated = sum(key in found for key in left)
            on_progress(SweepPosition(sum(counts[key] for key in found), len(points), simulated))

    report()
    errors: dict[str, MaatError] = {}
    for key, figures in _run_missing(left, simulate_point, workers, executor, cache):
        if isinstance(figures, MaatError):
            errors[key] = figures
        else:
            found[key] = figures
        report()
    if errors and not found:
        raise next(errors[point.key] for point in points)
    return SweepResult(
        tuple(
            PointResult(p.settings, p.seed, p.key, found[p.key], origin[p.key])
            for p in points
            if p.key in found
        ),
        tuple(FailedPoint(p.settings, p.seed, errors[p.key]) for p in points if p.key in errors),
    )


def run_all(
    todo: Mapping[str, Scenario],
    *,
    simulate_one: SimulatePoint,
    workers: int = 1,
    executor: Executor | None = None,
    cache: ResultCache | None = None,
) -> Iterator[tuple[str, Figures]]:
    """Yield keys with their figures: first those in the cache, then the others.

    `simulate_one`: a module-level function, which runs in up to `workers` processes, or on
    `executor`, which is not shut down. Raises
    MaatError for the first that cannot be simulated.
    """
    found, _ = _kept(list(todo), cache)
    yield from found.items()
    left = {key: scenario for key, scenario in todo.items() if key not in found}
    for key, figures in _run_missing(left, simulate_one, workers, executor, cache):
        if isinstance(figures, MaatError):
            raise figures
        yield key, figures


def _kept(keys: Sequence[str], cache: ResultCache | None) -> tuple[dict[str, Figures], set[str]]:
    """The figures in the cache, and the keys of damaged entries."""
    found: dict[str, Figures] = {}
    damaged: set[str] = set()
    if cache is not None:
        for key in dict.fromkeys(keys):
            try:
                figures = cache.load(key)
            except CorruptedEntry:
                damaged.add(key)
            else:
                if figures is not None:
                    found[key] = figures
    return found, damaged


def _run_missing(
    left: Mapping[str, Scenario],
    simulate_one: SimulatePoint,
    workers: int,
    executor: Executor | None,
    cache: ResultCache | None,
) -> _Results:
    if executor is None and (workers == 1 or len(left) < 2):
        return (
            (key, _run_and_store(key, scenario, simulate_one, cache))
            for key, scenario in left.items()
        )
    if executor is not None:
        return _on(executor, left, simulate_one, cache)
    return _in_processes(left, simulate_one, min(workers, len(left)), cache)


def _in_processes(
    left: Mapping[str, Scenario],
    simulate_one: SimulatePoint,
    workers: int,
    cache: ResultCache | None,
) -> _Results:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)
    try:
        yield from _on(pool, left, simulate_one, cache)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _on(
    executor: Executor,
    left: Mapping[str, Scenario],
    simulate_one: SimulatePoint,
    cache: ResultCache | None,
) -> _Results:
    """Run one task per point, so that workers share long and short points evenly.

    What cannot be sent to another process runs in this one meanwhile.
    """
    here = {
        key
        for key, scenario in left.items()
        if isinstance(executor, ProcessPoolExecutor) and not _can_be_sent(scenario.own_policy)
    }
    waiting: dict[Future[Figures | MaatError], str] = {
        executor.submit(_run_and_store, key, scenario, simulate_one, cache): key
        for key, scenario in left.items()
        if key not in here
    }
    try:
        for key in left:
            if key in here:
                yield key, _run_and_store(key, left[key], simulate_one, cache)
        while waiting:
            ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                yield waiting.pop(future), future.result()
    finally:
        for future in waiting:
            future.cancel()


def _can_be_sent(policy: Policy | None) -> bool:
    """Return whether a process of a pool can make this policy.

    It reads classes and functions by their module, and has none of a notebook's cells.
    """
    if policy is None:
        return True
    try:
        written = pickle.dumps(policy)
    except Exception:  # whatever a user's object raises
        return False
    return b"__main__" not in written


def _run_and_store(
    key: str, scenario: Scenario, simulate_one: SimulatePoint, cache: ResultCache | None
) -> Figures | MaatError:
    """Return the figures of one point, or why it has none: the others go on."""
    try:
        figures = simulate_one(scenario)
    except MaatError as error:
        return error
    if cache is not None and has_known_content(scenario):
        cache.store(key, figures)
    return figures


def _end_with_parent() -> None:
    """End this process as soon as its parent ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)
