"""What trains on when `maat up` ends: commands have supervisors of their own."""

from __future__ import annotations

import sys
from pathlib import Path

from maat.launch.attempt_dir import AttemptDir
from maat.launch.processes import marked

_MOST_NAMED = 5


def jobs_left_running(data_dir: Path) -> list[str]:
    """Return the ids of the jobs of this data folder whose processes run on this machine."""
    if sys.platform != "linux":
        return []
    around = data_dir.resolve() / "training"
    folders = {folder for _, folder in marked() if Path(folder).is_relative_to(around)}
    specs = (AttemptDir(folder).read("spec.json") for folder in folders)
    return sorted({str(spec["job_id"]) for spec in specs if spec and "job_id" in spec})


def words_of(job_ids: list[str], data_dir: Path) -> list[str]:
    """Return what is to be said of them, a line each."""
    if not job_ids:
        return []
    named = ", ".join(job_ids[:_MOST_NAMED])
    more = len(job_ids) - _MOST_NAMED
    which = f"{named} and {more} more" if more > 0 else named
    what = "1 job trains on" if len(job_ids) == 1 else f"{len(job_ids)} jobs train on"
    return [
        f"{what}: {which}.",
        f"The next `maat up` with {data_dir} takes it up; a job can be cancelled then.",
    ]
