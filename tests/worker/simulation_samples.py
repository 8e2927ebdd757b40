"""A requested simulation in a database, as the service stores one."""

from __future__ import annotations

from typing import Any

from live_samples import make_owner
from sqlmodel import col, select

from backend.database import Database
from backend.models import Operation, Simulation, SimulationRun
from backend.simulations.stored import StoredSimulation

SMALL = {
    "kind": "csv",
    "text": "name,time,application,num_replicas,batch_size,work_scale\n"
    "first,0,cifar10,1,128,0.3\nsecond,60,bert,2,24,0.2\nthird,90,cifar10,4,512,0.5\n",
}


def request_simulation(
    database: Database,
    *,
    policies: tuple[str, ...] = ("sia", "srtf"),
    trace: dict[str, Any] | None = None,
    cluster: str = "t4=4x4,a100=2x8",
    tenant: str = "tenant",
    **conditions: Any,
) -> str:
    runs = [
        {
            "policy": policy,
            "policy_parameters": {},
            "placer": "whole-node",
            "placer_parameters": {},
            "seed": 0,
        }
        for policy in policies
    ]
    request = {
        "name": "compare",
        "traces": [SMALL if trace is None else trace],
        "cluster": cluster,
        "fidelity": "paper",
        "round_seconds": None,
        "runs": runs,
    }
    request |= conditions
    stored = StoredSimulation.model_validate(request)
    return store_simulation(database, stored, policies=policies, tenant=tenant)


def store_simulation(
    database: Database,
    request: StoredSimulation | bytes,
    *,
    policies: tuple[str, ...],
    tenant: str = "tenant",
) -> str:
    """Store a simulation of three jobs. `request`: bytes of one of an earlier version."""
    owner, tenant_id = make_owner(database, tenant=tenant)
    with database.session_scope() as session:
        operation = Operation(
            kind="simulation",
            owner_id=owner,
            tenant_id=tenant_id,
            total=3.0 * len(policies),
            unit="jobs",
        )
        session.add(operation)
        session.flush()
        simulation = Simulation(
            name="compare",
            owner_id=owner,
            tenant_id=tenant_id,
            operation_id=operation.id,
            request=request,
        )
        session.add(simulation)
        session.flush()
        session.add_all(
            SimulationRun(
                simulation_id=simulation.id, position=i, policy=policy, placer="whole-node"
            )
            for i, policy in enumerate(policies)
        )
    return simulation.id


def operation_of(database: Database, simulation_id: str) -> Operation:
    with database.session_scope(writes=False) as session:
        return session.get_one(Operation, session.get_one(Simulation, simulation_id).operation_id)


def runs_of(database: Database, simulation_id: str) -> list[SimulationRun]:
    with database.session_scope(writes=False) as session:
        statement = (
            select(SimulationRun)
            .where(SimulationRun.simulation_id == simulation_id)
            .order_by(col(SimulationRun.position))
        )
        return list(session.exec(statement))
