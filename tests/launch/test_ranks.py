"""What a rank is given: environment, limits, log, standard streams; and how its end is recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from attempts import IGNORES, WAITS, Attempt, until

from maat.launch import control
from maat.launch.attempt_dir import AttemptDir, Limits
from maat.launch.log_limit import keep_within
from maat.launch.rank import inherited

NewAttempt = Callable[..., Attempt]
ENVIRONMENT = "echo ready; env"


def _environment(attempt: Attempt, rank: int = 0) -> dict[str, str]:
    attempt.ended()
    lines = (line for line in attempt.log(rank).splitlines() if "=" in line)
    variables = dict(line.split("=", 1) for line in lines)
    return {name: value for name, value in variables.items() if name not in {"PWD", "_", "SHLVL"}}


def test_a_rank_knows_nothing_of_the_workers_environment_but_what_is_allowed(
    new_attempt: NewAttempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in {
        "PATH": "/usr/bin:/bin",
        "HOME": "/root",
        "LC_ALL": "C",
        "NCCL_DEBUG": "INFO",
        "CUDA_HOME": "/cuda",
        "PYTHONPATH": "/elsewhere",
        "LD_PRELOAD": "",
        "MAAT_TOKEN": "secret of the worker",
        "MASTER_ADDR": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    attempt = new_attempt(ENVIRONMENT, ranks=1).started()
    assert _environment(attempt) == {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": "/root",
        "LC_ALL": "C",
        "NCCL_DEBUG": "INFO",
        "CUDA_HOME": "/cuda",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MAAT_ATTEMPT": "att_0",
        "MAAT_ATTEMPT_DIR": str(attempt.folder),
        "MAAT_NUMBER": "3",
        "MAAT_CHECKPOINT_DIR": "/nowhere",
        "MAAT_GPU_TYPE": "t4",
        "MAAT_SHAPE": '{"node-0": 1}',
    }


def test_the_supervisors_own_environment_holds_no_secret_either(
    new_attempt: NewAttempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAAT_TOKEN", "secret of the worker")
    attempt = new_attempt(secrets={"API_KEY": "secret of the job"}).started()
    environment = Path(f"/proc/{attempt.shim().pid}/environ").read_bytes()
    assert b"secret of the" not in environment


def test_a_jobs_variables_reach_its_ranks_and_cannot_change_what_maat_says(
    new_attempt: NewAttempt,
) -> None:
    asked = {"LEARNING_RATE": "0.1", "OMP_NUM_THREADS": "7", "RANK": "9", "MAAT_ATTEMPT": "other"}
    attempt = new_attempt(ENVIRONMENT, ranks=1, changes={"env": asked}).started()
    environment = _environment(attempt)
    assert environment["LEARNING_RATE"] == "0.1"
    assert environment["OMP_NUM_THREADS"] == "7"
    assert (environment["RANK"], environment["MAAT_ATTEMPT"]) == ("0", "att_0")


def test_each_rank_knows_its_place_and_the_gpus_of_its_node(new_attempt: NewAttempt) -> None:
    changes = {
        "gpus_by_node": {"b": (0, 2, 3, 1), "a": (1, 0)},
        "gpus_per_replica": 2,
        "cuda_devices": {"b": ("4", "6", "7", "5")},
    }
    attempt = new_attempt(ENVIRONMENT, ranks=3, changes=changes).started()
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES")
    found = [_environment(attempt, rank) for rank in range(3)]
    assert [[each[name] for name in names] for each in found] == [
        ["0", "0", "3", "4,6,7,5"],
        ["1", "1", "3", "4,6,7,5"],
        ["2", "0", "3", ""],
    ]
    assert json.loads(found[0]["MAAT_SHAPE"]) == {"b": 4, "a": 2}


def test_secrets_reach_the_ranks_and_nothing_else(new_attempt: NewAttempt) -> None:
    secret, token = "c2VjcmV0LW9mLXRoZS1qb2I", "token-of-this-attempt"
    attempt = new_attempt(
        f'test "$API_KEY" = {secret[:8]}"{secret[8:]}" && {WAITS}',
        secrets={"API_KEY": secret},
        token=token,
    ).started()
    assert not attempt.directory.has("secrets.json")
    assert attempt.directory.text("token") == token
    for pid in [attempt.shim().pid, *attempt.processes()]:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert secret.encode() not in command
        assert token.encode() not in command
    control.stop(attempt.directory)
    attempt.ended()
    for path in attempt.folder.iterdir():
        assert secret not in path.read_text(), path
        assert path.name == "token" or token not in path.read_text(), path
        assert path.stat().st_mode & 0o077 == 0, path
    assert attempt.folder.stat().st_mode & 0o777 == 0o700
    assert json.loads((attempt.folder / "spec.json").read_text())["secret_names"] == ["API_KEY"]


def test_limits_hold_in_the_ranks(new_attempt: NewAttempt) -> None:
    limits = Limits(open_files=64, file_bytes=4096, processes=4000)
    attempt = new_attempt(
        "echo ready; ulimit -Sc; ulimit -Hc; ulimit -Sn; ulimit -Hn; ulimit -Sf; "
        "cat /proc/self/limits | grep 'Max processes' | tr -s ' ' | cut -d' ' -f3,4; umask",
        ranks=1,
        changes={"limits": limits},
    ).started()
    attempt.ended()
    assert attempt.log().split() == ["ready", "0", "0", "64", "64", "8", "4000", "4000", "0077"]


def test_a_rank_that_writes_too_large_a_file_ends_by_that(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(
        f"cd {new_attempt().folder.parent}; echo ready; head -c 100000 /dev/zero > large; "
        "kill -l $?",
        ranks=1,
        changes={"limits": Limits(file_bytes=4096)},
    ).started()
    attempt.ended()
    assert attempt.log().endswith("\nXFSZ\n")


def test_a_rank_begins_as_from_a_shell(new_attempt: NewAttempt) -> None:
    """Nothing blocked or ignored, no open files but three, no input, a group of its own."""
    attempt = new_attempt(
        "echo ready; grep -E '^Sig(Blk|Ign)' /proc/self/status; cat; ls /proc/$$/fd; "
        "echo group $(ps -o pgid= -p $$) of $$; echo to stderr >&2",
        ranks=1,
    ).started()
    attempt.ended()
    masks = [line.split()[1] for line in attempt.log().splitlines() if line.startswith("Sig")]
    # Other signals are the C library's own.
    theirs = sum(1 << (number - 1) for number in signal.valid_signals())
    assert [int(mask, 16) & theirs for mask in masks] == [0, 0]
    assert "\n0\n1\n2\ngroup" in attempt.log()
    _, group, _, pid = next(
        line.split() for line in attempt.log().splitlines() if line.startswith("group")
    )
    assert group == pid
    assert attempt.log().endswith("to stderr\n")


def test_a_command_is_no_text_for_a_shell(new_attempt: NewAttempt) -> None:
    argv = ("/bin/echo", "ready", "$HOME;", "`id`", "* ' \"", "")
    attempt = new_attempt(ranks=1, changes={"argv": argv}).started()
    attempt.ended()
    assert attempt.log() == "ready $HOME; `id` * ' \" \n"


def test_a_rank_runs_in_its_folder_and_finds_commands_there_and_on_the_path(
    new_attempt: NewAttempt, tmp_path: Path
) -> None:
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\necho ready; pwd\n")
    script.chmod(0o700)
    changes = {"cwd": str(tmp_path), "argv": ("./train.sh",)}
    here = new_attempt(ranks=1, changes=changes).started()
    here.ended()
    assert here.log() == f"ready\n{tmp_path}\n"
    on_path = new_attempt(ranks=1, changes={"argv": ("echo", "ready")}).started()
    assert on_path.ended()["codes"] == {"0": 0}


def test_python_is_the_one_that_runs_maat_unless_the_job_says_otherwise(
    new_attempt: NewAttempt, tmp_path: Path
) -> None:
    argv = ("python", "-c", "import sys; print('ready', sys.executable)")
    attempt = new_attempt(ranks=1, changes={"argv": argv}).started()
    assert attempt.log() == f"ready {Path(sys.executable).parent / 'python'}\n"
    (tmp_path / "python").write_text("#!/bin/sh\necho ready own\n")
    (tmp_path / "python").chmod(0o700)
    changes = {"argv": argv, "env": {"PATH": f"{tmp_path}:/usr/bin:/bin"}}
    own = new_attempt(ranks=1, changes=changes).started()
    assert own.log() == "ready own\n"


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"argv": ("/nowhere/python",)}, 127, "run '/nowhere/python': No such file or directory"),
        ({"argv": ("no-such-command",)}, 127, "run 'no-such-command': No such file or directory"),
        ({"argv": ("/etc/passwd",)}, 126, "run '/etc/passwd': Permission denied"),
        ({"argv": ("/bin/sh", "x" * 3_000_000)}, 126, "run '/bin/sh': Argument list too long"),
        ({"cwd": "/nowhere"}, 127, "enter the folder '/nowhere': No such file or directory"),
        ({"cwd": "/etc/passwd"}, 126, "enter the folder '/etc/passwd': Not a directory"),
    ],
)
def test_a_command_that_cannot_be_started_says_why_in_its_log(
    new_attempt: NewAttempt, changes: dict[str, object], code: int, reason: str
) -> None:
    attempt = new_attempt(ranks=1, changes=changes)
    assert attempt.start()
    ended = attempt.ended()
    assert (ended["codes"], ended["first_failed"]) == ({"0": code}, 0)
    assert attempt.log() == f"maat: cannot {reason}\n"


def test_the_end_of_a_rank_is_recorded_while_others_go_on(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(f"if [ $RANK = 0 ]; then echo ready; exit 0; fi; {WAITS}").started()
    until(lambda: attempt.directory.has("rank-0.exit"))
    ended = attempt.directory.read("rank-0.exit")
    assert ended is not None
    assert (ended["code"], ended["signal"]) == (0, None)
    assert 0 < ended["max_rss_bytes"] < 1 << 30
    assert ended["cpu_seconds"] >= 0
    assert attempt.directory.exit_codes() == {0: 0}
    assert not attempt.directory.has("exit.json")
    os.kill(attempt.rank(1).pid, signal.SIGSEGV)
    assert attempt.ended()["codes"] == {"0": 0, "1": -11}
    ended = attempt.directory.read("rank-1.exit")
    assert ended is not None
    assert (ended["code"], ended["signal"]) == (-11, 11)


def test_a_log_is_appended_to(new_attempt: NewAttempt) -> None:
    attempt = new_attempt("echo ready", ranks=1)
    attempt.folder.mkdir()
    (attempt.folder / "rank-0.log").write_text("of an earlier try\n")
    attempt.started().ended()
    assert attempt.log() == "of an earlier try\nready\n"


@pytest.mark.parametrize("started_by", ["shim", "slurm"])
def test_of_a_log_that_is_too_long_beginning_and_end_are_kept_while_it_is_written(
    new_attempt: NewAttempt, started_by: str
) -> None:
    script = "echo first; head -c 20000000 /dev/zero | tr '\\0' 'x'; echo; echo ready; sleep 1000"
    limits = Limits(log_bytes=1_000_000)
    attempt = new_attempt(script, ranks=1, changes={"limits": limits}, stop_seconds=0.0)
    if started_by == "shim":
        assert attempt.start()
    else:
        _prepared(attempt)
        step = _run_as_slurm_does(attempt.folder, 0)
    log = attempt.folder / "rank-0.log"
    until(lambda: log.exists() and log.stat().st_size > 20_000_000)
    until(lambda: log.stat().st_blocks * 512 <= 1_000_000)
    note = b"[maat: this log takes over 1,000,000 bytes;"
    until(lambda: note in log.read_bytes())  # written once the room is given back
    data = log.read_bytes()
    assert data.startswith(b"first\nxxx")
    assert data.endswith(b"xxx\nready\n")
    assert data.count(note) == 1
    if started_by == "shim":
        assert attempt.directory.is_locked()
    else:
        step.terminate()
        assert step.wait(30) == 0


@pytest.mark.parametrize("started_by", ["shim", "slurm"])
def test_a_log_is_within_its_limit_when_its_rank_has_ended_at_once(
    new_attempt: NewAttempt, started_by: str
) -> None:
    limits = Limits(log_bytes=1_000_000)
    script = "head -c 20000000 /dev/zero | tr '\\0' 'x'; echo end"
    attempt = new_attempt(script, ranks=1, changes={"limits": limits})
    if started_by == "shim":
        assert attempt.start()
        attempt.ended()
    else:
        _prepared(attempt)
        assert _run_as_slurm_does(attempt.folder, 0).wait(60) == 0
    log = attempt.folder / "rank-0.log"
    assert log.stat().st_blocks * 512 <= 1_000_000
    assert log.read_bytes().endswith(b"xend\n")


def test_a_log_that_the_job_has_made_another_file_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"x" * 100_000)
    (tmp_path / "rank-0.log").symlink_to(other)
    os.link(other, tmp_path / "rank-1.log")
    for name in ("rank-0.log", "rank-1.log", "rank-2.log"):
        keep_within(str(tmp_path / name), 10_000)
    assert other.read_bytes() == b"x" * 100_000


def test_what_is_inherited_is_named() -> None:
    given = {"LANG": "C", "LC_TIME": "C", "TMPDIR": "/t", "LD_LIBRARY_PATH": "/l", "CUDNN": "x"}
    assert inherited({**given, "HOME_OF": "x", "MAAT": "x"}) == {
        name: value for name, value in given.items() if name != "CUDNN"
    }


def _run_as_slurm_does(folder: Path, rank: int) -> subprocess.Popen[bytes]:
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "maat.launch.rank", str(folder)],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(root),
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": "0",
            "CUDA_VISIBLE_DEVICES": "5",
            "SLURM_JOB_ID": "17",
        },
        start_new_session=True,
    )


def _prepared(attempt: Attempt) -> None:
    attempt.folder.mkdir()
    attempt.directory.write("secrets.json", attempt.secrets)
    attempt.directory.write("spec.json", attempt.spec.as_json())


def test_slurm_starts_ranks_that_are_told_the_same(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(
        'echo ready; echo "$API_KEY"; env; exit $RANK',
        secrets={"API_KEY": "key"},
        changes={"cuda_devices": None},
    )
    _prepared(attempt)
    tasks = [_run_as_slurm_does(attempt.folder, rank) for rank in range(2)]
    assert [task.wait() for task in tasks] == [0, 1]
    assert attempt.directory.exit_codes() == {0: 0, 1: 1}
    assert not attempt.directory.has("secrets.json")
    for rank, log in enumerate(attempt.logs()):
        assert log.startswith("ready\nkey\n")
        for line in (f"RANK={rank}", "LOCAL_RANK=0", "WORLD_SIZE=2", "CUDA_VISIBLE_DEVICES=5"):
            assert f"\n{line}\n" in log
        assert "SLURM" not in log
        assert "PYTHONPATH" not in log


def test_a_rank_of_slurm_is_told_by_slurm_and_its_end_is_recorded(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(ranks=1, changes={"cuda_devices": None})
    _prepared(attempt)
    task = _run_as_slurm_does(attempt.folder, 0)
    until(lambda: "ready" in attempt.log())
    for pid in (task.pid, *attempt.processes()):
        os.kill(pid, signal.SIGTERM)
    assert task.wait() == 0, "a task that fails would make Slurm kill the others"
    ((rank, ended),) = attempt.directory.exits().items()
    assert (rank, ended["code"], ended["told"]) == (0, 143, True)


def test_a_rank_of_slurm_that_fails_by_itself_fails_its_task(new_attempt: NewAttempt) -> None:
    attempt = new_attempt("kill -9 $$", ranks=1, changes={"cuda_devices": None})
    _prepared(attempt)
    assert _run_as_slurm_does(attempt.folder, 0).wait() == 137
    ((_, ended),) = attempt.directory.exits().items()
    assert (ended["code"], ended["told"]) == (-9, False)


def test_a_rank_of_slurm_that_was_started_before_is_not_started_again(
    new_attempt: NewAttempt,
) -> None:
    attempt = new_attempt(ranks=1, changes={"cuda_devices": None})
    _prepared(attempt)
    first = _run_as_slurm_does(attempt.folder, 0)
    until(lambda: "ready" in attempt.log())
    assert _run_as_slurm_does(attempt.folder, 0).wait() == 126
    assert attempt.log() == "ready\n"
    assert attempt.directory.exits() == {}
    first.terminate()
    for pid in attempt.processes():
        os.kill(pid, signal.SIGTERM)
    first.wait()
    assert attempt.directory.exit_codes() == {0: 143}
    assert _run_as_slurm_does(attempt.folder, 0).wait() == 126
    assert attempt.directory.exit_codes() == {0: 143}


def test_a_rank_of_slurm_that_ends_before_its_task_hears_the_order_was_asked_to_end(
    new_attempt: NewAttempt,
) -> None:
    attempt = new_attempt(ranks=1, changes={"cuda_devices": None})
    _prepared(attempt)
    task = _run_as_slurm_does(attempt.folder, 0)
    until(lambda: "ready" in attempt.log())
    attempt.directory.write("stop", {})
    for pid in set(attempt.processes()) - {task.pid}:
        os.kill(pid, signal.SIGTERM)
    assert task.wait() == 0
    assert attempt.directory.exits()[0]["told"]


@pytest.mark.parametrize("order", ["stop", "kill"])
def test_a_rank_of_slurm_that_comes_after_the_order_to_end_never_begins(
    new_attempt: NewAttempt, order: str
) -> None:
    attempt = new_attempt(ranks=1, changes={"cuda_devices": None})
    _prepared(attempt)
    attempt.directory.write(order, {})
    assert _run_as_slurm_does(attempt.folder, 0).wait() == 0
    assert attempt.log() == ""


@pytest.mark.parametrize(("stop_seconds", "order"), [(0.2, None), (1000.0, "kill")])
def test_a_rank_of_slurm_that_does_not_end_is_killed_in_time(
    new_attempt: NewAttempt, stop_seconds: float, order: str | None
) -> None:
    changes = {"cuda_devices": None}
    attempt = new_attempt(IGNORES, ranks=1, stop_seconds=stop_seconds, changes=changes)
    _prepared(attempt)
    task = _run_as_slurm_does(attempt.folder, 0)
    until(lambda: "ready" in attempt.log())
    if order is not None:
        attempt.directory.write(order, {})
    task.terminate()
    assert task.wait() == 0
    assert attempt.directory.exit_codes() == {0: -9}


def test_a_rank_of_slurm_dies_with_the_process_that_slurm_started(new_attempt: NewAttempt) -> None:
    attempt = new_attempt("echo ready; exec sleep 1000", ranks=1, changes={"cuda_devices": None})
    _prepared(attempt)
    task = _run_as_slurm_does(attempt.folder, 0)
    until(lambda: "ready" in attempt.log())
    task.kill()
    task.wait()
    until(lambda: not attempt.processes())


def test_a_spec_is_the_same_after_it_was_written(new_attempt: NewAttempt) -> None:
    attempt = new_attempt()
    _prepared(attempt)
    read = AttemptDir(str(attempt.folder)).spec()
    as_written = json.loads((attempt.folder / "spec.json").read_text())
    assert json.loads(json.dumps(read.as_json())) == as_written
    assert read.places() == attempt.spec.places()
