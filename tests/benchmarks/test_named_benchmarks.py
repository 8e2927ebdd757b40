"""Tests of the command: it knows its benchmarks. None is measured."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
import without_torch

from benchmarks.__main__ import BENCHMARKS, NEED_TORCH, main, wanted
from benchmarks.agent.cpu import Script

PROJECT = Path(__file__).parents[2]


def test_the_command_loads_and_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert all(name in told for name in BENCHMARKS)


@pytest.mark.parametrize("name", get_args(Script))
def test_every_script_of_the_agents_benchmark_is_there(name: str) -> None:
    assert find_spec(f"benchmarks.agent.{name}")


def test_without_pytorch_what_needs_it_says_so() -> None:
    names = sorted(NEED_TORCH)
    asked = [word for name in names for word in ("--only", name)]
    command = [sys.executable, without_torch.__file__, "benchmarks", *asked]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    told = " ".join(ended.stderr.split())
    assert f"--only: {', '.join(names)}: PyTorch is not installed. Install maat[agent]." in told
    assert "Traceback" not in ended.stderr


def test_without_pytorch_all_others_are_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.__main__.find_spec", lambda name: None)
    assert set(wanted(None)) == BENCHMARKS.keys() - NEED_TORCH
    assert "left out, for want of PyTorch: agent, agent_gpu, training" in capsys.readouterr().err
