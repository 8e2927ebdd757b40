"""Processes of the service, forked with its modules imported.

To import the modules takes four seconds of CPU, most of what it takes to start a service. A fork is
for tests of what a service does once it runs. Tests of `maat up` and of what docker-compose.yml
starts begin as users do.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[2]
IMPORTS = f"{__package__}.service_imports"
END_SECONDS = 30.0


def forks() -> ForkServerContext:
    """Make processes by forking one that imports the modules, for all tests of this process."""
    with patch.dict(os.environ, {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}):
        forkserver.set_forkserver_preload([IMPORTS])
        forkserver.ensure_running()
    return multiprocessing.get_context("forkserver")


def fork(words: Sequence[str], environment: Mapping[str, str], log: Path) -> BaseProcess:
    """Start `python -m` with these words in a process group of its own.

    It sees the variables of `environment` alone, and adds what it prints to `log`. What it would
    import first is imported already.
    """
    process = forks().Process(target=_run_module, args=(words, environment, log))
    process.start()
    return process


@contextmanager
def forked(words: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[int]:
    """The same, by its id; ended with all its children."""
    process = fork(words, environment, log)
    assert process.pid is not None
    try:
        yield process.pid
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            process.join(END_SECONDS)
            if process.exitcode is not None:
                break


def _run_module(words: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    assert IMPORTS in sys.modules, "multiprocessing ignores imports that fail"
    os.setsid()
    with log.open("ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    module, *sys.argv[1:] = words
    runpy.run_module(module, run_name="__main__", alter_sys=True)
