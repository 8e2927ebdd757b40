"""The limits of a round that quotas, weights and priority classes set.

Two kinds of rows, both of `LimitKind.QUOTA`. A team's row of a type: its ceiling, or what is dealt
to it if teams want more of the type than there is. A row of its lower classes: what its higher
classes leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.quotas.dealing import Dealer, Piece, Want
from maat.scheduling.quotas.teams import CLASSES, NO_CEILING, Teams
from maat.vocabulary import PRIORITIES


@dataclass(frozen=True)
class Rows:
    """The places of every row.

    Attributes:
        share: Shape (K, T), of a team; NO_CEILING where it has no row.
        below: Shape (K, T, classes), of a team's jobs below each class.
    """

    share: IntArray
    below: IntArray


def first_rows(teams: Teams) -> Rows:
    """Return the rows before a policy has decided."""
    share = teams.ceiling.copy()
    contended = np.flatnonzero(teams.contended)
    if len(contended) and teams.round_input.quotas:
        dealt = _deal_all(teams, contended)
        share[:, contended] = np.minimum(dealt, teams.ceiling)[:, contended]
    share = np.maximum(share, teams.by_team(teams.kept))
    above = _from_class_on(teams.by_class(teams.most))
    within = np.minimum(share, teams.capacity)[:, :, None]
    return Rows(share, _with_kept(teams, within - np.minimum(within, above)))


def rows_with(teams: Teams, used: IntArray, dealt: IntArray) -> Rows:
    """Return the rows after a decision: what was used, and what is dealt of the idle GPUs.

    `used`, (J, T), by job; `dealt`, (K, T, classes).
    """
    share = teams.ceiling.copy()
    if teams.round_input.quotas:
        both = teams.by_team(used) + dealt.sum(axis=2)
        share[:, teams.contended] = np.minimum(share, both)[:, teams.contended]
    share = np.maximum(share, teams.by_team(teams.kept))
    below = _below_class(teams.by_class(used) + dealt)
    return Rows(share, _with_kept(teams, below))


def wants(teams: Teams, pieces: IntArray, more: IntArray, gpu_type: int) -> list[Want]:
    """Return what each of K teams could use of a type.

    `pieces`, (J, T): what each job needs at least, zero for nothing. `more`, (J, T): what it could
    use beyond that.
    """
    found = [Want() for _ in teams.names]
    least, beyond = pieces[teams.order, gpu_type], more[teams.order, gpu_type]
    some = (least > 0) | (beyond > 0)
    at = teams.order[some]
    columns = (at, teams.team[at], teams.rank[at], least[some], beyond[some])
    for j, k, rank, count, further in zip(*(column.tolist() for column in columns), strict=True):
        if count:
            found[k].pieces.append(Piece(count, rank, j))
        if further:
            found[k].more[rank] = found[k].more.get(rank, 0) + further
    return found


def _deal_all(teams: Teams, types: IntArray) -> IntArray:
    """Return what is dealt to each team, with what its pinned jobs keep, shape (K, T).

    First what is guaranteed, then the rest by weight. A type that fewer teams want comes first:
    what these get of it counts when the others are dealt.
    """
    kept, held = teams.by_team(teams.kept), teams.by_team(teams.held)
    given = kept.copy()
    others = ~np.isin(np.arange(kept.shape[1]), types)
    dealer = Dealer(teams.weights, teams.owed, kept.sum(axis=1) + (held - kept)[:, others].sum(1))
    guaranteed = np.minimum(teams.guaranteed, teams.wanted)
    for t in sorted(types.tolist(), key=lambda t: (int((teams.wanted[:, t] > 0).sum()), t)):
        by_turn = _wants_by_turn(teams, t, dealer.jobs)
        for entitled in (guaranteed, teams.ceiling):
            for want in by_turn:
                got = dealer.deal(
                    want,
                    given=given[:, t],
                    room=np.maximum(entitled[:, t] - given[:, t], 0),
                    held=held[:, t],
                    places=int(teams.capacity[t] - given[:, t].sum()),
                )
                given[:, t] += [sum(by_class.values()) for by_class in got]
            if entitled is guaranteed:
                _top_up(given[:, t], guaranteed[:, t], int(teams.capacity[t]))
    return given


def _wants_by_turn(teams: Teams, gpu_type: int, dealt: set[int]) -> list[list[Want]]:
    """Return what teams could use of a type, in the turns in which it is dealt.

    A job that was dealt GPUs of another type, or holds some, needs none of this one: where a job
    takes what it requests and no more, such jobs come in a second turn.
    """
    free = ~teams.pinned[:, None]
    least, more = teams.demand.least * free, (teams.demand.most - teams.demand.least) * free
    if teams.chooses_counts:
        return [wants(teams, least, more, gpu_type)]
    elsewhere = np.any(teams.held > 0, axis=1) & (teams.held[:, gpu_type] == 0)
    elsewhere[list(dealt)] = True
    return [wants(teams, least * turn[:, None], more, gpu_type) for turn in (~elsewhere, elsewhere)]


def _top_up(given: IntArray, guaranteed: IntArray, capacity: int) -> None:
    """Raise what K teams are given, (K,), to all that is guaranteed, as far as it goes.

    Pieces seldom add up to it; which jobs take it is the policy's choice.
    """
    for k in np.flatnonzero(given < guaranteed).tolist():
        given[k] += min(int(guaranteed[k] - given[k]), max(capacity - int(given.sum()), 0))


def _from_class_on(by_class: IntArray) -> IntArray:
    """Return the sums from each class on upwards, shape (K, T, classes)."""
    return by_class[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]


def _below_class(by_class: IntArray) -> IntArray:
    """Return the sums below each class, shape (K, T, classes)."""
    return by_class.cumsum(axis=2) - by_class


def _with_kept(teams: Teams, below: IntArray) -> IntArray:
    """Return the rows, none below what the pinned jobs under it keep."""
    return np.maximum(below, _below_class(teams.by_class(teams.kept)))


def limits_of(teams: Teams, rows: Rows) -> tuple[Limit, ...]:
    """Return the rows that can bind, as limits."""
    return (*_share_limits(teams, rows), *_class_limits(teams, rows))


def _share_limits(teams: Teams, rows: Rows) -> Iterator[Limit]:
    types = teams.round_input.cluster.type_names
    binds = (rows.share < NO_CEILING) & (rows.share < teams.by_team(teams.most))
    for k, t in np.argwhere(binds).tolist():
        name = f"quota:{types[t]}:{teams.names[k]}"
        yield Limit(
            name, LimitKind.QUOTA, int(rows.share[k, t]), gpu_type=types[t], tenant=teams.names[k]
        )


def _class_limits(teams: Teams, rows: Rows) -> Iterator[Limit]:
    types = teams.round_input.cluster.type_names
    below = _below_class(teams.by_class(teams.most))
    for k, boundaries in enumerate(teams.boundaries):
        for rank in boundaries:
            for t in np.flatnonzero(rows.below[k, :, rank] < below[k, :, rank]).tolist():
                yield Limit(
                    f"priority:{types[t]}:{CLASSES[rank]}:{teams.names[k] or ''}",
                    LimitKind.QUOTA,
                    int(rows.below[k, t, rank]),
                    gpu_type=types[t],
                    tenant=teams.names[k],
                    below_priority=PRIORITIES[CLASSES[rank]],
                )
