"""Builds the engine's scenarios from a simulation's stored request."""

from __future__ import annotations

from dataclasses import replace

from backend.measurements.uses import NOTHING_MEASURED, Measured
from backend.models import SimulationRun
from backend.simulations.conditions import cluster_of, conditions_of, tuned_of
from backend.simulations.stored import StoredSimulation
from maat.laboratory.runnable_jobs import with_runnable_jobs
from maat.simulation.scenario import Scenario
from maat.workloads.workloads import Workload


def scenario_of(
    request: StoredSimulation,
    run: SimulationRun,
    workload: Workload,
    measured: Measured = NOTHING_MEASURED,
) -> Scenario:
    """Return the scenario of one run, without the jobs that no GPU type of the cluster runs.

    Raises InputError if policy, placer, cluster or fidelity cannot be used.
    """
    requested, conditions = request.run_at(run.position), conditions_of(request, measured)
    own = tuned_of(request, requested.tuned)
    scenario = Scenario(
        workload=workload,
        models=measured.models,
        cluster=cluster_of(request),
        policy=run.policy,
        placer=run.placer,
        policy_parameters=requested.policy_parameters,
        placer_parameters=requested.placer_parameters,
        seed=run.seed,
        round_seconds=requested.round_seconds,
        conditions=conditions if own is None else replace(conditions, tuned=own),
    )
    return with_runnable_jobs(scenario)
