"""Makes a process a rank: its environment, its limits, its log, its exit code.

The shim forks all ranks of a machine (shim.py). Where something else starts the processes, as Slurm
does, `python -P -m maat.launch.rank DIR` runs the rank that SLURM_PROCID names.
"""

from __future__ import annotations

import json
import os
import pwd
import resource
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import NoReturn

from maat.launch.attempt_dir import AttemptDir, Limits, Place, Spec
from maat.launch.log_limit import keep_within
from maat.launch.processes import MARK, boot_id, check_linux, die_with_parent, identity

NOT_FOUND, CANNOT_RUN = 127, 126  # as a shell says it

_ORDERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_HEARD = (signal.SIGCHLD, *_ORDERS)
_NEXT_SIGNAL_SECONDS = 0.5  # between Slurm's signals to the processes of a step
_LOOK_SECONDS = 1.0  # between two looks for an order to kill
_BEAT_SECONDS = 5.0  # between two signs of life
_UNHEARD_SECONDS = 3.0  # until an order in the folder counts that no signal has brought

_INHERITED = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
_INHERITED_PREFIXES = ("LC_", "CUDA", "NCCL")


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a rank may know of the environment in which it is started."""
    return {
        name: value
        for name, value in environment.items()
        if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }


def rank_environment(
    directory: AttemptDir,
    spec: Spec,
    place: Place,
    *,
    around: Mapping[str, str],
    secrets: Mapping[str, str],
) -> dict[str, str]:
    """Return the complete environment of a rank; `around` is that of the process that starts it.

    What the job asks for goes over what is inherited, and what Maat says over both.
    """
    shape = {node: len(gpus) for node, gpus in spec.gpus_by_node.items()}
    environment = {
        **inherited(around),
        "OMP_NUM_THREADS": str(spec.threads),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # so that an index names the GPU that nvidia-smi shows
        **spec.env,
        **secrets,
        MARK: directory.path,
        "MAAT_ATTEMPT": spec.attempt_id,
        "MAAT_NUMBER": str(spec.number),
        "MAAT_CHECKPOINT_DIR": spec.checkpoint_directory,
        "MAAT_GPU_TYPE": spec.gpu_type,
        "MAAT_SHAPE": json.dumps(shape),
        "RANK": str(place.rank),
        "LOCAL_RANK": str(place.local_rank),
        "WORLD_SIZE": str(len(spec.places())),
    }
    if spec.cuda_devices is not None:
        # All GPUs of the node, as every launcher of torch gives them: LOCAL_RANK picks.
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(spec.cuda_devices.get(place.node, ()))
    return environment


class Gate:
    """Holds forked ranks back until it is recorded that they were started."""

    def __init__(self) -> None:
        self._behind, self._before = os.pipe()

    def open(self, ranks: int) -> None:
        os.write(self._before, b"g" * ranks)
        os.close(self._before)
        os.close(self._behind)

    def pass_through(self) -> None:
        """Wait in a rank until the gate opens; end the rank if its supervisor died."""
        os.close(self._before)
        if not os.read(self._behind, 1):
            os._exit(CANNOT_RUN)
        os.close(self._behind)


def fork_rank(
    directory: AttemptDir, spec: Spec, place: Place, environment: Mapping[str, str], gate: Gate
) -> int:
    """Fork the process of a rank, in its own group, and return its pid.

    It runs the command once the gate is open. The caller has one thread: the kernel kills the rank
    when that ends.
    """
    log = os.open(directory.log(place.rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become(spec, environment, parent=parent, log=log, gate=gate)
        os.setpgid(pid, pid)  # here too: the group must exist before anyone signals it
        return pid
    finally:
        os.close(log)


def write_exit(
    directory: AttemptDir,
    rank: int,
    status: int,
    usage: resource.struct_rusage,
    *,
    told: bool = False,
) -> int:
    """Record how a rank ended, by what wait4 said; return its exit code, negative for a signal.

    `told`: it was asked to end before, where nobody else knows that.
    """
    code = os.waitstatus_to_exitcode(status)
    with suppress(OSError):  # such as a full disk; who waits for the rank still has its code
        directory.write(
            f"rank-{rank}.exit",
            {
                "code": code,
                "signal": -code if code < 0 else None,
                "told": told,
                "at": time.time(),
                "max_rss_bytes": usage.ru_maxrss * 1024,
                "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 3),
            },
        )
    return code


def read_secrets(directory: AttemptDir) -> dict[str, str]:
    """Return the values of the secret variables; none if they were removed already."""
    return {name: str(value) for name, value in (directory.read("secrets.json") or {}).items()}


def _become(
    spec: Spec, environment: Mapping[str, str], *, parent: int, log: int, gate: Gate
) -> NoReturn:
    """Turn this forked process into the command. Never returns, whatever happens."""
    doing = f"limit {spec.argv[0]!r}"
    try:
        die_with_parent()
        if os.getppid() != parent:
            os._exit(CANNOT_RUN)
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.umask(0o077)
        gate.pass_through()
        _restore_signals()
        set_limits(spec.limits)
        doing = f"enter the folder {spec.cwd!r}"
        os.chdir(spec.cwd)
        doing = f"run {spec.argv[0]!r}"
        os.execvpe(spec.argv[0], spec.argv, environment)  # noqa: S606  (no shell, on purpose)
    except BaseException as error:  # a forked process must not go on in its parent's code
        reason = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
        os.write(2, f"maat: cannot {doing}: {reason}\n".encode(errors="replace"))
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN)


def set_limits(limits: Limits) -> None:
    """Limit this process and all that it starts; never above what the machine allows."""
    for kind, wanted in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NPROC, limits.processes),
    ):
        if wanted is not None:
            highest = resource.getrlimit(kind)[1]
            value = wanted if highest == resource.RLIM_INFINITY else min(wanted, highest)
            resource.setrlimit(kind, (value, value))


def _restore_signals() -> None:
    """Undo what the forking process and Python did: nothing blocked, nothing caught or ignored."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def main() -> int:
    """Run the rank that Slurm names, and end as it ends; return 0 if it was asked to end.

    Slurm signals every process of a step: this one too, which then only sees that the rank ends in
    time. A rank of this number that was started before is never started again. With Slurm's
    supervisor of the step this process ends, and with it the rank: Slurm would leave both alone.
    """
    check_linux()
    die_with_parent()
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    directory = AttemptDir(os.path.realpath(sys.argv[1]))
    spec = directory.spec()
    rank = int(os.environ["SLURM_PROCID"])
    place = spec.places()[rank]._replace(local_rank=int(os.environ["SLURM_LOCALID"]))
    if directory.has("stop") or directory.has("kill"):
        return 0
    home = {"HOME": pwd.getpwuid(os.getuid()).pw_dir}  # Slurm may give none
    around = {**home, **os.environ}
    environment = rank_environment(
        directory, spec, place, around=around, secrets=read_secrets(directory)
    )
    gate = Gate()
    pid = fork_rank(directory, spec, place, environment, gate)
    started = {"boot_id": boot_id(), "process": identity(pid), "host": os.uname().nodename}
    if not directory.write_once(f"rank-{rank}.started", started):
        print(f"maat: rank {rank} was started before: it is not started again", file=sys.stderr)
        return CANNOT_RUN
    if all(directory.has(f"rank-{other.rank}.started") for other in spec.places()):
        directory.remove("secrets.json")
    if signal.SIGTERM in signal.sigpending():  # it came before there was a rank to hear it
        return 0
    gate.open(1)
    status, usage, told = _attend(directory, spec, rank, pid)
    code = write_exit(directory, rank, status, usage, told=told)
    return 0 if told else code if code >= 0 else 128 - code


