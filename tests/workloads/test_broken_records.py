"""A record that cannot be read costs no other record, and what is lost is told in GPU-hours."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.compression import problem_of_text
from maat.csv_input import read_csv
from maat.scheduling.errors import InputError, TraceError
from maat.simulation.interference import gavel_types
from maat.simulation.world_models import measured_models
from maat.workloads.cluster_text import cluster_text, read_cluster
from maat.workloads.formats.foreign.questions import ReadingOptions, TraceQuestion
from maat.workloads.formats.foreign.zone_evidence import depends_on_zone
from maat.workloads.import_report import Imported, shown_seconds
from maat.workloads.importing import ImportSettings, import_workload
from maat.workloads.reading import read_workload
from maat.workloads.workloads import TraceJob

SACCT = "JobIDRaw|JobName|User|Submit|Start|End|ElapsedRaw|State|AllocTRES"
CSV = "job_id,note,submit,gpus,duration"


def slurm(
    job: str, *, at: int = 8, state: str = "COMPLETED", seconds: int = 3600, name: str = "x"
) -> str:
    times = [f"2026-03-02T{hour:02}:00:00" for hour in (at, at, at + seconds // 3600)]
    return f"{job}|{name}|u|{'|'.join(times)}|{seconds}|{state}|gres/gpu=2"


def of_bytes(folder: Path, lines: list[bytes], kind: str) -> Imported:
    file = folder / "jobs"
    file.write_bytes(b"\n".join(lines) + b"\n")
    return import_workload(file, ImportSettings(kind))


BROKEN = st.one_of(
    st.binary(max_size=60).filter(lambda line: b"\n" not in line and b"\r" not in line),
    st.builds(
        lambda name: b"9,%s,2026-03-02 09:30:00,1,60" % name,
        st.binary(max_size=20).filter(lambda text: not set(text) & set(b"\n\r")),
    ),
    st.sampled_from(
        [
            b"9," + b"x" * 5_000_000 + b",2026-03-02 09:30:00,1,60",
            b'9,"' + b"x" * 5_000_000 + b'",2026-03-02 09:30:00,1,60',
            b'9,"never closed,2026-03-02 09:30:00,1,60',
            b'9,"a"b,2026-03-02 09:30:00,1,60',
            b"9,n,02/03/2026,1,60",
            b"9,n,0,1,60",
            b"9,n,1970-01-01 00:00:00,1,60",
            b"9,n,2026-03-02 09:30:00,87,60",
            b"9,n,2026-03-02 09:30:00,1,1.800",
            b'9,n,2026-03-02 09:30:00,1,"1.800,5"',
            b"9,n,2026-03-02 09:30:00,1,90:00",
            b"9,\0\0,2026-03-02 09:30:00,1,60",
            b"\0",
        ]
    ),
)
SECONDS = (
    "3600.5",
    "60",
    "1-00:00:00",
    "7200",
    "50",
    "90.25",
    "12.5",
    "19.75",
    "21.5",
    "32.5",
    "30",
)
WHOLE = [
    f"whole-{job},ok,2026-03-02 {job + 8:02}:00:00,{job % 4 + 1},{seconds}".encode()
    for job, seconds in enumerate(SECONDS)
]


@given(broken=BROKEN, place=st.integers(0, len(WHOLE)))
def test_a_file_with_a_broken_record_gives_the_other_records_unchanged(
    tmp_path_factory: pytest.TempPathFactory, broken: bytes, place: int
) -> None:
    folder = tmp_path_factory.mktemp("broken")
    whole = of_bytes(folder, [CSV.encode(), *WHOLE], "csv")
    lines = [CSV.encode(), *WHOLE[:place], broken, *WHOLE[place:]]
    found = of_bytes(folder, lines, "csv")
    names = {job.name for job in whole.workload.jobs}
    others = [job for job in found.workload.jobs if job.name in names]
    assert _from_their_own_first(others) == _from_their_own_first(whole.workload.jobs)


def _from_their_own_first(jobs: Sequence[TraceJob]) -> list[TraceJob]:
    """Return the jobs by their own first one: a broken record may be a job before all others."""
    first = jobs[0].submit_seconds
    return [replace(job, submit_seconds=job.submit_seconds - first) for job in jobs]


def test_a_letter_of_another_encoding_costs_no_job_and_is_told(tmp_path: Path) -> None:
    lines = [SACCT, slurm("1"), slurm("2", name="m\u00e9thode"), slurm("3")]
    found = of_bytes(tmp_path, [line.encode("latin-1") for line in lines], "sacct")
    assert [job.name for job in found.workload.jobs] == ["1", "2", "3"]
    assert any("Line 3 is not UTF-8" in rule for rule in found.rules)


@pytest.mark.parametrize("length", [12_000, 5_000_000])
def test_a_long_cell_that_is_not_needed_costs_no_job(tmp_path: Path, length: int) -> None:
    lines = [SACCT, slurm("1"), slurm("2", name="x" * length), slurm("3")]
    found = of_bytes(tmp_path, [line.encode() for line in lines], "sacct")
    assert [job.name for job in found.workload.jobs] == ["1", "2", "3"]


def test_a_line_without_end_is_dropped_alone(tmp_path: Path) -> None:
    lines = [SACCT.encode(), slurm("1").encode(), b"x" * (40 << 20), slurm("3").encode()]
    found = of_bytes(tmp_path, lines, "sacct")
    assert [job.name for job in found.workload.jobs] == ["1", "3"]
    assert [(each.cause, each.rows) for each in found.dropped] == [
        ("it is longer than 16 MiB", [3])
    ]


def test_quoted_cells_may_go_over_lines() -> None:
    text = f'{CSV}\n1,"two\nlines, of ""text""",0,1,60\n2,ok,5,1,60\n'
    found = import_workload(text, ImportSettings("csv"))
    assert [job.name for job in found.workload.jobs] == ["1", "2"]
    assert [each.row for each in found.preview] == [2, 4]


