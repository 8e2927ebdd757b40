"""Requests as earlier versions stored them, played by today's worker from a row of a database."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from simulation_samples import SMALL, operation_of, runs_of, store_simulation
from sqlmodel import col
from test_sweeps import ask, shown

from backend.columns import pack_json
from backend.database import Database
from backend.models import Operation, OperationState, Simulation, Sweep, SweepPoint
from worker.simulations import runs as simulations
from worker.simulations import sweeps

# What each version added to the conditions, with what an absent value meant.
SHARES_AND_FAILURES = {
    "profiling": None,
    "rigid_share": 0.0,
    "strong_scaling_share": 0.0,
    "failures": None,
    "reservations": [],
}
SHARED_GPUS = {"jobs_per_gpu": 1, "interference": None, "tuned": None, "tuned_gpus": 16}
MEASUREMENTS = {"variability": None}
DRAWS = {"variability_draw": None, "locality_penalty": None}

FIRST = {
    "name": "compare",
    "cluster": "t4=4x4,a100=2x8",
    "fidelity": "paper",
    "round_seconds": None,
}
FIRST_RUN = {"policy": "fifo", "policy_parameters": {}, "placer": "whole-node", "seed": 0}
RUN = FIRST_RUN | {"placer_parameters": {}}
ONE_TRACE = FIRST | {"trace": SMALL, "runs": [FIRST_RUN, FIRST_RUN | {"policy": "srtf"}]}
TRACES = FIRST | SHARES_AND_FAILURES | {"traces": [SMALL], "runs": ONE_TRACE["runs"]}
WITH_PLACERS = TRACES | SHARED_GPUS | {"runs": [RUN, RUN | {"policy": "srtf"}]}

SIMULATIONS = {
    "the first": ONE_TRACE,
    "with shares and failures": ONE_TRACE | SHARES_AND_FAILURES,
    "with several traces": TRACES,
    "with shared GPUs": WITH_PLACERS,
    "with measurements": WITH_PLACERS | MEASUREMENTS,
    "with draws": WITH_PLACERS | MEASUREMENTS | DRAWS,
}

SWEEP = FIRST | {
    "name": "s",
    "trace": SMALL,
    "policy": "fifo",
    "policy_parameters": {},
    "placer": None,
    "vary": [{"name": "arrival_rate", "values": [1, 2]}],
    "seeds": [0],
}
SWEEPS = {
    "the first": SWEEP,
    "with shares and failures": SWEEP | SHARES_AND_FAILURES,
    "with shared GPUs": SWEEP | SHARES_AND_FAILURES | SHARED_GPUS,
    "with draws": SWEEP | SHARES_AND_FAILURES | SHARED_GPUS | MEASUREMENTS | DRAWS,
}

LATER = {"of": "a later version"}


def played(database: Database, request: dict[str, Any]) -> list[Any]:
    """Play a stored simulation; when each job of each run finished, by policy and placer."""
    simulation_id = store_simulation(database, pack_json(request), policies=("fifo", "srtf"))
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    return [
        (run.policy, run.placer, [(job["name"], job["finish"]) for job in run.result["jobs"]])
        for run in runs_of(database, simulation_id)
    ]


@pytest.mark.parametrize("version", SIMULATIONS)
def test_a_simulation_of_an_earlier_version_is_played_as_one_of_today(
    database: Database, version: str
) -> None:
    found = played(database, SIMULATIONS[version])
    assert all(finish is not None for _, _, jobs in found for _, finish in jobs)
    assert found == played(database, SIMULATIONS["with draws"])


@pytest.mark.parametrize("version", SIMULATIONS)
def test_a_simulation_of_an_earlier_version_is_shown_in_todays_shape(
    database: Database, version: str
) -> None:
    simulation_id = store_simulation(database, pack_json(SIMULATIONS[version]), policies=("fifo",))
    with database.session_scope(writes=False) as session:
        answered = session.get_one(Simulation, simulation_id).request.as_answered()
    lengths = [{"kind": "csv", "text_bytes": len(SMALL["text"])}]
    assert (
        answered.items()
        >= (SIMULATIONS["with draws"] | {"traces": lengths, "runs": answered["runs"]}).items()
    )
    assert [run.items() >= RUN.items() for run in answered["runs"]] == [True, False]


@pytest.mark.parametrize("version", SWEEPS)
def test_a_sweep_of_an_earlier_version_is_played_as_one_of_today(
    database: Database, version: str
) -> None:
    wanted, keys = ask(database, **SWEEP)
    replace_request(database, wanted, SWEEPS[version])
    assert [sweeps.run_point(database, key) for key in keys] == ["succeeded", "succeeded"]
    found = shown(database, wanted)
    assert (found["state"], len(found["rows"])) == ("succeeded", 2)
    assert found["request"]["placer_parameters"] == {}


@pytest.mark.parametrize(
    ("given", "parameter", "same_as"),
    [
        ({}, 600, {"round_seconds": 600}),
        ({"round_seconds": 120}, 600, {"round_seconds": 120}),
        ({"fidelity": "pal-artifact"}, 600, {"fidelity": "pal-artifact"}),
    ],
    ids=("alone", "beside that of all runs", "beside the fidelity's"),
)
def test_rounds_among_the_parameters_of_a_policy_last_as_long_as_they_did(
    database: Database, given: dict[str, Any], parameter: int, same_as: dict[str, Any]
) -> None:
    old = {"policy_parameters": {"round_seconds": parameter}}
    runs = [run | old for run in WITH_PLACERS["runs"]]
    found = played(database, WITH_PLACERS | given | {"runs": runs})
    assert found == played(database, WITH_PLACERS | same_as)
    if "round_seconds" in same_as:
        assert found != played(database, WITH_PLACERS)

    wanted, keys = ask(database, **SWEEP | same_as)
    replace_request(database, wanted, SWEEP | given | old)
    assert [sweeps.run_point(database, key) for key in keys] == ["succeeded", "succeeded"]


def test_runs_of_one_simulation_may_have_rounds_of_their_own(database: Database) -> None:
    """Rows say how often a policy decided; a run's own interval goes before that of all runs."""
    runs = [RUN | {"round_seconds": 600}, RUN]
    simulation_id = store_simulation(
        database,
        pack_json(WITH_PLACERS | {"round_seconds": 60, "runs": runs}),
        policies=("fifo", "fifo"),
    )
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    slow, usual = (run.summary or {} for run in runs_of(database, simulation_id))
    assert slow["avg_queueing_hours"] > usual["avg_queueing_hours"]


