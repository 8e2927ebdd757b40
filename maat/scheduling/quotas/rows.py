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
from maat.scheduling.limits import CEILING, Limit, LimitKind
from maat.scheduling.quotas.dividing import divided
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
        share[:, contended] = np.minimum(divided(teams), teams.ceiling)[:, contended]
    share = np.maximum(share, teams.by_team(teams.kept))
    return Rows(share, _with_kept(teams, _left_by_higher_classes(teams, share)))


def _left_by_higher_classes(teams: Teams, share: IntArray) -> IntArray:
    """Return what the classes from each one on could not use, shape (K, T, classes).

    Of a team's share, (K, T), and of what each bound of the round allows: the least counts. Lower
    jobs that a bound does not count may have more than it leaves.
    """
    above = _from_class_on(teams.by_class(teams.most))
    within = np.minimum(share, teams.room.sure)[:, :, None]
    left: IntArray = within - np.minimum(within, above)
    for bound in teams.room.bounds:
        # A job has GPUs of one type: what it could use under a bound over several is the most of
        # any of them.
        need = (teams.most * bound.counted).max(axis=1, keepdims=True, initial=0)
        within = np.minimum(share, bound.places)[:, :, None]
        others = below_class(teams.by_class(teams.most * ~bound.counted))
        leaves = within - np.minimum(within, _from_class_on(teams.by_class(need))) + others
        left[:, bound.types] = np.minimum(left, leaves)[:, bound.types]
    return left


def rows_with(teams: Teams, used: IntArray, dealt: IntArray) -> Rows:
    """Return the rows after a decision: what was used, and what is dealt of the idle GPUs.

    `used`, (J, T), by job; `dealt`, (K, T, classes).
    """
    share = teams.ceiling.copy()
    if teams.round_input.quotas:
        both = teams.by_team(used) + dealt.sum(axis=2)
        share[:, teams.contended] = np.minimum(share, both)[:, teams.contended]
    share = np.maximum(share, teams.by_team(teams.kept))
    below = below_class(teams.by_class(used) + dealt)
    return Rows(share, _with_kept(teams, below))


def _from_class_on(by_class: IntArray) -> IntArray:
    """Return the sums from each class on upwards, shape (K, T, classes)."""
    return by_class[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]


def below_class(by_class: IntArray) -> IntArray:
    """Return the sums below each class, shape (K, T, classes)."""
    return by_class.cumsum(axis=2) - by_class


def _with_kept(teams: Teams, below: IntArray) -> IntArray:
    """Return the rows, none below what the pinned jobs under it keep."""
    return np.maximum(below, below_class(teams.by_class(teams.kept)))


def limits_of(teams: Teams, rows: Rows) -> tuple[Limit, ...]:
    """Return the rows that can bind, as limits."""
    return (*_share_limits(teams, rows), *_class_limits(teams, rows))


def _share_limits(teams: Teams, rows: Rows) -> Iterator[Limit]:
    types = teams.round_input.cluster.type_names
    binds = (rows.share < NO_CEILING) & (rows.share < teams.by_team(teams.most))
    for k, t in np.argwhere(binds).tolist():
        kind = CEILING if rows.share[k, t] >= teams.ceiling[k, t] else LimitKind.QUOTA
        name = f"{kind}:{types[t]}:{teams.names[k]}"
        yield Limit(
            name, LimitKind.QUOTA, int(rows.share[k, t]), gpu_type=types[t], tenant=teams.names[k]
        )


def _class_limits(teams: Teams, rows: Rows) -> Iterator[Limit]:
    types = teams.round_input.cluster.type_names
    below = below_class(teams.by_class(teams.most))
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
