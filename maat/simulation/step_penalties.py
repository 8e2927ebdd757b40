"""What a step across nodes costs a model by its own step times: what a profile of it would show.

PAL takes it from two runs before the cluster runs at all (section IV-D). Here the runs are those of
the model's truth: every number of GPUs that fits a node, at a few batch sizes, on one node and on
two. Measured profiles hold both; the catalog's models are fitted to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from maat.models.truth import Truth
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.scheduling.locality import penalty_of_ratios

_BATCH_SIZES = 5


def step_penalties(
    truth: Truth, cluster: Cluster, gpus_per_replica: Mapping[str, int]
) -> Mapping[str, float]:
    """Return the median ratio of steps on two nodes and on one, by GPU type, where it is above 1.

    A type is left out on which no job of several replicas fits a node.
    """
    sizes = dict(zip(cluster.type_names, cluster.gpus_per_node.tolist(), strict=True))
    found = {}
    for gpu_type in sorted(set(truth.gpu_types()) & set(sizes)):
        unit = gpus_per_replica.get(gpu_type, 1)
        ratios = list(_ratios(truth, gpu_type, sizes[gpu_type], unit))
        if ratios and (penalty := penalty_of_ratios(ratios, steps=len(ratios)).penalty) > 1:
            found[gpu_type] = penalty
    return found


def _ratios(truth: Truth, gpu_type: str, node_gpus: int, unit: int) -> Iterator[float]:
    for count in range(2 * unit, node_gpus + 1, unit):
        left = count // unit // 2 * unit
        for batch in _batch_sizes(truth, gpu_type, count):
            try:
                within = truth.step(gpu_type, (count,), batch).step_seconds
                across = truth.step(gpu_type, (count - left, left), batch).step_seconds
            except InputError:  # a table of throughputs lacks this number of GPUs
                continue
            yield across / within


def _batch_sizes(truth: Truth, gpu_type: str, gpu_count: int) -> list[int]:
    """Return sizes from the smallest that fits a GPU to the largest, evenly by their logarithm."""
    least, most = truth.smallest_per_gpu(gpu_type), truth.largest_per_gpu(gpu_type, gpu_count)
    if most < max(least, 1):
        return []
    return sorted(set(np.geomspace(max(least, 1), most, _BATCH_SIZES).round().astype(int).tolist()))
