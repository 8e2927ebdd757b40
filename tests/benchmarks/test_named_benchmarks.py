"""Tests of the command: it knows its benchmarks. None is measured."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import get_args

import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.agent.cpu import Script


def test_the_command_loads_and_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert all(name in told for name in BENCHMARKS)


@pytest.mark.parametrize("name", get_args(Script))
def test_every_script_of_the_agents_benchmark_is_there(name: str) -> None:
    assert find_spec(f"benchmarks.agent.{name}")


WITHOUT_TORCH = """
import importlib.util
import sys

class Without:
    def find_spec(self, name, *others):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("there is no torch")

known = importlib.util.find_spec
importlib.util.find_spec = lambda name, *others: None if name == "torch" else known(name, *others)
sys.meta_path.insert(0, Without())
from benchmarks.__main__ import _wanted, main
kept = _wanted(None)
assert {"scale", "pages"} <= set(kept) and not {"agent", "agent_gpu", "training"} & set(kept), kept
main(sys.argv[1:])
"""


@pytest.mark.parametrize("name", ["agent", "agent_gpu", "training"])
def test_without_pytorch_the_others_are_there_and_it_is_told(name: str) -> None:
    command = [sys.executable, "-c", WITHOUT_TORCH, "--only", "bodies", "--only", name]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "left out, for want of PyTorch: agent, agent_gpu, training" in ended.stderr
    assert f"--only: {name}: PyTorch is not installed. Install maat[agent]." in ended.stderr
    assert "Traceback" not in ended.stderr
