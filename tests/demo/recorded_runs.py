"""A recorded run, as `maat demo train` writes one, made up."""

from __future__ import annotations

from typing import Any

from maat.demo.recording import Job, Life, Recording

PARAMETERS = {
    "alpha_compute": 0.07,
    "beta_compute": 0.003,
    "alpha_across_nodes": 1e-8,
    "beta_across_nodes": 1e-8,
    "alpha_within_node": 0.005,
    "beta_within_node": 0.001,
    "gamma": 1.5,
}


def recorded_job(name: str, *, submitted: float = 0.0, finished: float = 200.0) -> Job:
    """A job of 10,000 effective samples, which trained from 10 s after its submission on."""
    return Job(
        name=name,
        batch_size=32,
        max_batch_size=256,
        work=10_000.0,
        epochs=4,
        submitted=submitted,
        finished=finished,
        restarts=0,
        gpu_hours=0.1,
        laws={"t4": (0.07, 0.003), "a100": (0.06, 0.001)},
        lives=[
            Life(
                1,
                "train",
                "t4",
                {"t4-node": [0]},
                "succeeded",
                submitted,
                submitted + 10.0,
                finished,
            )
        ],
        samples=[
            sample("t4", 32, 0.166),
            sample("t4", 64, 0.262),
            sample("a100", 32, 0.102),
        ],
        belief={
            "types": [fit("t4", 0.003), fit("a100", 0.001)],
            "restart_seconds": 12.0,
            "restart": [{"name": name, "seconds": 3.0} for name in ("stop", "start")],
        },
        noise=[{"progress": 0.0, "noise_scale": 50.0}, {"progress": 9000.0, "noise_scale": 900.0}],
    )


def recorded_run(*jobs: Job, outages: Any = ()) -> Recording:
    nodes = {"t4-node": "t4", "a100-node": "a100"}
    return Recording(nodes, 4, 15.0, list(jobs), list(outages))


def sample(gpu_type: str, batch: int, seconds: float) -> dict[str, Any]:
    return {
        "gpu_type": gpu_type,
        "replica_count": 1,
        "per_gpu_batch_size": batch,
        "accumulation_steps": 0,
        "count": 100,
        "step_seconds": seconds,
        "step_deviation": 0.01,
    }


def fit(gpu_type: str, per_sample: float) -> dict[str, Any]:
    parameters = {**PARAMETERS, "beta_compute": per_sample}
    return {"gpu_type": gpu_type, "sample_count": 2, "error": 0.02, "parameters": parameters}