def _attend(
    directory: AttemptDir, spec: Spec, rank: int, pid: int
) -> tuple[int, resource.struct_rusage, bool]:
    """Wait for the rank, and end it by force if it was asked to end and takes too long.

    Slurm brings the wish to end as a signal; a node whose slurmd has died brings none, and the
    wish is then read in the folder. Meanwhile, keep its log within its limit.

    Returns what wait4 says, and whether it was asked.
    """
    until: float | None = None
    unheard_since: float | None = None
    next_beat = 0.0
    while True:
        if time.monotonic() >= next_beat:
            next_beat = time.monotonic() + _BEAT_SECONDS
            directory.show_life(rank)
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            keep_within(directory.log(rank), spec.limits.log_bytes)
            told = until is not None or (status != 0 and _was_told(directory))
            return status, usage, told
        if directory.has("kill") or (until is not None and time.monotonic() >= until):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        elif until is None and directory.has("stop"):
            unheard_since = unheard_since or time.monotonic()
            if time.monotonic() - unheard_since >= _UNHEARD_SECONDS:
                until = time.monotonic() + spec.stop_seconds
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGTERM)
        keep_within(directory.log(rank), spec.limits.log_bytes)
        left = _LOOK_SECONDS if until is None else max(until - time.monotonic(), 0.01)
        heard = signal.sigtimedwait(_HEARD, min(left, _LOOK_SECONDS))
        if heard is not None and heard.si_signo != signal.SIGCHLD and until is None:
            until = time.monotonic() + spec.stop_seconds


def _was_told(directory: AttemptDir) -> bool:
    """Return whether a rank that ended was asked to: Slurm may have signalled it just before."""
    heard = signal.sigtimedwait(_ORDERS, _NEXT_SIGNAL_SECONDS)
    return heard is not None or directory.has("stop") or directory.has("kill")


if __name__ == "__main__":
    sys.exit(main())
