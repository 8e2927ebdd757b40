"""Fixtures of all tests, which of them run where and in which order, and their CPU times."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from cpu_times import CpuTimes
from hypothesis import HealthCheck, settings
from slurm_cluster import NoSlurm, SlurmCluster
from small_disk import SmallDisk

BROWSER = "tests/browser/"
BROWSER_HALVES = f"{BROWSER}test_l"  # the second half of its tests begins here
SLOW = (
    BROWSER,
    "tests/faults/",
    "tests/contracts/",
    "tests/agent/",
    "tests/worker/",
    "tests/backend/",
)
_HALVED = {Path(__file__).parent / folder for folder in ("backend", "worker", "faults")}
_TWINS = {"sqlite": "postgresql", "embedded": "deployed"}
_DATABASES, _BOTH = ("database_url", "module_database_url", "kind"), "both_databases"

# Matrices here are small: a fit on a pool of threads takes twenty times the CPU of one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A process of tests is full of modules, routes and pages that stay: every look for garbage goes
# through all of them.
gc.set_threshold(100_000)

settings.register_profile(
    "maat",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    max_examples=100 if os.environ.get("MAAT_TESTS_LONG") else 40,
)
settings.load_profile("maat")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of public measurements and traces; skips where MAAT_DATA does not name one."""
    named = os.environ.get("MAAT_DATA")
    if not named:
        pytest.skip("MAAT_DATA does not name the folder of public data")
    folder = Path(named)
    if not (folder / "sia-artifact").is_dir():
        pytest.fail(f"MAAT_DATA={named} holds no sia-artifact folder")
    return folder


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """A Slurm of four nodes, which all tests of a process share."""
    cluster = SlurmCluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    except NoSlurm as reason:
        pytest.skip(str(reason))
    finally:
        cluster.stop()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuTimes(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests out unless they are asked for.

    A test of the service that is there for SQLite and for PostgreSQL, or for both deployments, runs
    on one of the two: half of them on this, half on that.
    """
    items.sort(key=_turn)
    for item in _done_by_the_other_database(items):
        item.add_marker(pytest.mark.long)
    if "long" in (config.getoption("-m") or ""):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)


def _turn(item: pytest.Item) -> int:
    """Order tests by folder, the slowest first: none is left alone with one at the end."""
    return next((n for n, folder in enumerate(SLOW) if item.nodeid.startswith(folder)), len(SLOW))


def _done_by_the_other_database(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield tests that are sampled on the other database, of those that are there on both.

    Where databases differ (locks, sending while others wait, migrations), the module says
    `both_databases`.
    """
    twins = defaultdict[str, dict[str, pytest.Item]](dict)
    module_wide, either = set[str](), {*_TWINS, *_TWINS.values()}
    for item in items:
        given = getattr(item, "callspec", None)
        if given is None or item.get_closest_marker(_BOTH) or not _HALVED & set(item.path.parents):
            continue
        for fixture in set(_DATABASES) & set(given.params):
            one = given.params[fixture]
            if one not in either:
                continue
            claim = item.nodeid.replace(one, "")
            twins[claim][one] = item
            module_wide |= {claim} if fixture == "module_database_url" else set()
    for claim, of_both in twins.items():
        for pair in _TWINS.items():
            if set(of_both) == set(pair):
                text = claim.partition("::")[0] if claim in module_wide else claim
                yield of_both[pair[crc32(text.encode()) % 2]]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Half of the browser tests go to one worker, for they share a service and a Chromium."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # by number of tests: few may take longest

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return f"{BROWSER}{file < BROWSER_HALVES}" if file.startswith(BROWSER) else file

    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Leave what was imported out of every later look for garbage."""
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if MAAT_TESTS_SKIP_NOTHING is set and a test skipped for lack of a service.

    Tests of public data may skip.
    """
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("MAAT_TESTS_SKIP_NOTHING"):
        return
    skipped = [
        report
        for report in reporter.stats.get("skipped", [])
        if "MAAT_DATA" not in str(report.longrepr)
    ]
    for report in skipped:
        reporter.write_line(f"skipped, and nothing may be: {report.nodeid}: {report.longrepr}")
    if skipped and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "disk")
    disk.path.mkdir()
    if not disk.mount():
        pytest.skip("a small disk can be mounted by root only")
    yield disk
    disk.unmount()
