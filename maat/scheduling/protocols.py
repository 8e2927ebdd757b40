"""The protocols of policies, placers, executors, stores and clocks.

The data that flows between the parts is in rounds.py; loop.py calls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, Protocol

from maat.scheduling.events import Event
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import (
    Changes,
    ClusterState,
    Decision,
    PlacementResult,
    RoundInput,
    StoredState,
)


class GpuSharing(StrEnum):
    """Whether a policy puts several jobs on a GPU of a cluster that allows it.

    CHOSEN: on some GPUs, those on which it expects that jobs gain by it. NEVER: it uses one place
    of each. PLACES_AS_GPUS: it would take every place for a GPU, and put two jobs on one beside
    idle GPUs. Policies other than CHOSEN see one place on each GPU (gpu_places.py).
    """

    PLACES_AS_GPUS = "places-as-gpus"
    CHOSEN = "chosen"
    NEVER = "never"


class Policy(Protocol):
    """Decides how much each job gets.

    `default_round_seconds`: the interval of rounds when nothing else gives one. A policy that
    chooses GPU counts, instead of granting what jobs request, sets `chooses_gpu_counts` to True.
    If it does not use every count that a job declares, it also has `useful_counts(round_input)`:
    the counts that it would grant in this round, by job and GPU type, ascending. A policy that
    grants along an order has `order(round_input)`, an `Order`. A policy that counts a job of
    weight w as w jobs like it sets `weighs_jobs` to True; others ignore weights. One that knows of
    GPUs that several jobs share says how by `gpu_sharing`, a `GpuSharing`.
    """

    default_round_seconds: ClassVar[float]

    @property
    def name(self) -> str: ...
    def allocate(self, round_input: RoundInput) -> Decision: ...


class Placer(Protocol):
    """Decides which GPUs each job gets.

    One that puts two jobs on a GPU only if the policy chose the pair sets `keeps_pairs` to True;
    one that weighs what a step across nodes costs a job sets `weighs_locality` to True.
    """

    @property
    def name(self) -> str: ...
    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult: ...


class Executor(Protocol):
    """Carries rounds out. `apply` twice with the same changes is `apply` once."""

    def observe(self) -> ClusterState: ...
    def apply(self, changes: Changes) -> Sequence[Event]: ...


class RoundStore(Protocol):
    """Keeps rounds: in memory for simulations, in SQL for the live cluster."""

    def load(self) -> StoredState: ...

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        """Store the round and the observation before it together.

        Returns False if another worker committed this round.
        """
        ...

    def unapplied(self) -> Sequence[Changes]:
        """Return committed changes that may not have reached the executor."""
        ...

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        """Record that the executor carried out these changes."""
        ...


class Clock(Protocol):
    def now(self) -> float: ...
    def sleep_until(self, time: float) -> None: ...
