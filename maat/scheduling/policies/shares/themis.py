"""Themis (Mahajan et al., NSDI 2020): auctions free GPUs for a lease.

Jobs with the worst finish-time fairness may bid. Written from the paper's description; the share of
jobs, the lease and the round are unverified and therefore parameters. What other papers run under
this name is mostly Gavel's objective finish-time-fairness (gavel.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray
from maat.scheduling.job import JobId
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.isolated import IsolatedRule, IsolatedTimes, Speeds
from maat.scheduling.policies.ordering import grant_chosen
from maat.scheduling.policies.requests import Requests, requests
from maat.scheduling.policies.shares.auction import Outcome, auction
from maat.scheduling.policies.shares.time_shares import Candidates, candidates_of
from maat.scheduling.protocols import GpuSharing
from maat.scheduling.rounds import Decision, PolicyState, RoundInput
from maat.scheduling.solving.assignment.problem import SolveOptions
from maat.scheduling.solving.engines import SOLVER_HELP, Solver, check_installed
from maat.scheduling.solving.report import SolveReport

SHORTEST_SECONDS = 1e-6  # least time that a job takes


class Payment(StrEnum):
    """How a winner pays the part 1 - c of indivisible GPUs.

    SHORTER_LEASE: by time. BY_CHANCE: it gets nothing with probability 1 - c. NONE: not at all.
    """

    SHORTER_LEASE = "shorter-lease"
    BY_CHANCE = "by-chance"
    NONE = "none"


@dataclass(frozen=True)
class Themis:
    """Auction free GPUs among the worst-off jobs.

    GPUs are free when leases end. GPUs that remain after the auction are given at random.
    """

    fairness_knob: float = knob(
        0.8,
        "f: free GPUs are offered to the share 1 - f of waiting jobs with the worst rho, at least "
        "one.",
        source="Themis; figure unverified",
        minimum=0.0,
        maximum=1.0,
    )
    lease_seconds: float = knob(
        1200.0,
        "How long a winner holds its GPUs.",
        unit="s",
        source="Themis; figure unverified",
        minimum=1.0,
        maximum=1e7,
    )
    payment: Payment = knob(
        Payment.SHORTER_LEASE,
        "How a job that cannot run on a part of its GPUs pays the auction's hidden payment.",
        source="Themis takes a part of the GPUs; its jobs are apps of many small ones",
    )
    isolated_rule: IsolatedRule = knob(
        IsolatedRule.CUMULATIVE,
        "Time alone on 1/N of the cluster: summed as N changed, or for the whole job with the "
        "present N.",
        source="Themis",
    )
    tolerance: float = knob(
        1e-4,
        "Relative gap at which the auction counts as solved.",
        source="as for Sia's programme",
        minimum=0.0,
        maximum=0.1,
    )
    solver: Solver = knob(
        Solver.PRICES,
        f"What solves the auction and its hidden payments. {SOLVER_HELP}",
    )
    default_round_seconds: ClassVar[float] = 60.0  # unverified
    gpu_sharing: ClassVar[GpuSharing] = GpuSharing.NEVER
    name: str = "themis"

    def __post_init__(self) -> None:
        check_installed(self.solver)

    def allocate(self, round_input: RoundInput) -> Decision:
        """Grant each job its request on one type, or nothing.

        Jobs with a lease and pinned jobs keep what they hold.
        """
        state = round_input.state.for_owner(self.name, parameter_hash(self))
        wanted = requests(round_input)
        goodput = Speeds.of(round_input, wanted).goodput
        isolated = IsolatedTimes.at(state, round_input, wanted, goodput)
        holdings = _Holdings(round_input, candidates_of(round_input, wanted, goodput))
        holdings.keep_leases(_leases(state))
        bids = Bids.of(
            round_input,
            holdings.candidates,
            goodput,
            isolated.seconds(self.isolated_rule, round_input.jobs),
            self.lease_seconds,
        )
        invited = self._invited(holdings, bids)
        outcome = self._auction(holdings, bids, invited)
        chance = round_input.rng
        self._award(holdings, outcome, chance)
        self._leftovers(holdings, goodput, invited, chance)
        kept = replace(state, data={"leases": holdings.leases(), "isolated": isolated.data()})
        return _decision(holdings, wanted, bids, outcome, kept)

    def _invited(self, holdings: _Holdings, bids: Bids) -> list[int]:
        """Return the rows of waiting jobs that may bid, worst rho first, ties by row."""
        waiting = sorted(holdings.waiting(), key=lambda row: (-bids.rho[row], row))
        return waiting[: max(int(np.ceil((1.0 - self.fairness_knob) * len(waiting) - 1e-9)), 1)]

    def _auction(self, holdings: _Holdings, bids: Bids, invited: Sequence[int]) -> Outcome:
        offered = [v for v in holdings.open_to(invited) if bids.log_gain[v] > 0]
        if not offered:
            return Outcome((), (), SolveReport())
        options = SolveOptions(tolerance=self.tolerance)
        return auction(
            holdings.round_input,
            holdings.candidates,
            bids.log_gain,
            bids=offered,
            free=holdings.free,
            options=options,
            solver=self.solver,
        )

    def _award(self, holdings: _Holdings, outcome: Outcome, chance: np.random.Generator) -> None:
        """Give winners what they won, less what they pay."""
        now = holdings.round_input.now
        for v, part in zip(outcome.won, outcome.kept, strict=True):
            drawn = float(chance.random())
            if self.payment is not Payment.BY_CHANCE or drawn < part:
                paid = part if self.payment is Payment.SHORTER_LEASE else 1.0
                holdings.give(v, until=now + self.lease_seconds * paid)

    def _leftovers(
        self,
        holdings: _Holdings,
        goodput: FloatArray,
        invited: Sequence[int],
        chance: np.random.Generator,
    ) -> None:
        """Give free GPUs to other jobs in random order, then to bidders without any.

        Each takes its fastest type with room.
        """
        bidders = set(invited)
        rows = [int(row) for row in chance.permutation(holdings.waiting())]
        for row in sorted(rows, key=lambda row: row in bidders):
            room = holdings.open_to([row])
            if room:
                fastest = max(
                    room, key=lambda v: (goodput[row, holdings.candidates.gpu_type[v]], -v)
                )
                holdings.give(fastest, until=holdings.round_input.now + self.lease_seconds)


@dataclass(frozen=True)
class Bids:
    """The values of candidates to their jobs: 1 / rho.

    `log_gain`: (V,), log(rho without / rho with); `rho`: (J,), without any GPU.

    With a bundle a job runs on it for a lease, without one it waits for a lease; afterwards it runs
    on its fastest type in either case. The paper counts a bundle as if it were kept to the end:
    nothing would then have the value zero, and so would every product with it.
    """

    log_gain: FloatArray
    rho: FloatArray

    @classmethod
    def of(
        cls,
        round_input: RoundInput,
        candidates: Candidates,
        goodput: FloatArray,
        alone: FloatArray,
        lease_seconds: float,
    ) -> Bids:
        """Return the bids, with rho = T_shared / T_alone.

        Args:
            goodput: Effective samples/s, shape (J, T).
            alone: Seconds alone, shape (J,).
        """
        jobs = round_input.jobs
        best = goodput.max(axis=1, initial=0.0)
        remaining = np.array([job.remaining_work for job in jobs], dtype=np.float64)
        elapsed = np.array([job.age_seconds(round_input.now) for job in jobs], dtype=np.float64)
        to_come = np.divide(remaining, best, out=np.full(len(jobs), np.inf), where=best > 0)
        without = np.maximum(elapsed + lease_seconds + to_come, SHORTEST_SECONDS)
        row, kind = candidates.members[:, 0], candidates.gpu_type
        start = np.where(
            _holds(round_input, candidates),
            0.0,
            np.array([job.spec.restart_seconds for job in jobs])[row] if len(row) else 0.0,
        )
        rate = goodput[row, kind]
        done = rate * np.maximum(lease_seconds - start, 0.0)
        later = lease_seconds + (remaining[row] - done) / best[row]
        within = start + remaining[row] / rate
        shared = np.maximum(
            elapsed[row] + np.where(done >= remaining[row], within, later), SHORTEST_SECONDS
        )
        rho = np.divide(
            without, np.maximum(alone, SHORTEST_SECONDS), out=np.zeros(len(jobs)), where=best > 0
        )
        return cls(np.log(without[row] / shared), rho)


def _holds(round_input: RoundInput, candidates: Candidates) -> BoolArray:
    """Return whether a candidate is what its job holds now, shape (V,)."""
    types, held = round_input.cluster.type_names, [job.allocation for job in round_input.jobs]
    columns = zip(
        candidates.members[:, 0].tolist(),
        candidates.gpu_type.tolist(),
        candidates.gpu_count.tolist(),
        strict=True,
    )
    return np.array(
        [
            (h := held[row]) is not None and (h.gpu_type, h.gpu_count) == (types[t], n)
            for row, t, n in columns
        ],
        dtype=bool,
    )


class _Holdings:
    """The candidates of a round, what limits leave, and what each job was given.

    `given`: candidate and end of its lease, by row.
    """

    def __init__(self, round_input: RoundInput, candidates: Candidates) -> None:
        self.round_input, self.candidates = round_input, candidates
        self.free = candidates.free.copy()
        self.given: dict[int, tuple[int, float]] = {}
        self._of_row: dict[int, list[int]] = {}
        for v, row in enumerate(candidates.members[:, 0].tolist()):
            self._of_row.setdefault(row, []).append(v)

    def keep_leases(self, ends: Mapping[JobId, float]) -> None:
        """Keep jobs with a running lease on their GPUs, as far as limits allow."""
        holds = _holds(self.round_input, self.candidates)
        for v in np.flatnonzero(holds).tolist():
            end = ends.get(self.round_input.jobs[self.candidates.members[v, 0]].id, -np.inf)
            if end > self.round_input.now + SHORTEST_SECONDS and self._fits(v):
                self.give(v, until=end)

    def waiting(self) -> list[int]:
        """Return the rows of jobs that could run and have nothing yet, ascending."""
        return [row for row in self._of_row if row not in self.given]

    def open_to(self, rows: Sequence[int]) -> list[int]:
        """Return the candidates of these rows that still fit."""
        return [v for row in rows for v in self._of_row.get(row, ()) if self._fits(v)]

    def give(self, candidate: int, *, until: float) -> None:
        self.free -= self.candidates.usage[candidate]
        self.given[int(self.candidates.members[candidate, 0])] = (candidate, until)

    def leases(self) -> dict[JobId, float]:
        """Return when the lease of each job ends."""
        return {
            self.round_input.jobs[row].id: float(until) for row, (_, until) in self.given.items()
        }

    def _fits(self, candidate: int) -> bool:
        return bool((self.candidates.usage[candidate] <= self.free).all())


def _leases(state: PolicyState) -> Mapping[JobId, float]:
    leases = state.data.get("leases", {})
    return leases if isinstance(leases, Mapping) else {}


def _decision(
    holdings: _Holdings, wanted: Requests, bids: Bids, outcome: Outcome, state: PolicyState
) -> Decision:
    """Return the grants, with lease and auction result as evidence."""
    chosen = [(row, int(holdings.candidates.gpu_type[v])) for row, (v, _) in holdings.given.items()]
    grants, reasons = grant_chosen(
        holdings.round_input, wanted, chosen, held_by="jobs that have been treated less fairly"
    )
    parts = dict(zip(outcome.won, outcome.kept, strict=True))
    for row, (v, until) in holdings.given.items():
        job_id = wanted.jobs[row].id
        evidence: dict[str, float | int | str | None] = {
            "lease_seconds_left": until - holdings.round_input.now
        }
        if v in parts:
            evidence |= {"rho_without_gpus": float(bids.rho[row]), "part_kept": parts[v]}
        reasons.add(job_id, evidence)
    return Decision(grants, outcome.report, reasons, state=state)
