"""Other systems' records of jobs: what each becomes, and what is dropped and why."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, TraceError
from maat.simulation.engine import simulate
from maat.simulation.iteration_models import shipped_models
from maat.simulation.scenario import Scenario
from maat.workloads.formats.foreign import FOREIGN
from maat.workloads.formats.foreign.guesses import guessed_columns
from maat.workloads.formats.sia import write_workload
from maat.workloads.importing import Imported, ImportSettings, MappingRule, import_workload
from maat.workloads.reading import read_workload

SACCT = """\
JobID|JobIDRaw|User|Account|Submit|Start|End|Elapsed|State|AllocTRES|ReqTRES
1|1|ann|vision|2026-01-05T10:00:00|2026-01-05T10:01:00|2026-01-05T11:01:00|01:00:00|COMPLETED|\
billing=8,cpu=8,gres/gpu=4,gres/gpu:a100=4,mem=64G,node=1|gres/gpu=4
1.batch|1.batch||vision|2026-01-05T10:00:00|2026-01-05T10:01:00|2026-01-05T11:01:00|01:00:00|\
COMPLETED|cpu=8|
2_1|3|ben||2026-01-05T10:05:00|2026-01-05T10:06:00|2026-01-06T10:06:00|1-00:00:00|\
CANCELLED by 1001||gres/gpu=1
4|4|ben|nlp|2026-01-05T10:05:00|Unknown|Unknown|00:00:00|CANCELLED by 1001||gres/gpu=2
5|5|ben|nlp|2026-01-05T10:05:00|2026-01-05T10:06:00|2026-01-05T10:00:00||FAILED|gres/gpu=2|
6|6|ben|nlp|2026-01-05T10:07:00|2026-01-05T10:08:00|2026-01-05T10:18:00|00:10:00|NODE_FAIL|\
gres/gpu:titan=2|
7|7|ben|nlp|2026-01-05T10:07:00|2026-01-05T10:08:00|Unknown|00:10:00|RUNNING|gres/gpu=2|
8|8|ben|nlp|2026-01-05T10:07:00|2026-01-05T10:08:00|2026-01-05T10:18:00|00:10:00|TIMEOUT|cpu=4|
9|9|ben|a|b|2026-01-05T10:07:00|2026-01-05T10:08:00|2026-01-05T10:18:00|00:10:00|TIMEOUT|cpu=4|
10|10|ben|=1+1|2026-01-05T10:07:30|2026-01-05T10:08:00|2026-01-05T10:18:00|00:10:00|TIMEOUT|\
gres/gpu:v100=2|
10|10|ben|nlp|2026-01-05T10:07:30|2026-01-05T10:08:00|2026-01-05T10:18:00|00:10:00|TIMEOUT|\
gres/gpu:v100=2|
"""
ATTEMPTS = [
    {
        "start_time": "2017-10-07 01:00:00",
        "end_time": "2017-10-07 02:00:00",
        "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0", "gpu1"]}],
    },
    {
        "start_time": "2017-10-07 03:00:00",
        "end_time": "2017-10-07 03:30:00",
        "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}],
    },
]
PHILLY = [
    {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1",
        "attempts": ATTEMPTS,
        "submitted_time": "2017-10-07 00:59:00",
        "user": "u",
    },
    {
        "status": "Killed",
        "vc": "ee9e8c",
        "jobid": "application_2",
        "attempts": [],
        "submitted_time": "2017-10-07 00:59:00",
        "user": "u",
    },
    {
        "status": "Failed",
        "vc": "b",
        "jobid": "application_3",
        "attempts": [ATTEMPTS[0] | {"end_time": "None"}],
        "submitted_time": "2017-10-07 00:59:00",
        "user": "u",
    },
]
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,u1,vcA,8,32,1,COMPLETED,2020-04-01 00:00:21,2020-04-01 00:00:23,2020-04-01 00:10:23,600,2
8,u2,vcA,0,32,1,COMPLETED,2020-04-01 00:00:21,2020-04-01 00:00:23,2020-04-01 00:10:23,600,2
9,u2,vcB,1,4,1,CANCELLED,2020-04-01 01:00:21,2020-04-01 00:00:23,2020-04-01 00:10:23,-5,2
"""
MAPPED_THREE = {"submit": "t", "gpus": "n", "duration": "s"}


def read(text: str, kind: str, **settings: object) -> Imported:
    return import_workload(text, replace(ImportSettings(kind), **settings))  # type: ignore[arg-type]


