"""Processes of the service, forked with its modules imported.

To import the modules takes four seconds of CPU, most of what it takes to start a service. A fork is
for tests of what a service does once it runs. tests/faults starts it as its users do.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[2]
IMPORTS = f"{__package__}.service_imports"
END_SECONDS = 30.0

# One process, for all tests of this one, imports the modules.
_FORKS = multiprocessing.get_context("forkserver")


@contextmanager
def forked(words: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[int]:
    """`python -m` with these words in a group of its own, by its id; ended with all its children.

    It sees the variables of `environment` alone. What it would import first is imported already.
    """
    _FORKS.set_forkserver_preload([IMPORTS])
    process = _FORKS.Process(target=_run_module, args=(words, environment, log))
    with patch.dict(os.environ, {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}):
        process.start()  # and the process that forks, the first time
    pid = process.pid
    assert pid is not None

    def has_ended() -> bool:
        process.join(END_SECONDS)
        return process.exitcode is not None

    with _ended(pid, has_ended):
        yield pid


@contextmanager
def _ended(pid: int, has_ended: Callable[[], bool]) -> Iterator[None]:
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(pid, number)
            if has_ended():
                break


def _run_module(words: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    assert IMPORTS in sys.modules, "multiprocessing ignores imports that fail"
    os.setsid()
    with log.open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), *environment["PYTHONPATH"].split(os.pathsep)]
    module, *sys.argv[1:] = words
    runpy.run_module(module, run_name="__main__", alter_sys=True)
