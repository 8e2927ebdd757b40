"""Finish-time fairness of a live cluster: rho by tenant, the worst jobs, and shares over time."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Body, Moment, Timestamp
from maat.api.periods import PeriodName, PeriodOut
from maat.vocabulary import FairnessRule, FairnessState, WithoutRho, WorseOff

FEW_JOBS = 30
"""With fewer jobs a distribution is single points, and says little."""
MOST_POINTS = 200
MOST_TENANTS = 500
FEW_POINTS, FEW_TENANTS = 60, 20
"""What is answered unless more is asked for: an answer stays short, however many jobs there are."""
MOST_JOBS = 500
JobId = Annotated[str, Field(min_length=1, max_length=40)]

Share = Annotated[float, Field(description="Of the GPUs in service, 0 to 1.")]
Rho = Annotated[float, Field(description="Above 1: worse off than alone on an equal share.")]


class FormulaOut(TypedDict):
    """How rho is worked out now."""

    rule: FairnessRule
    version: int
    text: str
    baseline: str


class CdfPointOut(TypedDict):
    """`share` of the jobs have at most this rho."""

    rho: Rho
    share: Annotated[float, Field(description="0 to 1.")]


class RhoFiguresOut(TypedDict):
    """Of `jobs` that have a rho; the figures are null without any."""

    jobs: int
    mean: float | None
    median: float | None
    p90: Annotated[float | None, Field(description="Nine of ten jobs have at most this rho.")]
    worst: float | None
    unfair_share: Annotated[float | None, Field(description="Share of jobs with rho above 1.")]


class TenantRhoOut(TypedDict):
    """The distribution of rho of a tenant's jobs.

    `tenant` is null for all others together: those whose names are not yours to see, and those
    beyond the number of tenants that was asked for.
    """

    tenant: str | None
    figures: RhoFiguresOut
    is_few: Annotated[bool, Field(description=f"Fewer than {FEW_JOBS} jobs.")]
    cdf: list[CdfPointOut]


class ReasonCountOut(TypedDict):
    """How many of the jobs that you may see have no rho for this reason."""

    reason: WithoutRho
    sentence: str
    jobs: int


class FairnessProgressOut(TypedDict):
    """How far rho of the jobs that ended in the period is: their number by state, and in all.

    Of the jobs that you may see.
    """

    total: int
    by_state: dict[FairnessState, int]


class FairnessOut(TypedDict):
    """rho of the jobs that ended in the period, by tenant."""

    cluster_id: str
    period: PeriodOut
    formula: FormulaOut
    quantile_error: Annotated[
        float,
        Field(
            description="Largest relative error of medians and of points of distributions: 0 "
            "except over long periods, which are told from sums of days."
        ),
    ]
    all: RhoFiguresOut
    tenants: Annotated[
        list[TenantRhoOut], Field(description="Those with most jobs, by name; then all others.")
    ]
    tenants_together: Annotated[
        int, Field(description="Tenants that you may see and that stand together with the others.")
    ]
    progress: FairnessProgressOut
    without_rho: list[ReasonCountOut]
    older_versions: Annotated[
        int,
        Field(description="Jobs that you may see whose rho is of an older formula."),
    ]


class WaitReasonOut(TypedDict):
    """For how long a job waited for this reason."""

    code: str
    sentence: str
    seconds: float


class WhyOut(TypedDict):
    """How a job's life was spent. The seconds of the parts sum to its JCT.

    `held_gpus`: the mean number while it held any; null of jobs that ended before it was kept.
    `share_gpus`: its equal share, GPUs of the cluster / mean number of active jobs. `cause`: what
    took most of the time by which it was later than alone; null where it was not later.
    """

    waiting_seconds: float
    profiling_seconds: float
    starting_seconds: float
    running_seconds: float
    paused_seconds: float
    preemptions: int
    starts: int
    reasons: list[WaitReasonOut]
    held_gpus: float | None
    share_gpus: float | None
    cause: WorseOff | None
    cause_sentence: str | None
    sentence: str


class JobFairnessOut(TypedDict):
    """rho of a job that has ended.

    `baseline_seconds`: JCT / rho, what the job would have taken alone. `isolated_seconds`: the same
    by GPU type. `contention`: mean number of active jobs over its life.
    """

    job_id: str
    job_name: str
    model: str
    tenant: str
    state: FairnessState
    reason: WithoutRho | None
    sentence: str
    detail: str | None
    rho: Rho | None
    rule: FairnessRule | None
    formula_version: int | None
    finished_at: Timestamp
    jct_seconds: float | None
    baseline_seconds: float | None
    isolated_seconds: dict[str, float] | None
    contention: float | None
    why: WhyOut | None
    worked_out_at: Timestamp | None


class TenantShareOut(TypedDict):
    """What a tenant deserved, held and could have used, as shares of the GPUs in service.

    `tenant` is null for all others together, as in the distribution of rho.
    """

    tenant: str | None
    deserved: Share
    actual: Share
    demanded: Share


SharePointOut = TypedDict(
    "SharePointOut",
    {
        "from": Timestamp,
        "to": Timestamp,
        "gpus": Annotated[float, Field(description="In service, on average.")],
        "jain_index": Annotated[
            float | None,
            Field(
                description="Of actual over deserved, over the tenants with jobs: 1 if all are "
                "treated alike, 1/n if one has everything; null without any."
            ),
        ],
        "tenants": list[TenantShareOut],
    },
)
"""A span of the period."""


class SharesOut(TypedDict):
    """Shares of the tenants, deserved and actual, over the period and in spans of it."""

    cluster_id: str
    period: PeriodOut
    formula: str
    step_seconds: float
    tenants_together: Annotated[
        int, Field(description="Tenants that you may see and that stand together with the others.")
    ]
    whole: SharePointOut | None
    points: list[SharePointOut]


class RecomputeBody(Body):
    """Work rho out again, by the present formula: of the jobs named, or that ended in a period."""

    cluster: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="Id or name; default: the first cluster."
    )
    period: PeriodName | None = Field(default=None, strict=False)
    from_: Moment | None = Field(default=None, alias="from")
    to: Moment | None = None
    job_ids: Annotated[list[JobId], Field(min_length=1, max_length=MOST_JOBS)] | None = Field(
        default=None, description="Only these jobs, whenever they ended."
    )