def test_columns_without_a_name_do_not_matter() -> None:
    text = ",job,,submit,gpus,duration,\n0,1,,2026-03-02 08:00:00,4,5400,\n"
    (job,) = import_workload(text, ImportSettings("csv")).workload.jobs
    assert (job.name, job.gpu_count, job.work_scale) == ("1", 4, 5400.0)
    trailing = "job,submit,gpus,duration\n1,0,4,5400,\n2,0,4,60,\n"
    assert len(import_workload(trailing, ImportSettings("csv")).workload) == 2


def test_a_needed_column_that_stands_twice_is_refused_by_its_name() -> None:
    text = "job_id,user,vc,gpu_num,state,submit_time,duration,duration\n1,u,v,1,C,0,5,6\n"
    with pytest.raises(TraceError, match=r"duration: column is missing.*duration .column 7."):
        import_workload(text, ImportSettings("helios"))


def test_what_is_dropped_is_told_with_its_gpu_hours() -> None:
    rows = [
        slurm("1"),
        slurm("2").replace("gres/gpu=2", "gres/gpu:titan=4"),
        slurm("3", state="RUNNING"),
    ]
    broken = slurm("4").replace("3600", "long")
    without = slurm("5").replace("gres/gpu=2", "gres/gpu=-2")
    text = "\n".join([SACCT, *rows, broken, without]) + "\n"
    found = import_workload(text, ImportSettings("sacct"))
    hours = {each.cause: (each.gpu_hours, each.without_hours) for each in found.dropped}
    assert hours == {
        "its GPU type titan is not known": (4.0, 0),
        "it had not ended": (2.0, 0),
        "ElapsedRaw is no duration": (2.0, 0),  # from start to end
        "its number of GPUs cannot be read": (0.0, 1),
    }
    assert found.gpu_hours == 2.0
    assert "8 of 10.0 GPU-hours (80.0%); 1 of them does not say" in found.losses


REQUEUED = [
    "901|x|u|2026-03-02T08:00:00|2026-03-02T08:01:00|2026-03-02T09:01:00|3600|REQUEUED|gres/gpu=4",
    "901|x|u|2026-03-02T09:01:00|2026-03-02T09:10:00|2026-03-02T10:10:00|3600|NODE_FAIL|gres/gpu=4",
    "901|x|u|2026-03-02T10:10:00|2026-03-02T10:30:00|2026-03-02T18:30:00|28800|COMPLETED|gres/gpu=4",
]
OTHER = "902|x|w|2026-03-02T08:00:00|2026-03-02T08:01:00|2026-03-02T09:01:00|3600|FAILED|gres/gpu=1"


@pytest.mark.parametrize("order", list(permutations([*REQUEUED, OTHER])))
def test_a_requeued_job_keeps_the_work_of_all_its_runs_in_any_order(order: tuple[str, ...]) -> None:
    found = import_workload("\n".join([SACCT, *order]) + "\n", ImportSettings("sacct"))
    jobs = {
        job.name: (job.submit_seconds, job.gpu_count, job.work_scale) for job in found.workload.jobs
    }
    assert jobs == {"901": (0.0, 4, 36_000.0), "902": (0.0, 1, 3600.0)}
    assert (found.further_runs, found.dropped, found.gpu_hours) == (2, (), 41.0)


