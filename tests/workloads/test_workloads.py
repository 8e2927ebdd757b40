"""Workload traces: what is read of them, and what is refused."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.errors import TraceError
from maat.vocabulary import Adaptivity, WorkloadKind
from maat.workloads.formats.sia import write_workload
from maat.workloads.reading import MAX_JOBS, read_workload
from maat.workloads.workloads import TraceJob, Workload

KNOWN = ("bert", "cifar10", "gpt")
HEADER = "name,time,application,num_replicas,batch_size\n"


def refusal(text: str | Path, **options: int) -> TraceError:
    with pytest.raises(TraceError) as caught:
        read_workload(text, known_models=KNOWN, **options)
    return caught.value


def test_a_trace_is_recognised_by_its_header_and_read_in_order_of_submission() -> None:
    workload = read_workload(
        HEADER + "b,20.5,cifar10,4,2048\na,10,bert,6,384\n", known_models=KNOWN
    )
    assert workload.format == "sia"
    assert workload.jobs == (
        TraceJob(name="a", submit_seconds=10.0, model="bert", gpu_count=6, batch_size=384),
        TraceJob(name="b", submit_seconds=20.5, model="cifar10", gpu_count=4, batch_size=2048),
    )


def test_columns_may_stand_in_any_order_beside_others_that_mean_nothing_here() -> None:
    text = "batch_size,user,name,application,time,num_replicas\n384,ann,a,bert,10,6\n"
    assert read_workload(text, known_models=KNOWN).jobs == (
        TraceJob(name="a", submit_seconds=10.0, model="bert", gpu_count=6, batch_size=384),
    )


def test_a_job_may_leave_its_batch_size_open() -> None:
    assert read_workload(HEADER + "a,0,bert,1,\n", known_models=KNOWN).jobs[0].batch_size is None


def test_byte_order_marks_blank_lines_and_windows_line_ends_do_not_matter(tmp_path: Path) -> None:
    plain, windows = (
        HEADER + "a,0,bert,1,12\n",
        "\ufeff" + HEADER.replace("\n", "\r\n") + "\r\na,0,bert,1,12\r\n\r\n",
    )
    path = tmp_path / "windows.csv"
    path.write_bytes(windows.encode())
    expected = read_workload(plain, known_models=KNOWN).jobs
    assert read_workload(windows, known_models=KNOWN).jobs == expected
    assert read_workload(path, known_models=KNOWN).jobs == expected


MORE = "work_scale,adaptivity,workload_kind,promised_seconds,preemptible,tenant"


def test_optional_columns_say_what_a_job_does_and_what_binds_it() -> None:
    rows = (
        "a,0,bert,2,12,0.5,rigid,,,false,vision\n"
        "b,1,bert,1,16,,,latency-inference,0.2,,\n"
        "c,2,bert,1,,,,batch-inference,,true,\n"
    )
    first, second, third = read_workload(
        HEADER.strip() + "," + MORE + "\n" + rows, known_models=KNOWN
    ).jobs
    assert (first.adaptivity, first.preemptible, first.tenant, first.work_scale) == (
        Adaptivity.RIGID,
        False,
        "vision",
        0.5,
    )
    assert (second.workload_kind, second.promised_seconds, second.adaptivity) == (
        WorkloadKind.LATENCY_INFERENCE,
        0.2,
        None,
    )
    assert third == TraceJob(
        name="c",
        submit_seconds=2.0,
        model="bert",
        gpu_count=1,
        workload_kind=WorkloadKind.BATCH_INFERENCE,
    )


BOUNDS = "min_gpus,max_gpus,max_batch_size,gpu_types"


def test_optional_columns_bound_what_a_job_may_be_given() -> None:
    rows = "a,0,bert,2,12,2,4,48,t4 a100\nb,1,bert,1,,,,,\n"
    first, second = read_workload(
        HEADER.strip() + "," + BOUNDS + "\n" + rows, known_models=KNOWN
    ).jobs
    assert first == TraceJob(
        name="a",
        submit_seconds=0.0,
        model="bert",
        gpu_count=2,
        batch_size=12,
        min_gpus=2,
        max_gpus=4,
        max_batch_size=48,
        gpu_types=("t4", "a100"),
    )
    assert second == TraceJob(name="b", submit_seconds=1.0, model="bert", gpu_count=1)


def test_a_name_may_hold_marks_of_direction() -> None:
    name = "\u202eturned\u200f"
    (job,) = read_workload(HEADER + f"{name},0,bert,1,12\n", known_models=KNOWN).jobs
    assert job.name == name


@pytest.mark.parametrize(
    ("cells", "field", "says"),
    [
        ("3,,,", "num_replicas", "Give 3 to 1000000."),
        (",1,,", "num_replicas", "Give 1 to 1."),
        ("4,3,,", "num_replicas", "Give a max_gpus of at least min_gpus."),
        ("0,,,", "min_gpus", "is not between 1 and"),
        (",,8,", "batch_size", "Give at most 8, or a larger max_batch_size."),
        (",,,t4\u200b", "gpu_types", "printable characters"),
    ],
)
def test_bounds_that_contradict_what_is_asked_for_are_refused(
    cells: str, field: str, says: str
) -> None:
    error = refusal(HEADER.strip() + "," + BOUNDS + "\na,0,bert,2,12," + cells + "\n")
    assert (error.field, error.row) == (field, 2)
    assert says in str(error)


@pytest.mark.parametrize(
    ("cells", "field", "says"),
    [
        ("1,stiff,,,,", "adaptivity", "Use one of: rigid, strong-scaling, adaptive."),
        (
            "1,,serving,,,",
            "workload_kind",
            "Use one of: training, batch-inference, latency-inference.",
        ),
        (
            "1,,latency-inference,,,",
            "promised_seconds",
            "Give the seconds in which it answers batch_size requests.",
        ),
        ("1,,latency-inference,0,,", "promised_seconds", "must be above 0"),
        (
            "1,,batch-inference,0.1,,",
            "promised_seconds",
            "belongs to latency-bound inference alone",
        ),
        ("1,,,,maybe,", "preemptible", "Use one of: true, false."),
        ("0,,,,,", "work_scale", "must be above 0"),
    ],
)
def test_an_optional_cell_that_makes_no_sense_is_refused_by_row_field_and_remedy(
    cells: str, field: str, says: str
) -> None:
    error = refusal(HEADER.strip() + "," + MORE + "\na,0,bert,2,12," + cells + "\n")
    assert (error.field, error.row) == (field, 2)
    assert says in str(error)


def test_latency_bound_inference_says_how_many_requests_it_answers_together() -> None:
    error = refusal(
        HEADER.strip() + ",workload_kind,promised_seconds\na,0,bert,2,,latency-inference,0.1\n"
    )
    assert (error.field, error.row) == ("batch_size", 2)


def test_the_published_name_of_a_model_is_taken_for_ours() -> None:
    assert read_workload(HEADER + "a,0,gpt_pmp,8,192\n", known_models=KNOWN).jobs[0].model == "gpt"


def test_jobs_submitted_at_once_keep_the_order_of_the_trace() -> None:
    rows = "".join(f"job-{n},5,bert,1,12\n" for n in (3, 1, 2))
    assert [job.name for job in read_workload(HEADER + rows, known_models=KNOWN).jobs] == [
        "job-3",
        "job-1",
        "job-2",
    ]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("b,-1,bert,1,12", "time"),
        ("b,nan,bert,1,12", "time"),
        ("b,inf,bert,1,12", "time"),
        ("b,soon,bert,1,12", "time"),
        ("b,1e300,bert,1,12", "time"),
        ("b,,bert,1,12", "time"),
        ("b,1,vgg19,1,12", "application"),
        ("b,1,bert,0,12", "num_replicas"),
        ("b,1,bert,-4,12", "num_replicas"),
        ("b,1,bert,1.5,12", "num_replicas"),
        ("b,1,bert,many,12", "num_replicas"),
        ("b,1,bert,1e18,12", "num_replicas"),
        ("b,1,bert,1_000,12", "num_replicas"),
        ("b,1,bert,1,0", "batch_size"),
        ("b,1,bert,1,12.5", "batch_size"),
        ("a,1,bert,1,12", "name"),
        (",1,bert,1,12", "name"),
        ("b\x1b[2J,1,bert,1,12", "name"),
        (f"{'b' * 201},1,bert,1,12", "name"),
        ("b,1,bert,1", "line"),
        ("b,1,bert,1,12,13", "line"),
        ('b,1,"bert,1,12', "line"),
    ],
)
def test_a_bad_record_costs_no_other_and_is_told_by_line_and_field(row: str, field: str) -> None:
    text = HEADER + "a,0,bert,1,12\n" + row + "\nz,9,bert,1,12\n"
    found = read_workload(text, known_models=KNOWN)
    assert [job.name for job in found.jobs] == ["a", "z"]
    (note,) = found.notes
    assert note.startswith("1 of 3 records of the trace was left out, its GPU-hours unknown")
    assert f"line 3 ({field} " in note
    assert "\x1b[" not in note


def test_a_trace_of_bad_records_alone_is_refused_by_the_first() -> None:
    error = refusal(HEADER + "b,1,bert,many,12\nc,-1,bert,1,12\n")
    assert (error.row, error.field, error.value) == (2, "num_replicas", "many")
    assert error.remedy


def test_what_is_left_out_is_told_with_its_gpu_hours() -> None:
    text = (
        "name,time,application,num_replicas,batch_size,work_scale,adaptivity\n"
        "a,0,as-recorded,2,,3600,rigid\n"
        "b,soon,as-recorded,4,,7200,rigid\n"
        "c,0,as-recorded,x,,60,rigid\n"
    )
    (note,) = read_workload(text, known_models={"as-recorded"}).notes
    assert note.startswith(
        "2 of 3 records of the trace were left out, with 8 GPU-hours, and those of 1 unknown: "
        "line 3 (time is no finite number, 'soon'); line 4 (num_replicas "
    )


def test_that_iterations_of_an_unknown_model_have_no_gpu_hours_is_said() -> None:
    """PAL's `duration` is a number of iterations: of an unknown model, no time."""
    text = "job_id,num_gpus,submit_time,duration,model\n0,1,0,64,vgg19\n1,1,132,64.0,ALEXNET9\n"
    (note,) = read_workload(text, known_models=(*KNOWN, "vgg19")).notes
    assert "left out, its GPU-hours unknown, since its work counts iterations: line 3" in note


