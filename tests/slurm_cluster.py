"""A whole Slurm on this machine, of real daemons: munged, slurmctld and four slurmd.

Nothing of the system's own Slurm or munge is touched. All daemons die with the tests.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from getpass import getuser
from pathlib import Path

from maat.api.clusters import SlurmParameters
from maat.launch.processes import die_with_parent

PATIENCE_SECONDS = 90.0
SERVES = {"idle", "mixed", "allocated", "completing"}
DAEMONS = ("munged", "slurmctld", "slurmd")


@dataclass(frozen=True)
class Machine:
    """A node of the cluster, of one CPU per rank that it may get. `shards`: in all.

    `sleeps`: it is off until Slurm wakes it, and a test then starts its daemon.
    """

    name: str
    gpu_type: str
    gpu_count: int
    partition: str = "maat"
    shards: int = 0
    sleeps: bool = False

    @property
    def gres(self) -> str:
        shards = f",shard:{self.shards}" if self.shards else ""
        return f"gpu:{self.gpu_type}:{self.gpu_count}{shards}"


MACHINES = (
    Machine("t4-0", "t4", 4),
    Machine("t4-1", "t4", 2),
    Machine("a100-0", "a100", 2),
    Machine("a100-1", "a100", 2, partition="shared", shards=4),
    Machine("cloud-0", "t4", 1, partition="cloud", sleeps=True),
)
AWAKE = tuple(machine for machine in MACHINES if not machine.sleeps)
_SLEEPERS = {machine.name for machine in MACHINES if machine.sleeps}


class NoSlurm(Exception):
    """Slurm is not installed here."""


@dataclass
class SlurmCluster:
    """The cluster, while it runs. Everything of it lies in `folder`."""

    folder: Path
    port: int = 0
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    def parameters(self, shared: Path, *, partition: str = "maat") -> SlurmParameters:
        return SlurmParameters(shared_dir=str(shared), conf=str(self.conf), partition=partition)

    def start(self) -> None:
        missing = [name for name in DAEMONS if shutil.which(name) is None]
        if missing:
            raise NoSlurm(f"Slurm is not installed: there is no {missing[0]}")
        self._write_files()
        run = self.folder / "run"
        self._start(
            "munged",
            "--foreground",
            "--force",
            f"--key-file={self.folder / 'munge.key'}",
            f"--socket={run / 'munge.socket'}",
            f"--pid-file={run / 'munged.pid'}",
            f"--log-file={self.folder / 'log' / 'munged.log'}",
            f"--seed-file={run / 'munged.seed'}",
            "--num-threads=2",
        )
        self.until((run / "munge.socket").exists)
        self.start_controller()
        for machine in AWAKE:
            self.start_node(machine.name)
        self.until(lambda: self._are_idle(AWAKE))

    def stop(self) -> None:
        """End everything, whatever state it is in."""
        for name in reversed(list(self.daemons)):
            self.kill(name)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while left := list(self._processes()):
            assert time.monotonic() < deadline, left
            for pid in left:
                _kill(pid)
            time.sleep(0.05)

    def start_controller(self) -> None:
        self._start("slurmctld", "-D", "-f", str(self.conf))

    def start_node(self, name: str) -> None:
        (self.folder / "spool" / name).mkdir(parents=True, exist_ok=True)
        has_booted = ["-b"] if name in _SLEEPERS else []  # Slurm expects it of a node that it woke
        self._start(f"slurmd {name}", "-D", *has_booted, "-f", str(self.conf), "-N", name)

    def kill(self, daemon: str) -> None:
        """Kill one of munged, slurmctld and `slurmd NODE`, at once."""
        process = self.daemons.pop(daemon)
        process.kill()
        process.wait()

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self._environment(), capture_output=True, text=True, timeout=30, check=True
        )
        return done.stdout

    def states(self) -> dict[str, str]:
        """Return the state of each node; none while the controller does not answer."""
        try:
            answer = self.run("sinfo", "-h", "-N", "-o", "%N %T")
        except subprocess.SubprocessError:
            return {}
        return dict(line.split() for line in answer.splitlines())

    def _are_idle(self, machines: Sequence[Machine]) -> bool:
        states = self.states()
        return all(states.get(machine.name) == "idle" for machine in machines)

    def set_down(self, node: str, reason: str) -> None:
        self.run("scontrol", "update", f"NodeName={node}", "State=DOWN", f"Reason={reason}")

    def set_up(self, node: str) -> None:
        """Take a node into service again, and wait until it is."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (state := self.states().get(node, "")) not in SERVES:
            assert time.monotonic() < deadline, self.states()
            if state.startswith(("down", "drain")):
                with suppress(subprocess.CalledProcessError):  # it may be up by now
                    self.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
            time.sleep(0.1)

    def settle(self) -> None:
        """Start what was killed, end all jobs, and take all nodes into service."""
        if "slurmctld" not in self.daemons:
            self.start_controller()
        for machine in AWAKE:
            if f"slurmd {machine.name}" not in self.daemons:
                self.start_node(machine.name)
        self.until(lambda: bool(self.states()))
        self.run("scancel", f"--user={getuser()}")
        for machine in AWAKE:
            self.set_up(machine.name)
        self.until(lambda: not self.run("squeue", "-h"))

    def save_jobs(self) -> None:
        """Wait until the controller has saved what it knows of all jobs."""
        began, file = time.time(), self.folder / "state" / "job_state"
        for job in self.run("squeue", "-h", "-o", "%A").split():
            self.run("scontrol", "update", f"JobId={job}", "Comment=save")
        self.until(lambda: file.exists() and file.stat().st_mtime > began)

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < deadline, self.states()
            time.sleep(0.1)

    def _start(self, name: str, *arguments: str) -> None:
        log = (self.folder / "log" / f"{name.replace(' ', '-')}.out").open("ab")
        self.daemons[name] = subprocess.Popen(
            [name.partition(" ")[0], *arguments],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509  (one thread starts them)
        )
        log.close()

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.conf)}

    def _processes(self) -> Iterator[int]:
        """Yield what still runs of the cluster: supervisors of steps and their ranks."""
        wanted = os.fsencode(f"SLURM_CONF={self.conf}")
        for entry in os.listdir("/proc"):
            if entry.isdecimal() and int(entry) != os.getpid():
                try:
                    environment = Path("/proc", entry, "environ").read_bytes()
                except OSError:
                    continue
                if wanted in environment.split(b"\0"):
                    yield int(entry)

    def _write_files(self) -> None:
        for name in ("state", "log", "spool", "dev", "run"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "state").chmod(0o700)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for index in range(max(machine.gpu_count for machine in MACHINES)):
            _make_device(self.folder / "dev" / f"gpu{index}")
        self.port = _free_ports(1 + len(MACHINES))
        self.conf.write_text(self._configuration())
        (self.folder / "gres.conf").write_text(self._gres())
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")

    def _gres(self) -> str:
        lines = []
        for each in MACHINES:
            files = f"File={self.folder}/dev/gpu[0-{each.gpu_count - 1}]"
            lines.append(f"NodeName={each.name} Name=gpu Type={each.gpu_type} {files}")
            if each.shards:
                lines.append(f"NodeName={each.name} Name=shard Count={each.shards}")
        return "\n".join(lines) + "\n"

    def _configuration(self) -> str:
        host, user, here = socket.gethostname().partition(".")[0], getuser(), self.folder
        nodes = [
            f"NodeName={each.name} NodeHostname={host} NodeAddr=127.0.0.1 Port={self.port + 1 + i} "
            f"CPUs=8 RealMemory=4000 Gres={each.gres}{' State=CLOUD' if each.sleeps else ''}"
            for i, each in enumerate(MACHINES)
        ]
        partitions = {each.partition for each in MACHINES}
        names = {p: ",".join(m.name for m in MACHINES if m.partition == p) for p in partitions}
        return "\n".join(
            [
                "ClusterName=maattest",
                f"SlurmctldHost={host}(127.0.0.1)",
                f"SlurmctldPort={self.port}",
                f"SlurmUser={user}",
                f"SlurmdUser={user}",
                "AuthType=auth/munge",
                f"AuthInfo=socket={here}/run/munge.socket",
                "CredType=cred/munge",
                "MpiDefault=none",
                f"StateSaveLocation={here}/state",
                f"SlurmdSpoolDir={here}/spool/%n",
                f"SlurmctldPidFile={here}/run/slurmctld.pid",
                f"SlurmdPidFile={here}/run/%n.pid",
                f"SlurmctldLogFile={here}/log/slurmctld.log",
                f"SlurmdLogFile={here}/log/%n.log",
                "ProctrackType=proctrack/linuxproc",
                "TaskPlugin=task/none",
                "SwitchType=switch/none",
                "JobAcctGatherType=jobacct_gather/none",
                "AccountingStorageType=accounting_storage/none",
                "JobCompType=jobcomp/none",
                "SelectType=select/cons_tres",
                "SelectTypeParameters=CR_CPU",
                "SchedulerType=sched/backfill",
                "SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1,"
                "sched_interval=1",
                "GresTypes=gpu,shard",
                "SlurmdParameters=config_overrides",
                "ReturnToService=1",
                "SlurmctldTimeout=5",
                "SlurmdTimeout=5",
                "InactiveLimit=0",
                "KillWait=2",
                "MinJobAge=300",
                "MessageTimeout=10",
                "TCPTimeout=2",
                "CompleteWait=0",
                "PrivateData=cloud",  # shows nodes of a cloud that are off
                "ResumeProgram=/bin/true",
                "SuspendProgram=/bin/true",
                "SuspendTime=1000000",
                "ResumeTimeout=300",
                *nodes,
                *(f"PartitionName={p} Nodes={n} MaxTime=INFINITE" for p, n in names.items()),
            ]
        )


def _make_device(path: Path) -> None:
    """Make a file that Slurm takes for a GPU: a device if this user may make one."""
    try:
        os.mknod(path, 0o666 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        path.touch()


def _free_ports(count: int) -> int:
    """Return the first of so many free ports in a row."""
    while True:
        first = random.Random().randrange(20_000, 30_000)
        sockets = [socket.socket() for _ in range(count)]
        try:
            for offset, each in enumerate(sockets):
                each.bind(("127.0.0.1", first + offset))
            return first
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
