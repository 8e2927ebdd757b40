"""The CPU time of tests, as a run of two processes prints it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
ON_TWO_PROCESSES = ["-q", "-p", "xdist", "-n", "2", "--dist", "loadfile"]
BURN = "import time\nwhile time.process_time() < {seconds}:\n    pass"
CONFTEST = """
from cpu_times import CpuTimes

def pytest_configure(config):
    config.pluginmanager.register(CpuTimes(config))
"""
BURNING = f"""
import subprocess, sys

def test_burns_in_a_process_of_its_own():
    subprocess.run([sys.executable, "-c", {BURN.format(seconds=0.6)!r}], check=True)

def test_burns_while_it_lives():
    global living
    living = subprocess.Popen([sys.executable, "-c", {BURN.format(seconds=0.4)!r}])
    import os
    os.waitid(os.P_PID, living.pid, os.WEXITED | os.WNOWAIT)

def test_ends_what_lived():
    living.wait()
"""


def test_a_run_prints_folders_and_its_dearest_files(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (tmp_path / "tests" / "deep").mkdir(parents=True)
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "tests" / "deep" / "test_burning.py").write_text(BURNING)
    for number in range(10):
        (tmp_path / "tests" / f"test_{number}.py").write_text("def test_little():\n    pass\n")

    printed = subprocess.run(
        [sys.executable, "-m", "pytest", *ON_TWO_PROCESSES],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    by_folder, _, by_file = printed.partition("CPU seconds")[2].partition("The dearest files:")
    assert 1.0 <= _seconds(by_folder, "tests/deep") < 3.0
    assert _seconds(by_file, "tests/deep/test_burning.py") == _seconds(by_folder, "tests/deep")
    assert _seconds(by_folder, "before the first tests") > 0.0
    assert by_file.count(".py") == 10


def _seconds(text: str, name: str) -> float:
    found = re.search(rf"([\d.]+) {re.escape(name)}$", text, re.MULTILINE)
    assert found is not None, text
    return float(found[1])
