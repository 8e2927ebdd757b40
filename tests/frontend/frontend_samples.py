"""Sample answers of the API, small enough to check by hand.

They have 3 nodes, 3 jobs, a round and two runs of a simulation.
"""

from __future__ import annotations

from typing import Any

from backend.simulations import figure_data
from backend.simulations.fairness_rule import result_by
from maat.api.attempts import StepSampleOut
from maat.api.beliefs import BeliefOut, FitOut, PenaltyOut, PointOut, RestartPartOut
from maat.laboratory.figures import DEFAULT_RULE
from maat.vocabulary import PenaltyOrigin


def cells() -> list[dict[str, Any]]:
    """A t4 node of 4 GPUs, a rtx node of 4 and an a100 node of 2.

    Job a holds two t4, job b all rtx; one a100 is drained, and the rest is free.
    """
    held = {0: "a", 1: "a", 4: "b", 5: "b", 6: "b", 7: "b"}
    nodes = ["n1"] * 4 + ["n2"] * 4 + ["n3"] * 2
    types = ["t4"] * 4 + ["rtx"] * 4 + ["a100"] * 2
    return [
        {
            "gpu": gpu,
            "node": nodes[gpu],
            "gpu_type": types[gpu],
            "drained": gpu == 9,
            "held": gpu in held,
            "job_id": f"job_{held[gpu]}" if gpu in held else None,
            "job_name": f"train {held[gpu]}" if gpu in held else None,
            "tenant": "default" if gpu in held else None,
            "shared_with": [],
        }
        for gpu in range(10)
    ]


def steps(*values: float) -> dict[str, list[Any]]:
    return {
        "at": [f"2026-11-20T10:{minute:02d}:00Z" for minute in range(len(values))],
        "value": list(values),
    }


def record() -> dict[str, Any]:
    """Three jobs and four configurations.

    Job 2 cannot use the first two configurations; jobs 0 and 2 have a chosen one.
    """
    return {
        "round": 7,
        "at_seconds": 420.0,
        "job_ids": ["job_a", "job_b", "job_c"],
        "job_names": ["train a", "<script>alert(1)</script>", "train c"],
        "configurations": [
            {"gpu_type": "t4", "gpu_count": 1, "node_count": 1},
            {"gpu_type": "t4", "gpu_count": 2, "node_count": 1},
            {"gpu_type": "a100", "gpu_count": 1, "node_count": 1},
            {"gpu_type": "a100", "gpu_count": 16, "node_count": 2},
        ],
        "pairs": {
            "job": [0, 0, 0, 1, 1, 2, 2],
            "column": [0, 1, 2, 0, 2, 2, 3],
            "goodput": [100.0, 180.0, 400.0, 10.0, 30.0, 50.0, 200.0],
            "utility": None,
        },
        "chosen": [1, None, 3],
        "runner_up": [2, None, 2],
        "alone": [2, 2, 3],
        "why": [["It came second."], ["All are taken."], []],
        "grants": {},
        "reasons": {},
        "report": {},
    }


def spans() -> list[dict[str, Any]]:
    """Two t4, a wait, then four a100 until now."""
    first = {
        "round_number": 1,
        "from_at": "2026-11-20T10:00:00Z",
        "to_at": "2026-11-20T10:10:00Z",
        "gpu_type": "t4",
        "gpu_count": 2,
        "node_count": 1,
        "gpus": [0, 1],
    }
    second = {
        "round_number": 20,
        "from_at": "2026-11-20T10:20:00Z",
        "to_at": None,
        "gpu_type": "a100",
        "gpu_count": 4,
        "node_count": 1,
        "gpus": [8, 9, 10, 11],
    }
    batch = {"total_batch_size": 256, "per_gpu_batch_size": 128, "accumulation_steps": 0}
    counted = {"for_profile": False, "lost_gpu_seconds": 0.0}
    one = {
        "running_at": "2026-11-20T10:01:00Z",
        "processed_samples": 114_000.0,
        "effective_samples": 114_000.0,
    }
    two = {
        "running_at": "2026-11-20T10:21:00Z",
        "processed_samples": 1_170_000.0,
        "effective_samples": 936_000.0,
    }
    return [
        {**first, **batch, **counted, **one},
        {**second, **batch, **counted, **two, "total_batch_size": 512},
    ]


def goodput_series() -> list[dict[str, Any]]:
    def point(gpu_count: int, goodput: float) -> dict[str, Any]:
        return {
            "gpu_count": gpu_count,
            "node_count": 1,
            "goodput": goodput,
            "throughput": goodput * 1.25,
            "efficiency": 0.8,
            "step_seconds": 0.1,
            "total_batch_size": 128 * gpu_count,
            "per_gpu_batch_size": 128,
            "accumulation_steps": 0,
        }

    return [
        {"gpu_type": "a100", "points": [point(1, 400), point(2, 700), point(4, 1100)]},
        {"gpu_type": "t4", "points": [point(1, 100), point(2, 180)]},
    ]


def rounds() -> list[dict[str, Any]]:
    return [{"number": number, "prices": {"t4": 0.1 * number, "a100": 0.5}} for number in (3, 2, 1)]


