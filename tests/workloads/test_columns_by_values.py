"""Columns by names and values; numbers, dates, units and zones as other programs write them."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.workloads.formats.foreign.dates import DayOrder, written_date
from maat.workloads.formats.foreign.durations import written_duration
from maat.workloads.formats.foreign.guesses import guessed_columns
from maat.workloads.formats.foreign.numbers import Decimal, number_by, shown_decimal
from maat.workloads.formats.foreign.questions import ReadingOptions, TraceQuestion
from maat.workloads.formats.foreign.units import SECONDS_OF, Unit, unit_in
from maat.workloads.import_report import Imported
from maat.workloads.importing import ImportSettings, import_workload

NOON = 1_772_452_800.0  # 2026-03-02 12:00:00 UTC


def read(text: str, **answers: object) -> Imported:
    options = ReadingOptions(**answers)  # type: ignore[arg-type]
    return import_workload(text, ImportSettings("csv", reading=options))


def question(text: str, **answers: object) -> TraceQuestion:
    with pytest.raises(TraceQuestion) as asked:
        read(text, **answers)
    return asked.value


def seconds(found: Imported) -> list[float]:
    return [job.work_scale for job in found.workload.jobs]


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        (
            "id,queued_at,restarts,started_at,pending_seconds,ended_at,gpu_count",
            "1,2026-03-02 08:00:00,3,2026-03-02 08:10:00,600,2026-03-02 09:10:00,4",
            {"submit": "queued_at", "start": "started_at", "end": "ended_at", "gpus": "gpu_count"},
        ),
        (
            "jobID,submitTime,gpu_util,numGpus,gpu_model,runTimeHours,wait_s",
            "1,0,87,4,A100,1.5,60",
            {
                "submit": "submitTime",
                "gpus": "numGpus",
                "gpu_type": "gpu_model",
                "duration": "runTimeHours",
            },
        ),
        (
            "job,arrival,start_host,end_reason,time_limit,elapsed_ms,gpus,gpus_requested",
            "1,0,node1,done,3600,60000,2,4",
            {"submit": "arrival", "duration": "elapsed_ms", "gpus": "gpus"},
        ),
    ],
)
def test_columns_are_known_by_the_words_of_their_names_and_by_their_values(
    header: str, row: str, expected: dict[str, str]
) -> None:
    guess = guessed_columns(f"{header}\n{row}\n")
    assert guess.questions == ()
    assert {name: guess.mapping[name] for name in expected} == expected
    needed = {"submit", "start", "end", "duration", "gpus", "gpu_type"}
    assert needed & guess.mapping.keys() == expected.keys()


@pytest.mark.parametrize(
    ("text", "about", "choices"),
    [
        (
            "submit_time,arrival_time,gpus,duration\n0,5,1,60\n",
            "submit",
            ("submit_time", "arrival_time"),
        ),
        ("submit,gpus,runtime,walltime\n0,1,60,90\n", "duration", ("runtime", "walltime")),
        ("submit,num_gpus,gpu_count,duration\n0,1,2,60\n", "gpus", ("num_gpus", "gpu_count")),
        ("submit,gpus,gpus,duration\n0,1,2,60\n", "gpus", ("gpus (column 2)", "gpus (column 3)")),
        ("submit,gpu,duration\n0,87,60\n0,93,60\n", "gpus", ("gpu",)),
        ("submit,plan_gpu,duration\n0,100,60\n0,50,60\n", "gpus", ("plan_gpu",)),
        ("when,gpus,duration\n0,1,60\n", "submit", ("when",)),
        ("submit,gpus,how long\n0,1,60\n", "duration", ("how long",)),
    ],
)
def test_an_unsure_guess_is_a_question_with_its_choices(
    text: str, about: str, choices: tuple[str, ...]
) -> None:
    asked = question(text)
    assert (asked.field, asked.about, asked.choices) == ("mapping", about, choices)
    assert f"--map {about}={choices[0]}" in asked.remedy


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("runtime_hours", Unit.HOURS),
        ("duration (min)", Unit.MINUTES),
        ("Duration [minutes]", Unit.MINUTES),
        ("elapsed_ms", Unit.MILLISECONDS),
        ("wait_s", Unit.SECONDS),
        ("elapsedMs", Unit.MILLISECONDS),
        ("DurationInHours", Unit.HOURS),
        ("duration_us", Unit.MICROSECONDS),
        ("run time d", Unit.DAYS),
        ("duration", None),
        ("min_runtime", None),
        ("numGPUs", None),
        ("minutes_run", Unit.MINUTES),
        ("hoursRun", Unit.HOURS),
    ],
)
def test_a_header_names_its_unit(name: str, unit: Unit | None) -> None:
    assert unit_in(name) is unit


def test_the_unit_of_the_header_counts() -> None:
    found = read("job,submit,gpus,duration_min\n1,2026-03-02 08:00:00,4,90\n")
    assert seconds(found) == [5400.0]
    assert "6 GPU-hours" in found.totals
    assert any("duration_min count as minutes, by the name" in rule for rule in found.rules)


def test_the_unit_is_held_against_start_and_end() -> None:
    row = "2026-03-02 08:00:00,2026-03-02 08:10:00,2026-03-02 09:10:00,4"
    assert seconds(read(f"submit,start,end,gpus,duration\n{row},3600\n")) == [3600.0]
    asked = question(f"submit,start,end,gpus,duration_hours\n{row},60\n")
    assert (asked.field, asked.about, asked.choices) == ("units", "duration", ("h", "min"))
    answer = {"duration": Unit.MINUTES}
    assert seconds(read(f"submit,start,end,gpus,duration_hours\n{row},60\n", units=answer)) == [
        3600
    ]


JOBS = (  # submitted, started and ended at a minute, ran so many minutes
    ("08:00", "08:10", "09:10", 60),
    ("08:00", "09:00", "09:45", 45),
    ("09:00", "09:00", "11:00", 120),
)


def jobs_that_ran(header: str, unit: float) -> str:
    """Write the jobs with their durations in a unit of so many seconds."""
    rows = []
    for submit, start, end, minutes in JOBS:
        moments = {"submit": submit, "start": start, "end": end, "queued": submit}
        known = {name: f"2026-03-02 {clock}:00" for name, clock in moments.items()}
        cells = known | {"gpus": "4", "run_time": f"{minutes * 60 / unit:g}"}
        rows.append(",".join(cells[name] for name in header.split(",")))
    return "\n".join([header, *rows, ""])


@pytest.mark.parametrize("header", ["submit,start,end,gpus,run_time", "submit,end,gpus,run_time"])
@pytest.mark.parametrize("unit", [Unit.MINUTES, Unit.HOURS, Unit.MILLISECONDS])
def test_durations_that_are_no_seconds_by_their_times_are_a_question(
    header: str, unit: Unit
) -> None:
    text = jobs_that_ran(header, SECONDS_OF[unit])
    asked = question(text)
    assert (asked.field, asked.about, asked.choices) == ("units", "duration", ("s", unit.value))
    expected = [3600.0, 2700.0, 7200.0]
    assert seconds(read(text, units={"duration": unit})) == pytest.approx(expected)
    assert seconds(read(jobs_that_ran(header, 1.0))) == expected


def test_times_that_no_column_was_mapped_to_are_evidence_too() -> None:
    text = jobs_that_ran("submit,start,end,gpus,run_time", 60.0)
    mapping = {"submit": "submit", "gpus": "gpus", "duration": "run_time"}
    with pytest.raises(TraceQuestion, match="would be in minutes by start and end"):
        import_workload(text, ImportSettings("csv", columns=mapping))


def test_jobs_that_never_ran_hide_no_unit() -> None:
    text = jobs_that_ran("submit,start,end,gpus,run_time", 60.0)
    never = "2026-03-02 08:00:00,,2026-03-02 08:30:00,4,0\n"
    assert question(text + 20 * never).about == "duration"


def test_whole_minutes_of_short_jobs_are_minutes() -> None:
    starts = [(f"2026-03-02 08:00:{second:02d}", second) for second in (5, 20, 40)]
    rows = [f"{start},{start},2026-03-02 08:03:00,1,2" for start, _ in starts]
    text = "\n".join(["submit,start,end,gpus,duration_min", *rows, ""])
    assert seconds(read(text)) == [120.0] * 3


def test_jobs_that_waited_long_show_no_other_unit() -> None:
    rows = [
        "2026-03-02 08:00:00,2026-03-02 08:01:30,1,60",
        "2026-03-02 08:00:00,2026-03-02 20:00:30,1,60",
        "2026-03-02 08:00:00,2026-03-02 08:03:30,1,120",
    ]
    found = read("\n".join(["submit,end,gpus,run_time", *rows, ""]))
    assert seconds(found) == [60.0, 60.0, 120.0]


def test_durations_of_many_days_without_a_unit_are_a_question() -> None:
    text = "submit,gpus,duration\n2026-03-02,1,3600000\n2026-03-02,1,7200000\n"
    asked = question(text)
    assert (asked.field, asked.about, asked.choices) == ("units", "duration", ("s", "ms", "us"))
    assert seconds(read(text, units={"duration": Unit.MILLISECONDS})) == [3600.0, 7200.0]


def test_durations_that_are_little_for_seconds_are_a_question() -> None:
    text = "submit,gpus,runtime\n2026-03-02,1,1.5\n2026-03-02,1,0.25\n"
    assert question(text).choices == ("s", "min", "h")
    assert seconds(read(text, units={"duration": Unit.HOURS})) == [5400.0, 900.0]


def test_nodes_are_not_proposed_as_gpus() -> None:
    asked = question("submit,duration,nodes,gpus_per_node\n2026-03-02,60,4,8\n")
    assert (asked.about, asked.choices) == ("gpus", ("COLUMN",))


def test_submissions_without_a_unit_beside_hours_are_a_question() -> None:
    text = "submit,gpus,runtime_h\n0,1,1.5\n3,1,2\n"
    assert question(text).about == "submit"
    found = read(text, units={"submit": Unit.HOURS})
    assert [job.submit_seconds for job in found.workload.jobs] == [0.0, 10_800.0]


def test_days_of_a_spreadsheet_are_a_question() -> None:
    text = "submit,gpus,duration\n46083.5,1,60\n46083.75,1,60\n"
    assert (question(text).about, question(text).choices) == ("submit", ("d", "s"))
    assert read(text, units={"submit": Unit.DAYS}).span_seconds == 21_600.0
    assert read(text, units={"submit": Unit.SECONDS}).span_seconds == 0.25
    both = "submit,start,end,gpus\n46083.25,46083.5,46083.75,1\n"
    assert seconds(read(both, units={"submit": Unit.DAYS})) == [21_600.0]


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("5400,5", Decimal.COMMA, 5400.5),
        ("1.234,5", Decimal.COMMA, 1234.5),
        ("1,234.5", Decimal.POINT, 1234.5),
        ("0,500", Decimal.COMMA, 0.5),
        ("1.234.567", Decimal.COMMA, 1_234_567.0),
        ("5400.125", Decimal.POINT, 5400.125),
        ("1.800", None, None),
        ("1,800", None, None),
        ("1 800", None, 1800.0),
        ("1\u202f800", None, 1800.0),
        ("5.4e3", None, 5400.0),
        ("12,34.5", None, None),
    ],
)
def test_a_number_shows_its_convention_or_none(
    text: str, decimal: Decimal | None, number: float | None
) -> None:
    assert shown_decimal(text) is decimal
    assert number_by(None, text) == number


@given(st.floats(0, 1e9, allow_nan=False), st.sampled_from(Decimal))
def test_a_number_is_read_as_it_was_written_by_its_convention(
    number: float, decimal: Decimal
) -> None:
    text = f"{number:,.2f}"
    if decimal is Decimal.COMMA:
        text = text.translate(str.maketrans(",.", ".,"))
    assert number_by(decimal, text) == float(f"{number:.2f}")


def test_one_decimal_comma_says_what_points_are() -> None:
    text = "job;submit;gpus;duration\n1;2026-03-02 08:00;4;5400,5\n2;2026-03-02 09:00;1;1.800\n"
    assert seconds(read(text)) == [5400.5, 1800.0]
    unclear = "job;submit;gpus;duration\n1;0;4;1.800\n2;0;1;60\n"
    assert question(unclear).choices == ("point", "comma")
    assert seconds(read(unclear, decimal=Decimal.POINT)) == [1.8, 60.0]
    assert seconds(read(unclear, decimal=Decimal.COMMA)) == [1800.0, 60.0]


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-02T12:00:00",
        "2026-03-02 12:00:00 UTC",
        "2026-03-02T12:00:00Z",
        "2026-03-02T13:00:00+01:00",
        "2026-03-02 13:00:00 +0100",
        "2026-03-02 12:00:00.000000+00:00",
        "2026/03/02 12:00",
        "20260302120000",
        "02.03.2026 12:00",
        "2.3.26 12:00",
        "3/2/2026 12:00:00 PM",
        "02-Mar-2026 12:00:00",
        "Mar 2, 2026 12:00 pm",
        "Mon Mar  2 12:00:00 2026",
        "2 March 2026 12:00:00",
        "2026-03-02 13:00:00 Europe/Berlin",
    ],
)
def test_a_date_is_read_as_programs_write_it(text: str) -> None:
    date = written_date(text, DayOrder.MONTH_FIRST)
    assert date is not None
    assert date.seconds(ZoneInfo("UTC")) == NOON


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
def test_seconds_since_1970_are_known_by_their_size(scale: int) -> None:
    times = [int(NOON + wait) * scale for wait in (0, 600, 4200)]
    found = read(f"submit,start,end,gpus\n{times[0]},{times[1]},{times[2]},1\n")
    assert seconds(found) == [3600.0]


def test_days_and_months_are_told_apart_by_all_dates_or_asked() -> None:
    rows = ["02/03/2026 12:00,1,60", "02/03/2026 13:00,1,60"]
    text = "\n".join(["submit,gpus,duration", *rows]) + "\n"
    assert question(text).choices == ("day-first", "month-first")
    shown = read(f"{text}25/03/2026 12:00,1,60\n")
    assert shown.span_seconds == 23 * 86_400.0
    assert read(text, dates=DayOrder.MONTH_FIRST).span_seconds == 3600.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 days 02:03:04", 93_784.0),
        ("0 days 00:01:00.5", 60.5),
        ("1 day, 2:03:04", 93_784.0),
        ("1-02:03:04", 93_784.0),
        ("1h30m", 5400.0),
        ("90 min", 5400.0),
        ("PT1H30M", 5400.0),
        ("P1DT2H", 93_600.0),
        ("-1:00:00", -3600.0),
        ("90:00", None),
        ("soon", None),
    ],
)
def test_a_duration_is_read_as_programs_write_it(text: str, expected: float | None) -> None:
    assert written_duration(text) == expected


BERLIN = """\
JobIDRaw|User|Account|Submit|Start|End|State|AllocTRES
1|u1|a|2025-10-26T01:00:00|2025-10-26T02:50:00|2025-10-26T02:10:00|COMPLETED|gres/gpu=1
2|u1|a|2025-10-26T01:00:00|2025-10-26T01:30:00|2025-10-26T04:30:00|COMPLETED|gres/gpu=1
3|u1|a|2025-10-26T01:00:00|2025-10-26T01:30:00|2025-10-26T02:30:00|COMPLETED|gres/gpu=1
"""


def test_local_times_are_read_in_their_zone_where_a_clock_was_set_back() -> None:
    options = ReadingOptions(zone="Europe/Berlin")
    found = import_workload(BERLIN, ImportSettings("sacct", reading=options))
    assert {job.name: job.work_scale for job in found.workload.jobs} == {"1": 1200.0, "2": 14_400.0}
    (unsure,) = found.dropped  # 02:30 stands twice in that night
    assert (unsure.rows, "ElapsedRaw" in unsure.remedy) == ([4], True)
    with pytest.raises(TraceQuestion) as asked:
        import_workload(BERLIN, ImportSettings("sacct"))
    assert asked.value.field == "zone"
    assert not any("zone" in rule for rule in found.rules)


@pytest.mark.parametrize(
    ("header", "row", "choices"),
    [
        (
            "submit_time,num_gpu,time_limit,elapsed",
            "2026-03-02 08:00:00,4,24:00:00,01:30",
            "elapsed",
        ),
        ("submit_time,num_gpu,gpu_hours,length", "2026-03-02 08:00:00,4,8,7200", "length"),
        ("submit_time,num_gpu,gpu_hours", "2026-03-02 08:00:00,4,8", None),
    ],
)
def test_a_column_that_means_something_else_by_its_name_is_not_proposed(
    header: str, row: str, choices: str | None
) -> None:
    asked = question(f"{header}\n{row}\n")
    assert asked.about == "duration"
    if choices is None:
        assert "Give a file with a column that says it" in str(asked)
    else:
        assert asked.choices == (choices,)


def test_a_job_that_had_not_ended_and_a_negative_duration_are_dropped_as_such() -> None:
    rows = ["1,0,1,60,RUNNING", "2,0,1,60,pending", "3,0,1,-5,done", "4,0,2,60,COMPLETED"]
    found = read("\n".join(["id,submit_s,gpus,duration_s,state", *rows, ""]))
    assert [job.name for job in found.workload.jobs] == ["4"]
    assert {each.cause: each.count for each in found.dropped} == {
        "it had not ended": 2,
        "duration_s is negative": 1,
    }
    still = "2026-03-02 08:00:00,2026-03-02 08:00:00"
    found = read(f"submit,start,end,gpus\n{still},,1\n{still},2026-03-02 09:00:00,1\n")
    assert [each.cause for each in found.dropped] == ["it had not ended"]
