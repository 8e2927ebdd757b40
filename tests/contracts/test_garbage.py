"""How a process looks for garbage: set before it imports what it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("package", ["frontend", "worker"])
def test_a_process_looks_for_garbage_less_often_before_it_imports_the_service(package: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", f"import gc, {package}; print(gc.get_threshold()[0])"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(said.stdout) == 100_000


def test_what_is_loaded_is_left_out_of_later_looks() -> None:
    program = (
        "import gc, maat.garbage as g; g.leave_out_what_is_loaded(); print(len(gc.get_objects()))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert int(said.stdout) < 1000
