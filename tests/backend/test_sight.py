"""Tests of what users see of other tenants' jobs: anonymous keys, true sums, no names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.accounts.permissions import Role
from backend.rounds.record_view import record_seen
from backend.sight import WHOLE, Sight, jobs_named_in
from backend.simulations.figure_data import slowed_jobs
from backend.simulations.seen import result_seen, series_seen, summary_seen

RECORD: dict[str, Any] = {
    "round": 7,
    "at_seconds": 420.0,
    "job_ids": ["job_own", "job_red", "job_late"],
    "job_names": ["own", "secret", "later"],
    "configurations": [
        {"gpu_type": "t4", "gpu_count": 1, "node_count": 1},
        {"gpu_type": "t4", "gpu_count": 2, "node_count": 1},
    ],
    "pairs": {
        "job": [0, 0, 1, 1, 2],
        "column": [0, 1, 0, 1, 0],
        "goodput": [5.0, 9.0, 4.0, 7.0, 3.0],
        "utility": [1.0, 1.8, 1.0, 1.7, 1.0],
    },
    "chosen": [0, 1, None],
    "grants": {
        "job_own": {
            "gpu_type": "t4",
            "gpu_count": 1,
            "share_with": ["job_red"],
            "batch": {"total_batch_size": 32},
        },
        "job_red": {
            "gpu_type": "t4",
            "gpu_count": 2,
            "share_with": ["job_own"],
            "batch": {"total_batch_size": 64},
        },
    },
    "reasons": {
        "job_own": {
            "code": "GRANTED",
            "sentence": "It has.",
            "evidence": {"gpu_type": "t4", "shares_with": "job_red, job_own"},
        },
        "job_red": {
            "code": "GRANTED",
            "sentence": "It has.",
            "evidence": {"goodput_samples_per_second": 7.0},
        },
        "job_late": {
            "code": "WAITING_RESERVATION",
            "sentence": "For red.",
            "evidence": {"binding_limit": "reservation:t4:tenant red"},
        },
    },
    "report": {
        "status": "optimal",
        "message": "job_red stays",
        "prices": {"capacity:t4": 0.5, "reservation:t4:tenant red": 0.25},
    },
    "seconds": {"policy": 0.1, "place": 0.1},
    "added_later": "secret",
}


def blue(*own: str) -> Sight:
    return Sight({"job_own", *own}, tenant="blue")


def test_the_parts_of_one_job_stay_together_under_one_key() -> None:
    seen = record_seen(RECORD, blue())
    assert seen["job_ids"] == ["job_own", "other-1", "other-2"]
    assert seen["job_names"] == ["own", "another tenant's job", "another tenant's job"]
    assert (list(seen["grants"]), list(seen["reasons"])) == (
        ["job_own", "other-1"],
        ["job_own", "other-1", "other-2"],
    )
    assert seen["grants"]["job_own"]["share_with"] == ["other-1"]
    assert seen["grants"]["other-1"]["share_with"] == ["job_own"]
    assert seen["reasons"]["job_own"]["evidence"] == {
        "gpu_type": "t4",
        "shares_with": "other-1, job_own",
    }
    assert seen["others"] == [1, 2]


def test_gpus_prices_and_the_objective_of_a_round_stay_true() -> None:
    seen = record_seen(RECORD, blue())
    pairs = list(
        zip(seen["pairs"]["job"], seen["pairs"]["column"], seen["pairs"]["utility"], strict=True)
    )
    assert sum(worth for row, column, worth in pairs if seen["chosen"][row] == column) == 1.0 + 1.7
    assert sum(grant["gpu_count"] for grant in seen["grants"].values()) == 3
    assert seen["report"]["prices"] == {"capacity:t4": 0.5, "reservation:t4:another tenant": 0.25}


def test_what_another_tenants_job_makes_of_gpus_and_why_are_not_shown() -> None:
    seen = record_seen(RECORD, blue())
    assert [
        goodput
        for row, goodput in zip(seen["pairs"]["job"], seen["pairs"]["goodput"], strict=True)
        if row
    ] == [None]
    assert seen["grants"]["other-1"]["batch"] is None
    assert [seen["reasons"][key]["evidence"] for key in ("other-1", "other-2")] == [{}, {}]
    assert (
        seen["reasons"]["other-2"]["sentence"] == "GPUs that it could use are reserved for others."
    )
    assert [
        word for word in ("secret", "job_red", "tenant red", "later") if word in str(seen)
    ] == []


def test_who_may_see_all_tenants_sees_the_whole_record() -> None:
    seen = record_seen(RECORD, WHOLE)
    assert seen["others"] == []
    assert {name: seen[name] for name in RECORD} == RECORD


def test_a_row_says_what_came_second_and_only_to_who_may_see_the_job() -> None:
    column = RECORD["configurations"][0]
    second = {f"runner_up_{name}": column[name] for name in ("gpu_type", "gpu_count")} | {
        "gpu_type": "t4",
        "gpu_count": 4,
    }
    why = {job: {**one, "evidence": second} for job, one in RECORD["reasons"].items()}
    whole = record_seen({**RECORD, "reasons": why}, WHOLE)
    assert whole["runner_up"] == [0] * len(why)
    assert [words[:1] for words in whole["why"]] == [["It has 4 t4."], ["It has 4 t4."], []]
    seen = record_seen({**RECORD, "reasons": why}, blue())
    assert (seen["runner_up"], seen["why"][1:]) == ([0, None, None], [[], []])


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("capacity:t4", "capacity:t4"),
        ("shape:t4>=2", "shape:t4>=2"),
        ("t4", "t4"),
        ("reservation:t4:tenant blue", "reservation:t4:tenant blue"),
        ("reservation:t4:tenant red", "reservation:t4:another tenant"),
        (
            "reservation:t4:tenant blue + red: tenant",
            "reservation:t4:tenant blue + a job of another tenant",
        ),
        (
            "reservation:t4:job job_own + job job_red",
            "reservation:t4:job job_own + a job of another tenant",
        ),
        ("quota:blue", "quota:blue"),
        ("quota:red", "quota:another tenant"),
        ("quota:a100:blue", "quota:a100:blue"),
        ("quota:a100:red", "quota:a100:another tenant"),
        ("ceiling:a100:blue", "ceiling:a100:blue"),
        ("ceiling:a100:red", "ceiling:a100:another tenant"),
        ("priority:a100:high:red", "priority:a100:high:another tenant"),
        ("priority:a100:high:", "priority:a100:high:"),
        ("quota:blue and red", "quota:another tenant"),
        ("added-later:red", "added-later:another tenant"),
    ],
)
def test_a_limit_names_nobody_but_the_reader(limit: str, told: str) -> None:
    assert blue().limit(limit) == told
    assert WHOLE.limit(limit) == limit


def test_no_price_is_lost_where_limits_are_told_alike() -> None:
    prices = {
        "reservation:t4:tenant red": 1.0,
        "reservation:t4:tenant green": 2.0,
        "reservation:t4:tenant grey": 3.0,
    }
    told = blue().limits(prices)
    assert sorted(told.values()) == [1.0, 2.0, 3.0]
    assert list(told)[:2] == ["reservation:t4:another tenant", "reservation:t4:another tenant (2)"]


def test_ids_are_found_wherever_they_stand() -> None:
    assert set(jobs_named_in({"job_a": ["job job_b + job job_c", 1, None, {"x": "no_job_d"}]})) == {
        "job_a",
        "job_b",
        "job_c",
    }


RESULT: dict[str, Any] = {
    "summary": {
        "jobs": 3,
        "unfinished_because": {
            "job_red": "GPUs that it could use are reserved for others: t4 for job job_own.",
            "job_own": "GPUs that it could use are reserved for others: t4 for tenant red.",
        },
        "notes": [
            "The locality penalty of bert counts for nothing: no job is of it.",
            "The solver's time ran out in 1 rounds.",
        ],
    },
    "jobs": [
        {
            "name": "job_late",
            "model": "bert",
            "submit": 9.0,
            "jct": 1.0,
            "gpu_hours_by_type": {"t4": 1.0},
        },
        {
            "name": "job_own",
            "model": "ncf",
            "submit": 5.0,
            "jct": 2.0,
            "gpu_hours_by_type": {"t4": 2.0},
        },
        {
            "name": "job_red",
            "model": "yolov3",
            "submit": 1.0,
            "jct": None,
            "gpu_hours_by_type": {"t4": 4.0, "a100": 8.0},
        },
    ],
    "gpu_hours_by_model_type": {
        "bert": {"t4": 1.0},
        "ncf": {"t4": 2.0},
        "yolov3": {"t4": 4.0, "a100": 8.0},
    },
    "contention": [[0.0, 3]],
    "nodes": [[0.0, 2]],
    "efficiency": [[0.0, 0.5]],
    "allocations": {
        "job_red": [{"gpu_type": "t4", "gpu_count": 2, "total_batch_size": 64}],
        "job_own": [{"total_batch_size": 32}],
    },
}


def test_a_result_keeps_its_sums_and_names_no_other_job_or_model() -> None:
    seen = result_seen(RESULT, blue())
    assert [(job["name"], job["model"], job["jct"]) for job in seen["jobs"]] == [
        ("other-2", "another tenant's", 1.0),
        ("job_own", "ncf", 2.0),
        ("other-1", "another tenant's", None),
    ]
    assert seen["gpu_hours_by_model_type"] == {
        "another tenant's": {"t4": 5.0, "a100": 8.0},
        "ncf": {"t4": 2.0},
    }
    assert seen["allocations"] == {
        "other-1": [{"gpu_type": "t4", "gpu_count": 2, "total_batch_size": None}],
        "job_own": [{"total_batch_size": 32}],
    }
    assert (seen["contention"], seen["nodes"]) == (RESULT["contention"], RESULT["nodes"])
    assert "efficiency" not in seen, "where one job trains, it is that job's"


def test_a_chart_of_slowdowns_is_of_jobs_that_the_reader_may_see() -> None:
    slowed = [{**job, "placement_slowdown": 1.5} for job in RESULT["jobs"]]
    seen = result_seen({**RESULT, "jobs": slowed}, blue())
    own = [job["name"] for job in seen["jobs"] if "placement_slowdown" in job]
    assert own == ["job_own"], "by its model and class another's would be known"
    assert slowed_jobs(seen["jobs"]) == {"points": [[1.5, 1.0]], "known": 1, "jobs": 1}


def test_the_series_of_anothers_job_tell_its_gpus_alone() -> None:
    life = {
        "time": [1.0, 2.0],
        "end": 3.0,
        "gpu_type": [None, "t4"],
        "gpu_count": [0, 2],
        "node_count": [0, 1],
        "total_batch_size": [None, 64],
        "efficiency": [None, 0.5],
        "locality": [None, 1.0],
        "variability": [None, 1.2],
        "slowdown": [None, 1.2],
    }
    sight = blue()
    result_seen(RESULT, sight)
    seen = series_seen({"job_red": life, "job_own": life}, sight)
    assert seen["job_own"] == life
    theirs = seen["other-1"]
    hidden = ("total_batch_size", "efficiency", "locality", "variability", "slowdown")
    assert [theirs[name] for name in hidden] == [[None, None]] * 5
    assert {name: theirs[name] for name in life if name not in hidden} == {
        name: life[name] for name in life if name not in hidden
    }


def test_a_summary_tells_no_models_by_what_it_says_of_none() -> None:
    seen = summary_seen(RESULT["summary"], blue())
    assert seen["notes"] == ["The solver's time ran out in 1 rounds."]
    assert seen["unfinished_because"] == {
        "other-1": "The reason is not shown.",
        "job_own": "GPUs that it could use are reserved for others: t4 for another tenant.",
    }
    assert summary_seen(RESULT["summary"], WHOLE) == RESULT["summary"]


# ---- refusals

SIMULATIONS, SWEEPS = "/api/v1/simulations", "/api/v1/sweeps"
HISTORY = {"kind": "cluster", "cluster_id": "demo"}
VARY = [{"name": "round_seconds", "values": [60]}]
MakeClient = Callable[..., TestClient]


def submitted(client: TestClient, **fields: Any) -> str:
    answer = client.post("/api/v1/jobs", json={"name": "train", "model": "bert", **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (SIMULATIONS, {"traces": [HISTORY], "runs": [{"policy": "fifo"}]}),
        (SWEEPS, {"trace": HISTORY, "policy": "fifo", "vary": VARY}),
    ],
)
def test_a_history_of_which_no_job_can_run_is_refused_without_naming_others_jobs(
    url: str, body: dict[str, Any], client_as: MakeClient
) -> None:
    red, one = client_as(Role.SUBMITTER, tenant="red"), client_as(Role.SUBMITTER, tenant="blue")
    theirs = submitted(red, model="yolov3", gpu_types=["rtx"])
    asked = {"name": "s", "cluster": "t4=2x4", **body}
    over_theirs = one.post(url, json=asked)
    submitted(one, gpu_types=["a100"])
    over_both = one.post(url, json=asked)
    assert (over_theirs.status_code, over_both.status_code) == (422, 422)
    assert [word for word in ("yolov3", "rtx", theirs) if word in over_theirs.text] == []
    assert [word for word in ("yolov3", theirs) if word in over_both.text] == []
    assert "bert" in over_both.text, "one's own is named"
    assert over_theirs.json()["errors"][0]["code"] == "another_tenants_job"
    submitted(one)
    assert one.post(url, json=asked).status_code == 202, "jobs bound elsewhere do not run"


def test_gpus_are_reserved_for_anothers_job_no_more_than_for_one_that_there_is_not(
    client_as: MakeClient,
) -> None:
    theirs = submitted(client_as(Role.SUBMITTER, tenant="red"))
    one = client_as(Role.SUBMITTER, tenant="blue")
    submitted(one)
    told = []
    for job in (theirs, "job_nobody"):
        held = [{"gpu_type": "t4", "gpu_count": 1, "job": job}]
        body = {
            "name": "s",
            "traces": [HISTORY],
            "cluster": "t4=2x4",
            "runs": [{}],
            "reservations": held,
        }
        answer = one.post(SIMULATIONS, json=body)
        assert answer.status_code == 422
        told.append([{**error, "value": None} for error in answer.json()["errors"]])
    assert told[0] == told[1]


def test_an_admins_simulation_names_other_tenants_to_the_admin_and_not_to_the_admins_tenant(
    client: TestClient, client_as: MakeClient
) -> None:
    theirs = submitted(client_as(Role.SUBMITTER, tenant="red"))
    held = [
        {"gpu_type": "t4", "gpu_count": 1, "job": theirs},
        {"gpu_type": "t4", "gpu_count": 1, "tenant": "red"},
    ]
    body = {
        "name": "s",
        "traces": [HISTORY],
        "cluster": "t4=2x4",
        "runs": [{}],
        "reservations": held,
    }
    made = client.post(SIMULATIONS, json=body).json()
    assert [(one["job"], one["tenant"]) for one in made["request"]["reservations"]] == [
        (theirs, None),
        (None, "red"),
    ]
    seen = client_as(Role.VIEWER).get(f"{SIMULATIONS}/{made['id']}").json()
    assert [(one["job"], one["tenant"]) for one in seen["request"]["reservations"]] == [
        ("other-1", None),
        (None, "another tenant"),
    ]


def test_work_takes_measurements_of_its_own_tenant_alone_for_all_of_that_tenant_read_it(
    client: TestClient, client_as: MakeClient
) -> None:
    pairs = {"name": "p.csv", "text": "victim,partner,gpu_count,slowdown\nbert,bert,1,1.5\n"}
    body = {"kind": "interference", "name": "theirs", "files": [pairs]}
    made = client_as(Role.SUBMITTER, tenant="red").post("/api/v1/measurements", json=body).json()
    asked = {
        "name": "s",
        "traces": [
            {
                "kind": "csv",
                "text": "name,time,application,num_replicas,batch_size\na,0,bert,1,24\n",
            }
        ],
    }
    answer = client.post(
        SIMULATIONS,
        json={
            **asked,
            "cluster": "t4=1x4",
            "jobs_per_gpu": 2,
            "interference": made["id"],
            "runs": [{}],
        },
    )
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["code"] == "unknown_measurement"
