"""`maat up`: the whole service from one command.

Starts processes and keeps them alive; imports neither backend nor worker. Steps: lock the data
folder -> listen -> migrate and fill -> API, worker (rounds), beat, simulator, forecaster -> print
the address -> supervise.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import httpx

from maat.cli.child_process import Child, ChildSpec, dies_with_parent, rotate, stop_all, tail
from maat.cli.left_running import jobs_left_running, words_of
from maat.scheduling.errors import InputError, MaatError

PORTS_TRIED = 100
STOP_SECONDS = 6.0
START_SECONDS = 90.0
START_FAILURES = 3
HTTP_PROTOCOL = "backend.web.slow_senders:HttpProtocol"


class DataFolderInUse(InputError):
    """Another `maat up` uses this data folder."""


class StartFailed(MaatError):
    """A process that the service needs did not start."""


class StopRequested(Exception):
    """SIGINT or SIGTERM arrived."""


@dataclass(frozen=True)
class Place:
    """The address and the folder of this service."""

    host: str
    port: int
    data_dir: Path

    @property
    def url(self) -> str:
        shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    @property
    def logs(self) -> Path:
        return self.data_dir / "logs"


def up(
    host: str = "127.0.0.1",
    port: int = 8000,
    data_dir: Path = Path("var"),
    demo: bool = True,
    demo_jobs: bool = True,
    allow_commands: bool = False,
    *,
    say: Callable[[str], None] = print,
) -> int:
    """Run Maat until SIGINT or SIGTERM; return the exit code of the command.

    `port`: where the search for a free one starts. Raises DataFolderInUse if another Maat uses
    `data_dir`, InputError if the address cannot be used, and StartFailed (with the end of the log)
    if a part does not start.
    """
    data_dir = data_dir.resolve()
    if not settings_are_readable():
        return 2
    os.umask(0o077)  # database and logs hold every tenant's jobs: they are for this user alone
    with stop_on_signals(), locked(data_dir), listening(host, port) as listener:
        place = Place(host, listener.getsockname()[1], data_dir)
        place.logs.mkdir(exist_ok=True)
        environment = child_environment(
            place, demo=demo, demo_jobs=demo and demo_jobs, allow_commands=allow_commands
        )
        children = [Child(spec) for spec in child_specs(place, environment, listener)]
        access = ""
        try:
            access = prepare_database(place, environment, say)
            for child in children:
                child.start()
            await_health(place, children, say)
            if place.port != port:
                say(f"Port {port} is taken.")
            say(f"Maat is at {place.url}")
            say(f"Data and logs are in {place.data_dir}. Ctrl+C stops it.")
            if access:
                say(access)
                access = ""
            supervise(children, say)
        except StopRequested:
            ignore_further_signals()
            say("Stopping.")
        finally:
            stop_all(children, seconds=STOP_SECONDS)
            if access:  # stopped before it could be said, and it is said only once
                say(access)
            for line in words_of(jobs_left_running(data_dir), data_dir):
                say(line)
    return 0


def settings_are_readable() -> bool:
    """Let the service's own program read its settings; it says itself what it cannot read."""
    return subprocess.run((sys.executable, "-m", "backend.settings"), check=False).returncode != 2


def child_environment(
    place: Place, *, demo: bool, demo_jobs: bool, allow_commands: bool
) -> dict[str, str]:
    """Return the settings of all processes, which backend/settings.py reads.

    Numeric libraries get one thread: rounds are small. `allow_commands` only adds to what the
    environment allows.
    """
    allowed = {"MAAT_ALLOW_COMMANDS": "true"} if allow_commands else {}
    inherited = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ}
    return {
        **inherited,
        **allowed,
        "MAAT_PUBLIC_URL": place.url,
        "MAAT_DATA_DIR": str(place.data_dir),
        "MAAT_DEMO": "true" if demo else "false",
        "MAAT_DEMO_JOBS": "true" if demo_jobs else "false",
        "PYTHONUNBUFFERED": "1",
    }


