"""What an engine is: it runs gangs of processes on named nodes. It knows no job and no round.

An engine is asked again and again (worker/training/reconcile.py): every call may be repeated, and a
call that failed half-way is made again. Nothing that an engine answers is believed at once: it may
be late, forget, or tell something twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol


class Refused(Exception):
    """The engine can never start this order as it stands. The text says why."""


class Unreachable(Exception):
    """The engine does not answer now. The text says what was tried."""


class Phase(StrEnum):
    """How far the processes of an attempt are.

    UNKNOWN: the engine does not answer for it. ABSENT: the engine answers, and knows of no such
    attempt.
    """

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do.

    `names_gpus`: it takes GPU indices; otherwise it chooses them itself and `Seen` tells them.
    `shares`: two attempts may hold one GPU. `uneven`: nodes of an attempt may hold different
    counts. `several_nodes`: an attempt may span nodes. `finds_nodes`: `nodes()` says which nodes
    there are; otherwise they are declared. `looks_cheaply`: a look takes milliseconds, so that one
    may look for an end several times a second.
    """

    names_gpus: bool
    shares: bool
    uneven: bool
    several_nodes: bool
    finds_nodes: bool = False
    looks_cheaply: bool = False


@dataclass(frozen=True, slots=True)
class EngineNode:
    """A node as the engine sees it. `down_gpus`: indices on it that cannot be used."""

    name: str
    gpu_type: str
    gpu_count: int
    up: bool
    reason: str = ""
    memory_gib: float | None = None
    down_gpus: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Order:
    """All that is needed to start an attempt. Pure data.

    Attributes:
        number: Grows with every attempt of a job: of two, the higher one is the right one.
        directory: The attempt's own folder: logs, exit codes, the agent's last report.
        checkpoint_directory: The job's, the same for all its attempts.
        gpus_by_node: GPU indices on each node.
        env: What the job's owner asked for, and what the agent needs to know. Not secret.
        secrets: Environment variables that must not appear in any list of processes or log.
        token: The agent's right to report for this attempt; as secret.
        stop_seconds: Time between the order to stop and the end by force.
        plan: The batch plan to begin with, as JSON data; None lets the script choose.
        profile: What an attempt that only measures is to do, as JSON data; None trains.
    """

    attempt_id: str
    job_id: str
    number: int
    directory: Path
    checkpoint_directory: Path
    argv: tuple[str, ...]
    cwd: Path
    gpu_type: str
    gpus_by_node: Mapping[str, tuple[int, ...]]
    stop_seconds: float
    gpus_per_replica: int = 1
    shared: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    token: str = field(default="", repr=False)
    plan: Mapping[str, int] | None = None
    profile: Mapping[str, Any] | None = None

    @property
    def rank_count(self) -> int:
        """The processes to start: one per replica."""
        return sum(len(gpus) for gpus in self.gpus_by_node.values()) // self.gpus_per_replica


@dataclass(frozen=True, slots=True)
class Seen:
    """How an attempt stands, as the engine says.

    Attributes:
        gpus_by_node: What it truly holds, once the engine has said so.
        exits: Exit code by rank, negative for a signal; of ended ranks.
        first_failed: The rank that failed first, if one did before anybody was asked to stop.
        by_engine: The engine ended it, not the job: its node was lost, or a limit there reached.
        cancelled: The engine has it as cancelled, and Maat did not ask for that.
        full_folder: Where there was no room to write when it ended.
        wakes: It waits for nodes that are its own and boot: that takes minutes.
    """

    phase: Phase
    engine_id: str | None = None
    gpus_by_node: Mapping[str, tuple[int, ...]] | None = None
    exits: Mapping[int, int] = field(default_factory=dict)
    first_failed: int | None = None
    reason: str = ""
    by_engine: bool = False
    cancelled: bool = False
    full_folder: str = ""
    wakes: bool = False


class Engine(Protocol):
    """Runs attempts. Every method may raise Unreachable."""

    @property
    def capabilities(self) -> Capabilities: ...

    def nodes(self) -> Sequence[EngineNode]:
        """Return every node that the engine has or had."""
        ...

    def launch(self, order: Order) -> str:
        """Start an attempt, or find it started; return the engine's name for it.

        Twice with one attempt is once; an attempt that has ended is never started again. Raises
        Refused.
        """
        ...

    def look(self, attempt_ids: Sequence[str]) -> Mapping[str, Seen]:
        """Return how these attempts stand: one call for all."""
        ...

    def stop(self, attempt_id: str) -> None:
        """Ask the ranks to save and end. What is absent or ended already is well."""
        ...

    def kill(self, attempt_id: str) -> None:
        """End the ranks at once."""
        ...

    def strays(self, known: Collection[str]) -> Sequence[str]:
        """End attempts that run under Maat's mark and are none of these; return their ids."""
        ...

    def forget(self, attempt_id: str) -> None:
        """Let go of an attempt whose end is stored. Its logs stay."""
        ...
