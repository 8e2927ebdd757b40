"""The folder of an attempt: its files, its lock, and how the attempt stands by them.

Who holds the lock is the attempt's supervisor, or is about to start it. So a held lock means alive;
a free one with exit.json, ended; a free one with started.json alone, lost. Nobody goes by a pid.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple

from maat.launch.room import NO_ROOM, fill_room, keep_room

_KEPT_SUFFIXES = (".log", ".exit")
_NOW = "now"
_END_BYTES, _END_BYTES_OF_RANK = 4096, 512  # of what is written at the end, at most


class Limits(NamedTuple):
    """Limits of each rank; None leaves what the machine sets, or a log of any length.

    `log_bytes`: what its log may take of the disk before its middle is left out (log_limit.py).
    There is none for the address space: CUDA reserves far more than it uses.
    """

    open_files: int | None = 65_536
    file_bytes: int | None = None
    processes: int | None = None
    log_bytes: int | None = 2**30


class Place(NamedTuple):
    """Where a rank is: its number in the gang, its node, and its number on that node."""

    rank: int
    node: str
    local_rank: int


class Spec(NamedTuple):
    """What is to be started, as spec.json holds it: nothing secret but in name.

    Attributes:
        gpus_by_node: GPU indices on each node. Ranks follow its order.
        cuda_devices: What CUDA calls these GPUs, by node: nothing for a slot that is no GPU.
            None leaves the choice to who starts the ranks.
        threads: Threads of a rank's mathematics, unless `env` says otherwise.
        stop_seconds: Time from TERM to KILL.
        profile: What an attempt that only measures is to do: `seconds` of steps, `batch_sizes`.
    """

    attempt_id: str
    job_id: str
    number: int
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    secret_names: tuple[str, ...]
    gpu_type: str
    gpus_by_node: Mapping[str, tuple[int, ...]]
    gpus_per_replica: int
    cuda_devices: Mapping[str, tuple[str, ...]] | None
    threads: int
    stop_seconds: float
    limits: Limits
    plan: Mapping[str, int] | None
    checkpoint_directory: str
    profile: Mapping[str, Any] | None = None

    def places(self) -> list[Place]:
        """Return one place per replica, in the order of ranks."""
        places: list[Place] = []
        for node, gpus in self.gpus_by_node.items():
            for local_rank in range(len(gpus) // self.gpus_per_replica):
                places.append(Place(len(places), node, local_rank))
        return places

    def as_json(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "limits": self.limits._asdict(),
            "ranks": len(self.places()),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Spec:
        fields = {name: data[name] for name in cls._fields if name in data}
        for name in ("argv", "secret_names"):
            fields[name] = tuple(fields[name])
        return cls(**{**fields, "limits": Limits(**data["limits"])})


class Standing(Enum):
    """How an attempt stands."""

    ABSENT = "nothing was ever started"
    STARTING = "its supervisor is starting the ranks"
    RUNNING = "its supervisor is there"
    ENDED = "exit.json tells how"
    LOST = "it was started, and its supervisor is gone without a word"


class AttemptDir:
    """The files of one attempt."""

    def __init__(self, path: str) -> None:
        self.path = path

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def log(self, rank: int) -> str:
        return self.file(f"rank-{rank}.log")

    def has(self, name: str) -> bool:
        return os.path.exists(self.file(name))

    def read(self, name: str) -> dict[str, Any] | None:
        """Return what a JSON file holds; None if there is none, or the job has spoilt it."""
        try:
            with open(self.file(name), encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError):
            return None
        return data if isinstance(data, dict) else None

    def text(self, name: str) -> str:
        """Return what a file holds; nothing if there is no such file."""
        try:
            with open(self.file(name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def write(self, name: str, data: Mapping[str, Any]) -> None:
        self.write_text(name, json.dumps(data))

    def write_once(self, name: str, data: Mapping[str, Any]) -> bool:
        """Write a file that must not be there yet; return False if it is. Exact on NFS too."""
        temporary = self._write_temporary(name, json.dumps(data))
        try:
            os.link(temporary, self.file(name))
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary)
        self._sync()
        return True

    def write_text(self, name: str, text: str) -> None:
        """Write a file, whole or not at all, readable by its owner only; on disk at return.

        One that room was kept for is written though the disk is full.
        """
        try:
            written = self._write_temporary(name, text)
        except OSError as error:
            written = self._room(name)
            if error.errno not in NO_ROOM or not fill_room(written, text.encode()):
                raise
        os.replace(written, self.file(name))
        self._sync()

    def keep_room(self, ranks: int) -> None:
        """Keep room for orders, and for how the attempt and its ranks end. Raises OSError."""
        keep_room(self._room("exit.json"), _END_BYTES + _END_BYTES_OF_RANK * ranks)
        for order in ("stop", "kill"):
            keep_room(self._room(order), _END_BYTES)
        for rank in range(ranks):
            keep_room(self._room(f"rank-{rank}.exit"), _END_BYTES_OF_RANK)

    def _room(self, name: str) -> str:
        return self.file(f".{name}.room")

    def _write_temporary(self, name: str, text: str) -> str:
        temporary = self.file(f".{name}.{os.urandom(4).hex()}")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(file, "w", encoding="utf-8") as opened:
                opened.write(text)
                opened.flush()
                os.fsync(file)
        except OSError:
            os.unlink(temporary)
            raise
        return temporary

    def _sync(self) -> None:
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there. Ranks may do so at the same moment."""
        with suppress(FileNotFoundError):
            os.unlink(self.file(name))

    def spec(self) -> Spec:
        """Return spec.json. Raises FileNotFoundError."""
        data = self.read("spec.json")
        if data is None:
            raise FileNotFoundError(f"There is no {self.file('spec.json')} that can be read.")
        return Spec.from_json(data)

    def standing(self) -> Standing:
        """Return how the attempt stands, without touching anything."""
        # A supervisor writes exit.json before it lets go of the lock: so look, try, look again.
        if self.has("exit.json"):
            return Standing.ENDED
        if self.is_locked():
            return Standing.RUNNING if self.has("started.json") else Standing.STARTING
        return self.standing_unlocked()

    def standing_unlocked(self) -> Standing:
        """Return how the attempt stands if nobody but the caller can hold the lock."""
        if self.has("exit.json"):
            return Standing.ENDED
        return Standing.LOST if self.has("started.json") else Standing.ABSENT

    def is_locked(self) -> bool:
        """Return whether somebody holds the lock. Two who ask do not disturb each other."""
        try:
            lock = os.open(self.file("lock"), os.O_RDWR)
        except (FileNotFoundError, NotADirectoryError):
            return False
        try:
            return not _locks(lock, fcntl.LOCK_SH)
        finally:
            os.close(lock)

    def take_lock(self) -> int | None:
        """Return the lock as an open file, which a child process can go on holding; None if held.

        Who only asks is_locked() holds the lock for a moment, and is waited for.
        """
        lock = os.open(self.file("lock"), os.O_RDWR | os.O_CREAT, 0o600)
        while not _locks(lock, fcntl.LOCK_EX):
            if self.is_locked():
                os.close(lock)
                return None
        return lock

    def exit_codes(self) -> dict[int, int]:
        """Return the exit codes of the ranks that have ended so far; negative for a signal."""
        return {rank: int(ended["code"]) for rank, ended in self.exits().items()}

    def exits(self) -> dict[int, dict[str, Any]]:
        """Return what was recorded of the ranks that have ended so far, in their order."""
        found = {}
        for name in os.listdir(self.path):
            rank = name.removeprefix("rank-").removesuffix(".exit")
            if name == f"rank-{rank}.exit" and rank.isdecimal():
                ended = self.read(name)
                if ended is not None:
                    found[int(rank)] = ended
        return dict(sorted(found.items()))

    def show_life(self, rank: int) -> None:
        """Touch the file by which a rank's process is known to live, by the file system's clock."""
        with suppress(OSError), open(self.file(f"rank-{rank}.alive"), "wb") as file:
            os.utime(file.fileno())

    def seconds_without_life(self) -> float:
        """Return for how long the quietest rank that has not ended has shown no sign of life.

        0 if none ever showed any: what started it may not know of them.
        """
        return max(self._ages_of_signs(), default=0.0)

    def shows_life(self, *, within: float) -> bool:
        """Return whether a rank that has not ended has shown a sign of life so lately."""
        return min(self._ages_of_signs(), default=math.inf) < within

    def _ages_of_signs(self) -> list[float]:
        """Return the seconds since the last sign of each rank that has not ended."""
        try:
            with open(self.file(_NOW), "wb") as file:
                os.utime(file.fileno())  # two machines' clocks differ, and the file system has one
            now = os.stat(self.file(_NOW)).st_mtime
            signs = [e for e in os.scandir(self.path) if e.name.endswith(".alive")]
            ended = self.exits()
            return [
                now - sign.stat().st_mtime
                for sign in signs
                if int(sign.name.removeprefix("rank-").removesuffix(".alive")) not in ended
            ]
        except (OSError, ValueError):
            return []

    def clean(self) -> None:
        """Remove all files but logs, exit codes and spec.json."""
        for entry in list(os.scandir(self.path)):
            kept = entry.name in {"spec.json", "exit.json"} or entry.name.endswith(_KEPT_SUFFIXES)
            if not kept and not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)


def _locks(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
