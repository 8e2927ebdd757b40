"""Themis: auctions free GPUs among the jobs whose finish-time fairness is worst; winners hold them for a lease (Mahajan et al., NSDI 2020).

Written from the paper's description; the share of jobs, the lease and the round are unverified and
therefore parameters. What other papers run under this name is mostly Gavel's objective
finish-time-fairness (gavel.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray
from maat.scheduling.explain import Reasons
from maat.scheduling.job import JobId
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.isolated import IsolatedRule, IsolatedTimes, Speeds
from maat.scheduling.policies.ordering import Requests, grant_chosen, requests
from maat.scheduling.policies.shares.auction import Outcome, auction
from maat.scheduling.policies.shares.time_shares import Candidates, candidates_of
from maat.scheduling.rounds import Decision, PolicyState, RoundInput
from maat.scheduling.solving.assignment_problem import SolveOptions
from maat.scheduling.solving.report import SolveReport

SHORTEST_SECONDS = 1e-6  # that a job takes, whatever is left of it


class Payment(StrEnum):
    """How a winner whose GPUs come in one piece gives up the part 1 - c of what it won: of its time, by chance, or not at all."""

    SHORTER_LEASE = "shorter-lease"
    BY_CHANCE = "by-chance"
    NONE = "none"


@dataclass(frozen=True)
class Themis:
    """Leases end, GPUs are offered to the worst-off jobs, a partial-allocation auction decides, what is left goes by chance."""

    fairness_knob: float = knob(
        0.8,
        "f: free GPUs are offered to the share 1 - f of the waiting jobs whose rho is worst, to one at least.",
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
        "How the auction's hidden payment is taken from a job that cannot run on a part of its GPUs.",
        source="Themis takes a part of the GPUs; its jobs are apps of many small ones",
    )
    isolated_rule: IsolatedRule = knob(
        IsolatedRule.CUMULATIVE,
        "Time alone on 1/N of the cluster: as N went along, or for the whole job as things are now.",
        source="Themis",
    )
    tolerance: float = knob(
        1e-4,
        "Relative gap at which the auction counts as solved.",
        source="as for Sia's programme",
        minimum=0.0,
        maximum=0.1,
    )
    round_seconds: float = knob(
        60.0,
        "Time between rounds: how soon an auction follows a lease's end.",
        unit="s",
        source="unverified",
        minimum=1.0,
        maximum=86400.0,
    )
    name: str = "themis"

    def allocate(self, round_input: RoundInput) -> Decision:
        """Every job what it asked for, on one type, or nothing; who has a lease or is pinned keeps what it holds."""
        state = round_input.state.for_owner(self.name, parameter_hash(self))
        wanted = requests(round_input)
        goodput = Speeds.of(round_input, wanted).goodput
        isolated = IsolatedTimes.at(state, round_input, wanted, goodput)
        hall = _Hall(round_input, candidates_of(round_input, wanted, goodput))
        hall.keep_leases(_leases(state))
        bids = Bids.of(
            round_input,
            hall.candidates,
            goodput,
            isolated.seconds(self.isolated_rule, round_input.jobs),
            self.lease_seconds,
        )
        invited = self._invited(hall, bids)
        outcome = self._auction(hall, bids, invited)
        chance = round_input.rng
        self._award(hall, outcome, chance)
        self._leftovers(hall, goodput, invited, chance)
        kept = replace(state, data={"leases": hall.leases(), "isolated": isolated.data()})
        return _decision(hall, wanted, bids, outcome, kept)

    def _invited(self, hall: _Hall, bids: Bids) -> list[int]:
        """Rows of the waiting jobs that may bid, worst rho first, ties by row."""
        waiting = sorted(hall.waiting(), key=lambda row: (-bids.rho[row], row))
        return waiting[: max(int(np.ceil((1.0 - self.fairness_knob) * len(waiting) - 1e-9)), 1)]

    def _auction(self, hall: _Hall, bids: Bids, invited: Sequence[int]) -> Outcome:
        offered = [v for v in hall.open_to(invited) if bids.log_gain[v] > 0]
        if not offered:
            return Outcome((), (), SolveReport())
        options = SolveOptions(tolerance=self.tolerance)
        return auction(
            hall.round_input,
            hall.candidates,
            bids.log_gain,
            bids=offered,
            free=hall.free,
            options=options,
        )

    def _award(self, hall: _Hall, outcome: Outcome, chance: np.random.Generator) -> None:
        """Winners take what they won, less what they pay."""
        now = hall.round_input.now
        for v, part in zip(outcome.won, outcome.kept, strict=True):
            drawn = float(chance.random())
            if self.payment is not Payment.BY_CHANCE or drawn < part:
                paid = part if self.payment is Payment.SHORTER_LEASE else 1.0
                hall.give(v, until=now + self.lease_seconds * paid)

    def _leftovers(
        self, hall: _Hall, goodput: FloatArray, invited: Sequence[int], chance: np.random.Generator
    ) -> None:
        """What is free still goes to the others in random order, then to who bid in vain; each on the fastest type with room."""
        bidders = set(invited)
        rows = [int(row) for row in chance.permutation(hall.waiting())]
        for row in sorted(rows, key=lambda row: row in bidders):
            room = hall.open_to([row])
            if room:
                fastest = max(room, key=lambda v: (goodput[row, hall.candidates.gpu_type[v]], -v))
                hall.give(fastest, until=hall.round_input.now + self.lease_seconds)


@dataclass(frozen=True)
class Bids:
    """What candidates are worth to their jobs. log_gain: (V,), log(rho without / rho with): values are 1 / rho; rho: (J,), without any GPU.

    With a bundle a job runs on it for a lease, without it waits for one; afterwards it runs on its
    fastest type in either case. The paper counts a bundle as if it were kept to the end: nothing
    would then be worth nothing, and so would any product with it.
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
        """rho = T_shared / T_alone. goodput: (J, T) effective samples/s; alone: seconds, (J,)."""
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
    """Whether a candidate is what its job holds now, shape (V,)."""
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


