"""What is killed with -9, and what happens to the processes of an attempt then."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from attempts import IGNORES, LEAVES_CHILDREN, WAITS, Attempt, kill_9, until

from maat.launch import control
from maat.launch.attempt_dir import Standing
from maat.launch.processes import identity

NewAttempt = Callable[..., Attempt]


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def test_the_worker_dies_with_its_whole_group_and_the_ranks_go_on(new_attempt: NewAttempt) -> None:
    attempt = new_attempt()
    worker = attempt.start_in_a_worker()
    assert worker.stdout is not None
    assert worker.stdout.readline() == "True\n"
    until(lambda: all("ready" in log for log in attempt.logs()))
    shim = attempt.shim().pid
    assert _parent(shim) != worker.pid
    assert os.getsid(shim) != os.getsid(worker.pid)

    os.killpg(worker.pid, signal.SIGKILL)
    worker.communicate()

    assert attempt.directory.standing() is Standing.RUNNING
    assert identity(attempt.rank(0).pid) == attempt.rank(0)
    assert not attempt.start(), "the next worker finds it started"
    control.stop(attempt.directory)
    assert attempt.ended()["codes"] == {"0": 143, "1": 143}


def test_the_supervisor_is_no_session_leader_and_has_no_terminal(new_attempt: NewAttempt) -> None:
    shim = new_attempt().started().shim().pid
    assert os.getsid(shim) not in {shim, os.getsid(0)}
    with open(f"/proc/{shim}/stat") as file:
        assert file.read().rpartition(")")[2].split()[4] == "0"


def test_a_rank_dies_the_others_save_and_orphans_are_swept(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(LEAVES_CHILDREN).started()
    kill_9(attempt.rank(1))
    ended = attempt.ended()
    assert ended["codes"] == {"0": 143, "1": -9}
    assert (ended["first_failed"], ended["asked"], ended["lost"]) == (1, "rank", None)
    assert ended["swept"] == 6  # two sleeping children of each rank, and what the shell waits for
    assert attempt.processes() == []


def test_the_supervisor_dies_the_ranks_die_and_their_children_are_swept(
    new_attempt: NewAttempt,
) -> None:
    attempt = new_attempt(LEAVES_CHILDREN).started()
    ranks = [attempt.rank(0), attempt.rank(1)]
    kill_9(attempt.shim())
    until(lambda: all(identity(rank.pid) != rank for rank in ranks))
    until(lambda: len(attempt.processes()) == 6)
    assert attempt.directory.standing() is Standing.LOST
    assert not attempt.start(), "what was started is never started again"

    ended = attempt.lost()

    assert (ended["lost"], ended["swept"]) == ("Its supervisor was killed.", 6)
    assert attempt.processes() == []
    assert attempt.directory.standing() is Standing.ENDED
    assert not attempt.start()
    assert attempt.logs() == ["ready\n", "ready\n"]


def test_the_supervisor_dies_after_all_ranks_ended_well_and_nothing_is_lost(
    new_attempt: NewAttempt,
) -> None:
    attempt = new_attempt("echo ready; exit 0", ranks=1).started()
    attempt.ended()
    attempt.directory.remove("exit.json")
    ended = attempt.lost()
    assert (ended["codes"], ended["lost"]) == ({"0": 0}, None)


def test_the_machine_is_started_anew_and_all_attempts_are_lost(new_attempt: NewAttempt) -> None:
    attempt = new_attempt().started()
    kill_9(attempt.shim())
    started = attempt.directory.read("started.json")
    assert started is not None
    attempt.directory.write("started.json", {**started, "boot_id": "an-earlier-one"})
    assert attempt.lost()["lost"] == "The machine was restarted."


def test_of_two_workers_at_once_one_starts(new_attempt: NewAttempt) -> None:
    attempt = new_attempt()
    workers = [attempt.start_in_a_worker() for _ in range(4)]
    answers = sorted(worker.stdout.readline() for worker in workers if worker.stdout)
    for worker in workers:
        worker.kill()
        worker.communicate()
    assert answers == ["False\n", "False\n", "False\n", "True\n"]
    until(lambda: all(attempt.logs()))
    assert len(attempt.supervisors()) == 1
    assert attempt.logs() == ["ready\n", "ready\n"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_do_not_disturb_the_supervisor(
    new_attempt: NewAttempt, number: signal.Signals
) -> None:
    attempt = new_attempt().started()
    os.kill(attempt.shim().pid, number)
    os.kill(attempt.shim().pid, signal.SIGCHLD)
    until(lambda: _is_idle(attempt.shim().pid))
    assert attempt.directory.standing() is Standing.RUNNING
    control.stop(attempt.directory)
    assert attempt.ended()["codes"] == {"0": 143, "1": 143}


def test_a_supervisor_that_is_told_to_end_ends_its_ranks_first(new_attempt: NewAttempt) -> None:
    attempt = new_attempt().started()
    os.kill(attempt.shim().pid, signal.SIGTERM)
    ended = attempt.ended()
    assert (ended["codes"], ended["asked"]) == ({"0": 143, "1": 143}, "told")


def _is_idle(pid: int) -> bool:
    """Return whether a process has no signal left to take note of."""
    with open(f"/proc/{pid}/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["SigPnd"], 16) == int(lines["ShdPnd"], 16) == 0


def test_an_order_to_stop_reaches_the_ranks_and_not_their_children(new_attempt: NewAttempt) -> None:
    child = (
        "(trap 'echo child was told' TERM; echo child ready; sleep 1000 & while :; do wait; done)"
    )
    attempt = new_attempt(
        f"{child} & trap 'echo rank was told; sleep 0.2; exit 143' TERM; "
        "echo ready; while :; do wait; done",
        ranks=1,
    ).started()
    until(lambda: "child ready" in attempt.log())
    control.stop(attempt.directory)
    assert attempt.ended()["codes"] == {"0": 143}
    assert "rank was told" in attempt.log()
    assert "child was told" not in attempt.log()


def test_after_the_grace_whole_groups_are_killed(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(IGNORES, stop_seconds=0.2).started()
    control.stop(attempt.directory)
    ended = attempt.ended()
    assert (ended["codes"], ended["asked"]) == ({"0": -9, "1": -9}, "timeout")
    assert attempt.processes() == []


def test_a_kill_needs_no_grace_and_says_what_was_lost(new_attempt: NewAttempt) -> None:
    attempt, other = new_attempt(IGNORES).started(), new_attempt(IGNORES).started()
    control.stop(attempt.directory)
    control.kill(attempt.directory)
    control.kill(other.directory, lost="The node is down.")
    control.kill(other.directory)
    assert [attempt.ended()[name] for name in ("asked", "lost")] == ["kill", None]
    assert [other.ended()[name] for name in ("asked", "lost")] == ["kill", "The node is down."]
    assert attempt.processes() + other.processes() == []


def test_an_order_that_comes_before_the_ranks_is_carried_out(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(WAITS)
    attempt.folder.mkdir()
    control.stop(attempt.directory)
    assert attempt.start()
    assert attempt.ended()["asked"] == "told"


def test_orders_are_seen_even_if_nobody_wakes_the_supervisor(new_attempt: NewAttempt) -> None:
    attempt = new_attempt().started()
    attempt.directory.write_text("stop", "")
    assert attempt.ended()["asked"] == "told"