def test_gpu_hours_that_a_record_of_bsbf_states_are_told_when_it_is_left_out() -> None:
    text = (
        "job_id,num_gpu,submit_time,iterations,model_name,iteration_time\n"
        "0,1,0,10,vgg19,100\n1,4,soon,9000,vgg19,1000\n"
    )
    (note,) = read_workload(text, known_models={"as-recorded"}).notes
    assert note.startswith("1 of 2 records of the trace was left out, with 10 GPU-hours: line 3")


def test_of_many_records_that_are_left_out_the_first_are_named() -> None:
    rows = "".join(f"b{k},-1,bert,1,12\n" for k in range(20))
    (note,) = read_workload(HEADER + "a,0,bert,1,12\n" + rows, known_models=KNOWN).notes
    assert note.count("line ") == 5
    assert note.endswith("; and 15 more.")


def test_a_byte_that_is_not_utf8_and_a_long_cell_cost_no_other_record(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = [b"a,0,bert,1,12", b"caf\xe9,1,bert,1,12", b"x" * 50_000 + b",2,bert,1,12"]
    path.write_bytes(HEADER.encode() + b"\n".join(rows) + b"\n")
    found = read_workload(path, known_models=KNOWN)
    assert [job.name for job in found.jobs] == ["a", "caf\u00e9"]
    assert [note[:24] for note in found.notes] == [
        "1 of 3 records of the tr",
        "Line 3 is not UTF-8, rea",
    ]


def test_an_unknown_model_is_refused_naming_those_that_are_known() -> None:
    error = refusal(HEADER + "a,0,vgg19,1,12\n")
    assert error.value == "vgg19"
    assert "bert, cifar10, gpt" in error.remedy


@pytest.mark.parametrize("column", HEADER.strip().split(","))
def test_a_missing_column_is_refused_by_its_name(column: str) -> None:
    error = refusal(HEADER.replace(column, "other") + "a,0,bert,1,12\n")
    assert (error.field, error.row) == (column, 1)


@pytest.mark.parametrize("text", ["", "\n\n", HEADER, "\ufeff", "name,name\n1,2\n"])
def test_a_trace_without_jobs_is_refused(text: str) -> None:
    assert refusal(text).remedy


def test_a_file_name_given_as_text_is_refused_with_the_way_to_give_a_file() -> None:
    assert "Path" in refusal("workload-1.csv").remedy


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "nowhere.csv" in str(refusal(tmp_path / "nowhere.csv"))
    assert refusal(tmp_path).field == "file"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x7fELF\x02\x01\x01\0\0\0", "binary"),
        (HEADER.encode() + b"a" * 9000 + b"\0", "has 1 cells"),
        (HEADER.encode() + b"a" * 20_000_000, "has 1 cells"),
        (HEADER.encode() + b'"' + b"a\n" * 2_000, "has 1 cells"),
    ],
)
def test_a_file_that_is_no_csv_is_refused_saying_why(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    error = refusal(path)
    assert says in str(error)
    assert error.source == str(path)


def test_reading_stops_at_the_limit_of_jobs() -> None:
    rows = "".join(f"job-{n},{n},bert,1,12\n" for n in range(11))
    assert len(read_workload(HEADER + rows, known_models=KNOWN, max_jobs=11)) == 11
    error = refusal(HEADER + rows, max_jobs=10)
    assert (error.field, error.row) == ("rows", 12)


def test_ten_million_rows_are_refused_without_reading_them_all(tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    with path.open("w") as file:
        file.write(HEADER)
        file.writelines(f"{n},{n},bert,1,12\n" for n in range(10_000))
        for _ in range(100):
            file.write("x,0,bert,1,12\n" * 100_000)
    tracemalloc.start()
    error = refusal(path, max_jobs=10_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error.row == 10_002
    assert peak < path.stat().st_size / 10


def test_a_limit_stands_where_none_is_given() -> None:
    rows = "".join(f"{n},{n},bert,1,12\n" for n in range(MAX_JOBS + 1))
    assert refusal(HEADER + rows).row == MAX_JOBS + 2


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    names = draw(
        st.lists(
            st.text(
                st.characters(codec="utf-8", categories=["L", "N", "P", "S"]),
                min_size=1,
                max_size=20,
            ),
            min_size=1,
            unique=True,
        )
    )
    times = sorted(draw(st.lists(st.floats(0, 1e9), min_size=len(names), max_size=len(names))))
    return Workload("w", tuple(_jobs(draw, names, times)), "sia")


def _jobs(draw: st.DrawFn, names: list[str], times: list[float]) -> Iterator[TraceJob]:
    for name, time in zip(names, times, strict=True):
        yield TraceJob(
            name=name,
            submit_seconds=time,
            model=draw(st.sampled_from(KNOWN)),
            gpu_count=draw(st.integers(1, 1_000_000)),
            batch_size=draw(st.integers(1, 1_000_000))
            if (kind := draw(st.sampled_from(WorkloadKind))).name == "LATENCY_INFERENCE"
            else None,
            work_scale=draw(st.sampled_from([1.0, 0.1, 2.5])),
            adaptivity=draw(st.none() | st.sampled_from(Adaptivity)),
            workload_kind=kind,
            promised_seconds=draw(st.floats(1e-6, 1e6))
            if kind is WorkloadKind.LATENCY_INFERENCE
            else None,
            preemptible=draw(st.booleans()),
            tenant=draw(st.sampled_from(["default", "vision", "a, b"])),
        )


@given(workloads())
def test_what_is_written_is_read_again_exactly(workload: Workload) -> None:
    assert read_workload(write_workload(workload), known_models=KNOWN).jobs == workload.jobs


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_but_never_crashes(text: str) -> None:
    with contextlib.suppress(TraceError):
        assert len(read_workload(HEADER + text, known_models=KNOWN)) > 0


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("path", "jobs"),
    [
        ("sia-artifact/workloads/philly/workload-1.csv", 160),
        ("sia-artifact/workloads/newtrace/workload-1.csv", 960),
        ("pollux/workloads/workload-1.csv", 160),
    ],
)
def test_published_traces_are_read_whole(data_folder: Path, path: str, jobs: int) -> None:
    known = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
    assert len(read_workload(data_folder / path, known_models=known)) == jobs


def test_a_type_in_capitals_is_the_type_and_any_other_name_is_kept() -> None:
    header = "name,time,application,num_replicas,batch_size,gpu_types\n"
    (job,) = read_workload(
        f"{header}a,0,bert,1,12,A100 a100 V100 RTX-3090\n", known_models=KNOWN
    ).jobs
    assert job.gpu_types == ("a100", "v100", "RTX-3090")
