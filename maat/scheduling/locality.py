"""How much slower a model steps across nodes than within one: PAL's L_across, from step times.

Reads step times that somebody has accepted; knows neither who measured them nor where they are
kept. PAL (section IV-D) divides the mean times of two runs. Here each configuration that was
measured both ways gives a ratio, and the median of them is the penalty: a run that a slow GPU or a
full disk held up moves it little.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from maat.scheduling.evidence import ENOUGH_REPORTS, Evidence, pooled, weight_of

LEAST_STEPS = 30
"""Steps of a mean that counts: of fewer, one step that a disk held up may be all that is seen."""
MOST_PENALTY = 10.0
"""Slower than that across nodes, something is broken; PAL measured 1.7 at most."""

_DIGITS = 2  # placers order their matrix again when a penalty changes, so noise must not change it


class StepTimes(NamedTuple):
    """The mean time of steps that one job made in one configuration, alone on its GPUs.

    `age_seconds`: since the last of them.
    """

    gpu_type: str
    node_count: int
    replica_count: int
    per_gpu_batch_size: int
    accumulation_steps: int
    steps: int
    mean_seconds: float
    age_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class MeasuredPenalty:
    """The locality penalty of a model on one GPU type, and what it was estimated from.

    `penalty`: from 1 to MOST_PENALTY. `configurations`: how many were measured within a node and
    across nodes. `steps`: of all their means.
    """

    penalty: float
    configurations: int
    steps: int


def measured_penalties(times: Iterable[StepTimes]) -> Mapping[str, MeasuredPenalty]:
    """Return the penalty of one model by GPU type; a type without evidence is left out.

    A configuration (replicas, batch per GPU, passes) counts if it was measured on one node and on
    several, each by a mean of LEAST_STEPS steps. Its ratio is the median of the means across nodes
    over that of the means within one.
    """
    by_type: dict[str, dict[tuple[int, int, int], list[StepTimes]]] = defaultdict(dict)
    for one in times:
        if one.steps >= LEAST_STEPS and one.replica_count > 1 and one.mean_seconds > 0:
            key = (one.replica_count, one.per_gpu_batch_size, one.accumulation_steps)
            by_type[one.gpu_type].setdefault(key, []).append(one)
    found = {gpu_type: _penalty(groups.values()) for gpu_type, groups in sorted(by_type.items())}
    return {gpu_type: penalty for gpu_type, penalty in found.items() if penalty is not None}


def pooled_penalties(
    of_tenants: Mapping[str, Sequence[StepTimes]],
) -> Mapping[str, MeasuredPenalty]:
    """Return the penalty of a model by GPU type, from what each tenant's jobs of it measured.

    The median over tenants, none with more than half of the weight. What is old counts less: in
    its place none, 1.
    """
    evidence: dict[str, list[Evidence]] = defaultdict(list)
    measured: dict[str, list[MeasuredPenalty]] = defaultdict(list)
    for tenant, times in of_tenants.items():
        for gpu_type, found in measured_penalties(times).items():
            age = min(one.age_seconds for one in times if one.gpu_type == gpu_type)
            weight = weight_of(ENOUGH_REPORTS, age)
            evidence[gpu_type].append(Evidence(tenant, found.penalty, weight))
            measured[gpu_type].append(found)
    return {
        gpu_type: MeasuredPenalty(
            bounded_penalty(pooled(evidence[gpu_type]).believed),
            sum(one.configurations for one in found),
            sum(one.steps for one in found),
        )
        for gpu_type, found in sorted(measured.items())
    }


def penalty_of_ratios(ratios: Sequence[float], *, steps: int) -> MeasuredPenalty:
    """Return the penalty of one ratio at least, each of a configuration, from so many steps."""
    return MeasuredPenalty(bounded_penalty(statistics.median(ratios)), len(ratios), steps)


def bounded_penalty(ratio: float) -> float:
    """Return a ratio of step times as a penalty: at least 1, at most MOST_PENALTY, two digits."""
    return round(min(max(ratio, 1.0), MOST_PENALTY), _DIGITS)


def _penalty(groups: Iterable[Sequence[StepTimes]]) -> MeasuredPenalty | None:
    both = [group for group in groups if len({one.node_count > 1 for one in group}) == 2]
    if not both:
        return None
    steps = sum(one.steps for group in both for one in group)
    return penalty_of_ratios([_ratio(group) for group in both], steps=steps)


def _ratio(group: Sequence[StepTimes]) -> float:
    within = [one.mean_seconds for one in group if one.node_count == 1]
    across = [one.mean_seconds for one in group if one.node_count > 1]
    return statistics.median(across) / statistics.median(within)