def result(shift: float) -> dict[str, Any]:
    """40 jobs; the one of index i takes (i + 1 + shift) hours and has rho (i + 1 + shift) / 20."""
    jobs = [
        {
            "name": f"job {i}",
            "model": "cifar10",
            "submit": 60.0 * i,
            "start": 60.0 * i + 10,
            "finish": 60.0 * i + 3600 * (i + 1 + shift),
            "waited": 360.0 * i,
            "restarts": i % 3,
            "gpu_hours_by_type": {"t4": 1.0, "a100": 2.0 + shift},
            "rho": (i + 1 + shift) / 20,
        }
        for i in range(40)
    ]
    return {
        "summary": {"policy": "sia", "avg_jct_hours": 20.5 + shift},
        "jobs": jobs,
        "contention": [[0.0, 1.0], [3600.0, 10.0], [7200.0, 4.0]],
        "gpus_by_type": {
            "t4": [[0.0, 2.0], [3600.0, 4.0], [7200.0, 0.0]],
            "a100": [[1800.0, 8.0], [7200.0, 0.0]],
        },
        "efficiency": [[0.0, 1.0], [3600.0, None], [5400.0, 0.5]],
        "nodes": [[0.0, 6.0], [1800.0, 5.0], [3600.0, 6.0]],
        "gpu_hours_by_model_type": {"cifar10": {"t4": 40.0, "a100": 40 * (2.0 + shift)}},
        "fairness": {"worst_rho": (40 + shift) / 20, "unfair_fraction": 0.5, "jobs": 40},
        "policy_seconds": {
            "rounds": 90,
            "min": 0.001,
            "p25": 0.002,
            "median": 0.004 + shift,
            "p75": 0.008 + shift,
            "p95": 0.1 + shift,
            "max": 9.0,
        },
        "allocations": {
            "job 0": [stretch(0, "t4", 1), stretch(600, "a100", 4), stretch(1800, "a100", 8)],
            "job 3": [stretch(0, "t4", 2)],
        },
        "definitions": {
            "comparison": "Makespan: to the last finish.",
            "rho": "The mean of ratios.",
            "unfair_fraction": "Share with rho > 1.",
        },
    }


def drawn(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What charts draw of these runs, as the service says it."""
    return {
        name: figure_data.drawn(name, result_by(result, DEFAULT_RULE))
        for name, result in results.items()
    }


def stretch(start: float, gpu_type: str, gpu_count: int) -> dict[str, Any]:
    """Ten minutes of a job on these GPUs."""
    batch = {"node_count": 1, "total_batch_size": 128 * gpu_count}
    return {
        "start": float(start),
        "end": start + 600.0,
        "gpu_type": gpu_type,
        "gpu_count": gpu_count,
        **batch,
    }


def step_samples() -> list[StepSampleOut]:
    """Step times on two types: at two batch sizes on one t4, at one on two a100."""
    sample: StepSampleOut = {
        "gpu_type": "t4",
        "node_count": 1,
        "replica_count": 1,
        "per_gpu_batch_size": 32,
        "accumulation_steps": 0,
        "count": 120,
        "step_seconds": 0.2,
        "step_deviation": 0.01,
        "sync_seconds": 0.0,
        "last_at": "2026-11-20T10:00:00Z",
    }
    larger: StepSampleOut = {**sample, "per_gpu_batch_size": 64, "step_seconds": 0.36}
    shared: StepSampleOut = {
        **larger,
        "gpu_type": "a100",
        "replica_count": 2,
        "accumulation_steps": 1,
        "step_seconds": 0.21,
        "sync_seconds": 0.01,
    }
    return [sample, larger, shared]


def measured_penalty() -> PenaltyOut:
    return {
        "gpu_type": "t4",
        "penalty": 1.7,
        "origin": PenaltyOrigin.MEASURED,
        "configurations": 2,
        "steps": 340,
    }


def belief() -> BeliefOut:
    """What is learnt of such a job: a fit on t4, a measured restart, one profile."""
    points: list[PointOut] = [
        {"per_gpu_batch_size": size, "step_seconds": 0.04 + 0.005 * size} for size in (16, 64, 128)
    ]
    fit: FitOut = {
        "gpu_type": "t4",
        "sample_count": 2,
        "step_count": 240,
        "error": 0.012,
        "forecast_error": None,
        "fitted_at": "2026-11-20T10:00:00Z",
        "parameters": {
            "alpha_compute": 0.04,
            "beta_compute": 0.005,
            "alpha_across_nodes": 0.0,
            "beta_across_nodes": 0.0,
            "alpha_within_node": 0.0,
            "beta_within_node": 0.0,
            "gamma": 1.0,
        },
        "curves": [{"node_count": 1, "replica_count": 1, "points": points}],
        "missed": [],
    }
    part: RestartPartOut = {
        "name": "stop",
        "seconds": 3.0,
        "assumed_seconds": 5.0,
        "measured": 2,
        "deviation": 0.4,
    }
    return {
        "played": False,
        "types": [fit],
        "gradient": {"noise_scale": 321.4, "steps": 40, "at": "2026-11-20T10:00:00Z"},
        "restart_seconds": 28.0,
        "restart": [
            part,
            {**part, "name": "queue", "seconds": 1.0, "measured": 0, "deviation": None},
            {**part, "name": "start", "seconds": 20.0, "measured": 0, "deviation": None},
            {**part, "name": "restore", "seconds": 4.0, "measured": 0, "deviation": None},
        ],
        "locality": [measured_penalty()],
        "profiles": [
            {
                "gpu_type": "t4",
                "attempts": 1,
                "state": "ended",
                "outcome": "succeeded",
                "reason": "",
                "stepping_gpu_seconds": 4.25,
                "startup_gpu_seconds": 6.5,
            }
        ],
        "profiles_ended": None,
    }