class _Hall:
    """The candidates of a round, what is free of every limit, and who was given what until when."""

    def __init__(self, round_input: RoundInput, candidates: Candidates) -> None:
        self.round_input, self.candidates = round_input, candidates
        self.free = candidates.free.copy()
        self.given: dict[int, tuple[int, float]] = {}
        self._of_row: dict[int, list[int]] = {}
        for v, row in enumerate(candidates.members[:, 0].tolist()):
            self._of_row.setdefault(row, []).append(v)

    def keep_leases(self, ends: Mapping[JobId, float]) -> None:
        """Who holds GPUs on a lease that has not ended goes on, as far as the limits still allow."""
        holds = _holds(self.round_input, self.candidates)
        for v in np.flatnonzero(holds).tolist():
            end = ends.get(self.round_input.jobs[self.candidates.members[v, 0]].id, -np.inf)
            if end > self.round_input.now + SHORTEST_SECONDS and self._fits(v):
                self.give(v, until=end)

    def waiting(self) -> list[int]:
        """Rows of the jobs that could run and were given nothing, ascending."""
        return [row for row in self._of_row if row not in self.given]

    def open_to(self, rows: Sequence[int]) -> list[int]:
        """Candidates of these rows that still fit."""
        return [v for row in rows for v in self._of_row.get(row, ()) if self._fits(v)]

    def give(self, candidate: int, *, until: float) -> None:
        self.free -= self.candidates.usage[candidate]
        self.given[int(self.candidates.members[candidate, 0])] = (candidate, until)

    def leases(self) -> dict[JobId, float]:
        """When the lease of every job that was given GPUs ends, by job."""
        return {
            self.round_input.jobs[row].id: float(until) for row, (_, until) in self.given.items()
        }

    def _fits(self, candidate: int) -> bool:
        return bool((self.candidates.usage[candidate] <= self.free).all())


def _leases(state: PolicyState) -> Mapping[JobId, float]:
    leases = state.data.get("leases", {})
    return leases if isinstance(leases, Mapping) else {}


def _decision(
    hall: _Hall, wanted: Requests, bids: Bids, outcome: Outcome, state: PolicyState
) -> Decision:
    """The grants of everybody who was given something; the lease and what the auction made of it are told beside each."""
    chosen = [(row, int(hall.candidates.gpu_type[v])) for row, (v, _) in hall.given.items()]
    grants, reasons = grant_chosen(hall.round_input, wanted, chosen)
    parts = dict(zip(outcome.won, outcome.kept, strict=True))
    for row, (v, until) in hall.given.items():
        job_id = wanted.jobs[row].id
        told: dict[str, float | int | str | None] = {
            "lease_seconds_left": until - hall.round_input.now
        }
        if v in parts:
            told |= {"rho_without_gpus": float(bids.rho[row]), "part_kept": parts[v]}
        reasons[job_id] = Reasons(reasons[job_id].primary, {**reasons[job_id].evidence, **told})
    return Decision(grants, outcome.report, reasons, state=state)
