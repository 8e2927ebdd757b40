"""What is recorded of an attempt whose disk has become full."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from attempts import WAITS, Attempt, until
from small_disk import SmallDisk

from maat.launch import control
from maat.launch.processes import end_marked, send
from maat.launch.room import full_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts real attempts")

FILLS = "cat /dev/zero > {}/rest; "


@pytest.fixture
def attempt(small_disk: SmallDisk) -> Iterator[Attempt]:
    folder = small_disk.path / "att_0"
    yield (made := Attempt(folder, ranks=2))
    control.kill(made.directory)
    until(lambda: not made.directory.is_locked())
    end_marked(str(folder).__eq__, seconds=10)


def test_how_it_ended_is_written_and_that_the_disk_was_full(
    small_disk: SmallDisk, attempt: Attempt
) -> None:
    attempt.script, attempt.ranks = FILLS.format(small_disk.path) + "exit 3", 1
    assert attempt.start()
    ended = attempt.ended()
    assert full_folder([str(small_disk.path)]) == str(small_disk.path)
    assert ended["full"] == str(attempt.folder)
    assert (ended["codes"], ended["first_failed"]) == ({"0": 3}, 0)
    assert attempt.directory.exit_codes() == {0: 3}
    assert not list(attempt.folder.glob(".probe*"))


def test_orders_are_written_on_a_full_disk(small_disk: SmallDisk, attempt: Attempt) -> None:
    attempt.script = WAITS
    attempt.started()
    small_disk.fill()
    control.stop(attempt.directory)
    assert attempt.directory.has("stop")
    until(lambda: attempt.directory.has("exit.json"))
    assert attempt.ended()["asked"] == "told"


def test_a_lost_supervisor_is_told_with_the_disk(small_disk: SmallDisk, attempt: Attempt) -> None:
    attempt.started()
    small_disk.fill()
    send(attempt.shim(), 9)
    ended = attempt.lost()
    assert (ended["lost"], ended["full"]) == ("Its supervisor was killed.", str(attempt.folder))


def test_nothing_is_started_without_room_for_its_end(
    small_disk: SmallDisk, attempt: Attempt
) -> None:
    small_disk.fill()
    with pytest.raises(OSError, match="No space left"):
        attempt.start()
    assert not attempt.directory.has("started.json")
    small_disk.make_room()
    attempt.started()