def test_a_simulation_that_cannot_be_read_waits_for_a_worker_that_can(database: Database) -> None:
    simulation_id = store_simulation(database, pack_json(LATER), policies=("fifo",))
    assert simulations.run_simulation(database, simulation_id) is None
    assert operation_of(database, simulation_id).state == "queued"
    assert [run.state for run in runs_of(database, simulation_id)] == ["queued"]
    replace_request(database, simulation_id, SIMULATIONS["with draws"], table=Simulation)
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED


def test_a_simulation_that_cannot_be_read_can_be_cancelled_when_its_worker_died(
    database: Database,
) -> None:
    simulation_id = store_simulation(database, pack_json(LATER), policies=("fifo",))
    with database.session_scope() as session:
        operation = session.get_one(Operation, operation_of(database, simulation_id).id)
        operation.cancel_requested = True
        session.add(operation)
    assert simulations.run_simulation(database, simulation_id) is OperationState.CANCELLED


def test_a_point_is_played_for_the_sweep_that_can_be_read(database: Database) -> None:
    unreadable, keys = ask(database, **SWEEP)
    replace_request(database, unreadable, LATER)
    assert [sweeps.run_point(database, key) for key in keys] == [None, None]
    with database.session_scope(writes=False) as session:
        assert {session.get_one(SweepPoint, key).state for key in keys} == {"queued"}
    same, _ = ask(database, **SWEEP)
    assert [sweeps.run_point(database, key) for key in keys] == ["succeeded", "succeeded"]
    assert shown(database, same)["state"] == "succeeded"


def replace_request(
    database: Database,
    work_id: str,
    request: dict[str, Any],
    *,
    table: type[Sweep] | type[Simulation] = Sweep,
) -> None:
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(table).where(col(table.id) == work_id).values(request=pack_json(request))
        )
