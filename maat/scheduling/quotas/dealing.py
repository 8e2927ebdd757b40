"""Deals the GPUs of one type to tenants by weight, in pieces that their jobs can use.

Knows no limits and no policy: rounds.py makes rows of what is dealt.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.owed import TURN_SECONDS


class Piece(NamedTuple):
    """GPUs for one job. `job` is None for GPUs beyond what a job needs at least."""

    gpus: int
    rank: int
    job: int | None = None


@dataclass
class Want:
    """What a tenant could still use of a GPU type.

    Attributes:
        pieces: GPUs that each next job needs at least, its class and its number; the first comes
            first.
        more: GPUs that jobs could use beyond these, one by one, by class.
    """

    pieces: deque[Piece] = field(default_factory=deque)
    more: dict[int, int] = field(default_factory=dict)
    _passed: list[Piece] = field(default_factory=list)

    def next_piece(self, room: int) -> Piece | None:
        """Take and return the next piece of at most `room` GPUs.

        Larger ones are passed over: the room of a deal only shrinks.
        """
        while self.pieces:
            piece = self.pieces.popleft()
            if piece.gpus <= room:
                return piece
            self._passed.append(piece)
        for kind in sorted(self.more, reverse=True):
            if self.more[kind] > 0 and room > 0:
                self.more[kind] -= 1
                return Piece(1, kind)
        return None

    def give_back(self) -> None:
        """Offer what was passed over again, in another deal."""
        self.pieces.extendleft(reversed(self._passed))
        self._passed.clear()


@dataclass
class Dealer:
    """Who comes next: the tenant whose GPUs, less what it is owed, are the fewest by its weight.

        key_k = ((GPUs dealt to k) x TURN - owed_k) / w_k

    A piece that the tenant holds already counts as not yet dealt: it changes hands only for a
    difference of that piece for TURN seconds.

    Attributes:
        weights, owed: Shape (K,); owed in GPU-seconds.
        total: Shape (K,), the GPUs dealt of all types so far.
        jobs: The jobs to which a piece was dealt.
    """

    weights: FloatArray
    owed: FloatArray
    total: IntArray
    jobs: set[int] = field(default_factory=set)

    def deal(
        self,
        wants: list[Want],
        *,
        given: IntArray,
        room: IntArray,
        held: IntArray,
        places: int,
    ) -> list[dict[int, int]]:
        """Deal at most `places` places; return what each tenant got, by class.

        `given`, `room`, `held`, shape (K,): what each tenant has of this type before, what it may
        still get, and what it holds at present.
        """
        got: list[dict[int, int]] = [{} for _ in wants]
        mine, left = given.tolist(), room.tolist()
        heap: list[tuple[float, int, Piece]] = []

        def offer(k: int) -> None:
            piece = wants[k].next_piece(min(left[k], places))
            if piece is not None:
                stays = piece.gpus if mine[k] + piece.gpus <= int(held[k]) else 0
                key = ((int(self.total[k]) - stays) * TURN_SECONDS - self.owed[k]) / self.weights[k]
                heapq.heappush(heap, (float(key), k, piece))

        for k in range(len(wants)):
            offer(k)
        while heap and places > 0:
            _, k, piece = heapq.heappop(heap)
            count = piece.gpus
            if count <= places:
                got[k][piece.rank] = got[k].get(piece.rank, 0) + count
                mine[k] += count
                left[k] -= count
                places -= count
                self.total[k] += count
                if piece.job is not None:
                    self.jobs.add(piece.job)
            offer(k)
        for want in wants:
            want.give_back()
        return got
