"""Numbers as people read them, and rows that pages make of them. For forms: test_*_form.py."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.components.conditions import describe, trace_words
from frontend.components.events import details, event_words, with_state_before
from frontend.components.names import cut_name, isolated
from frontend.formatting import clock, column, duration, gpu_hours, number, percent, plural
from frontend.pages.cluster.reservations import reservations_table
from frontend.pages.job.parts import now
from frontend.pages.jobs.rows import row_of, wanted
from frontend.pages.rounds.summary import verdict_parts
from frontend.pages.simulation.callbacks import failed
from frontend.pages.simulation.side_by_side import partners_of
from frontend.pages.simulation.tables import runs_table
from frontend.pages.usage.parts import hours, money
from frontend.runs import run_names
from maat.api.reason_words import evidence_words, reason_words
from maat.client import ApiError, Unreachable
from maat.colours import OKABE_ITO
from maat.figures.theme import DARK, LIGHT, READABLE_CONTRAST, contrast, legible, readable_on
from maat.scheduling.events import TRANSITIONS, EventKind
from maat.scheduling.rounds import ChangeKind
from maat.vocabulary import JobState
from worker.jobs.journal import Cause


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (7980, "2 h 13 min"),
        (90000, "1 d 1 h"),
        (float("inf"), "–"),
        (float("nan"), "–"),
        (-90, "−1 min 30 s"),
    ],
)
def test_a_duration_reads_as_its_two_largest_units(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        (0, "0"),
        (1234.5, "1 234"),
        (12.345, "12.3"),
        (0.00012, "0.00012"),
        (1e-7, "1.00e-07"),
        (float("nan"), "–"),
        (999.6, "1 000"),
    ],
)
def test_a_number_keeps_three_figures_and_no_exponent_in_everyday_sizes(
    value: float | None, words: str
) -> None:
    assert number(value) == words


@pytest.mark.parametrize(
    ("share", "words"), [(0.5, "50 %"), (0.004, "0.4 %"), (0, "0 %"), (1, "100 %"), (None, "–")]
)
def test_percentages_have_no_decimals_unless_below_one(share: float | None, words: str) -> None:
    assert percent(share) == words


def test_gpu_hours_have_one_decimal_and_times_are_utc() -> None:
    assert gpu_hours(1234.56) == "1 234.6"
    assert [hours(value) for value in (999.94, 1234.56)] == ["999.9", "1 235"]
    assert money("1234567.50", "EUR") == "1 234 567.50 EUR"
    assert clock("2026-11-20T12:03:04+02:00") == "20 Nov 10:03:04"
    assert plural(1, "job") == "1 job"
    assert plural(2, "job") == "2 jobs"


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_greys_accent_and_the_inks_of_gpu_types_can_be_read(scheme: Any) -> None:
    for ink in (scheme.text, scheme.muted, scheme.accent, scheme.danger):
        assert contrast(ink, scheme.card) >= READABLE_CONTRAST
        assert contrast(ink, scheme.paper) >= READABLE_CONTRAST
    for colour in OKABE_ITO:
        assert contrast(legible(colour, scheme.name), scheme.card) >= READABLE_CONTRAST
        assert contrast(readable_on(colour), colour) >= READABLE_CONTRAST


def test_what_a_job_wants_reads_as_a_range() -> None:
    def job(**given: Any) -> dict[str, Any]:
        return {
            "adaptivity": "adaptive",
            "gpu_count": None,
            "min_gpus": 1,
            "max_gpus": None,
            **given,
        }

    assert wanted(job()) == "1 or more"
    assert wanted(job(max_gpus=16)) == "1 to 16"
    assert wanted(job(min_gpus=4, max_gpus=4)) == "4"
    assert wanted(job(adaptivity="rigid", gpu_count=8)) == "8"


@pytest.mark.parametrize("state", ["starting", "restarting"])
def test_a_job_that_has_not_run_on_its_gpus_yet_is_said_to_stand_still(state: str) -> None:
    job: dict[str, Any] = {
        "state": state,
        "allocation": None,
        "progress": 0.5,
        "runs_command": False,
        "remaining_seconds": None,
        "goodput": None,
        "wait_seconds": 61.0,
        "pause_requested": False,
        "deadline": None,
        "gpu_hours": 1.0,
        "restarts": 1,
    }
    assert f"none yet here: it is {state}" in str(now(job))  # type: ignore[arg-type]
    runs = str(now({**job, "state": "running", "goodput": 60.0, "remaining_seconds": 90.0}))  # type: ignore[arg-type]
    assert "60 effective samples/s" in runs
    assert "1 min 30 s" in runs
    assert "none yet" not in runs


def test_a_row_keeps_the_name_as_text_and_links_by_id() -> None:
    job = {
        "id": "job_1",
        "name": "<script>alert(1)</script>",
        "state": "pending",
        "model": "bert",
        "tenant": "default",
        "adaptivity": "adaptive",
        "gpu_count": None,
        "min_gpus": 1,
        "max_gpus": 4,
        "allocation": None,
        "reason": None,
        "progress": 0.0,
        "runs_command": False,
        "remaining_seconds": None,
        "forecast": None,
        "wait_seconds": 61.0,
        "gpu_hours": 0.0,
        "restarts": 0,
        "submitted_at": "2026-11-20T12:00:00Z",
    }

    row = row_of(job)
    assert row["progress_share"] == 0.0
    assert row_of({**job, "runs_command": True})["progress_share"] is None  # it may tell nothing

    assert (row["name"], row["href"], row["have"], row["wait"]) == (
        "<script>alert(1)</script>",
        "/jobs/job_1",
        "–",
        "1 min 1 s",
    )


def test_only_operators_get_buttons_to_remove_a_reservation() -> None:
    one = {
        "id": "res_1",
        "gpu_type": "t4",
        "gpu_count": 2,
        "tenant": "vision",
        "job_id": None,
        "state": "active",
        "start_at": "",
        "end_at": None,
    }

    assert "Remove" in str(reservations_table([one], may=True))
    assert "Remove" not in str(reservations_table([one], may=False))
    assert "Nothing is reserved" in str(reservations_table([], may=False))


@pytest.mark.parametrize(
    ("record", "ended"),
    [
        ({"report": {"out_of_time": True}}, True),
        ({"report": {"out_of_time": False}}, False),
        ({"report": {}}, False),
        (None, False),
    ],
)
def test_a_round_whose_solver_was_ended_by_a_clock_says_so(record: Any, ended: bool) -> None:
    times = dict.fromkeys(("solve_seconds", "policy_seconds", "place_seconds"), 0.1)
    counts = dict.fromkeys(
        ("gpus_used", "gpus_total", "running_jobs", "pending_jobs", "changes"), 1
    )
    words = dict.fromkeys(("policy", "placer", "status", "method", "message"), "")
    entry = {
        **times,
        **counts,
        **words,
        "objective": 1.0,
        "gap": 0.01,
        "prices": {},
        "fallback": False,
        "record": record,
    }

    assert ("A clock ended the solver" in str(verdict_parts(entry))) is ended


def test_a_simulation_whose_answer_failed_is_asked_for_again_and_one_that_there_is_none_of_is_not() -> (  # noqa: E501
    None
):
    for passing in (
        Unreachable("no answer"),
        ApiError(status=503, title="The database is busy", retryable=True),
    ):
        assert not failed(passing, "light")["seen"].startswith("over")
    assert failed(ApiError(status=404, title="No such simulation"), "light")["seen"].startswith(
        "over"
    )


def test_every_event_that_maat_tells_of_a_job_has_words_without_the_names_of_the_api() -> None:
    changes = [event_words("allocated", {"change": kind.value}) for kind in ChangeKind]
    kinds = [event_words(kind.value, {}) for kind in EventKind if kind is not EventKind.STATE]
    causes = [
        event_words("state", {"cause": cause}, state="paused", before="running")
        for cause in (*Cause, EventKind.NODE_FAILED.value)
    ]

    assert changes[0] == "got its first GPUs"
    for said in (changes, kinds, causes):
        assert len(set(said)) == len(said)
    names = {*ChangeKind, *EventKind, *(f"from running to paused: {cause}" for cause in Cause)}
    assert not names & {*changes, *kinds, *causes}
    moved = {"change": "migrate", "gpu_type": "a100", "gpu_count": 4, "node_count": 2}
    assert details(moved) == "4 × a100 on 2 nodes"
    refused = {"field": "gpu_count", "problem": "too few"}
    assert details(refused) == "field gpu_count, problem too few"
    ended = {"reason": "Rank 0 ended with exit code 1.", "exit_codes": {"0": 1, "1": -9}}
    words = "reason Rank 0 ended with exit code 1, exit code 1 of rank 0, -9 of rank 1"
    assert details(ended) == words


def test_an_event_that_changes_a_state_tells_from_what_to_what_and_why() -> None:
    lived: list[tuple[str | None, dict[str, Any]]] = [
        ("submitted", {}),
        ("profiling", {}),
        ("pending", {}),
        ("starting", {"change": "start"}),
        ("running", {}),
        (None, {"change": "batch"}),
        ("preempted", {"cause": "node-failed"}),
        ("restarting", {"change": "resume"}),
        ("failed", {}),
    ]
    events: list[Any] = [
        {"kind": "state" if state else "allocated", "state": state, "data": data}
        for state, data in lived
    ]

    told = [
        event_words(event["kind"], event["data"], state=event["state"], before=before)
        for event, before in with_state_before(events)
    ]

    assert told == [
        "submitted",
        "from submitted to profiling: its speed is measured first",
        "from profiling to pending: it waits for GPUs",
        "from pending to starting: got its first GPUs",
        "from starting to running: it has started on its GPUs",
        "got another batch size",
        "from running to preempted: its node failed",
        "from preempted to restarting: got GPUs again",
        "from restarting to failed",
    ]


def test_every_change_of_a_state_that_may_happen_by_itself_has_its_reason_in_words() -> None:
    by_cause_alone = {JobState.FAILED, JobState.PREEMPTED, JobState.PAUSED, JobState.RESTARTING}
    passings = [
        event_words("state", {}, state=after, before=before)
        for before, following in TRANSITIONS.items()
        for after in following - by_cause_alone
    ]

    assert [words for words in passings if ": " not in words] == []


def test_runs_are_named_by_what_tells_them_apart() -> None:
    def run(policy: str, seed: int, placer: str = "whole-node", trace: int = 0) -> dict[str, Any]:
        return {"name": f"{policy} + {placer}", "seed": seed, "trace": trace}

    assert run_names([run("sia", 0), run("fifo", 0)]) == ["sia + whole-node", "fifo + whole-node"]
    assert run_names([run("sia", 0), run("sia", 1)]) == [
        "sia + whole-node, seed 0",
        "sia + whole-node, seed 1",
    ]
    assert run_names([run("las", 0), run("las", 0, "pal")]) == ["las + whole-node", "las + pal"]
    assert run_names([run("las", 0), run("las", 0, trace=1)]) == [
        "las + whole-node, trace 1",
        "las + whole-node, trace 2",
    ]


def test_a_run_is_set_against_runs_of_its_own_trace_those_of_its_seed_first() -> None:
    runs = [
        {"id": f"{trace}{seed}{policy}", "trace": trace, "seed": seed}
        for trace in (0, 1)
        for seed in (0, 1)
        for policy in "ab"
    ]

    assert partners_of(runs[2], runs) == ["01b", "00a", "00b"]


def test_a_run_that_finished_no_job_has_a_dash_for_its_completion_time_and_says_how_many_are_unfinished() -> (  # noqa: E501
    None
):
    def run(policy: str, **summary: float) -> dict[str, Any]:
        return {
            "id": policy,
            "name": policy,
            "seed": 0,
            "trace": 0,
            "state": "succeeded",
            "error": None,
            "summary": summary,
        }

    runs = [
        run("sia", jobs=4, unfinished=0, avg_jct_hours=1.5),
        run("fifo", jobs=4, unfinished=4, avg_jct_hours=0.0),
    ]

    head, body = runs_table(runs).children

    assert [cell.children for cell in head.children.children] == [
        "Run",
        "State",
        "Unfinished",
        "Mean JCT (h)",
    ]
    assert [row.children[-1].children for row in body.children] == ["1.50", "–"]


def test_a_stored_trace_is_told_in_words() -> None:
    assert trace_words({"kind": "csv", "text_bytes": 135}) == "CSV file of 135 bytes"
    asked = {"kind": "philly", "jobs": 40, "arrive_hours": 4.0, "seed": None}
    assert trace_words(asked) == "philly: jobs 40, arrive hours 4.0"
    assert trace_words({"kind": "philly", "seed": None}) == "philly"
    window = {"start": "2026-11-26T10:00:00Z", "end": "2026-11-27T10:00:00Z", "submitted": 3}
    replayed = {"kind": "cluster", "cluster_id": "clu_1", "window": {**window, "cut_short": 0}}
    assert trace_words(replayed) == (
        "what a cluster did from 26 Nov 10:00:00 to 27 Nov 10:00:00; jobs: 3 came in it"
    )


def test_how_long_jobs_stay_is_told_in_words() -> None:
    assert describe({"least_stay_seconds": 1800.0, "most_moves_per_hour": 4}) == [
        ("Least stay", "30 min"),
        ("Most moves in an hour", "4"),
    ]


def test_shared_gpus_and_tuned_jobs_are_told_in_words() -> None:
    request = {"jobs_per_gpu": 2, "interference": 1.25, "tuned": "any-pair", "tuned_gpus": 64}

    assert describe(request) == [
        ("Tuned jobs", "any-pair, at most 64 GPUs"),
        ("Jobs per GPU", "up to 2, interference 1.25"),
    ]
    runs = [{"policy": "gavel", "tuned": "any-pair"}, {"policy": "sia", "tuned": None}]
    assert describe({"runs": runs, "measured_jobs": "3-6"}) == [
        ("Tuned under single policies", "any-pair under gavel"),
        ("Figures", "of jobs 3-6 in order of submission"),
    ]
    assert (
        describe({"jobs_per_gpu": 1, "interference": None, "tuned": None, "tuned_gpus": 16}) == []
    )


def test_what_was_simulated_tells_the_conditions_that_are_not_the_usual_ones() -> None:
    reserved = {
        "gpu_type": "a100",
        "gpu_count": 4,
        "tenant": "vision",
        "job": None,
        "start_seconds": 0.0,
        "end_seconds": 7200.0,
    }
    request = {
        "profiling": None,
        "rigid_share": 0.5,
        "strong_scaling_share": 0.0,
        "failures": None,
        "reservations": [reserved],
    }

    assert describe(request) == [
        ("Share of jobs", "0.5 rigid"),
        ("Reserved", "4 × a100 for tenant vision, until 2 h"),
    ]
    assert describe({"profiling": None, "failures": None, "reservations": []}) == []


def test_failures_have_columns_only_where_a_node_failed() -> None:
    def heads(**summary: float) -> list[Any]:
        run = {
            "id": "r",
            "name": "sia",
            "seed": 0,
            "trace": 0,
            "state": "succeeded",
            "error": None,
            "summary": summary,
        }
        return [cell.children for cell in runs_table([run]).children[0].children.children]

    assert heads(failures=0, interruptions=0) == ["Run", "State"]
    assert heads(failures=2, interruptions=1, lost_gpu_hours=0.5) == [
        "Run",
        "State",
        "Failed nodes",
        "Interruptions",
        "GPU-hours lost",
    ]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([22.0, 26.4], ["22.0", "26.4"]),
        ([0.0016, 0.00083, 0.0], ["0.00160", "0.00083", "0.00000"]),
        ([1173.0, 2048.0, 3.0], ["1 173", "2 048", "3"]),
        ([1173.2, 2.5, None], ["1 173.2", "2.5", "–"]),
        ([0.0, 0.0], ["0", "0"]),
        ([None], ["–"]),
    ],
)
def test_numbers_below_one_another_have_the_same_decimals(
    values: list[float | None], shown: list[str]
) -> None:
    assert column(values) == shown


def test_what_is_behind_a_reason_is_said_in_words_with_its_unit() -> None:
    evidence = {
        "needed_gpus": 16,
        "binding_limit": "capacity:t4",
        "restarting": 0,
        "lease_seconds_left": 130.0,
        "batch_size": None,
    }

    assert evidence_words(evidence) == [
        ("GPUs that it needs at least", "16"),
        ("held back by", "too few t4 GPUs are left"),
        ("is restarting", "no"),
        ("lease left", "2 min 10 s"),
    ]
    assert reason_words("WAITING_CAPACITY") == "waits for GPUs"
    assert reason_words("HELD_BY_USER") == "held by user"


def test_what_is_worth_less_was_held_back_by_nothing_else() -> None:
    evidence = {"value": 2.0, "runner_up_value": 3.0, "runner_up_limit": "capacity:t4"}

    assert ("next best: held back by", "too few t4 GPUs are left") in evidence_words(evidence)
    less = evidence_words(evidence | {"runner_up_value": 1.5})
    assert [name for name, _ in less] == [
        "what it is worth to the objective",
        "next best: what it is worth",
    ]


def test_what_it_has_is_not_told_again_as_what_it_would_have_alone() -> None:
    evidence = {"gpu_type": "a100", "gpu_count": 16, "alone_gpu_type": "a100"}
    limit = {"alone_limit": "capacity:a100"}

    same = evidence_words({**evidence, "alone_gpu_count": 16, **limit})
    assert [name for name, _ in same] == ["GPU type", "GPUs"]
    more = evidence_words({**evidence, "alone_gpu_count": 32, **limit})
    assert ("alone: held back by", "too few a100 GPUs are left") in more


def test_a_round_duration_of_one_policy_is_said_of_it() -> None:
    runs = [
        {"policy": "sia", "round_seconds": 300.0},
        {"policy": "sia", "round_seconds": 300.0},
        {"policy": "fifo", "round_seconds": None},
    ]

    said = dict(describe({"round_seconds": 60.0, "runs": runs}))

    assert said["Round duration"] == "60 s, sia 300 s"


def test_a_long_name_is_cut_and_can_be_had_whole() -> None:
    assert cut_name("vision") == "vision"
    cut: Any = cut_name("v" * 200)
    assert (cut.children, cut.title, cut.tabIndex) == ("v" * 200, "v" * 200, 0)


def test_a_mark_of_direction_in_a_name_ends_with_it() -> None:
    assert isolated("\u202eevil") == "\u2068\u202eevil\u2069"
