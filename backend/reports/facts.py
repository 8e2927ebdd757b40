"""What a report is built from: one result set of plain values, gathered once.

Hours are GPU-hours of cluster time, waits are seconds, shares are 0 to 1. None: not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from backend.periods import Period

OTHERS = "other tenants"
NOBODY = "idle"


@dataclass(frozen=True)
class Hours:
    """GPU-hours: those there were, those that jobs held, and what became of these.

    `useful`: held, less restarts and lost work, times statistical efficiency. `lost`: repeated
    after a failure.
    """

    capacity: float
    allocated: float
    used: float
    useful: float
    lost: float = 0.0

    @property
    def idle(self) -> float:
        return max(self.capacity - self.allocated, 0.0)


@dataclass(frozen=True)
class Bucket:
    """The hours of one day, week or month of the period."""

    start: datetime
    label: str
    hours: Hours


@dataclass(frozen=True)
class TenantCost:
    """What a tenant held and what it cost; `cost` None where a price is missing."""

    tenant: str
    allocated: float
    useful: float
    cost: float | None


@dataclass(frozen=True)
class Use:
    """Who held how many GPU-hours, and what they cost.

    `unpriced`: GPU types without a price. `idle_cost`: of capacity that nobody held. `source`: from
    what it was summed, in words. `price_per_hour`, `held_share` (of capacity): by GPU type.
    """

    hours: Hours
    buckets: Sequence[Bucket] = ()
    tenants: Sequence[TenantCost] = ()
    cost: float | None = None
    idle_cost: float | None = None
    currency: str | None = None
    unpriced: tuple[str, ...] = ()
    price_per_hour: dict[str, float] = field(default_factory=dict)
    held_share: dict[str, float] = field(default_factory=dict)
    formula: str = ""
    cost_formula: str = ""
    notes: Sequence[str] = ()

    def of(self, tenant: str | None) -> TenantCost:
        """Return what was held by whom the report is for; None: by all."""
        if tenant is None:
            return TenantCost("", self.hours.allocated, self.hours.useful, self.cost)
        nothing = TenantCost(tenant, 0.0, 0.0, None)
        return next((one for one in self.tenants if one.tenant == tenant), nothing)


@dataclass(frozen=True)
class TenantWait:
    """How long a tenant's jobs queued before they first ran. `jobs`: that started in the period."""

    tenant: str
    jobs: int
    median: float | None
    p90: float | None
    longest: float | None
    waiting: int = 0


@dataclass(frozen=True)
class Waits:
    all: TenantWait
    tenants: Sequence[TenantWait] = ()
    formula: str = ""
    notes: Sequence[str] = ()

    def of(self, tenant: str | None) -> TenantWait:
        """Return the waits of whom the report is for; None: of all."""
        nothing = TenantWait(tenant or "", 0, None, None, None)
        own = (one for one in self.tenants if one.tenant == tenant)
        return self.all if tenant is None else next(own, nothing)


@dataclass(frozen=True)
class TenantFairness:
    """Finish-time fairness of a tenant's finished jobs, and its share of the GPUs.

    `late`: the share of jobs with rho above 1. `deserved`, `actual`: shares of GPU time.
    """

    tenant: str
    jobs: int
    median: float | None
    p90: float | None
    worst: float | None
    late: float | None
    deserved: float | None = None
    actual: float | None = None


@dataclass(frozen=True)
class Fairness:
    """`to_come`: finished jobs whose rho is not worked out yet.

    `without`: how many of those that succeeded have none, and why; `notes` say it of all jobs.
    """

    all: TenantFairness
    tenants: Sequence[TenantFairness] = ()
    to_come: int = 0
    without: Sequence[tuple[int, str]] = ()
    formula: str = ""
    notes: Sequence[str] = ()

    def of(self, tenant: str | None) -> TenantFairness:
        """Return the fairness of whom the report is for; None: of all."""
        nothing = TenantFairness(tenant or "", 0, None, None, None, None)
        own = (one for one in self.tenants if one.tenant == tenant)
        return self.all if tenant is None else next(own, nothing)


@dataclass(frozen=True)
class TypeValue:
    """What one more GPU of a type was worth by the policy's programme; see marginal_values.

    `objective`: what the programme maximises, in words; None if none is known. `covered`: the share
    of the time for which a price is known.
    """

    gpu_type: str
    policy: str
    policy_version: str
    objective: str | None
    mean_value: float | None
    positive_share: float | None
    used_share: float
    capacity: float
    covered: float
    hours: float
    price_per_hour: float | None = None

    @property
    def has_programme(self) -> bool:
        """Whether the policy solves a programme that gives prices."""
        return self.objective is not None or self.covered > 0


@dataclass(frozen=True)
class PolicyDecided:
    """A policy that decided within the period, from when to when; one that came back, again.

    Times are the cluster's, shown in UTC.
    """

    policy: str
    version: str
    placer: str
    start: datetime
    end: datetime
    hours: float
    rounds: int

    @property
    def key(self) -> tuple[str, str, str]:
        return self.policy, self.version, self.placer


@dataclass(frozen=True)
class PeriodFacts:
    """The numbers of one period; what a young cluster does not have yet is None."""

    use: Use | None
    waits: Waits | None
    fairness: Fairness | None
    finished: int | None = None

    @property
    def is_unknown(self) -> bool:
        return self == PeriodFacts(None, None, None)


@dataclass(frozen=True)
class Facts:
    """Everything a report says. `tenant`: whose it is; None: the whole cluster's.

    `past_differs`: of the period before less is known, or more is counted, than of what has passed
    of this one, so sums do not compare. `elapsed_hours`: of cluster time, on the days that the
    period touches.
    """

    cluster_id: str
    cluster: str
    tenant: str | None
    period: Period
    before: Period
    now: datetime
    present: PeriodFacts
    past: PeriodFacts
    policies: Sequence[PolicyDecided] = ()
    values: Sequence[TypeValue] = ()
    notes: Sequence[str] = ()
    past_differs: bool = False
    elapsed_hours: float = 0.0
