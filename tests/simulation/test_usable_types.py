"""GPU types that no job can use: refused if nobody knows them, else told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maat.laboratory.setup import GivenTrace, Setup
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError
from maat.simulation.iteration_models import shipped_models
from maat.simulation.notes import notes_on
from maat.simulation.scenario import Scenario
from maat.vocabulary import Adaptivity
from maat.workloads.workloads import TraceJob, Workload

JOB = TraceJob(name="a", submit_seconds=0.0, model="cifar10", gpu_count=2)


def scenario(shape: str, **of_job: object) -> Scenario:
    jobs = (replace(JOB, **of_job),)  # type: ignore[arg-type]
    trace = GivenTrace(Workload("one", jobs, "sia"))
    return Setup(trace, shipped_models(), Cluster.parse(shape)).scenario()


@pytest.mark.parametrize(
    ("shape", "unknown", "meant"),
    [
        ("rtx=3x8,foo=6x4", "foo", ""),
        ("aws=6x4,rtx=3x8", "aws", "Did you mean t4? "),
        ("t4=6x4,dgx-ext=2x8", "dgx-ext", "Did you mean a100? "),
        ("nvidia-a100=1x8", "nvidia-a100", "Did you mean a100? "),
        ("quat=1x8", "quat", "Did you mean quad? "),
    ],
)
def test_a_type_that_nobody_knows_is_refused_with_the_one_that_was_meant(
    shape: str, unknown: str, meant: str
) -> None:
    with pytest.raises(ClusterError) as refused:
        scenario(shape)

    error = refused.value
    assert (error.field, error.value) == ("cluster", unknown)
    assert error.remedy.startswith(meant or "Known")
    assert error.remedy.endswith("Known are: t4, rtx, a100, quad, v100.")


def test_a_type_that_the_trace_names_is_known() -> None:
    assert scenario("t4=1x4,foo=1x4", gpu_types=("t4", "foo")).cluster.gpu_count == 8


@pytest.mark.parametrize(
    ("shape", "of_job", "idle"),
    [
        ("t4=1x4", {}, []),
        ("t4=1x4,h100=2x8", {}, ["No job of the trace can run on h100: its 16 GPUs stay idle."]),
        (
            "t4=1x4,rtx=1x8",
            {"gpu_types": ("t4",)},
            ["No job of the trace can run on rtx: its 8 GPUs stay idle."],
        ),
        (
            "t4=1x4,rtx=1x1",
            {"adaptivity": Adaptivity.RIGID},
            ["No job of the trace can run on rtx: its 1 GPU stays idle."],
        ),
        ("t4=1x4,rtx=1x1", {}, []),
    ],
    ids=str,
)
def test_gpus_that_no_job_can_ever_use_are_told(
    shape: str, of_job: dict[str, object], idle: list[str]
) -> None:
    assert list(notes_on(scenario(shape, **of_job))) == idle
