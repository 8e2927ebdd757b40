"""Figures over a window of jobs: the steady state of a longer workload."""

from __future__ import annotations

import pytest

import maat
from maat.scheduling.errors import InputError

TRACE = maat.generate("philly", jobs=12, hours=2, seed=1)


def played(**given: str) -> maat.Run:
    return maat.simulate(TRACE, cluster="t4=4x4", policy="fifo", progress=False, **given)


def test_figures_are_of_the_jobs_of_the_window_and_the_run_of_all() -> None:
    whole, part = played(), played(measured_jobs="3-6")
    assert part.jobs.to_dict() == whole.jobs.to_dict()
    jct = whole.jobs["jct_seconds"][3:7]
    assert part.summary["jobs"] == 4
    assert part.summary["avg_jct_hours"] == pytest.approx(sum(jct) / 4 / 3600)
    gpus = whole.jobs["gpu_seconds"][3:7]
    assert part.summary["gpu_hours_per_job"] == pytest.approx(sum(gpus) / 4 / 3600)
    submitted, finished = (whole.jobs[name][3:7] for name in ("submit_seconds", "finish_seconds"))
    active = [
        row["active_jobs"]
        for row in whole.rounds
        if submitted[0] <= row["time_seconds"] < max(finished)
    ]
    assert part.summary["contention_max"] == max(active)
    assert "Figures are of jobs 3-6 of 12, in order of submission." in part.notes


def test_a_comparison_is_of_the_jobs_of_the_window() -> None:
    found = maat.compare(
        "fifo,srtf", TRACE, cluster="t4=4x4", workers=1, progress=False, measured_jobs="3-6"
    )
    assert found.differences["jobs"] == [4]
    assert found.means["jobs"] == [4.0, 4.0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("12-20", "measured_jobs: lies beyond the 12 jobs of the workload"),
        ("6-3", "measured_jobs: is no window of jobs"),
        ("all", "measured_jobs: is no window of jobs"),
    ],
)
def test_a_window_without_jobs_is_refused(given: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        played(measured_jobs=given)
