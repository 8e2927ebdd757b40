"""What a move of a job was worth: both allocations at the noise scale of the move.

Statistical efficiency grows while a job trains, wherever it trains. So effective samples counted
before a move and after it say little of the move: a job that goes to half of its GPUs and whose
efficiency then triples would seem to have gained. What is compared is the measured throughput of
either allocation, each sample priced by EFFICIENCY(M) = (phi + M0) / (phi + M) (Pollux eq. 6) at
the phi of the move. At equal batch sizes phi cancels: the throughputs alone decide.

The ledger of restarts and the explanation of a choice both price by `measured_goodput`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from maat.scheduling.moving import pays_after

LEAST_SECONDS = 60.0
"""Of running on an allocation: a batch size whose end was seen late is not compared if it ran for
less, and another ran for more. What ran until its end was seen counts with it. A share of the whole
time would not do: a job that stays long runs ever larger batches, and what its first ones did,
which are worth most at the noise scale of the move, would be left out."""


@dataclass(frozen=True, slots=True)
class BatchPace:
    """What a job counted at one total batch size on one allocation.

    `total_batch_size`: None where only the job's script knows it. `samples`: processed ones;
    `seconds`: of running. `is_exact`: counted from its first to its last step; else its end was
    seen at the next round.
    """

    total_batch_size: int | None
    samples: float
    seconds: float
    is_exact: bool = False

    @property
    def throughput(self) -> float:
        """Samples per second."""
        return self.samples / self.seconds


class Outcome(StrEnum):
    """Whether a restart has paid. `pending`: it still may, on the GPUs that the job holds."""

    PAID = "paid"
    PENDING = "pending"
    NO_FASTER = "no-faster"
    ENDED_EARLY = "ended-early"
    UNKNOWN = "unknown"


class Unknown(StrEnum):
    """Why nobody knows what a restart was worth."""

    HELD_NONE = "held-none"
    NOT_COUNTED = "not-counted"
    NO_NOISE_SCALE = "no-noise-scale"


@dataclass(frozen=True, slots=True)
class Rates:
    """Two allocations at one noise scale, in samples per second at the batch size before."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class MoveWorth:
    """What a restart cost, and what it brought.

    `stood_seconds`: until the job ran again; `ran_seconds`: on the new GPUs. `net_seconds`: by how
    much it is ahead of where it would be on the GPUs before, in seconds of these; negative: behind.
    `pays_after_seconds`: of running on the new GPUs; None if it never pays, or nobody knows.
    """

    stood_seconds: float
    ran_seconds: float
    lasts: bool
    rates: Rates | None
    unknown: Unknown | None = None

    @property
    def net_seconds(self) -> float | None:
        if self.rates is None:
            return None
        done = self.rates.after / self.rates.before * self.ran_seconds
        return done - self.stood_seconds - self.ran_seconds

    @property
    def pays_after_seconds(self) -> float | None:
        if self.rates is None:
            return None
        since = pays_after(self.rates.before, self.rates.after, self.stood_seconds)
        return None if since is None else since - self.stood_seconds

    @property
    def outcome(self) -> Outcome:
        net = self.net_seconds
        if net is None:
            return Outcome.UNKNOWN
        if net >= 0:
            return Outcome.PAID
        if self.pays_after_seconds is None:
            return Outcome.NO_FASTER
        return Outcome.PENDING if self.lasts else Outcome.ENDED_EARLY


def move_worth(
    before: Sequence[BatchPace] | None,
    after: Sequence[BatchPace],
    *,
    noise_scale: float | None,
    stood_seconds: float,
    ran_seconds: float,
    lasts: bool,
) -> MoveWorth:
    """Return what a restart was worth.

    `before`: what was counted on the GPUs before; None if the job held none. `noise_scale`: phi in
    samples when it moved; None if it was not kept. `lasts`: it still holds the new GPUs.
    """
    rates = None if before is None else rates_of(before, after, noise_scale=noise_scale)
    return MoveWorth(
        stood_seconds,
        ran_seconds,
        lasts,
        rates,
        None if rates is not None else _why_unknown(before, after),
    )


def rates_of(
    before: Iterable[BatchPace], after: Iterable[BatchPace], *, noise_scale: float | None
) -> Rates | None:
    """Return what two allocations are worth at one noise scale; None if it cannot be told.

    Without a noise scale only throughputs at the same batch size can be compared.
    """
    old, new = compared_paces(before), compared_paces(after)
    sizes = {one.total_batch_size for one in (*old, *new)}
    if len(sizes) > 1 and (noise_scale is None or None in sizes):
        old, new = _at_one_batch(old, new)
    if not old or not new:
        return None
    phi = noise_scale or 0.0  # without one, all are of one size, and it cancels
    first, then = _best(old, phi), _best(new, phi)
    return Rates(first.throughput, _priced(then, phi) / _priced(first, phi) * first.throughput)


def measured_goodput(
    paces: Iterable[BatchPace], *, noise_scale: float, initial_batch_size: float
) -> float | None:
    """Return effective samples per second of an allocation at a noise scale, as it was measured.

    That of its best measured batch size: a job may choose it again. None if nothing was counted.
    """
    known = [one for one in compared_paces(paces) if one.total_batch_size is not None]
    if not known:
        return None
    return (noise_scale + initial_batch_size) * _priced(_best(known, noise_scale), noise_scale)


def compared_paces(paces: Iterable[BatchPace]) -> list[BatchPace]:
    """Return the paces of one allocation that ran long enough, one for each batch size."""
    merged: dict[int | None, BatchPace] = {}
    for one in paces:
        known = merged.get(one.total_batch_size, BatchPace(one.total_batch_size, 0.0, 0.0, True))
        merged[one.total_batch_size] = BatchPace(
            one.total_batch_size,
            known.samples + one.samples,
            known.seconds + one.seconds,
            known.is_exact and one.is_exact,
        )
    counted = [one for one in merged.values() if one.samples > 0 and one.seconds > 0]
    least = min(LEAST_SECONDS, max((one.seconds for one in counted), default=0.0))
    return [one for one in counted if one.is_exact or one.seconds >= least]


def _best(paces: Iterable[BatchPace], noise_scale: float) -> BatchPace:
    return max(paces, key=lambda one: _priced(one, noise_scale))


def _priced(pace: BatchPace, noise_scale: float) -> float:
    """Return throughput x EFFICIENCY, but for the factor that all allocations of a job share."""
    return pace.throughput / (noise_scale + (pace.total_batch_size or 1))


def _at_one_batch(
    old: Sequence[BatchPace], new: Sequence[BatchPace]
) -> tuple[list[BatchPace], list[BatchPace]]:
    """Return both at the batch size, of those that both ran, that they ran longest."""
    there = {one.total_batch_size: one for one in new}
    shared = [one for one in old if one.total_batch_size in there]
    if not shared:
        return [], []
    best = max(shared, key=lambda one: min(one.seconds, there[one.total_batch_size].seconds))
    return [best], [there[best.total_batch_size]]


def _why_unknown(before: Sequence[BatchPace] | None, after: Sequence[BatchPace]) -> Unknown:
    if before is None:
        return Unknown.HELD_NONE
    if not compared_paces(before) or not compared_paces(after):
        return Unknown.NOT_COUNTED
    return Unknown.NO_NOISE_SCALE
