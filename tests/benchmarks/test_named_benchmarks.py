"""Tests of the command: it knows its benchmarks. None is measured."""

from __future__ import annotations

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
