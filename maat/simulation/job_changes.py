"""What a simulated job held and achieved over time, kept as its changes. Decides nothing.

A simulation records one row per change, not one per round: a job that runs on as it did costs
nothing. A live cluster keeps rounds and events instead, and no such rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple

WITHOUT_TYPE = -1


class TrainingState(NamedTuple):
    """What a job holds and achieves until its next change. All are numbers, for compact rows.

    `gpu_type`: number in the cluster's `type_names`, WITHOUT_TYPE while it waits. `batch_size`
    (total), `efficiency`, `slowdown`: 0 while it does not train, as in a wait or a restart.
    `locality`, `variability`: the two factors of PAL's eq. 1, 0 while it waits. `slowdown`: true
    over nominal seconds of a step, for all reasons.
    """

    gpu_type: float = WITHOUT_TYPE
    gpu_count: float = 0.0
    node_count: float = 0.0
    batch_size: float = 0.0
    efficiency: float = 0.0
    locality: float = 0.0
    variability: float = 0.0
    slowdown: float = 0.0


class Mark(NamedTuple):
    """An earlier end of the rows, for `JobChanges.go_back`: bytes, the last row, holdings."""

    size: int
    last: bytes
    holdings: int


class Holding(NamedTuple):
    """The numbers of the GPUs that a job holds from `since` on."""

    since: float
    gpus: tuple[int, ...]


WIDTH = 1 + len(TrainingState._fields)
ROW = Struct(f"{WIDTH}d")  # a row is packed by hand: it is entered at every epoch of every job
WAITING = TrainingState()
NOT_TRAINING = (0.0, 0.0, 0.0)  # batch size, efficiency, slowdown


class JobChanges:
    """The changes of one job: rows of (time, state) in order of time, packed as doubles.

    A state lasts until the next row. Of several at one moment the last stands. `keeps_gpus`:
    whether to keep also which GPUs it holds, where jobs may share them.
    """

    __slots__ = ("_held", "_keeps_gpus", "_since", "_training", "_types", "holdings", "rows")

    def __init__(self, since: float, types: Mapping[str, int], *, keeps_gpus: bool) -> None:
        self.rows = bytearray(ROW.pack(since, *WAITING))
        self.holdings: list[Holding] = []
        self._types, self._keeps_gpus = types, keeps_gpus
        self._held, self._training = WAITING, NOT_TRAINING
        self._since = since

    def waits(self, now: float) -> None:
        """Enter that the job has no GPUs."""
        self._held, self._training = WAITING, NOT_TRAINING
        self._enter(now, WAITING)
        self._hold(now, ())

    def holds(
        self,
        now: float,
        gpu_type: str,
        gpus: tuple[int, ...],
        *,
        node_count: int,
        locality: float,
        variability: float,
    ) -> None:
        """Enter the GPUs that the job holds; it does not train yet."""
        self._held = TrainingState(
            gpu_type=float(self._types[gpu_type]),
            gpu_count=float(len(gpus)),
            node_count=float(node_count),
            locality=locality,
            variability=variability,
        )
        self._training = NOT_TRAINING
        self._enter(now, self._held)
        self._hold(now, gpus)

    def trains(self, now: float, batch_size: int, *, efficiency: float, slowdown: float) -> None:
        """Enter that the job trains on what it holds."""
        training = (batch_size, efficiency, slowdown)
        if training == self._training:
            return
        self._training = training
        kind, gpus, nodes, _, _, locality, variability, _ = self._held
        if now <= self._since:
            state = (kind, gpus, nodes, batch_size, efficiency, locality, variability, slowdown)
            self._enter(now, state)
            return
        self._since = now
        self.rows += ROW.pack(
            now, kind, gpus, nodes, batch_size, efficiency, locality, variability, slowdown
        )

    def _enter(self, now: float, state: tuple[float, ...]) -> None:
        rows = self.rows
        if now <= self._since:
            # A preset that rounds epochs to seconds may be ahead of the round by half of one.
            now = self._since
            del rows[-ROW.size :]
        if not rows or ROW.unpack(rows[-ROW.size :])[1:] != state:
            rows += ROW.pack(now, *state)
            self._since = now
        else:
            self._since = ROW.unpack(rows[-ROW.size :])[0]

    def _hold(self, now: float, gpus: tuple[int, ...]) -> None:
        if self._keeps_gpus:
            self.holdings.append(Holding(now, gpus))

    # ---- an earlier state

    def mark(self) -> Mark:
        """Return the present end of the rows."""
        return Mark(len(self.rows), bytes(self.rows[-ROW.size :]), len(self.holdings))

    def go_back(self, mark: Mark) -> None:
        """Undo all that was entered since."""
        # An entry at the moment of the marked row may have replaced it.
        self.rows[mark.size - ROW.size :] = mark.last
        del self.holdings[mark.holdings :]
        self._since, *values = ROW.unpack(mark.last)
        state = TrainingState(*values)
        self._training = (state.batch_size, state.efficiency, state.slowdown)
        self._held = state._replace(batch_size=0.0, efficiency=0.0, slowdown=0.0)
