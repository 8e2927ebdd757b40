"""How an attempt in Slurm ended, by what its ranks wrote into its folder."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from maat.launch.attempt_dir import AttemptDir
from worker.engines.slurm_answers import SlurmJob

_ALIVE_SECONDS, _DEAD_SECONDS = 12.0, 180.0  # signs come every 5 s; NFS may show them later
_FILES_SECONDS = 60.0  # until a file that another machine wrote is seen on NFS


def has_settled(attempt: AttemptDir, job: SlurmJob) -> bool:
    """Return whether all that the ranks wrote can be seen here.

    Each writes how it ended before it ends. NFS may show that to another machine a minute later.
    """
    if job.state != "COMPLETED" or attempt.has("stop") or attempt.has("kill"):
        return True
    all_seen = len(codes_of(attempt)) >= len(attempt.spec().places())
    return all_seen or time.time() - job.ended_at > _FILES_SECONDS


def outlives(attempt: AttemptDir, job: SlurmJob) -> bool:
    """Return whether a rank shows life though its job is over for Slurm.

    A controller that was killed may have forgotten that the job had started, and end what it takes
    for a waiting one. What ran on a node that is lost is not waited for: nothing is started there.
    """
    if job.state == "NODE_FAIL" or len(codes_of(attempt)) >= len(attempt.spec().places()):
        return False
    return attempt.shows_life(within=_ALIVE_SECONDS)


def is_dead(attempt: AttemptDir) -> bool:
    """Return whether a rank shows no life any more, whatever Slurm says.

    Its processes end with the supervisor of its step (slurmstepd), and Slurm does not notice.
    """
    return attempt.seconds_without_life() > _DEAD_SECONDS


def codes_of(attempt: AttemptDir) -> dict[int, int]:
    return attempt.exit_codes() if os.path.isdir(attempt.path) else {}


def all_told(attempt: AttemptDir) -> bool:
    """Return whether every rank that failed had been asked to end."""
    failed = [ended for ended in attempt.exits().values() if ended["code"] != 0]
    return bool(failed) and all(ended.get("told") for ended in failed)


def why_no_rank(attempt: AttemptDir) -> str:
    said = attempt.text("slurm.log").strip().splitlines()
    return f"Slurm started no rank: {said[0] if said else 'its log is empty'}"


def first_failed(attempt: AttemptDir) -> int | None:
    """Return the rank that failed first of those that nobody had asked to end."""
    failed = [
        (ended["at"], rank)
        for rank, ended in attempt.exits().items()
        if ended["code"] != 0 and not ended.get("told")
    ]
    return min(failed)[1] if failed else None


def write_exit(
    attempt: AttemptDir,
    *,
    codes: Mapping[int, int],
    first_failed: int | None = None,
    lost: str | None = None,
    reason: str = "",
    cancelled: bool = False,
) -> None:
    ended = {"codes": dict(codes), "first_failed": first_failed, "lost": lost, "reason": reason}
    attempt.write("exit.json", {**ended, "cancelled": cancelled, "at": time.time()})