def test_jobs_of_slurms_accounting_run_as_long_as_they_did_on_the_type_they_had() -> None:
    found = read(SACCT, "sacct")
    assert [
        (j.name, j.submit_seconds, j.gpu_count, j.gpu_types, j.work_scale, j.tenant)
        for j in found.workload.jobs
    ] == [
        ("1", 0.0, 4, ("a100",), 3600.0, "vision"),
        ("3", 300.0, 1, None, 86_400.0, "ben"),
        ("10", 450.0, 2, ("v100",), 600.0, "'=1+1"),
    ]
    assert {each.cause: (each.count, each.rows) for each in found.dropped} == {
        "it is a step of a job, which is counted itself": (1, [3]),
        "it never ran": (1, [5]),
        "by its End it ends before it starts": (1, [6]),
        "its GPU type titan is not known": (1, [7]),
        "it had not ended": (1, [8]),
        "it had no GPUs": (1, [9]),
        "it has not 11 cells, as the header has": (1, [10]),
        "its run stood already": (1, [12]),
    }
    assert found.rows == len(found.workload) + sum(each.count for each in found.dropped)
    preview = {each.row: each for each in found.preview}
    assert preview[2].job == found.workload.jobs[0]
    assert (preview[5].job, preview[5].why) == (None, "it never ran")


def test_an_unknown_gpu_type_can_be_named_or_ignored() -> None:
    named = read(SACCT, "sacct", gpu_types={"Titan": "t4"})
    assert {job.name: job.gpu_types for job in named.workload.jobs}["6"] == ("t4",)
    own = read(SACCT, "sacct", gpu_types={"titan": "titan"})
    assert {job.name: job.gpu_types for job in own.workload.jobs}["6"] == ("titan",)
    free = read(SACCT, "sacct", any_gpu_type=True)
    assert {job.gpu_types for job in free.workload.jobs} == {None}
    with pytest.raises(InputError, match="no known GPU type"):
        read(SACCT, "sacct", gpu_types={"titan": "fast"})


def test_an_unknown_type_beside_known_ones_is_told() -> None:
    text = "submit,gpus,duration,gpu_type\n0,1,60,A100|titan\n"
    found = read(text, "csv")
    assert [job.gpu_types for job in found.workload.jobs] == [("a100",)]
    assert any("unknown ones do not count: titan" in rule for rule in found.rules)


def test_a_philly_job_has_the_gpu_seconds_of_all_its_attempts(tmp_path: Path) -> None:
    file = tmp_path / "cluster_job_log"
    file.write_text(json.dumps(PHILLY, indent=1))
    found = import_workload(file, ImportSettings("philly"))
    (job,) = found.workload.jobs
    assert (job.name, job.gpu_count, job.work_scale, job.tenant) == (
        "application_1",
        4,
        3600.0 + 1800.0 * 2 / 4,
        "ee9e8c",
    )
    assert [(each.cause, each.rows) for each in found.dropped] == [
        ("it never ran", [2]),
        ("it had not ended, or an attempt has no times", [3]),
    ]


def test_a_helios_job_keeps_its_gpus_and_its_duration() -> None:
    found = read(HELIOS, "helios")
    (job,) = found.workload.jobs
    assert (job.name, job.gpu_count, job.work_scale, job.tenant) == ("7", 8, 600.0, "vcA")
    assert {row for each in found.dropped for row in each.rows} == {3, 4}


def test_any_csv_is_read_by_what_its_columns_mean() -> None:
    text = "Arrived;Sekunden;n;Karte\n0;600;2;Tesla V100\n60;1:30:00;x;T4\n-5;60;1;T4\n"
    columns = {"submit": "Arrived", "duration": "Sekunden", "gpus": "n", "gpu_type": "Karte"}
    found = read(text, "csv", columns=columns)
    (job,) = found.workload.jobs
    assert (job.name, job.gpu_types, job.work_scale) == ("line-2", ("v100",), 600.0)
    assert {each.cause: each.rows for each in found.dropped} == {
        "n is no number of GPUs": [3],
        "Arrived is negative or too far ahead": [4],
    }
    assert guessed_columns(HELIOS).mapping == {
        "submit": "submit_time",
        "start": "start_time",
        "end": "end_time",
        "duration": "duration",
        "gpus": "gpu_num",
        "name": "job_id",
        "tenant": "vc",
        "state": "state",
    }


MIXED = {
    "seconds first": ("0", "2026-01-05", "60"),
    "dates first": ("2026-01-05T10:00:00", "1767607200", "2026-01-05 10:01:00"),
    "digits like a date": ("0", "2026-01-05", "20260105"),
}


@pytest.mark.parametrize("times", MIXED.values(), ids=MIXED)
def test_most_rows_say_whether_a_column_holds_dates_or_seconds(times: tuple[str, ...]) -> None:
    text = "t,n,s\n" + "".join(f"{time},1,60\n" for time in times)
    found = read(text, "csv", columns=MAPPED_THREE)
    assert [job.name for job in found.workload.jobs] == ["line-2", "line-4"]
    assert found.workload.jobs[1].submit_seconds == (20_260_105 if "0105" in times[2] else 60)
    (dropped,) = found.dropped
    kinds = ("a date", "a number of seconds")
    here, before = kinds if times[0] == "0" else reversed(kinds)
    assert dropped.cause == f"t is {here}, but {before} in most rows"
    assert (dropped.rows, dropped.example, "alike" in dropped.remedy) == ([3], times[1], True)


