"""What a principal sees of the jobs in an answer: others' jobs are anonymous.

Rounds and results are stored whole and made anonymous when they are read. tenancy.py decides which
rows a principal may read at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.jobs.models import Job
from maat.scheduling.limits import CEILING, LimitKind

OTHER_JOB, OTHER_MODEL, OTHER_TENANT = "another tenant's job", "another tenant's", "another tenant"
OTHER_KEY = "other-"

Value = TypeVar("Value")
_JOB_ID = re.compile(r"\bjob_\w+")
_ASKED_AT_ONCE = 5000  # ids: databases limit the parameters of a statement
_WITHOUT_HOLDER = frozenset({LimitKind.CAPACITY.value, LimitKind.SHAPE.value})
# Such as quota:a100:blue.
_PARTS_BEFORE_TENANT = {LimitKind.QUOTA.value: 1, CEILING: 1, "priority": 2}


class Sight:
    """Names the jobs of one answer: visible jobs by their ids, others by keys.

    Keys are `other-1`, `other-2` in order of appearance. A key reveals nothing about the id and is
    valid within the answer only.
    """

    def __init__(self, jobs: Collection[str] | None, *, tenant: str = "") -> None:
        """Show the jobs with these ids, all if None.

        `tenant`: the name of the viewer's tenant.
        """
        self._jobs, self._tenant = jobs, tenant
        self._keys: dict[str, str] = {}

    @property
    def is_whole(self) -> bool:
        """Whether nothing is hidden."""
        return self._jobs is None

    def may_see(self, job_id: str) -> bool:
        return self._jobs is None or job_id in self._jobs

    def job(self, job_id: str) -> str:
        """Return the job's id, or its key."""
        if self.may_see(job_id):
            return job_id
        return self._keys.setdefault(job_id, f"{OTHER_KEY}{len(self._keys) + 1}")

    def tenant(self, name: str) -> str:
        return name if self.is_whole or name == self._tenant else OTHER_TENANT

    def text(self, text: str) -> str:
        """Replace the ids of hidden jobs in a text."""
        return _JOB_ID.sub(lambda found: self.job(found[0]), text)

    def limit(self, name: str) -> str:
        """Return the name of a limit, which may reveal for whom GPUs are reserved.

        Shows only what is known to be harmless.
        """
        kind, _, rest = name.partition(":")
        if self.is_whole or not rest or kind in _WITHOUT_HOLDER:
            return name
        if kind == LimitKind.RESERVATION:
            gpu_type, _, holders = rest.partition(":")
            return f"{kind}:{gpu_type}:{self.holders(holders)}"
        *parts, tenant = rest.split(":", _PARTS_BEFORE_TENANT.get(kind, 0))
        shown = tenant if tenant in ("", self._tenant) else OTHER_TENANT
        return ":".join((kind, *parts, shown))

    def holders(self, labels: str) -> str:
        """Return for whom GPUs are reserved.

        `labels`: such as `tenant blue + job job_1`.
        """
        return (
            labels
            if self.is_whole
            else " + ".join(self._holder(label) for label in labels.split(" + "))
        )

    def limits(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Return values by limit.

        Limits with the same shown name are numbered, so that none is lost.
        """
        by_name: dict[str, Value] = {}
        for name, value in values.items():
            shown, count = self.limit(name), 1
            while (shown if count == 1 else f"{shown} ({count})") in by_name:
                count += 1
            by_name[shown if count == 1 else f"{shown} ({count})"] = value
        return by_name

    def evidence(self, evidence: Mapping[str, Any]) -> dict[str, Any]:
        """Return the numbers and names behind the reason of a visible job."""
        return {name: self._shown(name, value) for name, value in evidence.items()}

    def _shown(self, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return self.limit(value) if name.endswith("limit") else self.text(value)

    def _holder(self, label: str) -> str:
        kind, _, name = label.partition(" ")
        if kind == "tenant":
            return label if name == self._tenant else OTHER_TENANT
        return label if kind == "job" and self.may_see(name) else f"a job of {OTHER_TENANT}"


WHOLE = Sight(None)


def sight_of(session: Session, principal: Principal, job_ids: Iterable[str]) -> Sight:
    """Return the sight of a principal on an answer with these jobs.

    A job that no longer exists belongs to no tenant.
    """
    if principal.sees_all_tenants:
        return WHOLE
    asked = sorted(set(job_ids))
    own: set[str] = set()
    for first in range(0, len(asked), _ASKED_AT_ONCE):
        some = asked[first : first + _ASKED_AT_ONCE]
        own |= set(
            session.exec(
                select(Job.id).where(
                    col(Job.id).in_(some), col(Job.tenant_id) == principal.tenant_id
                )
            )
        )
    return Sight(own, tenant=principal.tenant_name)


def jobs_named_in(value: object) -> Iterator[str]:
    """Yield the ids of jobs in a JSON value, as whole texts or inside of them."""
    if isinstance(value, str):
        yield from _JOB_ID.findall(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from jobs_named_in(key)
            yield from jobs_named_in(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from jobs_named_in(item)
