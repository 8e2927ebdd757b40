"""Results of simulations in the API: of runs, of charts, of comparisons."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from simulation_requests import SIMULATIONS, body

from backend.database import Database
from backend.models import SimulationRun


def finish(
    database: Database, run_id: str, hours: list[float | None], *, measured_from: int = 0
) -> None:
    """As the worker keeps a run whose jobs took that long."""
    jobs = [
        {
            "name": str(i),
            "jct": None if jct is None else 3600 * jct,
            "measured": i >= measured_from,
        }
        for i, jct in enumerate(hours)
    ]
    done = [jct for jct in hours if jct is not None]
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, run_id)
        run.state, run.summary = (
            "succeeded",
            {"jobs": len(jobs), "avg_jct_hours": sum(done) / len(done)},
        )
        run.result = {
            "jobs": jobs,
            "fairness": {"worst_rho": 1.0, "unfair_fraction": 0.0, "jobs": len(done)},
        }


def test_a_result_is_there_once_its_run_has_one(client: TestClient, database: Database) -> None:
    simulation = client.post(SIMULATIONS, json=body()).json()
    run_id = simulation["runs"][0]["id"]
    address = f"{SIMULATIONS}/{simulation['id']}/runs/{run_id}/result"
    early = client.get(address)
    assert early.status_code == 409
    assert "queued" in early.json()["detail"]
    result = {"summary": {"avg_jct_hours": 0.5}, "jobs": [], "contention": [[0.0, 1.0]]}
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, run_id)
        run.state, run.summary, run.result = "succeeded", result["summary"], result
    nobody = {"rule": "mean-of-ratios", "worst_rho": None, "unfair_fraction": None, "jobs": 0}
    bare = {"allocations": {}, "series": {}, "fairness": nobody}
    assert client.get(address).json() == result | bare
    assert client.get(f"{SIMULATIONS}/{simulation['id']}").json()["runs"][0]["summary"] == {
        "avg_jct_hours": 0.5
    }
    assert client.get(f"{SIMULATIONS}/{simulation['id']}/runs/run_none/result").status_code == 404


def test_a_result_holds_the_allocations_of_chosen_jobs_alone(
    client: TestClient, database: Database
) -> None:
    simulation = client.post(SIMULATIONS, json=body()).json()
    run_id = simulation["runs"][0]["id"]
    span = {
        "start": 0.0,
        "end": 60.0,
        "gpu_type": "t4",
        "gpu_count": 1,
        "node_count": 1,
        "total_batch_size": 128,
    }
    names = ("a", "b, c", "d")
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, run_id)
        run.state = "succeeded"
        run.result = {
            "summary": {},
            "jobs": [{"name": name} for name in names],
            "allocations": {name: [span] for name in names},
        }
    address = f"{SIMULATIONS}/{simulation['id']}/runs/{run_id}/result"
    assert client.get(address).json()["allocations"] == {}
    assert client.get(address, params={"jobs": ["a", "b, c"]}).json()["allocations"] == {
        "a": [span],
        "b, c": [span],
    }
    unknown = client.get(address, params={"jobs": ["a", "nobody"]})
    assert unknown.status_code == 422
    assert [(error["pointer"], error["value"]) for error in unknown.json()["errors"]] == [
        ("/jobs", "nobody")
    ]
    assert client.get(address, params={"jobs": ["a"] * 13}).status_code == 422


def test_a_result_holds_the_series_of_chosen_jobs_and_none_of_an_earlier_version(
    client: TestClient, database: Database
) -> None:
    simulation = client.post(SIMULATIONS, json=body()).json()
    new, old = (run["id"] for run in simulation["runs"])
    life = {"time": [0.0, 60.0], "end": 90.0, "gpu_count": [0, 1], "efficiency": [None, 1.0]}
    with database.session_scope() as session:
        for run_id in (new, old):
            run = session.get_one(SimulationRun, run_id)
            run.state, run.result = "succeeded", {"summary": {}, "jobs": [{"name": "a"}]}
        session.get_one(SimulationRun, new).series = {"a": life, "b": life}
    runs = f"{SIMULATIONS}/{simulation['id']}/runs"
    asked = {"jobs": "a"}
    assert client.get(f"{runs}/{new}/result", params=asked).json()["series"] == {"a": life}
    assert client.get(f"{runs}/{new}/result").json()["series"] == {}
    assert client.get(f"{runs}/{old}/result", params=asked).json()["series"] == {}


def test_charts_get_what_they_draw_and_no_more(client: TestClient, database: Database) -> None:
    simulation = client.post(SIMULATIONS, json=body()).json()
    address = f"{SIMULATIONS}/{simulation['id']}/figures"
    assert client.get(address).json() == {"runs": [], "definitions": {}}
    jobs = [
        {
            "name": f"j{i}",
            "model": "bert",
            "submit": 0.0,
            "finish": None if i < 30 else 3600.0 * i,
            "rho": None if i < 30 else i / 100,
        }
        for i in range(1030)
    ]
    result = {
        "jobs": [{**job, "gpu_hours_by_type": {"t4": 1.0}} for job in jobs],
        "fairness": {"worst_rho": 10.29, "unfair_fraction": 0.9, "jobs": 1000},
        "contention": [[float(i), float(i == 500)] for i in range(1500)],
        "gpu_hours_by_model_type": {"bert": {"t4": 1030.0}},
        "policy_seconds": None,
        "definitions": {"jct": "From submission to end."},
    }
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, simulation["runs"][1]["id"])
        run.state, run.result = "succeeded", result
    found = client.get(address).json()
    (drawn,) = found["runs"]
    assert (drawn["id"], found["definitions"]) == (
        simulation["runs"][1]["id"],
        result["definitions"],
    )
    assert (drawn["jct_hours"]["known"], drawn["jct_hours"]["jobs"]) == (1000, 1030)
    assert drawn["jct_hours"]["points"][0] == [30.0, 1 / 1030]
    assert drawn["jct_hours"]["points"][-1] == [1029.0, 1000 / 1030], (
        "the line ends at the share that finished"
    )
    assert (
        max(
            len(drawn["jct_hours"]["points"]), len(drawn["rho"]["points"]), len(drawn["contention"])
        )
        <= 400
    )
    assert [500.0, 1.0] in drawn["contention"], "no peak is lost"
    not_kept_then = {
        "gpus_by_type": {},
        "efficiency": [],
        "nodes": [],
        "waited_hours": {"points": [], "known": 0, "jobs": 1030},
        "placement_slowdown": {"points": [], "known": 0, "jobs": 0},
    }
    assert {name: drawn[name] for name in not_kept_then} == not_kept_then
    assert (len(drawn["unfinished"]), drawn["unfinished_count"]) == (20, 30)
    assert [job["name"] for job in drawn["worst_off"]] == [
        "j1029",
        "j1028",
        "j1027",
        "j1026",
        "j1025",
    ]
    assert (drawn["gpu_hours_by_type"], drawn["gpu_hours_by_model"]) == (
        {"t4": 1030.0},
        {"bert": {"jobs": 1030, "by_type": {"t4": 1030.0}}},
    )
    refused = client.get(address, params={"runs": simulation["runs"][0]["id"]})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/runs")


def test_comparison_and_charts_are_of_the_measured_jobs(
    client: TestClient, database: Database
) -> None:
    asked = body(measured_jobs="2-3", runs=[{"policy": "sia"}, {"policy": "fifo"}])
    simulation = client.post(SIMULATIONS, json=asked).json()
    assert simulation["request"]["measured_jobs"] == "2-3"
    address = f"{SIMULATIONS}/{simulation['id']}"
    first, second = (run["id"] for run in simulation["runs"])
    finish(database, first, [9.0, 9.0, 1.0, 2.0], measured_from=2)
    finish(database, second, [1.0, 1.0, 2.0, 4.0], measured_from=2)
    (against,) = client.get(f"{address}/comparison").json()["paired"]
    assert (against["jobs"], against["difference_hours"]["estimate"]) == (2, 1.5)
    jobs = [
        {
            "name": f"j{i}",
            "model": "bert",
            "measured": i >= 2,
            "submit": 0.0,
            "finish": 3600.0 * (i + 1),
            "rho": float(i),
            "waited": 60.0 * i,
            "gpu_hours_by_type": {"t4": 1.0},
        }
        for i in range(4)
    ]
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, first)
        run.result = {
            "jobs": jobs,
            "fairness": {"worst_rho": 3.0, "unfair_fraction": 1.0, "jobs": 2},
            "contention": [],
            "gpu_hours_by_model_type": {"bert": {"t4": 2.0}},
        }
    (drawn,) = client.get(f"{address}/figures", params={"runs": first}).json()["runs"]
    assert drawn["jct_hours"] == {"points": [[3.0, 0.5], [4.0, 1.0]], "known": 2, "jobs": 2}
    assert (drawn["rho"]["jobs"], drawn["waited_hours"]["jobs"]) == (2, 2)
    assert drawn["gpu_hours_by_type"] == {"t4": 2.0}
    assert drawn["gpu_hours_by_model"]["bert"]["jobs"] == 2


def test_runs_that_differ_by_a_parameter_of_the_placer_are_compared_as_two(
    client: TestClient, database: Database
) -> None:
    runs = [
        {"policy": "fifo", "placer": "pal", "placer_parameters": {"binning": rule}}
        for rule in ("silhouette", "two")
    ]
    simulation = client.post(SIMULATIONS, json=body(runs=runs)).json()
    for run in simulation["runs"]:
        finish(database, run["id"], [1.0, 2.0])
    found = client.get(f"{SIMULATIONS}/{simulation['id']}/comparison").json()
    assert [c["variant"] for c in found["contestants"]] == ["binning=silhouette", "binning=two"]
    assert [c["name"] for c in found["contestants"]] == [r["name"] for r in simulation["runs"]]


def test_runs_of_a_policy_with_rounds_of_their_own_are_compared_apart(
    client: TestClient, database: Database
) -> None:
    runs = [{"policy": "fifo"}, {"policy": "fifo", "round_seconds": 300}]
    simulation = client.post(SIMULATIONS, json=body(runs=runs, round_seconds=60)).json()
    assert [run["round_seconds"] for run in simulation["request"]["runs"]] == [None, 300.0]
    for run in simulation["runs"]:
        finish(database, run["id"], [1.0, 2.0])
    found = client.get(f"{SIMULATIONS}/{simulation['id']}/comparison").json()
    assert [c["variant"] for c in found["contestants"]] == ["", "round_seconds=300"]
    names = [c["name"] for c in found["contestants"]]
    assert names == [run["name"] for run in simulation["runs"]]
    assert names[1].startswith("fifo (round_seconds=300) + ")
    refused = client.post(SIMULATIONS, json=body(runs=[{"round_seconds": 0}]))
    assert refused.json()["errors"][0]["pointer"] == "/runs/0/round_seconds"


def test_runs_are_compared_job_by_job_over_what_both_have_finished(
    client: TestClient, database: Database
) -> None:
    runs = [{"policy": policy, "seed": seed} for policy in ("sia", "fifo") for seed in (0, 1)]
    simulation = client.post(SIMULATIONS, json=body(runs=runs)).json()
    address = f"{SIMULATIONS}/{simulation['id']}/comparison"
    assert client.get(address).status_code == 409
    hours = {
        ("sia", 0): [1.0, 2.0],
        ("sia", 1): [1.0, 1.0],
        ("fifo", 0): [2.0, 4.0],
        ("fifo", 1): [4.0, None],
    }
    for run in simulation["runs"]:
        finish(database, run["id"], hours[run["policy"], run["seed"]])

    found = client.get(address).json()

    assert [c["name"] for c in found["contestants"]] == ["sia + whole-node", "fifo + packed-sticky"]
    assert found["contestants"][0]["figures"]["avg_jct_hours"] == {
        "mean": 1.25,
        "deviation": pytest.approx(0.5 / 2**0.5),
        "runs": 2,
    }
    (against,) = found["paired"]
    assert (
        found["baseline"],
        against["contestant"],
        against["basis"],
        against["jobs"],
        against["left_out"],
    ) == (0, 1, "seeds", 2, 1)
    assert against["difference_hours"]["estimate"] == pytest.approx((1.5 + 3.0) / 2)
    assert client.get(address, params={"baseline": 1}).json()["paired"][0]["contestant"] == 0
    assert client.get(address, params={"baseline": 2}).json()["errors"][0]["pointer"] == "/baseline"