def test_each_column_of_times_may_hold_another_kind() -> None:
    columns = {"submit": "t", "gpus": "n", "start": "from", "end": "to"}
    text = "t,n,from,to\n0,1,2026-01-05,2026-01-06\n9,1,2026-01-05,1767657600\n"
    found = read(text, "csv", columns=columns)
    assert [job.work_scale for job in found.workload.jobs] == [86_400.0]
    assert [each.column for each in found.dropped] == ["to"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (HELIOS + "9,u,v,1,4,1,COMPLETED,1585700000,1585700000,1585700600,600,2\n", "helios"),
        (SACCT + "11|11|b|n|1767607200|1|2|00:10:00|COMPLETED|gres/gpu=2|\n", "sacct"),
        (json.dumps([*PHILLY, PHILLY[0] | {"jobid": "b", "submitted_time": "5"}]), "philly"),
    ],
)
def test_other_formats_hold_one_kind_of_time_too(text: str, kind: str) -> None:
    assert any(
        "is a number of seconds, but a date" in each.cause for each in read(text, kind).dropped
    )


def test_marks_of_direction_stay_in_names_and_in_what_the_report_shows() -> None:
    names = ("\u202eturned\u200f", "a\u200b", "\u2069b")
    text = "t,n,s,id\n" + "".join(f"0,1,60,{name}\n" for name in names)
    found = read(text, "csv", columns={**MAPPED_THREE, "name": "id"})
    assert [job.name for job in found.workload.jobs] == [names[0]]
    assert [each.was.partition(":")[0] for each in found.preview] == [
        names[0],
        "a\ufffd",
        "\ufffdb",
    ]


def test_by_size_class_a_job_becomes_a_training_of_its_gpu_hours() -> None:
    rows = [(0, 1, 3599), (1, 1, 3601), (2, 2, 36_001), (3, 8, 3600 * 20)]
    text = "t,n,s\n" + "".join(f"{at},{count},{seconds}\n" for at, count, seconds in rows)
    found = read(text, "csv", columns=MAPPED_THREE, rule=MappingRule.SIZE_CLASS)
    first, second, third, last = (job.model for job in found.workload.jobs)
    assert (first, third, last) == ("cifar10", "yolov3", "imagenet")
    assert second in ("bert", "deepspeech2")
    assert {job.work_scale for job in found.workload.jobs} == {1.0}
    assert "yolov3" in found.rules[1]


def test_an_imported_trace_is_simulated_and_its_jobs_take_the_time_they_took() -> None:
    text = write_workload(read(SACCT, "sacct").workload)
    workload = read_workload(text, known_models=shipped_models())
    cluster = Cluster.parse("a100=1x8,v100=1x8")
    result = simulate(Scenario(workload, shipped_models(), cluster, policy="fifo"))
    took = {r.name: (r.finish or 0.0) - (r.start or 0.0) for r in result.records}
    start = 30.0  # what a start takes
    assert took == pytest.approx(
        {"1": 3600.0 + start, "3": 86_400.0 + start, "10": 600.0 + start}, abs=1.0
    )


