"""What a training script needs to run as an adaptive job of Maat (docs/adaptive-script.md).

    job = maat.agent.start()
    model, optimiser, loader = job.adapt(model, optimiser, loader, scheduler=scheduler)
    for epoch in job.epochs(90): ...

Imports torch when a job starts, and nothing else of maat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maat.agent.job import Job

__all__ = ["start"]


def start() -> Job:
    """Join the job's other replicas, and take SIGTERM as the wish to save and end.

    A script that is run by hand is one replica, and reports to nobody. Raises ValueError for an
    environment that Maat cannot have made.
    """
    try:
        from maat.agent.job import Job
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            'maat.agent needs torch: pip install "maat[agent]", with the build for your GPUs.',
            name="torch",
        ) from None
    return Job.started()
