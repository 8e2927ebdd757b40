"""The throughput model: the time of one optimiser step on K replicas.

Pollux eq. 8-11. efficiency.py has the value of a step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import FloatArray

PARAMETER_COUNT = 7
NEGLIGIBLE_SECONDS = 1e-8


class ThroughputParameters(NamedTuple):
    """The seven parameters, in the order of every array of shape (..., 7).

    All are in seconds except gamma.
    """

    alpha_compute: float
    beta_compute: float  # seconds per sample
    alpha_across_nodes: float
    beta_across_nodes: float  # seconds per replica beyond two
    alpha_within_node: float
    beta_within_node: float
    gamma: float  # overlap of compute and synchronisation: 1 none, 10 nearly all


def pass_seconds(parameters: FloatArray, per_gpu_batch_size: FloatArray) -> FloatArray:
    """Return the time of a forward and backward pass over one per-GPU batch.

    T_grad = alpha + beta m (Pollux eq. 8). Shapes broadcast.
    """
    return parameters[..., 0] + parameters[..., 1] * per_gpu_batch_size


def sync_seconds(
    parameters: FloatArray, node_count: FloatArray, replica_count: FloatArray
) -> FloatArray:
    """Return the time of gradient synchronisation (Pollux eq. 9).

    0 for one replica, else alpha + beta (K - 2), by locality. Shapes broadcast.
    """
    across = np.asarray(node_count) > 1
    alpha = np.where(across, parameters[..., 2], parameters[..., 4])
    beta = np.where(across, parameters[..., 3], parameters[..., 5])
    seconds = alpha + beta * np.maximum(np.asarray(replica_count) - 2, NEGLIGIBLE_SECONDS)
    return np.where(np.asarray(replica_count) > 1, seconds, NEGLIGIBLE_SECONDS)


def step_seconds(
    parameters: FloatArray,
    per_gpu_batch_size: FloatArray,
    *,
    node_count: FloatArray,
    replica_count: FloatArray,
    accumulation_steps: FloatArray | float = 0,
) -> FloatArray:
    """Return the seconds of one optimiser step with s extra accumulation passes.

        T = s T_grad + (T_grad^gamma + T_sync^gamma)^(1/gamma)      (Pollux eq. 11)

    `parameters` has shape (..., 7); all other arguments broadcast against its leading axes.
    """
    compute = pass_seconds(parameters, per_gpu_batch_size)
    sync = sync_seconds(parameters, node_count, replica_count)
    return accumulation_steps * compute + overlapped(compute, sync, parameters[..., 6])


def overlapped(compute: FloatArray, sync: FloatArray, gamma: FloatArray) -> FloatArray:
    """Return (compute^gamma + sync^gamma)^(1/gamma).

    It is scaled by the larger, so that no power under- or overflows.
    """
    larger = np.maximum(compute, sync)
    ratio = np.minimum(compute, sync) / larger
    return larger * (1.0 + ratio**gamma) ** (1.0 / gamma)
