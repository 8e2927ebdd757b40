"""The script of docs/adaptive-script.md."""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def _lines(name: str) -> list[str]:
    return (HERE / name).read_text().splitlines()


def test_the_page_shows_the_difference_of_two_scripts_five_lines() -> None:
    found = list(
        difflib.unified_diff(_lines("plain.py"), _lines("adaptive.py"), lineterm="", n=100)
    )[3:]
    assert "\n".join(found) in (ROOT / "docs/adaptive-script.md").read_text()
    assert len([line for line in found if line.startswith("+") and line != "+"]) == 5


@pytest.mark.needs_torch
def test_the_adaptive_script_runs_by_hand(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "adaptive.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        "epoch 0",
        "epoch 1",
        "epoch 2",
    ]
    assert not list(tmp_path.iterdir())


def test_without_torch_the_agent_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import maat.agent; maat.agent.start()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert 'ModuleNotFoundError: maat.agent needs torch: pip install "maat[agent]"' in done.stderr


def test_the_agent_is_imported_without_torch() -> None:
    code = "import sys, maat.agent; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
