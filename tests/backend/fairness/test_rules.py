"""Tests of finish-time fairness in answers: the requested rule computes it, and is named."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from sqlmodel import col

from backend.database import Database
from backend.models import SimulationRun, SweepPoint
from maat.laboratory.fairness import fairness
from maat.laboratory.figures import figures_of
from maat.scheduling.cluster import Cluster
from maat.simulation.engine import simulate
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.vocabulary import FairnessRule
from maat.workloads.workloads import TraceJob, Workload
from worker.simulations.result import result_to_json

SIMULATIONS, SWEEPS = "/api/v1/simulations", "/api/v1/sweeps"
CSV = (
    "name,time,application,num_replicas,batch_size\ncifar-0,0,cifar10,2,512\nbert-1,60,bert,1,24\n"
)
TRACE = {"kind": "csv", "text": CSV}
RULES = [rule.value for rule in FairnessRule]
DEFAULT = "mean-of-ratios"


@pytest.fixture(scope="module")
def played() -> SimulationResult:
    jobs = tuple(
        TraceJob(
            name=f"job-{i}",
            submit_seconds=60.0 * i,
            model=model,
            gpu_count=1,
            batch_size=128,
            work_scale=0.05,
        )
        for i, model in enumerate(("cifar10", "bert", "cifar10"))
    )
    workload = Workload("hand-made", jobs, "sia")
    return simulate(
        Scenario(
            workload,
            catalog_models(),
            Cluster.parse("t4=2x4,a100=1x4"),
            policy="fifo",
            placer="packed-sticky",
        )
    )


@pytest.fixture
def simulation(client: TestClient, database: Database, played: SimulationResult) -> str:
    """One run that has finished."""
    asked = {
        "name": "s",
        "traces": [TRACE],
        "cluster": "t4=2x4,a100=1x4",
        "runs": [{"policy": "fifo"}],
    }
    answer = client.post(SIMULATIONS, json=asked)
    assert answer.status_code == 202, answer.text
    made = answer.json()
    keep(database, made["runs"][0]["id"], result_to_json(played))
    return f"{SIMULATIONS}/{made['id']}"


def keep(database: Database, run_id: str, result: dict[str, Any]) -> None:
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, run_id)
        run.state, run.summary, run.result = "succeeded", result["summary"], result


def run_of(client: TestClient, simulation: str) -> str:
    return str(client.get(simulation).json()["runs"][0]["id"])


@pytest.mark.parametrize("rule", RULES)
def test_a_result_and_its_charts_have_rho_by_the_rule_that_is_asked_for(
    client: TestClient, simulation: str, played: SimulationResult, rule: str
) -> None:
    expected = fairness(played, rule=FairnessRule(rule))
    asked = {"fairness_rule": rule}

    result = client.get(
        f"{simulation}/runs/{run_of(client, simulation)}/result", params=asked
    ).json()
    (drawn,) = client.get(f"{simulation}/figures", params=asked).json()["runs"]

    assert {job["name"]: job["rho"] for job in result["jobs"]} == pytest.approx(dict(expected.rho))
    assert result["fairness"] == {
        "rule": rule,
        "worst_rho": pytest.approx(expected.worst),
        "unfair_fraction": pytest.approx(expected.unfair_fraction),
        "jobs": len(expected.rho),
    }
    assert not any("rho_by_rule" in job for job in result["jobs"])
    assert (drawn["fairness_rule"], drawn["worst_rho"]) == (rule, pytest.approx(expected.worst))
    assert [value for value, _ in drawn["rho"]["points"]] == pytest.approx(
        sorted(expected.rho.values())
    )


def test_without_a_rule_the_mean_of_ratios_is_answered(client: TestClient, simulation: str) -> None:
    for path in ("figures", "comparison", f"runs/{run_of(client, simulation)}/result"):
        address = f"{simulation}/{path}"
        assert (
            client.get(address).json()
            == client.get(address, params={"fairness_rule": DEFAULT}).json()
        )


def test_rules_differ_on_a_mixed_cluster(client: TestClient, simulation: str) -> None:
    worst = [
        client.get(f"{simulation}/figures", params={"fairness_rule": rule}).json()["runs"][0][
            "worst_rho"
        ]
        for rule in RULES
    ]

    assert len(set(worst)) == len(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_a_comparison_has_the_figures_of_the_rule_alone(
    client: TestClient, simulation: str, played: SimulationResult, rule: str
) -> None:
    found = client.get(f"{simulation}/comparison", params={"fairness_rule": rule}).json()

    figures = found["contestants"][0]["figures"]
    assert found["fairness_rule"] == rule
    assert figures["worst_rho"]["mean"] == pytest.approx(
        fairness(played, rule=FairnessRule(rule)).worst
    )
    assert [name for name in figures if "rho" in name or "unfair" in name] == [
        "worst_rho",
        "unfair_fraction",
    ]


@pytest.mark.parametrize("rule", RULES)
def test_a_sweep_has_the_figures_of_the_rule_alone(
    client: TestClient, database: Database, played: SimulationResult, rule: str
) -> None:
    asked = {
        "name": "s",
        "trace": TRACE,
        "cluster": "t4=2x4",
        "vary": [{"name": "round_seconds", "values": [60]}],
        "seeds": [0],
    }
    sweep = client.post(SWEEPS, json=asked).json()
    with database.session_scope() as session:
        ended = sa.update(SweepPoint).where(col(SweepPoint.key) == sweep["points"][0]["key"])
        session.connection().execute(
            ended.values(state="succeeded", figures=dict(figures_of(played)))
        )

    found = client.get(f"{SWEEPS}/{sweep['id']}", params={"fairness_rule": rule}).json()

    expected = fairness(played, rule=FairnessRule(rule))
    assert found["fairness_rule"] == rule
    for figures in (found["points"][0]["figures"], found["rows"][0]["mean"]):
        assert (figures["worst_rho"], figures["unfair_fraction"]) == pytest.approx(
            (expected.worst, expected.unfair_fraction)
        )
        assert sum("rho" in name or "unfair" in name for name in figures) == 2


def test_a_run_of_an_earlier_version_has_no_rho_by_another_rule(
    client: TestClient, database: Database, simulation: str
) -> None:
    run_id = run_of(client, simulation)
    kept = client.get(f"{simulation}/runs/{run_id}/result").json()
    kept["fairness"].pop("rule")
    keep(database, run_id, {**kept, "allocations": {}})

    known, unknown = (
        client.get(f"{simulation}/figures", params={"fairness_rule": rule}).json()["runs"][0]
        for rule in (DEFAULT, "share-of-type")
    )

    assert known["worst_rho"] == kept["fairness"]["worst_rho"]
    assert (
        unknown["worst_rho"],
        unknown["unfair_fraction"],
        unknown["rho"]["known"],
        unknown["worst_off"],
    ) == (None, None, 0, [])


def test_a_rule_that_there_is_none_of_is_refused_with_those_that_there_are(
    client: TestClient, simulation: str
) -> None:
    sweep = client.post(
        SWEEPS,
        json={
            "name": "s",
            "trace": TRACE,
            "cluster": "t4=2x4",
            "vary": [{"name": "p", "values": [-1]}],
        },
    ).json()
    run_id = run_of(client, simulation)
    for address in (
        f"{simulation}/figures",
        f"{simulation}/comparison",
        f"{simulation}/runs/{run_id}/result",
        f"{SWEEPS}/{sweep['id']}",
    ):
        refused = client.get(address, params={"fairness_rule": "n_g"})

        assert (refused.status_code, refused.headers["content-type"]) == (
            422,
            "application/problem+json",
        )
        (error,) = refused.json()["errors"]
        assert (error["pointer"], error["value"]) == ("/fairness_rule", "n_g")
        assert all(rule in error["remedy"] for rule in RULES)