def test_an_id_that_is_used_again_is_another_job() -> None:
    later = REQUEUED[0].replace("2026-03", "2026-09").replace("REQUEUED", "COMPLETED")
    ended = REQUEUED[0].replace("REQUEUED", "COMPLETED")
    foreign = REQUEUED[1].replace("|u|", "|w|")  # another owner: no run of it
    rows = [ended, foreign, later, ended]
    found = import_workload("\n".join([SACCT, *rows]) + "\n", ImportSettings("sacct"))
    assert sorted(job.name for job in found.workload.jobs) == ["901", "901-2", "901-3"]
    assert [(each.cause, each.rows) for each in found.dropped] == [("its run stood already", [5])]
    assert found.gpu_hours == 12.0
    assert any("2 jobs have a name that stood already" in rule for rule in found.rules)


def test_runs_on_other_counts_keep_the_gpu_seconds_and_may_use_every_type() -> None:
    rows = [
        REQUEUED[0].replace("gres/gpu=4", "gres/gpu:a100=4"),
        REQUEUED[1].replace("gres/gpu=4", "gres/gpu:v100=1"),
        REQUEUED[2].replace("COMPLETED", "PENDING"),
    ]
    found = import_workload("\n".join([SACCT, *rows]) + "\n", ImportSettings("sacct"))
    (job,) = found.workload.jobs
    assert (job.gpu_count, job.work_scale, job.gpu_types) == (4, 4500.0, ("a100", "v100"))
    assert [each.cause for each in found.dropped] == ["it had not ended"]


@pytest.mark.parametrize("cell", ["P100|T4|V100M16", "['P100', 'T4', 'V100']", "P100/T4/V100"])
def test_a_job_may_have_a_set_of_types(cell: str) -> None:
    text = f'submit,gpus,duration,gpu_type\n0,1,60,"{cell}"\n'
    (job,) = import_workload(text, ImportSettings("csv")).workload.jobs
    assert job.gpu_types == ("p100", "t4", "v100")


def test_a_broken_entry_of_philly_costs_no_other() -> None:
    hour = '"start_time": "2017-10-07 01:00:00", "end_time": "2017-10-07 02:00:00"'
    attempt = f'{{{hour}, "detail": [{{"ip": "m", "gpus": ["g"]}}]}}'
    ids = '"vc": "v", "user": "u", "submitted_time": "2017-10-07 00:59:00", "status": "Pass"'
    entry = f'{{{ids}, "jobid": "%s", "attempts": [%s]}}'
    broken = entry % ("b", attempt.replace('"m"', "m"))
    text = f'[{entry % ("a", attempt)}, {broken}, {entry % ("c", attempt)}, {{"status"'
    found = import_workload(text, ImportSettings("philly"))
    assert [job.name for job in found.workload.jobs] == ["a", "c"]
    assert [(each.cause, each.rows) for each in found.dropped] == [
        ("it is no JSON, or ends too early", [2, 4])
    ]


def test_a_zone_that_decides_how_long_jobs_ran_is_asked() -> None:
    """The clock was set back at 03:00 in Berlin: 02:50 to 02:10 are 20 minutes there."""
    header = "JobIDRaw|User|Account|Submit|Start|End|State|AllocTRES\n"
    line = "{}|u1|a|2025-10-26T01:00:00|{}|{}|COMPLETED|gres/gpu=1\n"
    begun_before = line.format(1, "2025-10-26T02:50:00", "2025-10-26T02:10:00")
    across = line.format(2, "2025-10-26T01:30:00", "2025-10-26T04:30:00")
    for text in (header + begun_before + across, header + across):
        with pytest.raises(TraceQuestion) as asked:
            import_workload(text, ImportSettings("sacct"))
        assert asked.value.field == "zone"
        assert "--zone UTC" in str(asked.value)

    def ran(zone: str) -> list[float]:
        settings = ImportSettings("sacct", reading=ReadingOptions(zone=zone))
        found = import_workload(header + begun_before + across, settings)
        return [job.work_scale for job in found.workload.jobs]

    assert ran("Europe/Berlin") == [1200.0, 14400.0]
    assert ran("UTC") == [10800.0]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-03-02T08:00:00", "2026-03-02T07:50:00"),  # no clock changed that day
        ("2025-10-25T04:00:00", "2025-10-27T04:00:00"),  # an hour of 48
        ("2025-10-26T12:00:00", "2025-10-26T13:00:00"),  # later that day
    ],
)
def test_times_that_no_clock_change_decides_count_as_utc(start: str, end: str) -> None:
    assert not depends_on_zone(datetime.fromisoformat(start), datetime.fromisoformat(end))


def test_a_zone_is_not_asked_where_the_records_say_how_long_jobs_ran() -> None:
    text = (
        "JobIDRaw|Submit|Start|End|ElapsedRaw|State|AllocTRES\n"
        "1|2025-10-26T01:00:00|2025-10-26T02:50:00|2025-10-26T02:10:00|1200|COMPLETED|gres/gpu=1\n"
    )
    found = import_workload(text, ImportSettings("sacct"))
    assert [job.work_scale for job in found.workload.jobs] == [1200.0]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(60.5, "60.5"), (5400.5, "5400.5"), (60.0, "60"), (0.25, "0.25"), (12345678.0, "12345678")],
)
def test_seconds_are_shown_as_they_are(seconds: float, shown: str) -> None:
    assert shown_seconds(seconds) == shown


