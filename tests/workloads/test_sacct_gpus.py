"""How many GPUs, and of which type, a record of Slurm's accounting says that a job had."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maat.scheduling.errors import TraceError
from maat.workloads.importing import Imported, ImportSettings, import_workload

TIMES = "2026-03-02T08:00:00|2026-03-02T08:01:00|2026-03-02T09:01:00|COMPLETED"
ONE = "9|cpu=4,gres/gpu=1,node=1|||4|"


def imported(*rows: str) -> Imported:
    """Each row: id, AllocTRES, ReqTRES, AllocGRES, NNodes, ReqGRES."""
    header = "JobIDRaw|AllocTRES|ReqTRES|AllocGRES|NNodes|ReqGRES|Submit|Start|End|State"
    text = "\n".join([header, *(f"{row}|{TIMES}" for row in (*rows, ONE))])
    return import_workload(text, ImportSettings("sacct"))


def gpus(row: str) -> tuple[int, str | None] | str:
    """Return count and type of a job, or why it was dropped."""
    found = imported(f"1|{row}")
    for job in found.workload.jobs:
        if job.name == "1":
            return job.gpu_count, job.gpu_types[0] if job.gpu_types else None
    return found.dropped[0].cause


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("billing=8,cpu=8,gres/gpu=4,gres/gpu:a100=4,node=2|||2|", (4, "a100")),
        ("gres/gpu:a100=4|||2|", (4, "a100")),
        ("gres/gpu=2,gres/shard=8|||1|", (2, None)),
        ("|gres/gpu=2||2|", (2, None)),
        ("||gpu:a100:8|4|gpu:a100:2", (8, "a100")),
        ("|||4|gpu:2", (8, None)),
        ("|||4|gres:gpu:a100:2", (8, "a100")),
        ("|||4|gpu", (4, None)),
        ("|||3|7696487:2", (6, None)),
        ("gres/gpu=8,node=4|||4|gpu:a100:2", (8, "a100")),
        ("gres/gpu=8|gres/gpu:a100=4,gres/gpu:v100=4||4|", (8, None)),
        ("cpu=4,mem=8G,node=4|||4|gpu:2", (8, None)),  # the site counts no GPUs in TRES
    ],
)
def test_a_total_counts_once_and_what_each_node_had_counts_for_all(
    row: str, found: tuple[int, str | None]
) -> None:
    assert gpus(row) == found


@pytest.mark.parametrize(
    "row",
    [
        *("cpu=4,gres/vgpu=3|||1|", "gres/gpumem=1G,gres/gpuutil=55|||1|", "gres/shard=2|||1|"),
        *("|||1|mps:100", "cpu=4|||1|"),
    ],
)
def test_other_resources_are_no_gpus(row: str) -> None:
    assert gpus(row) == "it had no GPUs"


@pytest.mark.parametrize("tres", ["gres/gpu:a100=2,gres/gpu:h100=2", "gres/gpu=4,gres/gpu:a100=2"])
def test_types_that_do_not_make_up_the_total_are_several(tres: str) -> None:
    assert gpus(f"{tres}|||1|") == "it had GPUs of several types"


@pytest.mark.parametrize("slice_", ["1g.5gb", "a100_3g.20gb"])
def test_a_slice_is_dropped_and_named(slice_: str) -> None:
    assert gpus(f"gres/gpu=1,gres/gpu:{slice_}=1|||1|") == (
        f"its GPU type {slice_} is not known: it is a slice of a GPU"
    )


def test_all_types_that_are_not_known_are_named_in_one_answer() -> None:
    rows = [f"{place}|gres/gpu:{name}=1|{TIMES}" for place, name in enumerate(("mi250", "titan"))]
    text = "\n".join(["JobIDRaw|AllocTRES|Submit|Start|End|State", *rows])
    with pytest.raises(TraceError) as refused:
        import_workload(text, ImportSettings("sacct"))
    for name in ("mi250", "titan"):
        assert f"its GPU type {name} is not known" in str(refused.value)


def test_what_each_node_had_is_no_total_without_the_number_of_nodes() -> None:
    text = f"JobIDRaw|ReqGRES|Submit|Start|End|State\n1|gpu:2|{TIMES}\n"
    with pytest.raises(TraceError, match="Ask sacct for AllocTRES, or for NNodes"):
        import_workload(text, ImportSettings("sacct"))


@pytest.mark.parametrize("count", ["-3", "4.5", "1.5K", "99999999999999999999", "8x", "four"])
def test_a_number_of_gpus_that_cannot_be_read_drops_its_record(count: str) -> None:
    for cells in (f"cpu=4,gres/gpu={count}|||1|", f"gres/gpu:a100={count}|||1|"):
        assert gpus(cells) == "its number of GPUs cannot be read"
    if count not in ("8x", "four"):  # which may be types
        assert gpus(f"||gpu:a100:{count}|1|") == "its number of GPUs cannot be read"


RECORD: dict[str, Any] = {
    "job_id": 1,
    "account": "a",
    "user": "u",
    "state": {"current": ["COMPLETED"]},
    "time": {"submission": 1772438400, "start": 1772438460, "end": 1772442060, "elapsed": 3600},
    "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 4}]},
}


@pytest.mark.parametrize(
    ("broken", "cause", "gpu_hours"),
    [
        (None, "nothing says whether it ended", None),
        ("text", "nothing says whether it ended", None),
        ({**RECORD, "time": None}, "nothing says when it started", None),
        ({**RECORD, "state": None}, "nothing says whether it ended", 4.0),
        ({**RECORD, "job_id": None}, "it has no job id", 4.0),
        (
            {**RECORD, "time": {**RECORD["time"], "elapsed": "x"}},
            "ElapsedRaw is no duration",
            4.0,
        ),
        (
            {**RECORD, "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": -4}]}},
            "its number of GPUs cannot be read",
            None,
        ),
        ({**RECORD, "tres": {"allocated": [None]}}, "it had no GPUs", 0.0),
    ],
)
def test_a_record_of_json_that_cannot_be_read_is_dropped_alone(
    broken: object, cause: str, gpu_hours: float | None
) -> None:
    text = json.dumps({"jobs": [RECORD, broken, {**RECORD, "job_id": 3}]})
    found = import_workload(text, ImportSettings("sacct"))
    assert [job.name for job in found.workload.jobs] == ["1", "3"]
    (dropped,) = found.dropped
    assert dropped.cause == cause
    assert (dropped.gpu_hours, dropped.without_hours) == (gpu_hours or 0.0, int(gpu_hours is None))


def test_an_answer_without_jobs_is_refused_in_words() -> None:
    with pytest.raises(TraceError, match="has no list of jobs"):
        import_workload('{"jobs": null}', ImportSettings("sacct"))


def test_jobs_beside_errors_are_read_and_the_errors_told() -> None:
    errors = [{"description": "Unable to query slurmdbd", "error_number": 9001}, "away"]
    found = import_workload(
        json.dumps({"errors": errors, "jobs": [RECORD]}), ImportSettings("sacct")
    )
    assert [job.name for job in found.workload.jobs] == ["1"]
    assert "The answer may lack jobs: Slurm says Unable to query slurmdbd; away." in found.rules


@pytest.mark.parametrize("jobs", [[], None])
def test_errors_without_jobs_are_refused_in_the_words_of_slurm(jobs: object) -> None:
    text = json.dumps({"errors": ["Unable to query slurmdbd"], "jobs": jobs})
    with pytest.raises(TraceError, match="Slurm says: Unable to query slurmdbd"):
        import_workload(text, ImportSettings("sacct"))
