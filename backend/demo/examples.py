"""The example comparison and sweep on a demo's first day."""

from __future__ import annotations

from sqlmodel import Session, select

from backend.accounts.identity import LOCAL_USER, principal_named
from backend.models import Simulation, Sweep
from backend.queue import Queue
from backend.simulations.service import prepare_simulation, store_simulation
from backend.sweeps.service import prepare_sweep, store_sweep
from maat.api.simulations import SimulationBody
from maat.api.sweeps import SweepBody

# As many GPUs of each type as the largest job asks for: every policy can run every job.
_CLUSTER = "t4=4x4,rtx=2x8,a100=2x8"
_TRACE = {"kind": "generated", "family": "philly", "jobs": 30, "hours": 3.0, "seed": 1}

COMPARISON = SimulationBody.model_validate(
    {
        "name": "Example: three policies",
        "traces": [_TRACE],
        "cluster": _CLUSTER,
        "runs": [
            {"policy": policy, "placer": placer}
            for policy, placer in (("sia", "whole-node"), ("gavel", "packed"), ("fifo", "packed"))
        ],
    }
)
SWEEP = SweepBody.model_validate(
    {
        "name": "Example: fairness power p",
        "trace": {"kind": "generated", "family": "philly", "jobs": 20, "hours": 2.0},
        "cluster": _CLUSTER,
        "policy": "sia",
        "vary": [{"name": "p", "values": [-1, -0.5, 0.5, 1]}],
        "seeds": [0, 1],
    }
)


def examples_are_missing(session: Session) -> bool:
    """Return whether no simulation, or no sweep, exists yet."""
    return (
        session.exec(select(Simulation.id)).first() is None
        or session.exec(select(Sweep.id)).first() is None
    )


def ask_for_examples(session: Session, queue: Queue) -> None:
    """Request the example comparison and sweep, each only if none of its kind exists."""
    principal = principal_named(session, LOCAL_USER)
    if session.exec(select(Simulation.id)).first() is None:
        store_simulation(
            session, principal, prepare_simulation(session, principal, COMPARISON), queue
        )
    if session.exec(select(Sweep.id)).first() is None:
        store_sweep(session, principal, prepare_sweep(session, principal, SWEEP), queue)
