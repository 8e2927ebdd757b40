"""One job of a submission on its way: what came, what is wrong with it, what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from backend.clusters.models import Cluster
from backend.jobs.models import Job
from backend.problems import FieldError
from maat.api.jobs import JobBody
from maat.scheduling.explain import Reasons


@dataclass
class Candidate:
    """One job of a submission: its body or its errors, and later its row.

    `needs`: what it waits for: ids of jobs, and places of others of the submission.
    `array`: the array of which it is a part, and its index. `cluster`: of its row; while it is
    referred to, its session need not read it again. `never`: why no round would start it; None if
    one would, or nobody tried.
    """

    index: int
    body: JobBody | None = None
    errors: list[FieldError] = field(default_factory=list)
    conflict: str | None = None
    job: Job | None = None
    needs: list[str | int] = field(default_factory=list)
    array: tuple[str, int] | None = None
    cluster: Cluster | None = None
    never: Reasons | None = None

    @property
    def usable(self) -> bool:
        return not self.errors and self.conflict is None

    @property
    def status(self) -> int:
        return 201 if self.usable else 409 if self.conflict is not None else 422
