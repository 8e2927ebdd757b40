"""The simulations of SJF-BSBF's evaluation: its six policies, its cluster, one scenario for all.

The paper publishes no jobs, no seed and no interference: docs/sharing.md says what stands in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from maat.papers.bench import Bench
from maat.papers.items import Outcomes
from maat.papers.observation import Observation
from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import suiting_placer
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import Fidelity, fidelity
from maat.simulation.interference import Interference, synthetic
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import Model, catalog_models
from maat.vocabulary import Adaptivity, ProfilingMode
from maat.workloads.sharing import USUAL, SharingShape, sharing_workload
from maat.workloads.workloads import Workload

CLUSTER = "t4=16x4"  # section VI-A: 16 servers of 4 GPUs
ROUND_SECONDS = 60.0
SIZES = (240, 480)  # tables III and IV


@dataclass(frozen=True)
class Contender:
    """A policy of the paper, its parameters and its jobs per GPU.

    `adaptivity`: of all jobs. Rigid ones keep GPU count and batch size, and their lengths are
    known; the speed of others is learned as they run.
    """

    policy: str
    jobs_per_gpu: int = 1
    parameters: tuple[tuple[str, object], ...] = ()
    adaptivity: Adaptivity = Adaptivity.RIGID

    @property
    def fidelity(self) -> Fidelity:
        rigid = self.adaptivity is Adaptivity.RIGID
        profiling = ProfilingMode.REQUEST_ORACLE if rigid else ProfilingMode.NO_PROFILE
        return replace(fidelity("paper").revealing(profiling), calibrated=False)


UNINFORMED = "SJF that knows no lengths"  # FIFO; later jobs may pass one that does not fit
FFS, BSBF, AS_PRINTED = "SJF-FFS", "SJF-BSBF", "SJF-BSBF as printed"
CONTENDERS: Mapping[str, Contender] = {
    "FIFO": Contender("fifo"),
    "SJF": Contender("sjf-bsbf"),  # with one job per GPU it shares nothing
    UNINFORMED: Contender("fifo", parameters=(("head_of_line", "backfill"),)),
    "Tiresias": Contender("tiresias", parameters=(("thresholds", "700"),)),  # the authors' code
    "Pollux": Contender("pollux", adaptivity=Adaptivity.ADAPTIVE),
    "Pollux, batch sizes kept": Contender("pollux", adaptivity=Adaptivity.STRONG_SCALING),
    FFS: Contender("sjf-ffs", 2),
    AS_PRINTED: Contender("sjf-bsbf", 2, (("by_placement", False),)),
    BSBF: Contender("sjf-bsbf", 2),
}
POLLUXES = ("Pollux", "Pollux, batch sizes kept")  # the paper does not say which of them it ran
PUBLISHED = ("FIFO", "SJF", "Tiresias", "Pollux", FFS, BSBF)


def scenario(
    workload: Workload,
    contender: str,
    *,
    interference: Interference | None = None,
    cluster: str = CLUSTER,
    models: Mapping[str, Model] | None = None,
    round_seconds: float = ROUND_SECONDS,
    seed: int = 0,
) -> Scenario:
    """Return a simulation under a contender.

    `interference`: where jobs share; None: the declared table. `models`: None: the catalog's.
    """
    of = CONTENDERS[contender]
    conditions = Conditions(
        fidelity=of.fidelity,
        rigid_share=float(of.adaptivity is Adaptivity.RIGID),
        strong_scaling_share=float(of.adaptivity is Adaptivity.STRONG_SCALING),
        interference=(interference or synthetic()) if of.jobs_per_gpu > 1 else None,
    )
    return Scenario(
        workload,
        catalog_models() if models is None else models,
        replace(Cluster.parse(cluster), jobs_per_gpu=of.jobs_per_gpu),
        policy=of.policy,
        placer=suiting_placer(of.policy),
        policy_parameters=dict(of.parameters),
        conditions=conditions,
        round_seconds=round_seconds,
        seed=seed,
    )


def jobs_of(bench: Bench, jobs: int, seed: int, shape: SharingShape = USUAL) -> Workload:
    """Return jobs like the paper's; as `--generate sharing`."""
    return bench.sized(_drawn(jobs, seed, shape))


@lru_cache(maxsize=32)  # the seeds of one number of jobs, which all contenders run
def _drawn(jobs: int, seed: int, shape: SharingShape) -> Workload:
    return sharing_workload(jobs, seed=seed, shape=shape)


def seeds(bench: Bench, contender: str) -> Sequence[int]:
    """Return the seeds of tables III and IV: fewer for Pollux, whose search takes long."""
    if contender in POLLUXES:
        return bench.pick(range(5), quick=range(1))
    return bench.pick(range(20), quick=range(2), tiny=range(1))


def of(outcomes: Outcomes, *label: str) -> Mapping[str, Observation]:
    """Return the runs whose label begins so, by its last word: the seed."""
    return {key[-1]: run for key, run in outcomes.items() if key[:-1] == label}


def each(runs: Iterable[Any], figure: str) -> list[float]:
    """Return a figure of every run that has it."""
    return [run.figures[figure] for run in runs if figure in run.figures]
