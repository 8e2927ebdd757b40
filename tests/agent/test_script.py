"""The script of docs/adaptive-script.md."""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLES = HERE / "examples"
PAGE = ROOT / "docs/adaptive-script.md"


def _difference(plain: str, adaptive: str, *, around: int) -> list[str]:
    one, other = ((EXAMPLES / name).read_text().splitlines() for name in (plain, adaptive))
    return list(difflib.unified_diff(one, other, lineterm="", n=around))[2:]


def test_the_page_shows_the_difference_of_two_scripts_five_lines() -> None:
    found = _difference("plain.py", "adaptive.py", around=100)[1:]
    assert "\n".join(found) in PAGE.read_text()
    assert len([line for line in found if line.startswith("+") and line != "+"]) == 5


@pytest.mark.parametrize("name", ["hf", "lightning", "accelerate"])
def test_the_page_shows_the_difference_in_the_loop_of_a_library(name: str) -> None:
    found = _difference(f"{name}_plain.py", f"{name}_adaptive.py", around=2)
    assert "\n".join(["```diff", *found, "```"]) in PAGE.read_text()


def _run(script: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / script],
        cwd=folder,
        env={
            "PYTHONPATH": str(ROOT),
            "PATH": "/usr/bin:/bin",
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "HOME": str(folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs_torch
def test_the_adaptive_script_runs_by_hand(tmp_path: Path) -> None:
    said = _run("adaptive.py", tmp_path)
    assert [line.split(":")[0] for line in said.splitlines()] == ["epoch 0", "epoch 1", "epoch 2"]
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.needs_torch
@pytest.mark.parametrize(
    ("name", "library", "ends"),
    [
        ("hf", "transformers", "'epoch': '3'"),
        ("lightning", "lightning", "loss "),
        ("accelerate", "accelerate", "epoch 2: loss "),
    ],
)
def test_the_script_of_a_library_runs_by_hand(
    tmp_path: Path, name: str, library: str, ends: str
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed: maat[agent-test]")
    said = [_run(f"{name}_{kind}.py", tmp_path).splitlines()[-1] for kind in ("plain", "adaptive")]
    assert all(ends in each for each in said), said


def test_without_torch_the_agent_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import maat.agent; maat.agent.start()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert 'ModuleNotFoundError: maat.agent needs torch: pip install "maat[agent]"' in done.stderr


def test_the_agent_is_imported_without_torch() -> None:
    code = "import sys, maat.agent; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
