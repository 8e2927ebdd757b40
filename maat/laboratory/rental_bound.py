"""How soon a training can end at a given cost, whatever decides on its nodes.

A bound on all autoscalers: restarts are free and the future is known.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from maat.laboratory.rented import Training
from maat.models.truth import Truth, gain
from maat.scheduling.arrays import FloatArray, IntArray


def fastest_epochs(training: Training) -> FloatArray:
    """Return the least seconds of each of E epochs on 1 to N nodes, shape (E, N).

    With the best of all batch sizes and accumulations, by the true step times and gradients
    (Pollux eq. 13). Infinite where no plan fits.
    """
    model = training.model.under(training.fidelity)
    truth, node = model.truth, training.cluster.nodes[0]
    ends = np.asarray(truth.epoch_ends)
    work = np.diff(ends, prepend=0.0)
    columns = [
        work / _best_goodput(truth, node.gpu_type, (node.gpu_count,) * count, len(ends))
        for count in range(1, len(training.cluster.nodes) + 1)
    ]
    return np.stack(columns, axis=1)


def _best_goodput(truth: Truth, gpu_type: str, shape: tuple[int, ...], epochs: int) -> FloatArray:
    """Return the most effective samples per second of each epoch on these GPUs, shape (E,)."""
    totals, seconds = _plans(truth, gpu_type, shape)
    best = np.zeros(epochs)
    for epoch in range(epochs):
        worth = np.array(
            [
                gain(truth.gradient(epoch, total), total / truth.initial_batch_size)
                for total in totals.tolist()
            ]
        )
        best[epoch] = (truth.initial_batch_size * worth / seconds).max(initial=0.0)
    return best


def _plans(truth: Truth, gpu_type: str, shape: tuple[int, ...]) -> tuple[IntArray, FloatArray]:
    """Return every total batch size, and the seconds of its fastest step, shapes (B,)."""
    gpus, fastest = sum(shape), dict[int, float]()
    most = truth.largest_per_gpu(gpu_type, gpus)
    for batch in range(truth.smallest_per_gpu(gpu_type), most + 1):
        step = truth.step(gpu_type, shape, batch)
        for passes in range(1, truth.max_batch_size // (gpus * batch) + 1):
            total = gpus * batch * passes
            seconds = step.with_accumulation(passes - 1) * truth.slowdown
            if total >= truth.initial_batch_size and seconds < fastest.get(total, np.inf):
                fastest[total] = seconds
    totals = np.array(sorted(fastest), dtype=np.int64)
    return totals, np.array([fastest[total] for total in totals.tolist()])


def least_seconds(seconds: FloatArray, *, node_seconds: float) -> float:
    """Return a lower bound on the time of every schedule that costs at most `node_seconds`.

    By weak duality it is, for any price q of a node-second, the sum over epochs of
    min_n t(n) (1 + q n), less q times the cost; the best q is taken. Schedules that change nodes
    within an epoch are bounded, too. At a cost that no schedule keeps it grows without end.

    Args:
        seconds: Of each epoch on 1 to N nodes, shape (E, N).
        node_seconds: The cost that may be spent.
    """
    nodes = np.arange(1, seconds.shape[1] + 1)

    def bound(price: float) -> float:
        return float((seconds * (1 + price * nodes)).min(axis=1).sum() - price * node_seconds)

    found = minimize_scalar(lambda p: -bound(p), bounds=(0.0, 1e3), method="bounded")
    return max(bound(float(found.x)), bound(0.0))
