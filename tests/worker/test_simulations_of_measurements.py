"""Runs under measurements: of interference, of variability, and how their scores are drawn."""

from __future__ import annotations

from typing import Any

from simulation_samples import request_simulation, runs_of

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    Measurement,
    MeasurementFiles,
    MeasurementUse,
    OperationState,
    Simulation,
)
from worker.simulations import runs as simulations

APART = {
    "kind": "csv",
    "text": (
        "job_id,num_gpus,submit_time,duration,model\n"
        "0,4,0,20000,resnet50\n"
        "1,6,10,20000,vgg19\n"
        "2,2,10,20000,resnet50\n"
    ),
}


def test_a_run_is_played_with_the_measurements_it_was_asked_for_with_also_once_they_are_deleted(
    database: Database,
) -> None:
    simulation_id = request_simulation(
        database, policies=("fifo", "fifo"), cluster="t4=1x4", variability="unequal"
    )
    measure(database, simulation_id, "".join(f"gpu-{n},{1 if n < 3 else 30}\n" for n in range(5)))

    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED

    unequal = [
        run.summary["avg_jct_hours"] for run in runs_of(database, simulation_id) if run.summary
    ]
    alike_id = request_simulation(database, policies=("fifo",), cluster="t4=1x4")
    simulations.run_simulation(database, alike_id)
    alike = [run.summary["avg_jct_hours"] for run in runs_of(database, alike_id) if run.summary]
    assert unequal[0] == unequal[1] > alike[0]


def test_how_scores_are_drawn_and_what_nodes_apart_cost_change_what_a_run_finds(
    database: Database,
) -> None:
    alike: dict[str, Any] = {
        "policies": ("fifo",),
        "cluster": "v100=2x4",
        "fidelity": "pal-artifact",
        "trace": APART,
    }
    unequal = alike | {"variability": "unequal"}
    slow_once = "".join(
        f"gpu-{n},{30 if (n, time) == (0, 0) else 1 + n / 20}\n"
        for n in range(10)
        for time in range(5)
    )

    hours = [
        played(database, slow_once, **asked)
        for asked in (
            alike,
            alike | {"locality_penalty": 3.0},
            alike | {"locality_penalty": {"vgg19": 3.0}},
            alike | {"locality_penalty": {"resnet50": 3.0}},
            unequal,
            unequal | {"variability_draw": "medians"},
        )
    ]

    plain, of_all, of_the_one_on_both_nodes, of_another, rows, medians = hours
    assert of_all == of_the_one_on_both_nodes > plain == of_another
    assert len({plain, rows, medians}) == 3


def played(database: Database, times: str, **asked: Any) -> float:
    """Mean JCT of the one run."""
    simulation_id = request_simulation(database, **asked)
    if "variability" in asked:
        measure(database, simulation_id, times)
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    (run,) = runs_of(database, simulation_id)
    assert run.summary is not None
    return float(run.summary["avg_jct_hours"])


def measure(database: Database, simulation_id: str, times: str) -> None:
    """Store measurements that the simulation asked for and that were deleted since.

    `times`: rows of uuid and perf, for every application.
    """
    with database.session_scope() as session:
        stored = session.get_one(Simulation, simulation_id)
        given = {
            "kind": "variability",
            "name": "unequal",
            "owner_id": stored.owner_id,
            "tenant_id": stored.tenant_id,
            "digest": "",
        }
        gpus = Measurement(**given, files=[], covers={}, deleted_at=utc_now())
        session.add(gpus)
        session.flush()
        gpu_type = stored.request.cluster.partition("=")[0]
        texts = {
            f"{application}-{gpu_type}.csv": "uuid,perf\n" + times
            for application in ("resnet", "bert", "pagerank")
        }
        session.add(MeasurementFiles(measurement_id=gpus.id, texts=texts))
        session.add(
            MeasurementUse(
                operation_id=stored.operation_id, kind="variability", measurement_id=gpus.id
            )
        )