@pytest.mark.parametrize(
    ("text", "kind", "settings", "said"),
    [
        ("JobID|State\n1|COMPLETED\n", "sacct", {}, "Submit: column is missing"),
        ("\n", "sacct", {}, "is empty"),
        ("PK\0\0x\n", "helios", {}, "NUL byte"),
        ('{"a": 1}\n', "philly", {}, "no JSON array"),
        ('[{"b": }\n', "philly", {}, "row 1: entry: holds no job that can be used"),
        (SACCT, "slurm", {}, "Use one of: sacct, philly, helios, csv"),
        (SACCT, "sacct", {"columns": {"submit": "Submit"}}, "belongs to the format csv"),
        (HELIOS, "csv", {"columns": {"submit": "submit_time"}}, "lacks gpus, duration"),
        (HELIOS, "csv", {"columns": {"colour": "vc"}}, "nothing that a column can mean"),
        ("t,n,s\n1,=2+3,40\n", "csv", {"columns": MAPPED_THREE}, "row 2: n: holds no job"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_place_and_a_remedy(
    text: str, kind: str, settings: dict[str, object], said: str
) -> None:
    with pytest.raises(TraceError) as refused:
        read(text, kind, **settings)
    assert said in str(refused.value)
    assert refused.value.remedy


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1", "utf-8-sig"])
def test_a_file_in_another_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "log.csv"
    file.write_bytes(HELIOS.replace("u1,vcA", "u1,v\u00fc").encode(encoding))
    (job,) = import_workload(file, ImportSettings("helios")).workload.jobs
    assert (job.name, job.tenant) == ("7", "v\u00fc")


CELLS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["=1+1", "-1", "1e400", "nan", "Unknown", "0", "8", "9" * 400, "1-00:00:00"]),
    st.floats().map(str),
    st.datetimes().map(str),
)
NAMES = {
    "sacct": SACCT.splitlines()[0].replace("|", ","),
    "helios": HELIOS.splitlines()[0],
    "csv": "t,n,s,start,end,type",
}
MAPPED = {"submit": "t", "gpus": "n", "duration": "s", "gpu_type": "type"}


@given(
    kind=st.sampled_from([*FOREIGN, "csv"]),
    rows=st.lists(st.lists(CELLS, min_size=5, max_size=12), max_size=5),
    garbage=st.one_of(st.none(), st.text(max_size=80)),
    rule=st.sampled_from(MappingRule),
)
def test_no_reader_raises_anything_but_an_input_error(
    kind: str, rows: list[list[str]], garbage: str | None, rule: MappingRule
) -> None:
    lines = [NAMES.get(kind, ""), *(",".join(row) for row in rows)]
    text = "\n".join(lines) if garbage is None else garbage
    if kind == "philly" and garbage is None:
        keys = ["jobid", "submitted_time", "vc", "attempts", "start_time", "detail"]
        text = json.dumps([dict(zip(keys, row, strict=False)) for row in rows])
    columns = MAPPED if kind == "csv" else {}
    try:
        found = read(text, kind, columns=columns, rule=rule)
    except InputError:
        return
    dropped = sum(each.count for each in found.dropped)
    assert found.rows == len(found.workload) + found.further_runs + dropped
    again = read_workload(write_workload(found.workload), known_models=shipped_models())
    assert again.jobs == found.workload.jobs


@pytest.mark.parametrize(
    ("text", "seems", "chosen"),
    [
        (SACCT, "sacct", "helios"),
        (SACCT, "sacct", "philly"),
        (SACCT, "sacct", "csv"),
        (json.dumps(PHILLY), "philly", "sacct"),
        (json.dumps(PHILLY), "philly", "csv"),
        (HELIOS, "helios", "sacct"),
    ],
)
def test_a_file_of_another_format_is_told_which_it_seems_to_be(
    text: str, seems: str, chosen: str
) -> None:
    with pytest.raises(TraceError) as refused:
        import_workload(text, ImportSettings(chosen))

    assert refused.value.remedy == (
        f"The file looks like {FOREIGN[seems].title}: give the format {seems}."
    )


def test_a_file_of_no_known_format_keeps_the_remedy_of_the_chosen_one() -> None:
    with pytest.raises(TraceError, match="Write the file with: SLURM_TIME_FORMAT=%s sacct"):
        import_workload("a,b\n1,2\n", ImportSettings("sacct"))


@pytest.mark.parametrize("sign", [";", ",", "\t", "|"])
def test_the_line_that_tells_spreadsheets_the_separator_is_no_header(sign: str) -> None:
    lines = [["at", "gpus", "ran"], ["0", "2", "60"], ["5", "x", "60"]]
    text = f"sep={sign}\r\n" + "\r\n".join(map(sign.join, lines))
    columns = {"submit": "at", "gpus": "gpus", "duration": "ran"}

    found = import_workload(text, ImportSettings("csv", columns))

    assert [job.work_scale for job in found.workload.jobs] == [60.0]
    assert [each.rows for each in found.dropped] == [[4]]


@pytest.mark.parametrize(
    ("format_", "header", "row"),
    [
        (
            "helios",
            "job_id,user,gpu_num,state,submit_time,start_time,end_time,duration",
            "{},u,4,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:10:00,2020-04-01 01:10:00,{}",
        ),
        (
            "sacct",
            "JobIDRaw|Submit|Start|End|Elapsed|State|AllocTRES",
            "{}|2020-04-01T00:00:00|2020-04-01T00:10:00|2020-04-01T01:10:00|{}|COMPLETED|gres/gpu=4",
        ),
    ],
)
def test_minutes_where_a_format_has_seconds_are_refused(
    format_: str, header: str, row: str
) -> None:
    def text(duration: str) -> str:
        return "\n".join([header, *(row.format(number, duration) for number in (1, 2)), ""])

    with pytest.raises(TraceError, match="would be in minutes by"):
        import_workload(text("60"), ImportSettings(format_))
    for sound in ("3600", "01:00:00"):
        found = import_workload(text(sound), ImportSettings(format_))
        assert [job.work_scale for job in found.workload.jobs] == [3600.0, 3600.0]
