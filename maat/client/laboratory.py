"""The JSON of simulations and of long work, as types. The live cluster's resources are in resources.py."""

from __future__ import annotations

from typing import Literal, TypedDict

OperationState = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class RunBody(TypedDict, total=False):
    policy: str
    policy_parameters: dict[str, object]
    placer: str
    seed: int


class SimulationBody(TypedDict, total=False):
    name: str
    trace: dict[str, object]
    cluster: str
    runs: list[RunBody]
    fidelity: str
    round_seconds: float | None


class SimulationRun(TypedDict):
    id: str
    policy: str
    placer: str
    seed: int
    state: OperationState
    summary: dict[str, float | int | str | None] | None
    error: dict[str, object] | None


class Simulation(TypedDict):
    id: str
    name: str
    operation_id: str
    created_at: str
    request: SimulationBody
    runs: list[SimulationRun]


class SimulatedJob(TypedDict):
    name: str
    model: str
    submit: float
    start: float | None
    finish: float | None
    restarts: int
    gpu_hours_by_type: dict[str, float]
    rho: float | None


class RunResult(TypedDict):
    summary: dict[str, float | int | str | None]
    jobs: list[SimulatedJob]
    contention: list[list[float]]
    gpus_by_type: dict[str, object]
    gpu_hours_by_model_type: dict[str, dict[str, float]]


class Operation(TypedDict):
    """Long work. `done` of `total` `unit`; `error` is a problem document when it failed."""

    id: str
    kind: str
    state: OperationState
    done: float
    total: float
    unit: str
    message: str
    error: dict[str, object] | None
    result_url: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
