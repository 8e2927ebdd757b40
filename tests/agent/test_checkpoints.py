"""Checkpoints: whole or not at all, the older one if the newer is damaged, by one attempt."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

from maat.agent.checkpoint import Checkpoints, Fenced, check_plain

pytestmark = pytest.mark.needs_torch


def _saved(folder: Path, *steps: int, number: int = 1) -> Checkpoints:
    checkpoints = Checkpoints(folder, number)
    for step in steps:
        checkpoints.save(step, {"weight": torch.full((100,), float(step))}, {"step": step})
    return checkpoints


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_the_newest_two_are_kept_and_the_newest_is_given_back(tmp_path: Path) -> None:
    checkpoints = _saved(tmp_path, 5, 90, 100)
    assert _names(tmp_path) == ["fence", "step-000000090", "step-000000100"]
    found = checkpoints.newest()
    assert found is not None
    assert found.numbers == {"step": 100}
    assert torch.equal(found.state["weight"], torch.full((100,), 100.0))


def _shorten(folder: Path) -> None:
    os.truncate(folder / "state.pt", 300)


def _flip(folder: Path) -> None:
    data = bytearray((folder / "state.pt").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "state.pt").write_bytes(data)


def _lose_a_file(folder: Path) -> None:
    (folder / "agent.json").unlink()


def _never_end(folder: Path) -> None:
    (folder / "DONE").unlink()


@pytest.mark.parametrize("damage", [_shorten, _flip, _lose_a_file, _never_end])
def test_a_damaged_checkpoint_gives_way_to_the_older_one_for_good(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    checkpoints = _saved(tmp_path, 10, 20)
    damage(tmp_path / "step-000000020")
    found = checkpoints.newest()
    assert found is not None
    assert found.numbers == {"step": 10}
    _saved(tmp_path, 15, 18)
    newest = checkpoints.newest()
    assert newest is not None
    assert newest.numbers == {"step": 18}, "the damaged one has a higher step, and counts no more"


def test_a_checkpoint_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    checkpoints = _saved(tmp_path, 10)
    checkpoints.save(10, {"weight": torch.zeros(1)}, {"step": 10, "epoch": 1})
    found = checkpoints.newest()
    assert found is not None
    assert found.numbers == {"step": 10, "epoch": 1}


def test_an_attempt_below_the_fence_writes_nothing(tmp_path: Path) -> None:
    _saved(tmp_path, 10, number=3)
    (tmp_path / "fence").write_text("4")
    with pytest.raises(Fenced, match=r"Attempt 4 has the job, and this is attempt 3\."):
        _saved(tmp_path, 20, number=3)
    assert _names(tmp_path) == ["fence", "step-000000010"]
    _saved(tmp_path, 20, number=4)
    assert "step-000000020" in _names(tmp_path)


def test_a_folder_that_the_script_removed_is_fenced_again(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    Checkpoints(folder, 3).save(10, {}, {})
    assert (folder / "fence").read_text() == "3"
    with pytest.raises(Fenced):
        Checkpoints(folder, 2).save(11, {}, {})
    Checkpoints(tmp_path / "by hand", 0).save(10, {}, {})
    assert _names(tmp_path / "by hand") == ["step-000000010"]


def test_a_fence_raised_while_a_checkpoint_is_written_keeps_it_from_being_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = torch.save

    def write_slowly(*args: Any) -> None:
        write(*args)
        (tmp_path / "fence").write_text("2")

    monkeypatch.setattr(torch, "save", write_slowly)
    with pytest.raises(Fenced):
        _saved(tmp_path, 10, number=1)
    assert _names(tmp_path) == ["fence"]


def test_a_checkpoint_that_cannot_be_written_leaves_the_others_and_no_rest(tmp_path: Path) -> None:
    checkpoints = _saved(tmp_path, 10)
    with pytest.raises(TypeError):
        checkpoints.save(20, {"weight": torch.zeros(1)}, {"step": object()})
    assert _names(tmp_path) == ["fence", "step-000000010"]


def test_what_could_not_be_given_back_is_refused_before_training() -> None:
    check_plain({"a": [1, 2.0, torch.zeros(1)], "b": {"c": None, "d": (True, "x")}}, "ema")
    with pytest.raises(TypeError, match=r"ema\['a'\]\[1\] is a builtins\.object.*keep tensors"):
        check_plain({"a": [1, object()]}, "ema")
