"""What a decision made of the rows of quotas: who is held back, what is idle, what is owed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import BoolArray, IntArray
from maat.scheduling.job import JobId
from maat.scheduling.owed import Owed, deserved, owed_after
from maat.scheduling.quotas.dividing import dealt_of_idle
from maat.scheduling.quotas.rows import Rows, below_class, rows_with
from maat.scheduling.quotas.teams import CLASSES, Teams

IDLE_SHARE = 0.02
"""Of a cluster's places: as few idle ones are not worth another decision. A round is not delayed
for them, and the next one deals them."""


@dataclass(frozen=True)
class Outcome:
    """A decision under rows.

    Attributes:
        got: Shape (J, T), what it grants each job.
        before: The outcome of the decision before in the same round; None for the first.
    """

    teams: Teams
    rows: Rows
    got: IntArray
    before: Outcome | None = None

    @cached_property
    def used(self) -> IntArray:
        """What each team got of each type, shape (K, T)."""
        return self.teams.by_team(self.got)

    @cached_property
    def idle(self) -> IntArray:
        """The places that nobody got and that can be had, shape (T,)."""
        teams = self.teams
        return teams.room.after(self.got, np.maximum(teams.most - self.got, 0))

    @cached_property
    def lacking(self) -> IntArray:
        """The GPUs that each job could use next, shape (J, T); zero for none.

        What a job without GPUs needs at least, or what one with GPUs lacks to its next count.
        """
        teams, with_gpus = self.teams, np.any(self.got, axis=1, keepdims=True)
        lacking = np.where(with_gpus, teams.demand.further(self.got), teams.demand.least)
        return np.where(teams.pinned[:, None], 0, lacking)

    @cached_property
    def full(self) -> BoolArray:
        """Where a row, and no ceiling, keeps a job from what it lacks, shape (J, T)."""
        teams = self.teams
        after = self.used[teams.team] + self.lacking
        by_share = after > self.rows.share[teams.team]
        could = (self.lacking > 0) & (after <= teams.ceiling[teams.team]) & ~self._turned_down
        full: BoolArray = could & (by_share | self._behind)
        return full

    @cached_property
    def _turned_down(self) -> BoolArray:
        """What jobs did not take in an earlier decision, though no row was in the way, (J, T).

        Rows are later drawn around what was taken: then they say nothing of such a job.
        """
        before = self.before
        if before is None:
            return np.zeros(self.got.shape, dtype=bool)
        spare = before.idle > 0
        return before._turned_down | ((before.lacking > 0) & ~before.full & spare)

    @cached_property
    def _behind(self) -> BoolArray:
        """Where a row of lower classes is too small for what a job lacks, shape (J, T)."""
        teams, found = self.teams, np.zeros(self.got.shape, dtype=bool)
        below = below_class(teams.by_class(self.got))
        for rank in range(1, len(CLASSES)):
            over = below[teams.team, :, rank] + self.lacking > self.rows.below[teams.team, :, rank]
            has_row = np.array([rank in found_ for found_ in teams.boundaries])[teams.team]
            found |= over & (has_row & (teams.rank < rank))[:, None]
        return found

    @property
    def takes_back(self) -> bool:
        """Whether a job lost all GPUs of the decision before to jobs that come after it.

        These are lower classes of its team that hold some, or another team that holds more than
        before. Rows cannot rule it out: they bound what jobs may have, and a policy that cannot
        use all that they allow together chooses among jobs by its own measure.
        """
        before, teams = self.before, self.teams
        if before is None:
            return False
        lost = before.got.any(axis=1) & ~self.got.any(axis=1)
        if not lost.any():
            return False
        movable = self.got * ~teams.pinned[:, None]
        below = below_class(teams.by_class(movable)).sum(axis=1)
        more = self.used.sum(axis=1) - before.used.sum(axis=1)
        to_others = (more < 0) & (more > 0).any()
        return bool((lost & ((below[teams.team, teams.rank] > 0) | to_others[teams.team])).any())

    def rows_for_idle(self, usable: IntArray) -> Rows | None:
        """Return rows that deal the idle GPUs to jobs that a row holds back.

        None if none fits, or if too little is idle to decide again. `usable`: the places that the
        policy is known to use at most, shape (T,).
        """
        teams = self.teams
        idle = np.minimum(self.idle, np.maximum(usable - self.used.sum(axis=0), 0))
        if idle.sum() <= IDLE_SHARE * teams.capacity.sum():
            return None
        held_back = self.full & (self.lacking <= np.minimum(idle, teams.room.left(self.got)))
        if not held_back.any():
            return None
        dealt = dealt_of_idle(teams, self.got, held_back=held_back, idle=idle)
        return rows_with(teams, self.got, dealt)

    def owed_after(self, now: float, placed: Mapping[JobId, Sequence[int]]) -> Owed:
        """Return what teams are owed from now on. `placed`: the GPUs of each job that got some.

        A team that no row holds back has all that it can use, and so deserves what it got.
        """
        teams, used = self.teams, np.zeros(len(self.teams.names))
        for k, job in zip(teams.team.tolist(), teams.round_input.jobs, strict=True):
            used[k] += len(placed.get(job.id, ()))
        short = np.zeros(len(teams.names), dtype=bool)
        short[teams.team[self.full.any(axis=1)]] = True
        most = np.minimum(self._most_at_once, teams.wanted.sum(axis=1))
        demand = np.where(short, np.maximum(most, used), used)
        floor = np.minimum(np.minimum(teams.guaranteed, teams.wanted).sum(axis=1), demand)
        due = deserved(demand, floor, teams.weights, float(used.sum()))
        names = [name or "" for name in teams.names]
        return owed_after(now, names, owed=teams.owed, due=due, got=used, short=short)

    @cached_property
    def _most_at_once(self) -> IntArray:
        """The most that each team could use of all types together, shape (K,)."""
        teams = self.teams
        found = np.zeros(len(teams.names), dtype=np.int64)
        np.add.at(found, teams.team, teams.most.max(axis=1, initial=0))
        return found
