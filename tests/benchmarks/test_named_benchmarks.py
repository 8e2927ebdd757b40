"""Tests of the command: it knows its benchmarks. None is measured."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import BENCHMARKS, main


def test_the_command_loads_and_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert all(name in told for name in BENCHMARKS)
