"""Divides the GPUs that teams contend for, before a policy decides and after it left some idle.

dealing.py says who comes next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maat.scheduling.arrays import BoolArray, IntArray
from maat.scheduling.quotas.dealing import Cap, Dealer, Hand
from maat.scheduling.quotas.teams import CLASSES, Teams


def divided(teams: Teams) -> IntArray:
    """Return what is dealt to each team, with what its pinned jobs keep, shape (K, T).

    First what is guaranteed, then the rest by weight. Each job is dealt GPUs of one type, as it can
    use no more. What is left goes to jobs that could use it instead of what they were dealt: which
    type they take is the policy's choice. Types that nobody contends for are left out.
    """
    return _Division(teams).divided()


def dealt_of_idle(teams: Teams, got: IntArray, *, held_back: BoolArray, idle: IntArray) -> IntArray:
    """Return what is dealt of idle GPUs to each team, by class, shape (K, T, classes).

    `got`, (J, T): what jobs have. `held_back`, (J, T): which jobs could use more of a type. `idle`,
    (T,).
    """
    used = teams.by_team(got)
    none = np.zeros_like(used)
    hands = _hands(teams, given=used, held=none, spare=none)
    has = dict(zip(*(axis.tolist() for axis in np.nonzero(got)), strict=True))
    for wish in teams.wishes:
        types = np.flatnonzero(held_back[wish.job]).tolist()
        if not types:
            continue
        hand = hands[wish.team]
        if wish.job in has:
            hand.grow(wish, has[wish.job], int(got[wish.job, has[wish.job]]))
        else:
            hand.waiting.append(wish._replace(types=[t for t in wish.types if t in types]))
    dealer = Dealer(teams.weights, teams.owed, teams.capacity)
    dealt = np.zeros((*used.shape, len(CLASSES)), dtype=np.int64)
    for piece in dealer.deal(hands, total=used.sum(axis=1), places=idle):
        dealt[piece.wish.team, piece.gpu_type, piece.wish.rank] += piece.gpus
    return dealt


class _Division:
    """A division under way.

    `given`, (K, T): what each team was dealt; `spare`, (K, T): of that, what no job has. `counts`:
    by job and type, the GPUs dealt for a job.
    """

    def __init__(self, teams: Teams) -> None:
        self._teams = teams
        self._dealer = Dealer(teams.weights, teams.owed, teams.capacity)
        self._held_by_team = teams.by_team(teams.held)
        self.given = teams.by_team(teams.kept)
        self._spare = np.zeros_like(self.given)
        self._beside = (self._held_by_team - self.given)[:, ~teams.contended].sum(axis=1)
        self._counts: dict[int, dict[int, int]] = {}
        contended = set(np.flatnonzero(teams.contended).tolist())
        self._wishes = [
            wish if contended.issuperset(wish.types) else wish._replace(types=types)
            for wish in teams.wishes
            if (types := [t for t in wish.types if t in contended])
        ]

    def divided(self) -> IntArray:
        self._set_guarantees_aside()
        served = np.any(self._teams.held[:, ~self._teams.contended] > 0, axis=1).tolist()
        hands = self._hands()
        for wish in self._wishes:
            if not served[wish.job]:
                hands[wish.team].waiting.append(wish)
        self._note(hands)
        while self._deal_further():
            pass
        return self.given

    def _set_guarantees_aside(self) -> None:
        """Give each team what is guaranteed and wanted, as far as pinned jobs leave it.

        Which jobs take it is the policy's choice.
        """
        teams, before = self._teams, self.given.copy()
        guaranteed = np.minimum(teams.guaranteed, teams.wanted) * teams.contended
        by_team = _caps(teams, before)
        for k, t in np.argwhere(self.given < guaranteed).tolist():
            caps = [cap for cap in by_team[k] if cap.gpu_type == t]
            left = int(teams.usable[t] - self.given[:, t].sum())
            left = max(min([left, *(cap.left for cap in caps)]), 0)
            aside = min(int(guaranteed[k, t] - self.given[k, t]), left)
            self.given[k, t] += aside
            for cap in caps:
                cap.left -= aside
        self._spare = self.given - before

    def _deal_further(self) -> bool:
        """Deal what is left to jobs that were dealt another type; False if none takes any."""
        places = self._places()
        if not places.any():
            return False
        hands = self._hands()
        for wish in self._wishes:
            has = self._counts.get(wish.job, {})
            types = [t for t in wish.types if t not in has and places[t]]
            if types:
                hands[wish.team].waiting.append(wish._replace(types=types))
        return self._note(hands)

    def _note(self, hands: Sequence[Hand]) -> bool:
        total = self.given.sum(axis=1) + self._beside
        dealt = self._dealer.deal(hands, total=total, places=self._places())
        for piece in dealt:
            self._counts.setdefault(piece.wish.job, {})[piece.gpu_type] = piece.then
        self.given = np.array([hand.given for hand in hands], dtype=np.int64)
        self._spare = np.array([hand.spare for hand in hands], dtype=np.int64)
        return bool(dealt)

    def _hands(self) -> list[Hand]:
        return _hands(self._teams, given=self.given, held=self._held_by_team, spare=self._spare)

    def _places(self) -> IntArray:
        """The places that are left of each type, shape (T,); none of types without contention."""
        left = np.maximum(self._teams.usable - self.given.sum(axis=0), 0)
        return np.where(self._teams.contended, left, 0)


def _hands(teams: Teams, *, given: IntArray, held: IntArray, spare: IntArray) -> list[Hand]:
    """Return K hands without jobs. Arrays have shape (K, T)."""
    room = np.maximum(teams.ceiling - given, 0)
    rows = zip(held.tolist(), given.tolist(), room.tolist(), spare.tolist(), strict=True)
    blocks = teams.policy_order is not None and teams.policy_order.blocks
    caps = _caps(teams, given)
    return [Hand(*row, blocks, of_team) for row, of_team in zip(rows, caps, strict=True)]


def _caps(teams: Teams, given: IntArray) -> list[list[Cap]]:
    """Return the caps of each of K teams beside what teams have, (K, T).

    They are the bounds over one type that count jobs of several teams. Who has jobs that a bound
    counts and others is under it: what these jobs could have is dealt once it is idle.
    """
    found: list[list[Cap]] = [[] for _ in teams.names]
    for bound in teams.room.bounds:
        if bound.types.sum() != 1:
            continue
        t = int(np.argmax(bound.types))
        under = np.unique(teams.team[bound.counted[:, t]]).tolist()
        cap = Cap(t, max(bound.places - int(given[under, t].sum()), 0))
        for k in under:
            found[k].append(cap)
    return found
