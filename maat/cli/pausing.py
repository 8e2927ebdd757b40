"""`maat cancel`, `pause`, `hold`, `resume` and `release`: what is asked of jobs that live."""

from __future__ import annotations

from maat.cli.bulk import JobMeant, JobsMeant, act
from maat.cli.option_groups import takes_groups
from maat.cli.service import DEFAULT_URL, AsJson, Url


@takes_groups
def cancel(
    meant: JobsMeant, job: JobMeant = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Cancel a job: it ends and cannot go on. A command is asked to save first."""
    act(
        "cancel",
        job,
        meant,
        one=lambda maat, job_id: maat.cancel_job(job_id),
        told=lambda one: "is cancelled" if one["state"] == "cancelled" else "is asked to end",
        url=url,
        as_json=as_json,
    )


@takes_groups
def pause(
    meant: JobsMeant, job: JobMeant = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Pause a job: it saves its work, gives its GPUs back, and waits until it is resumed."""
    act(
        "pause",
        job,
        meant,
        one=lambda maat, job_id: maat.pause_job(job_id),
        told=lambda one: "is paused" if one["state"] == "paused" else "is asked to pause",
        url=url,
        as_json=as_json,
    )


@takes_groups
def hold(
    meant: JobsMeant, job: JobMeant = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Keep a job that holds no GPUs from starting, until it is released."""
    act(
        "hold",
        job,
        meant,
        one=lambda maat, job_id: maat.hold_job(job_id),
        told=lambda _: "is held",
        url=url,
        as_json=as_json,
    )


@takes_groups
def resume(
    meant: JobsMeant, job: JobMeant = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Resume a paused job: the next round considers it again, as of its submission."""
    _to_the_queue("resume", job, meant, url=url, as_json=as_json)


@takes_groups
def release(
    meant: JobsMeant, job: JobMeant = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Release a held job: the same as `maat resume`."""
    _to_the_queue("release", job, meant, url=url, as_json=as_json)


def _to_the_queue(word: str, job: str | None, meant: JobsMeant, *, url: str, as_json: bool) -> None:
    act(
        word,
        job,
        meant,
        one=lambda maat, job_id: maat.resume_job(job_id),
        told=lambda _: "is in the queue",
        url=url,
        as_json=as_json,
    )
