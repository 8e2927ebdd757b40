"""The engine of a real Slurm, where the contract of engines says nothing."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from slurm_cluster import SlurmCluster
from slurm_versions import ANSWERS, VERSIONS, WITH_SINFO_GROUPS

from maat.launch.processes import marked
from worker.engines import slurm_commands
from worker.engines.protocol import Order, Phase, Refused, Seen, Unreachable
from worker.engines.slurm import SlurmEngine

WAITS = "trap 'exit 143' TERM; echo ready; sleep 600 & while :; do wait; done"


class Site:
    """An engine, and what a test asks of it."""

    def __init__(self, slurm: SlurmCluster, root: Path, **changes: Any) -> None:
        self.slurm, self.root = slurm, root
        parameters = slurm.parameters(root).model_copy(update=changes)
        self.engine = SlurmEngine(root, parameters)

    def order(self, attempt_id: str = "att_1", script: str = WAITS, **changes: Any) -> Order:
        order = Order(
            attempt_id=attempt_id,
            job_id="job_1",
            number=1,
            directory=self.engine.directory(attempt_id),
            checkpoint_directory=self.root / "jobs" / "job_1",
            argv=("/bin/sh", "-c", script),
            cwd=self.root,
            gpu_type="t4",
            gpus_by_node={"t4-0": (0, 1)},
            stop_seconds=5.0,
        )
        return replace(order, **changes)

    def launched(self, *args: Any, **changes: Any) -> Order:
        order = self.order(*args, **changes)
        self.engine.launch(order)
        self.slurm.until(lambda: self._is_ready(order))
        return order

    def _is_ready(self, order: Order) -> bool:
        ready = all("ready" in log for log in self.logs(order))
        assert ready or self.seen(order).phase is not Phase.ENDED, self.seen(order)
        return ready

    def logs(self, order: Order) -> list[str]:
        files = [order.directory / f"rank-{rank}.log" for rank in range(order.rank_count)]
        return [file.read_text() if file.exists() else "" for file in files]

    def seen(self, order: Order) -> Seen:
        return self.engine.look([order.attempt_id])[order.attempt_id]

    def ended(self, order: Order) -> Seen:
        self.slurm.until(lambda: self.seen(order).phase is Phase.ENDED)
        return self.seen(order)


@pytest.fixture
def new_site(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    slurm.settle()
    yield lambda **changes: Site(slurm, tmp_path, **changes)
    slurm.settle()


@pytest.fixture
def site(new_site: Callable[..., Site]) -> Site:
    return new_site()


def test_slurm_is_told_nothing_of_what_runs_and_no_secret(site: Site) -> None:
    secret, token, word = "hush-hush", "the-token", "--very-own-argument"
    script = f'echo "$KEY $OWN" > kept; : {word}; {WAITS}'
    order = site.order(script=script, secrets={"KEY": secret}, token=token, env={"OWN": word})
    before = set(os.listdir("/proc"))
    site.engine.launch(order)
    site.slurm.until(lambda: all("ready" in log for log in site.logs(order)))
    told = site.slurm.run("scontrol", "show", "job", "--details")
    told += site.slurm.run("squeue", "--json")
    told += site.slurm.run(
        "scontrol", "write", "batch_script", str(site.seen(order).engine_id), "-"
    )
    ranks = {pid for pid, _ in marked()}
    for pid in set(os.listdir("/proc")) - before:
        if pid.isdecimal() and int(pid) not in ranks:
            told += _of_process(pid)
    assert "maat.launch.rank" in told
    assert not [each for each in (secret, token, word) if each in told]
    assert (site.root / "kept").read_text() == f"{secret} {word}\n"
    modes = {
        name: (order.directory / name).stat().st_mode & 0o777 for name in ("token", "spec.json")
    }
    assert modes == {"token": 0o600, "spec.json": 0o600}
    assert order.directory.stat().st_mode & 0o777 == 0o700
    assert not (order.directory / "secrets.json").exists()


def _of_process(pid: str) -> str:
    try:
        process = Path("/proc", pid)
        return (process / "cmdline").read_text() + (process / "environ").read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def test_a_job_has_nothing_of_the_workers_environment(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAAT_SECRET_KEY", "deployment")
    monkeypatch.setenv("SBATCH_EXPORT", "NONE")
    order = site.order(script="env; exit 0")
    site.engine.launch(order)
    site.ended(order)
    names = {line.partition("=")[0] for line in site.logs(order)[0].splitlines()}
    assert "CUDA_VISIBLE_DEVICES" in names
    ours = {name for name in names if name.startswith("MAAT_")}
    allowed = {"PATH", "HOME", "TMPDIR", "LC_CTYPE", "PWD", "_", "SHLVL", "OMP_NUM_THREADS"}
    ranks = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}
    assert names - ours <= allowed | ranks
    assert "MAAT_SECRET_KEY" not in ours


def test_a_rank_sees_its_own_gpus_and_knows_its_place(site: Site) -> None:
    script = 'echo "$CUDA_VISIBLE_DEVICES $LOCAL_RANK $WORLD_SIZE $OMP_NUM_THREADS $HOME" ; exit 0'
    order = site.order(script=script, gpus_by_node={"t4-0": (0, 1, 2), "t4-1": (0,)})
    site.engine.launch(order)
    assert site.ended(order).exits == dict.fromkeys(range(4), 0)
    told = [log.split() for log in site.logs(order)]
    assert [(gpus, local) for gpus, local, *_ in told] == [
        ("0,1,2", "0"),
        ("0,1,2", "1"),
        ("0,1,2", "2"),
        ("0", "0"),
    ]
    assert {(world, threads) for _, _, world, threads, _ in told} == {("4", "1")}
    assert {home for *_, home in told} == {str(Path.home())}


def test_a_worker_that_died_before_it_noted_the_job_finds_it_again(site: Site) -> None:
    order = site.launched()
    name = site.seen(order).engine_id
    (order.directory / "job.json").unlink()
    assert site.engine.launch(order) == name
    assert len(site.slurm.run("squeue", "-h").splitlines()) == 1


def test_what_was_started_a_second_time_does_not_run(site: Site) -> None:
    order = site.launched()
    script = site.slurm.folder / "again.sh"
    site.slurm.run(
        "scontrol", "write", "batch_script", str(site.seen(order).engine_id), str(script)
    )
    by_hand = ("sbatch", "--wait", "--partition=maat", "--nodelist=t4-0", "--ntasks=2")
    with pytest.raises(subprocess.CalledProcessError):
        site.slurm.run(*by_hand, f"--chdir={order.directory}", "--output=again.log", str(script))
    assert "was started before" in (order.directory / "again.log").read_text()
    assert site.logs(order) == ["ready\n", "ready\n"]
    assert site.seen(order).phase is Phase.RUNNING
    assert site.seen(order).exits == {}


def test_two_orders_that_share_have_one_gpu(slurm: SlurmCluster, new_site: Any) -> None:
    site = new_site(partition="shared")
    shared = {"shared": True, "gpu_type": "a100", "gpus_by_node": {"a100-1": (0,)}}
    first, second = site.launched("att_1", **shared), site.launched("att_2", **shared)
    held = [site.seen(order).gpus_by_node for order in (first, second)]
    assert held[0] == held[1]
    assert held[0] is not None
    assert len(held[0]["a100-1"]) == 1


@pytest.mark.parametrize(
    ("partition", "gpus_by_node"),
    [("maat", {"a100-0": (0,)}), ("shared", {"a100-1": (0, 1)})],
)
def test_an_order_that_shares_what_cannot_be_shared_is_refused(
    new_site: Any, partition: str, gpus_by_node: dict[str, tuple[int, ...]]
) -> None:
    site = new_site(partition=partition)
    with pytest.raises(Refused, match="shards per GPU in Slurm"):
        site.engine.launch(site.order(shared=True, gpu_type="a100", gpus_by_node=gpus_by_node))


def test_nodes_without_the_interpreter_fail_the_attempt_and_say_so(new_site: Any) -> None:
    site = new_site(python="/nowhere/python")
    order = site.order()
    site.engine.launch(order)
    ended = site.ended(order)
    assert ended.exits == {0: 2}
    assert not ended.by_engine
    assert "/nowhere/python" in ended.reason


def test_an_order_to_stop_reaches_a_job_that_waits(site: Site) -> None:
    first = site.launched(gpus_by_node={"t4-0": (0, 1, 2, 3)})
    second = site.order("att_2", gpus_by_node={"t4-0": (0, 1, 2, 3)})
    site.engine.launch(second)
    assert site.seen(second).phase is Phase.QUEUED
    site.engine.stop(second.attempt_id)
    ended = site.ended(second)
    assert (ended.exits, ended.by_engine) == ({}, False)
    assert site.seen(first).phase is Phase.RUNNING


def test_a_node_that_sleeps_serves_and_slurm_wakes_it_for_a_gang(
    slurm: SlurmCluster, new_site: Any
) -> None:
    site = new_site(partition="cloud")
    assert slurm.states()["cloud-0"] == "idle~"
    (node,) = site.engine.nodes()
    assert (node.name, node.up, node.reason) == ("cloud-0", True, "")
    order = site.order(gpus_by_node={"cloud-0": (0,)})
    site.engine.launch(order)
    slurm.until(lambda: site.seen(order).wakes)
    assert site.seen(order).phase is Phase.QUEUED
    assert "wakes its nodes" in site.seen(order).reason
    assert site.engine.nodes()[0].up
    slurm.start_node("cloud-0")
    slurm.until(lambda: all("ready" in log for log in site.logs(order)))
    seen = site.seen(order)
    assert (seen.phase, seen.wakes, seen.gpus_by_node) == (Phase.RUNNING, False, {"cloud-0": (0,)})
    site.engine.kill(order.attempt_id)
    site.ended(order)


def test_processes_that_are_signalled_by_hand_are_not_failures_of_the_job(site: Site) -> None:
    order = site.launched()
    site.slurm.run("scancel", "--signal=TERM", str(site.seen(order).engine_id))
    ended = site.ended(order)
    assert ended.exits == {0: 143, 1: 143}
    assert ended.by_engine
    assert "not by Maat" in ended.reason


def test_an_end_that_slurm_has_forgotten_is_read_from_the_folder(site: Site) -> None:
    order = site.order(script="exit 0")
    site.engine.launch(order)
    site.slurm.until(lambda: len(list(order.directory.glob("rank-*.exit"))) == 2)
    assert json.loads((order.directory / "job.json").read_text())["id"] > 0
    elsewhere = order.directory.parent / "att_9"
    order.directory.rename(elsewhere)  # Slurm knows no job of this name
    assert site.engine.look(["att_9"])["att_9"].exits == {0: 0, 1: 0}


def test_another_maat_of_the_same_slurm_is_left_alone(
    site: Site, slurm: SlurmCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    order = site.launched()
    other = Site(slurm, tmp_path_factory.mktemp("other"))
    assert other.engine.strays(known=()) == []
    assert other.seen(order).phase is Phase.ABSENT
    assert site.seen(order).phase is Phase.RUNNING


def test_a_job_that_spoils_its_folder_harms_itself_only(site: Site) -> None:
    spoilt, other = site.launched("att_1", "echo ready"), site.launched("att_2")
    site.ended(spoilt)
    (other.directory / "rank-7.exit").write_text("[")
    for text in ("", "{", "[]", '{"codes": {"x": 1}}'):
        (spoilt.directory / "exit.json").write_text(text)
        seen = site.engine.look(["att_1", "att_2"])
        assert (seen["att_1"].phase, seen["att_2"].phase) == (Phase.UNKNOWN, Phase.RUNNING)


def test_without_slurms_commands_the_engine_is_unreachable_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = Site(SlurmCluster(tmp_path), tmp_path).engine
    (tmp_path / "attempts" / "att_1").mkdir(parents=True)
    for ask in (
        engine.nodes,
        lambda: engine.look(["att_1"]),
        lambda: engine.stop("att_1"),
        lambda: engine.kill("att_1"),
        lambda: engine.strays([]),
    ):
        with pytest.raises(Unreachable, match="install Slurm's client commands"):
            ask()


OLD_SCONTROL = "echo \"scontrol: unrecognized option '--json'\" >&2; exit 1"


def fake(folder: Path, name: str, command: str) -> None:
    """Write a command that only does this."""
    (folder / name).write_text(f"#!/bin/sh\n{command}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("name", ["scontrol", "sinfo"])
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("sleep 60", "took more than 0 s"),
        ("echo 'NAME: error: munge is down' >&2; exit 1", "^NAME: munge is down$"),
        ("echo 'no JSON'", "cannot be read"),
        ("echo '{}'", "cannot be read"),
        ("""echo '{"nodes": [1]}'""", "cannot be read"),
        ("""echo '{"nodes": [], "errors": ["away"]}'""", "away"),
    ],
)
def test_a_command_that_answers_nothing_useful_makes_slurm_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: str, reason: str
) -> None:
    fake(tmp_path, "scontrol", OLD_SCONTROL)
    fake(tmp_path, name, command.replace("NAME", name))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_commands, "TIMEOUT_SECONDS", 0.3)
    began = time.monotonic()
    with pytest.raises(Unreachable, match=reason.replace("NAME", name)):
        Site(SlurmCluster(tmp_path), tmp_path).engine.nodes()
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("version", VERSIONS)
def test_the_nodes_of_every_version_are_found_by_the_commands_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    shown = ANSWERS / version / "scontrol-show-node.json"
    fake(tmp_path, "scontrol", f"cat {shown}" if version in WITH_SINFO_GROUPS else OLD_SCONTROL)
    fake(tmp_path, "sinfo", f"cat {ANSWERS / version / 'sinfo.json'}")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    nodes = Site(SlurmCluster(tmp_path), tmp_path).engine.nodes()
    assert [(node.name, node.gpu_count, node.up) for node in nodes] == [
        ("gpu01", 4, True),
        ("gpu02", 4, True),
        ("gpu03", 4, False),
        ("gpu04", 4, True),
        ("mig01", 8, True),
    ]
