"""One action on many jobs: which jobs, what is to be done, and what would follow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import TypedDict

from maat.api.fields import Body, Moment
from maat.api.job_answers import JobOut
from maat.api.jobs import JobWeight, LabelKey, LabelValue, Priority
from maat.vocabulary import LABEL_KEY, LABEL_VALUE, MOST_LABELS

MOST_IDS = 1000
PREVIEWED = 20
"""Jobs that an answer shows."""

Living = Literal[
    "submitted",
    "profiling",
    "pending",
    "starting",
    "running",
    "restarting",
    "paused",
    "preempted",
]
Named = Annotated[str, Field(max_length=200)]
BulkAction = Literal["cancel", "pause", "hold", "resume", "release", "priority", "weight", "label"]


def _some(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


class BulkFilter(Body):
    """Which jobs: those that live and that all of these match. At least one is given."""

    ids: Annotated[list[Named], Field(max_length=MOST_IDS), AfterValidator(_some)] = Field(
        default_factory=list
    )
    array: Named | None = Field(default=None, description="Id of an array of jobs.")
    cluster: Named | None = Field(default=None, description="Id or name.")
    state: Annotated[list[Living], Field(max_length=20)] = Field(default_factory=list)
    tenant: Annotated[list[Named], Field(max_length=100)] = Field(default_factory=list)
    owner: Named | None = None
    model: Annotated[list[Named], Field(max_length=100)] = Field(default_factory=list)
    gpu_type: Annotated[list[Named], Field(max_length=100)] = Field(default_factory=list)
    q: Named | None = Field(
        default=None, description="Part of the name or external id, or the whole id."
    )
    submitted_after: Moment | None = None
    submitted_before: Moment | None = None
    label: Annotated[
        list[Annotated[str, Field(pattern=f"^{LABEL_KEY}={LABEL_VALUE}$")]],
        Field(max_length=MOST_LABELS),
    ] = Field(default_factory=list, description="`key=value`; of several a job has all.")

    @model_validator(mode="after")
    def _says_something(self) -> BulkFilter:
        if not any(self.model_dump().values()):
            raise ValueError(
                "An empty filter would match every job: give ids, a state or another filter"
            )
        return self


class BulkBody(Body):
    """What to do to which jobs.

    `dry_run`: only say what would follow. `expected_count`: refuse with 409, and change nothing, if
    another number of jobs would change.
    """

    action: BulkAction
    filter: BulkFilter
    dry_run: bool = False
    expected_count: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    priority: Priority | None = Field(default=None, description="Of the action `priority`.")
    weight: JobWeight | None = Field(default=None, description="Of the action `weight`.")
    labels: (
        Annotated[dict[LabelKey, LabelValue | None], Field(min_length=1, max_length=MOST_LABELS)]
        | None
    ) = Field(
        default=None,
        description="Of the action `label`: labels to set; null removes one. Others stay.",
    )

    @model_validator(mode="after")
    def _has_what_it_sets(self) -> BulkBody:
        for action, name in (("priority", "priority"), ("weight", "weight"), ("label", "labels")):
            given = getattr(self, name) is not None
            if given != (self.action == action):
                raise ValueError(
                    f"`{name}` belongs to the action `{action}`: give both, or neither"
                )
        return self


class BulkOut(TypedDict):
    """What followed, or would follow (`dry_run`)."""

    action: str
    dry_run: bool
    count: Annotated[int, Field(description="Jobs that it changes.")]
    by_state: Annotated[dict[str, int], Field(description="The same jobs by state.")]
    unchanged: Annotated[
        int, Field(description="Jobs that match, and are so already or do not allow it.")
    ]
    not_yours: Annotated[int, Field(description="Jobs that match, and that you may not change.")]
    preview: Annotated[list[JobOut], Field(description="The newest 20 of those that it changes.")]
