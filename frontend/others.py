"""Words for jobs of other tenants, which the API names by keys such as `other-1`."""

from __future__ import annotations

OTHER_JOB = "another tenant's job"
_KEY = "other-"


def is_other(job_id: str) -> bool:
    return job_id.startswith(_KEY)


def told_job(name: str) -> str:
    """Return a job's name to show; for another tenant's job, that it is one, and its key."""
    return f"{OTHER_JOB} ({name})" if is_other(name) else name
