"""CPU time of the tests, by file and by folder, printed at the end of a run.

A test's time is that of its process and of all processes below it, while the test and the fixtures
that begin or end with it run. A server of a fixture that several files share counts where its time
passes. Not counted: servers that were there before, and daemons that left their parents.
"""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

DEAREST = 10
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PROPERTY = "CPU seconds"
_LOADING = "loading_seconds"


def seconds_until_now() -> float:
    """CPU seconds of this process, of those that it waited for, and of all that live below it."""
    used = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        used += usage.ru_utime + usage.ru_stime
    return used + sum(_living(child) for child in _children(os.getpid()))


def _children(pid: int) -> list[int]:
    found = list[int]()
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # a process of tests has dozens
            with open(f"/proc/{pid}/task/{task}/children", "rb") as children:
                found += map(int, children.read().split())
    except OSError:  # it has ended, or this is no Linux
        return []
    return found


def _living(pid: int) -> float:
    """CPU seconds of a process, of its ended children and of all that live below it."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended: its parent counts it
        return 0.0
    user, system, ended_user, ended_system = map(int, after_name[11:15])
    ticks = user + system + ended_user + ended_system
    return ticks / TICKS_PER_SECOND + sum(_living(child) for child in _children(pid))


class CpuTimes:
    """Measures each test where it runs, and sums up and prints where the run was started."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._by_file = Counter[str]()
        self._loading = 0.0
        self._measured_until = 0.0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        self._measured_until = seconds_until_now()
        self._keep_loading(self._measured_until)

    def _keep_loading(self, seconds: float) -> None:
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is None:
            self._loading += seconds
        else:
            output[_LOADING] = seconds

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            now = seconds_until_now()
            spent = max(0.0, now - self._measured_until)  # less if a daemon left its parent
            report.user_properties = [*report.user_properties, (_PROPERTY, spent)]
            self._measured_until = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self._by_file[file] += sum(
            seconds for name, seconds in report.user_properties if name == _PROPERTY
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a process of pytest-xdist took before its first test."""
        self._loading += getattr(node, "workeroutput", {}).get(_LOADING, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self._by_file) > DEAREST:
            terminalreporter.section("CPU seconds")
            for line in self._lines():
                terminalreporter.write_line(line)

    def _lines(self) -> list[str]:
        by_folder = Counter[str]()
        for file, seconds in self._by_file.items():
            by_folder["/".join(file.split("/")[:2]) if file.count("/") > 1 else file] += seconds
        by_folder["before the first tests"] = self._loading
        return [
            f"{by_folder.total():9.1f} in all",
            *map(_line, by_folder.most_common()),
            "The dearest files:",
            *map(_line, self._by_file.most_common(DEAREST)),
        ]


def _line(measured: tuple[str, float]) -> str:
    name, seconds = measured
    return f"{seconds:9.1f} {name}"
