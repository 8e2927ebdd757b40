"""The folder of an attempt: its lock, how it stands by its files, and what may be half-written."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attempts import WAITS, Attempt, kill_9, until

from maat.launch import control
from maat.launch.attempt_dir import AttemptDir, Standing
from maat.launch.control import StartFailed
from maat.launch.processes import NeedsLinux

NewAttempt = Callable[..., Attempt]
ROOT = Path(__file__).resolve().parents[2]


def test_one_takes_the_lock_and_it_is_free_when_the_last_holder_ends(tmp_path: Path) -> None:
    directory = AttemptDir(str(tmp_path))
    lock = directory.take_lock()
    assert lock is not None
    assert directory.take_lock() is None
    assert directory.is_locked()
    holder = subprocess.Popen(["sleep", "1000"], pass_fds=(lock,))
    os.close(lock)
    assert directory.is_locked(), "a child process goes on holding it"
    holder.kill()
    holder.wait()
    assert not directory.is_locked()
    again = directory.take_lock()
    assert again is not None
    os.close(again)


def test_who_only_asks_for_the_lock_keeps_nobody_from_taking_it(tmp_path: Path) -> None:
    directory = AttemptDir(str(tmp_path))
    asking = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(asking, fcntl.LOCK_SH)  # as is_locked() does for a moment
    assert not directory.is_locked()
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(directory.take_lock)
        time.sleep(0.05)
        assert not taking.done()
        os.close(asking)
        lock = taking.result()
    assert lock is not None
    os.close(lock)


def test_how_an_attempt_stands_follows_from_lock_and_files(new_attempt: NewAttempt) -> None:
    attempt = new_attempt()
    assert attempt.directory.standing() is Standing.ABSENT
    attempt.folder.mkdir()
    assert attempt.directory.standing() is Standing.ABSENT
    lock = attempt.directory.take_lock()
    assert lock is not None
    assert attempt.directory.standing() is Standing.STARTING
    os.close(lock)
    assert attempt.directory.standing() is Standing.ABSENT
    attempt.started()
    assert attempt.directory.standing() is Standing.RUNNING
    control.kill(attempt.directory)
    attempt.ended()
    assert attempt.directory.standing() is Standing.ENDED


def test_what_was_left_half_written_is_written_again(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(f'test "$API_KEY" = key && {WAITS}', secrets={"API_KEY": "key"})
    attempt.folder.mkdir(mode=0o755)
    (attempt.folder / "spec.json").write_text("{")
    (attempt.folder / ".secrets.json.1a2b").write_text("half")
    attempt.started()
    assert attempt.folder.stat().st_mode & 0o777 == 0o700


def test_a_supervisor_that_could_not_begin_leaves_the_attempt_to_be_started_again(
    new_attempt: NewAttempt,
) -> None:
    attempt = new_attempt()
    (attempt.folder / "rank-1.log").mkdir(parents=True)
    attempt.start()
    until(lambda: not attempt.directory.is_locked())
    assert attempt.directory.standing() is Standing.ABSENT
    assert "Is a directory" in attempt.directory.text("shim.log")
    assert attempt.processes() == []
    assert attempt.log(0) == "", "no rank runs before all of them are recorded"
    (attempt.folder / "rank-1.log").rmdir()
    attempt.started()


def test_a_python_that_is_not_there_is_an_error(
    new_attempt: NewAttempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = new_attempt()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(StartFailed, match="/nowhere/python cannot be run: No such file"):
        attempt.start()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(StartFailed, match="did not start: it says nothing"):
        attempt.start()
    assert attempt.directory.standing() is Standing.ABSENT


def test_other_systems_are_told_that_linux_is_needed(
    new_attempt: NewAttempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = new_attempt()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NeedsLinux, match="on Linux only, and this is darwin"):
        attempt.start()
    assert not attempt.folder.exists()


def test_what_is_forgotten_leaves_logs_and_ends_and_never_runs_again(
    new_attempt: NewAttempt,
) -> None:
    attempt = new_attempt(secrets={"API_KEY": "key"}).started()
    (attempt.folder / "master").write_text("host:1")
    control.forget(attempt.directory)
    assert attempt.directory.has("token"), "what runs is not forgotten"
    control.stop(attempt.directory)
    attempt.ended()
    until(lambda: not attempt.directory.is_locked())
    control.forget(attempt.directory)
    assert sorted(os.listdir(attempt.folder)) == [
        "exit.json",
        "rank-0.exit",
        "rank-0.log",
        "rank-1.exit",
        "rank-1.log",
        "shim.log",
        "spec.json",
    ]
    assert not attempt.start()


def test_what_never_ran_and_is_forgotten_never_runs(new_attempt: NewAttempt) -> None:
    attempt = new_attempt()
    attempt.folder.mkdir()
    control.forget(attempt.directory)
    assert not attempt.start()
    assert attempt.ended()["lost"] == "It was never started."


def test_a_lost_attempt_is_not_forgotten_before_it_is_concluded(new_attempt: NewAttempt) -> None:
    attempt = new_attempt().started()
    kill_9(attempt.shim())
    control.forget(attempt.directory)
    assert attempt.directory.standing() is Standing.LOST
    attempt.lost()
    control.forget(attempt.directory)
    assert not attempt.directory.has("token")


def test_orders_to_what_is_absent_or_ended_leave_no_trace(new_attempt: NewAttempt) -> None:
    absent, ended = new_attempt(), new_attempt("echo ready").started()
    ended.ended()
    for order in (control.stop, control.kill):
        order(absent.directory)
        order(ended.directory)
    assert not absent.folder.exists()
    assert not ended.directory.has("stop")
    assert not ended.directory.has("kill")


def test_the_supervisor_imports_neither_site_packages_nor_much(new_attempt: NewAttempt) -> None:
    code = (
        "import sys; sys.path.append(sys.argv[1]); import maat.launch.shim, maat.launch.rank, json;"
        "print(json.dumps([sorted(sys.modules), sys.path]))"
    )
    modules, path = json.loads(
        subprocess.check_output([sys.executable, "-I", "-S", "-c", code, str(ROOT)])
    )
    for heavy in ("dataclasses", "subprocess", "pathlib", "socket", "threading", "inspect"):
        assert heavy not in modules
    assert {name for name in modules if name.startswith("maat.")} == {
        "maat.launch",
        "maat.launch.attempt_dir",
        "maat.launch.log_limit",
        "maat.launch.processes",
        "maat.launch.rank",
        "maat.launch.room",
        "maat.launch.shim",
    }
    standard = set(sys.stdlib_module_names)
    assert {name.partition(".")[0] for name in modules} - standard <= {"maat", "__main__"}
    assert not [each for each in path if "site-packages" in each]


def test_the_launcher_can_be_imported_where_nothing_of_linux_is() -> None:
    code = (
        "import sys, os, signal; sys.path.append(sys.argv[1]); sys.platform = 'darwin'\n"
        "for name in ('sigtimedwait', 'pidfd_send_signal'): delattr(signal, name)\n"
        "del os.pidfd_open\n"
        "import maat.launch.control, maat.launch.rank, maat.launch.shim"
    )
    subprocess.check_call([sys.executable, "-I", "-S", "-c", code, str(ROOT)])


def test_of_two_ranks_that_remove_a_file_at_once_neither_fails(tmp_path: Path) -> None:
    directory = AttemptDir(str(tmp_path))
    with ThreadPoolExecutor(2) as both:
        for _ in range(500):
            directory.write_text("secrets.json", "{}")
            list(both.map(directory.remove, ["secrets.json"] * 2))
            assert not directory.has("secrets.json")


def test_a_rank_that_shows_no_life_is_noticed_unless_it_has_ended(tmp_path: Path) -> None:
    directory = AttemptDir(str(tmp_path))
    assert directory.seconds_without_life() == 0.0, "none ever showed any"
    directory.show_life(0)
    directory.show_life(1)
    assert directory.seconds_without_life() < 60.0
    sign = tmp_path / "rank-1.alive"
    os.utime(sign, (sign.stat().st_mtime - 100.0,) * 2)
    assert 100.0 <= directory.seconds_without_life() < 160.0
    directory.write("rank-1.exit", {"code": 0})
    assert directory.seconds_without_life() < 60.0
    directory.write_text("rank-1.alive", "spoilt")
    (tmp_path / "rank-x.alive").touch()
    assert directory.seconds_without_life() == 0.0, "what cannot be read says nothing"
