"""Runs tasks in parallel processes, each at most once.

Each process stores a result in the cache as soon as it has it, so that killed work can continue.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from typing import Any

from maat.laboratory.results import Kept, ResultCache
from maat.scheduling.errors import InputError, MaatError
from maat.scheduling.policies import admitted

Results = Iterator[tuple[str, Kept | MaatError]]
"""Keys, each with its result, or why it has none."""


class WorkersEnded(MaatError):
    """A process of several ended without a result, and the others cannot go on."""

    def __init__(self) -> None:
        super().__init__(
            "A process that runs simulations ended without a result. In a script, call Maat below "
            '`if __name__ == "__main__":`, as each process imports it; if memory was short, use '
            "fewer workers; workers=1 starts no process."
        )


@dataclass(frozen=True)
class Task:
    """What is to be computed: `run(given)`, where `run` is a module-level function.

    `own`: an object of the user's in `given`, which perhaps only this process can make. `kept`:
    whether the cache may keep the result. `policy`: `module:Class` of an own policy, which another
    process has to admit first. `name`: what it computes, for messages.
    """

    run: Callable[[Any], Kept]
    given: object
    own: object = None
    kept: bool = True
    policy: str | None = None
    name: str = "a run"


def run_tasks(
    todo: Mapping[str, Task],
    *,
    workers: int = 1,
    executor: Executor | None = None,
    cache: ResultCache | None = None,
) -> Results:
    """Yield the key of each task with its result, in the order in which they end.

    Up to `workers` processes run them, or `executor`, which is not shut down. A task that raises
    MaatError yields it; the others go on. Raises InputError if `executor` takes no tasks.
    """
    if executor is not None:
        return _on(executor, todo, cache, is_lent=True)
    if workers == 1 or len(todo) < 2:
        return ((key, _run_and_store(key, task, cache)) for key, task in todo.items())
    return _in_processes(todo, min(workers, len(todo)), cache)


def _in_processes(todo: Mapping[str, Task], workers: int, cache: ResultCache | None) -> Results:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin)
    try:
        yield from _on(pool, todo, cache, is_lent=False)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _on(
    executor: Executor, todo: Mapping[str, Task], cache: ResultCache | None, *, is_lent: bool
) -> Results:
    """Submit each task by itself, so that workers share long and short ones evenly.

    What cannot be sent to another process runs in this one meanwhile. `is_lent`: whether the
    executor is the user's, whose errors fail one task.
    """
    here = {
        key
        for key, task in todo.items()
        if isinstance(executor, ProcessPoolExecutor) and not _can_be_sent(task.own)
    }
    waiting: dict[Future[Kept | MaatError], str] = {}
    try:
        for key, task in todo.items():
            if key not in here:
                waiting[_submit(executor, key, task, cache)] = key
        for key in todo:
            if key in here:
                yield key, _run_and_store(key, todo[key], cache)
        while waiting:
            ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                key = waiting.pop(future)
                yield key, _lent_result(future, todo[key]) if is_lent else future.result()
    except BrokenExecutor as broken:
        raise WorkersEnded from broken
    finally:
        for future in waiting:
            future.cancel()


def _submit(
    executor: Executor, key: str, task: Task, cache: ResultCache | None
) -> Future[Kept | MaatError]:
    """Submit a task. Raises InputError for an executor that was shut down."""
    try:
        return executor.submit(_run_and_store, key, task, cache)
    except BrokenExecutor:
        raise
    except RuntimeError as refused:
        raise InputError(
            f"takes no runs ({refused})",
            field="executor",
            value=executor,
            remedy="Give one that was not shut down: call Maat inside its `with` block.",
        ) from refused


def _lent_result(future: Future[Kept | MaatError], task: Task) -> Kept | MaatError:
    """Return what an executor of the user's answered: what it raises fails this task alone."""
    try:
        result = future.result()
    except BrokenExecutor:
        raise
    except Exception as failed:
        reason = f"{type(failed).__name__}: {failed}"
        error = MaatError(f"{task.name}, failed on the executor ({reason}).")
        error.__cause__ = failed
        return error
    if isinstance(result, Mapping | MaatError):
        return result
    kind = type(result).__name__
    return MaatError(f"{task.name}: the executor returned no result, but {kind}.")


def _can_be_sent(own: object) -> bool:
    """Return whether a process of a pool can make this object.

    It reads classes and functions by their module, and has none of a notebook's cells.
    """
    if own is None:
        return True
    try:
        written = pickle.dumps(own)
    except Exception:  # whatever a user's object raises
        return False
    return b"__main__" not in written


def _run_and_store(key: str, task: Task, cache: ResultCache | None) -> Kept | MaatError:
    """Return the result of one task, or why it has none: the others go on."""
    try:
        if task.policy is not None:
            admitted(task.policy)
        result = task.run(task.given)
    except MaatError as error:
        return error
    if cache is not None and task.kept:
        cache.store(key, result)
    return result


def _begin() -> None:
    """Leave standard output to the parent, whose result it is, and end as soon as it ends."""
    sys.stdout = sys.stderr
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)
