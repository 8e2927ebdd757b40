"""On a machine without PyTorch the tests are still collected: those that need it skip."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import without_torch

TESTS = Path(__file__).parents[1]
NEAR_TORCH = re.compile(r"torch|^from (benchmarks|maat\.agent|maat\.demo)", re.MULTILINE)


def test_every_test_near_pytorch_is_collected_without_it() -> None:
    files = [str(path) for path in TESTS.rglob("test_*.py") if NEAR_TORCH.search(path.read_text())]
    assert len(files) > 10
    command = [sys.executable, without_torch.__file__, "pytest", "--collect-only", "-q", *files]
    may_skip = {
        name: value for name, value in os.environ.items() if name != "MAAT_TESTS_SKIP_NOTHING"
    }
    ended = subprocess.run(
        command, cwd=TESTS.parent, env=may_skip, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-3000:]