def test_an_entry_of_sacct_json_that_cannot_be_read_costs_no_other() -> None:
    entry = {
        "job_id": 1,
        "user": "u",
        "time": {"submission": 1000, "start": 1000, "end": 4600, "elapsed": 3600},
        "state": {"current": ["COMPLETED"]},
        "allocation_nodes": 1,
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 2}]},
    }
    broken = {"job_id": 2, "time": entry["time"]}
    text = json.dumps({"jobs": [entry, broken, 7, None]})
    found = import_workload(text, ImportSettings("sacct"))
    assert [(job.name, job.gpu_count) for job in found.workload.jobs] == [("1", 2)]
    assert sum(each.count for each in found.dropped) == 3
    assert all("Error" not in each.cause + each.example for each in found.dropped)


@pytest.mark.parametrize("text", ['{"jobs": null}', '{"jobs": []}', '{"accounts": []}'])
def test_an_answer_of_sacct_without_jobs_is_refused_in_words(text: str) -> None:
    with pytest.raises(TraceError) as refused:
        import_workload(text, ImportSettings("sacct"))
    assert not re.search(r"Error\(|NoneType|iterable", str(refused.value))


@pytest.mark.parametrize(
    ("start", "end", "column", "words"),
    [
        ("2026-03-29T02:30:00", "2026-03-29T05:00:00", "Start", "set forward"),
        ("2026-03-29T01:30:00", "2026-03-29T02:30:00", "End", "set forward"),
        ("2025-10-26T02:30:00", "2025-10-26T05:00:00", "Start", "set back"),
        ("2025-10-26T01:30:00", "2025-10-26T02:30:00", "End", "set back"),
    ],
)
def test_a_time_that_a_clock_change_makes_unclear_is_shown_with_the_change(
    start: str, end: str, column: str, words: str
) -> None:
    text = "JobIDRaw|Submit|Start|End|State|AllocTRES\n" + "".join(
        f"{number}|2025-10-20T01:00:00|{begun}|{ended}|COMPLETED|gres/gpu=1\n"
        for number, begun, ended in (
            (1, "2025-10-20T01:00:00", "2025-10-20T02:00:00"),
            (2, start, end),
        )
    )
    settings = ImportSettings("sacct", reading=ReadingOptions(zone="Europe/Berlin"))
    (dropped,) = import_workload(text, settings).dropped
    assert (dropped.column, dropped.rows) == (column, [3])
    assert words in dropped.cause


def zipped(content: bytes, name: str = "jobs.csv") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("pack", "words"),
    [
        (gzip.compress, r"is compressed \(gzip.*Unpack it with gunzip"),
        (bz2.compress, r"is compressed \(bzip2.*Unpack it with bunzip2"),
        (lzma.compress, r"is compressed \(xz.*Unpack it with unxz"),
        (zipped, r"is compressed \(zip.*Unpack it with unzip"),
        (partial(zipped, name="[Content_Types].xml"), "is a workbook.*Save its sheet as CSV"),
        (lambda content: b"PAR1" + content, "is a table in a binary format.*Write it as CSV"),
    ],
    ids=["gzip", "bzip2", "xz", "zip", "xlsx", "parquet"],
)
def test_what_is_packed_is_named_by_every_reader_of_files_and_of_texts(
    pack: Callable[[bytes], bytes], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(pack(b"name,time,application,num_replicas,batch_size\na,0,bert,1,12\n"))
    texts = [path.read_bytes().decode("latin-1"), path.read_bytes().decode("utf-8", "replace")]
    readers: list[Callable[[], object]] = [
        lambda: cluster_text(path.read_bytes()),
        lambda: measured_models(path),
        lambda: gavel_types(path, name="tables"),
    ]
    for source in (path, *texts):
        readers += [
            partial(read_workload, source, known_models={"bert"}),
            partial(read_csv, source, error=TraceError),
            *(
                partial(import_workload, source, ImportSettings(name))
                for name in ("sacct", "philly", "helios", "csv")
            ),
        ]
    readers += [partial(read_cluster, text) for text in texts]
    for read in readers:
        with pytest.raises(InputError, match=words):
            read()


@pytest.mark.parametrize("text", ["BZhours,gpus\n", "PAR12,gpus\n"[3:], "name,PK\n"])
def test_a_text_that_begins_like_a_packed_file_is_none(text: str) -> None:
    assert problem_of_text(text) is None
