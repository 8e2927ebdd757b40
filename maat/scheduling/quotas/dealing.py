"""Deals GPUs to tenants by weight, in pieces that their jobs can use.

Knows no limits and no policy: rows.py makes rows of what is dealt.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.owed import TURN_SECONDS


class Wish(NamedTuple):
    """What a job of a team could be dealt.

    `rank`: of its class. `counts`: the GPU counts that it could have, by type, ascending. `types`:
    those of which it could be dealt some. `in_order`: whether it takes the first of them that has
    room; else one that its tenant holds, or the one of which least is gone.
    """

    job: int
    team: int
    rank: int
    counts: Sequence[Sequence[int]]
    types: Sequence[int]
    in_order: bool = False


class Piece(NamedTuple):
    """GPUs with which a job has `then` of a type.

    `gpus` of them are taken from what is left; the others were set aside for its tenant.
    """

    gpus: int
    gpu_type: int
    then: int
    wish: Wish


class Table(NamedTuple):
    """The places of each type: how many there are, are left, and are held but not yet dealt."""

    capacity: list[int]
    left: list[int]
    claimed: list[int]


@dataclass
class Cap:
    """What several tenants together may still be dealt of a type, beside a reservation of others.

    `left` shrinks as they are dealt it.
    """

    gpu_type: int
    left: int


@dataclass
class Hand:
    """One tenant: what its jobs could be dealt next, and what it was dealt.

    Attributes:
        waiting: Jobs that were dealt nothing; the first comes first.
        blocks: Whether jobs behind one that does not fit wait.
        held, given, room: By type: GPUs that it holds, was dealt, and may still be dealt.
        spare: By type: GPUs of those that it was dealt that no job has.
        caps: Shared with other tenants.
    """

    held: list[int]
    given: list[int]
    room: list[int]
    spare: list[int]
    blocks: bool = False
    caps: Sequence[Cap] = ()
    waiting: deque[Wish] = field(default_factory=deque)
    _growing: dict[int, list[tuple[int, int, int, Wish]]] = field(default_factory=dict)
    _dealt: int = 0

    def grow(self, wish: Wish, gpu_type: int, count: int) -> None:
        """Let a job that has so many GPUs of a type be dealt more of it."""
        counts = wish.counts[gpu_type]
        if count < counts[-1]:
            self._dealt += 1
            heap = self._growing.setdefault(gpu_type, [])
            heapq.heappush(heap, (-wish.rank, count, self._dealt, wish))

    def next_piece(self, table: Table) -> Piece | None:
        """Return the next piece that fits the tenant's room and what is left; None if none does.

        What every job needs at least comes first. What does not fit is not offered again: both
        only shrink.
        """
        while self.waiting:
            wish = self.waiting[0]
            t = self._type_for(wish, table)
            if t is not None:
                gpus = wish.counts[t][0]
                return Piece(max(gpus - self.spare[t], 0), t, gpus, wish)
            if self.blocks:
                return None
            self.waiting.popleft()
        steps = list(self._steps(table))
        if len(steps) < 2:
            return steps[0] if steps else None
        return min(
            steps,
            key=lambda step: (-step.wish.rank, self._filled(step.gpu_type, step.gpus, table)),
        )

    def take(self, piece: Piece) -> None:
        """Note that the piece that `next_piece` returned was dealt."""
        t, before = piece.gpu_type, 0
        if self.waiting:
            self.waiting.popleft()
        else:
            before = heapq.heappop(self._growing[t])[1]
        self.spare[t] -= piece.then - before - piece.gpus
        self.given[t] += piece.gpus
        self.room[t] -= piece.gpus
        for cap in self.caps:
            if cap.gpu_type == t:
                cap.left -= piece.gpus
        self.grow(piece.wish, t, piece.then)

    def may_take(self, gpus: int, gpu_type: int, table: Table) -> bool:
        """Return whether its room, what is left and its caps have so many GPUs."""
        return (
            gpus <= self.room[gpu_type]
            and gpus <= table.left[gpu_type]
            and all(gpus <= cap.left for cap in self.caps if cap.gpu_type == gpu_type)
        )

    def claim(self, gpu_type: int) -> int:
        """Return how many GPUs of a type it holds and was not yet dealt."""
        return max(self.held[gpu_type] - self.given[gpu_type], 0)

    def stays(self, piece: Piece) -> bool:
        """Return whether the tenant holds the piece already."""
        return self.given[piece.gpu_type] + piece.gpus <= self.held[piece.gpu_type]

    def _steps(self, table: Table) -> Iterator[Piece]:
        """The next step of a job of each type: of the highest class, of the fewest GPUs."""
        for t, heap in self._growing.items():
            while heap:
                _, count, _, wish = heap[0]
                then = wish.counts[t][bisect_right(wish.counts[t], count)]
                gpus = max(then - count - self.spare[t], 0)
                if self.may_take(gpus, t, table):
                    yield Piece(gpus, t, then, wish)
                    break
                heapq.heappop(heap)

    def _type_for(self, wish: Wish, table: Table) -> int | None:
        """Return the type of which a job that waits is dealt what it needs at least."""
        best: tuple[float, int] | None = None
        for t in wish.types:
            gpus = max(wish.counts[t][0] - self.spare[t], 0)
            if self.may_take(gpus, t, table):
                if wish.in_order:
                    return t
                key = (self._filled(t, gpus, table), t)
                best = key if best is None else min(best, key)
        return None if best is None else best[1]

    def _filled(self, t: int, gpus: int, table: Table) -> float:
        """Return how much of a type is gone, to choose between types: the least comes first.

        That is the tenant's part of it, and what others have or hold. Below zero for what the
        tenant holds.
        """
        part = (self.given[t] - self.spare[t]) / table.capacity[t]
        if self.given[t] + gpus <= self.held[t]:
            return part - 1.0
        return part + 1.0 - (table.left[t] - table.claimed[t]) / table.capacity[t]


@dataclass(frozen=True)
class Dealer:
    """Who comes next: the tenant whose GPUs, less what it is owed, are the fewest by its weight.

        key_k = ((GPUs dealt to k) x TURN - owed_k) / w_k

    A piece that the tenant holds already counts as not yet dealt: it changes hands only for a
    difference of that piece for TURN seconds.

    Attributes:
        weights, owed: Shape (K,); owed in GPU-seconds.
        capacity: Shape (T,), places.
    """

    weights: FloatArray
    owed: FloatArray
    capacity: IntArray

    def deal(self, hands: Sequence[Hand], *, total: IntArray, places: IntArray) -> list[Piece]:
        """Deal at most `places`, (T,), to K hands; return the pieces in order.

        `total`, shape (K,): the GPUs of all types that each tenant has before.
        """
        table = Table(self.capacity.tolist(), places.tolist(), _claimed(hands, len(places)))
        has, weights, owed = total.tolist(), self.weights.tolist(), self.owed.tolist()
        heap: list[tuple[float, int, Piece]] = []
        dealt: list[Piece] = []

        def offer(k: int) -> None:
            piece = hands[k].next_piece(table)
            if piece is not None:
                counted = has[k] - (piece.gpus if hands[k].stays(piece) else 0)
                key = (counted * TURN_SECONDS - owed[k]) / weights[k]
                heapq.heappush(heap, (key, k, piece))

        for k in range(len(hands)):
            offer(k)
        while heap:
            _, k, piece = heapq.heappop(heap)
            t = piece.gpu_type
            if hands[k].may_take(piece.gpus, t, table):
                table.claimed[t] -= hands[k].claim(t)
                hands[k].take(piece)
                table.claimed[t] += hands[k].claim(t)
                table.left[t] -= piece.gpus
                has[k] += piece.gpus
                dealt.append(piece)
            offer(k)
        return dealt


def _claimed(hands: Sequence[Hand], types: int) -> list[int]:
    return [sum(hand.claim(t) for hand in hands) for t in range(types)]
