"""How unequal GPUs are, as placers read it: scores by class of applications. Pure.

Jobs whose owners give measured utilisation fall into classes (PAL section III-A), as soon as there
are as many kinds as classes. All others share one class. A class's score of a GPU is what all jobs
of its models say together (`maat.scheduling.evidence.compared`); a GPU that nobody compared has the
median's, 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from backend.attempts.comparisons import MeasuredScore, by_attempt
from maat.scheduling.application_classes import Utilisation, classify
from maat.scheduling.cluster import Cluster
from maat.scheduling.evidence import Comparison, ModelKey, compared, relative_scores

ALL = "all"
"""The class of jobs of which no utilisation is known; it comes after A, B and C."""
CLASS_COUNT = 3  # as in PAL
_DIGITS = 2  # of a score. Placers form their bins again when a score changes, so noise must not

NO_CLASSES: Mapping[ModelKey, str] = MappingProxyType({})


def classes_of(
    utilisation: Mapping[ModelKey, Mapping[str, float]],
) -> Mapping[ModelKey, str]:
    """Return the class of every application of measured utilisation; none if they are too few."""
    keys = sorted(utilisation)
    measured = [
        Utilisation(utilisation[key]["dram"], utilisation[key]["functional_unit"]) for key in keys
    ]
    if len(set(measured)) < CLASS_COUNT:
        return NO_CLASSES
    numbered = {str(number): each for number, each in enumerate(measured)}
    members = classify(numbered, class_count=CLASS_COUNT).members
    return {key: members[str(number)] for number, key in enumerate(keys)}


def scores_of(
    cluster: Cluster, measured: Sequence[MeasuredScore], classes: Mapping[ModelKey, str]
) -> Mapping[str, tuple[float, ...]]:
    """Return the scores of every GPU by class, shape (G,) each; empty if nothing was measured."""
    first = dict(zip((n.id for n in cluster.nodes), cluster.node_offsets.tolist(), strict=False))
    size = {node.id: node.gpu_count for node in cluster.nodes}
    there = [one for one in measured if one.index < size.get(one.node, 0)]
    names = {ALL} | {classes.get(one.model, ALL) for one in there} if there else set()
    found: dict[str, tuple[float, ...]] = {}
    for name in sorted(names):
        of_class = [one for one in there if name in (ALL, classes.get(one.model, ALL))]
        found[name] = _scores(cluster, by_attempt(of_class, first))
    return found


def _scores(cluster: Cluster, comparisons: Sequence[Comparison]) -> tuple[float, ...]:
    """Return the score of every GPU, shape (G,)."""
    found = relative_scores(compared(comparisons), cluster.gpu_type_of.tolist())
    return tuple(round(found.get(gpu, 1.0), _DIGITS) for gpu in range(cluster.gpu_count))
