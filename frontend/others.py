"""Words for jobs of other tenants, which the API names by keys such as `other-1` within one answer."""

from __future__ import annotations

OTHER_JOB = "another tenant's job"
_KEY = "other-"


def is_other(job_id: str) -> bool:
    return job_id.startswith(_KEY)


def told_job(name: str) -> str:
    """A job's name as a page tells it: of another tenant's, that it is one, and the key that tells it from others."""
    return f"{OTHER_JOB} ({name})" if is_other(name) else name