def child_specs(
    place: Place, environment: dict[str, str], listener: socket.socket
) -> list[ChildSpec]:
    """Return the processes to start: API, worker and beat, simulator and forecaster.

    The worker makes the rounds; the others are separate, so that long work never delays one.
    """
    celery = (sys.executable, "-m", "celery", "-A", "worker.app")
    worker = (*celery, "worker", "--loglevel=WARNING", "--without-mingle", "--without-gossip")
    simulators = max((os.cpu_count() or 2) - 1, 1)
    return [
        ChildSpec(
            "api",
            (
                sys.executable,
                "-m",
                "uvicorn",
                "frontend.app:app",
                "--fd",
                str(listener.fileno()),
                "--http",
                HTTP_PROTOCOL,
                "--no-proxy-headers",
                "--timeout-graceful-shutdown",
                "2",
                "--no-access-log",
            ),
            environment,
            place.logs / "api.log",
            inherited=(listener.fileno(),),
        ),
        ChildSpec(
            "worker",
            (*worker, "-Q", "rounds", "-n", "rounds@%h", "--pool=solo"),
            environment,
            place.logs / "worker.log",
        ),
        # Not part of the worker, where its end would not be noticed.
        ChildSpec(
            "beat",
            (*celery, "beat", "--loglevel=WARNING", "--pidfile="),
            environment,
            place.logs / "beat.log",
        ),
        ChildSpec(
            "simulator",
            (*worker, "-Q", "simulations", "-n", "simulations@%h", f"--concurrency={simulators}"),
            # A round is short, a simulation is not: when stopped, the simulator drops it and runs
            # it again after the next start.
            {**environment, "REMAP_SIGTERM": "SIGQUIT"},
            place.logs / "simulator.log",
        ),
        # One process: one core at most. Forecasts after rounds lower their own priority.
        ChildSpec(
            "forecaster",
            (*worker, "-Q", "forecasts", "-n", "forecasts@%h", "--pool=solo"),
            {**environment, "REMAP_SIGTERM": "SIGQUIT"},
            place.logs / "forecaster.log",
        ),
    ]


def prepare_database(place: Place, environment: dict[str, str], say: Callable[[str], None]) -> str:
    """Migrate and add first data, in a separate process; return what it says of signing in.

    That may hold a password, so it is in no log. Raises StartFailed with the end of the log.
    """
    log = place.logs / "prepare.log"
    rotate(log)
    say("Preparing the database.")
    with log.open("ab") as file:
        arguments = (sys.executable, "-m", "backend.bootstrap_data", "--print-sign-in")
        process = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            start_new_session=True,
            preexec_fn=dies_with_parent(),  # noqa: PLW1509  (the supervisor has one thread)
        )
    try:
        said, _ = process.communicate()
    except StopRequested:
        process.kill()
        said, _ = process.communicate()
        if said.strip():  # a password that is in the database by now, and shown only once
            say(said.strip())
        raise
    if process.returncode != 0:
        raise StartFailed(f"The database could not be prepared. The end of {log}:\n{tail(log)}")
    return said.strip()


def await_health(place: Place, children: list[Child], say: Callable[[str], None]) -> None:
    """Wait until the API answers.

    Raises StartFailed if it keeps ending or takes far too long.
    """
    deadline = time.monotonic() + START_SECONDS
    # A proxy in the environment must not be used for loopback.
    with httpx.Client(trust_env=False, timeout=5.0) as client:
        while not answers(client, f"{place.url}/api/v1/health"):
            attend_once(children, say)
            api = children[0]
            if api.failures >= START_FAILURES or time.monotonic() > deadline:
                raise StartFailed(
                    f"The API did not start. The end of {api.spec.log}:\n{tail(api.spec.log)}"
                )
            time.sleep(0.1)


def answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).is_success
    except httpx.TransportError:
        return False


def supervise(children: list[Child], say: Callable[[str], None]) -> None:
    while True:
        attend_once(children, say)
        time.sleep(0.2)


def attend_once(children: list[Child], say: Callable[[str], None]) -> None:
    for child in children:
        happened = child.attend()
        if happened is not None:
            say(f"The {happened}")


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Hold the data folder.

    Raises DataFolderInUse if another process holds it; the kernel frees it however this process
    ends.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        file = (data_dir / "maat.lock").open("a+")
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror})",
            field="data_dir",
            value=str(data_dir),
            remedy="Give a folder that you may write to.",
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise DataFolderInUse(
                f"is in use by another Maat (process {holder})",
                field="data_dir",
                value=str(data_dir),
                remedy="Stop that process, or give another folder.",
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen at `port`, or at the next free one.

    The API inherits the socket: no other program can take the port in between, and requests wait
    while the API restarts. Raises InputError if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in range(port, min(port + PORTS_TRIED, 65536)):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it; uvicorn does not set it on an inherited socket.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            sock.bind((host, candidate))
            sock.listen(2048)
        except OSError as error:
            sock.close()
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            raise InputError(
                f"cannot be listened on ({error.strerror})",
                field="host",
                value=host,
                remedy="Use 127.0.0.1.",
            ) from error
        with sock:
            yield sock
        return
    raise InputError(
        f"and the {PORTS_TRIED - 1} after it are taken",
        field="port",
        value=port,
        remedy="Give another port.",
    )


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raise StopRequested on SIGINT and SIGTERM; restore the handlers at the end."""

    def request(_number: int, _frame: FrameType | None) -> None:
        raise StopRequested

    before = {
        number: signal.signal(number, request)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_further_signals() -> None:
    """Ignore a second Ctrl+C, which must not leave children behind.

    Stopping takes a few seconds at most.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
