"""The simulations of `benchmarks.sharing`: workload and stored outcomes.

Measures no speed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from benchmarks.sharing.variations import AS_FIXED, VARIATIONS, Setting, scaled, with_setting
from maat.scheduling.belief import MemoisingFitter
from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import suiting_placer
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import Fidelity, fidelity
from maat.simulation.interference import interference
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.vocabulary import Adaptivity, ProfilingMode
from maat.workloads.sharing import GPU_TYPE, GPUS_PER_NODE, SharingShape, sharing_workload
from maat.workloads.workloads import Workload

NODES = 16
ROUND_SECONDS = 60.0
SEEDS, SIZES = tuple(range(20)), (240, 480)
FITTER = MemoisingFitter()  # of this process: runs share their models
MILD_XI = 1.25  # up to which the paper has both sharing policies alike
XI_SEEDS, XIS = tuple(range(5)), (1.0, 1.25, 1.5, 1.75, 2.0)
DECISION_SEEDS, DECISION_XIS = (
    tuple(range(5)),
    (1.1, 1.2, 1.3, 1.4),
)  # run afterwards, as are the variations


@dataclass(frozen=True, slots=True)
class Contender:
    """A row of the tables: a policy, its parameters, and its jobs per GPU.

    `adaptivity`: of all jobs. Rigid ones keep GPU count and batch size, and all is known of them;
    the speed of others is learned as they run.
    """

    policy: str
    jobs_per_gpu: int = 1
    parameters: tuple[tuple[str, object], ...] = ()
    adaptivity: Adaptivity = Adaptivity.RIGID

    @property
    def shares(self) -> dict[str, float]:
        """The shares of the conditions that make all jobs so."""
        return {
            "rigid_share": float(self.adaptivity is Adaptivity.RIGID),
            "strong_scaling_share": float(self.adaptivity is Adaptivity.STRONG_SCALING),
        }

    @property
    def profiling(self) -> ProfilingMode:
        rigid = self.adaptivity is Adaptivity.RIGID
        return ProfilingMode.REQUEST_ORACLE if rigid else ProfilingMode.NO_PROFILE


CONTENDERS = {
    "FIFO": Contender("fifo"),
    "Tiresias": Contender("tiresias", parameters=(("thresholds", "700"),)),
    "SJF": Contender("sjf-bsbf"),
    "SJF-FFS": Contender("sjf-ffs", 2),
    "SJF-BSBF as printed": Contender("sjf-bsbf", 2, (("by_placement", False),)),
    "SJF-BSBF": Contender("sjf-bsbf", 2),
}
# FIFO in which later jobs may pass one that does not fit; run afterwards.
UNINFORMED = "SJF that knows no lengths"
EXTRA = {UNINFORMED: Contender("fifo", parameters=(("head_of_line", "backfill"),))}
# Run afterwards. The paper does not say whether its Pollux tuned batch sizes, so both are played.
ELASTIC_SEEDS = tuple(range(5))
ELASTIC = {
    "Pollux": Contender("pollux", adaptivity=Adaptivity.ADAPTIVE),
    "Pollux, batch sizes kept": Contender("pollux", adaptivity=Adaptivity.STRONG_SCALING),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation.

    `interference`: as `maat simulate --interference` takes it. `nodes`: how many hold the 64 GPUs;
    on one, spreading costs nothing.
    """

    contender: str
    jobs: int
    seed: int
    interference: str = "synthetic"
    nodes: int = NODES
    variation: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is stored of a run: averages in hours.

    They cover all jobs, those that ask for more than 4 GPUs, and the others.
    """

    jct: float
    jct_large: float
    jct_small: float
    queueing: float
    queueing_large: float
    queueing_small: float
    unfinished: int
    cpu_seconds: float


Outcomes = Mapping[Run, Outcome]


def known(profiling: ProfilingMode = ProfilingMode.REQUEST_ORACLE) -> Fidelity:
    """Return the fidelity: by default all of a job is known; training follows the step times."""
    return replace(fidelity("paper").revealing(profiling), calibrated=False)


def play(run: Run) -> Outcome:
    contender, setting = (
        {**CONTENDERS, **EXTRA, **ELASTIC}[run.contender],
        VARIATIONS[run.variation],
    )
    scenario = Scenario(
        workload(run.jobs, run.seed, setting),
        {name: with_setting(model, setting) for name, model in catalog_models().items()},
        replace(
            Cluster.parse(f"{GPU_TYPE}={run.nodes}x{NODES * GPUS_PER_NODE // run.nodes}"),
            jobs_per_gpu=contender.jobs_per_gpu,
        ),
        policy=contender.policy,
        placer=suiting_placer(contender.policy),
        policy_parameters=dict(contender.parameters),
        conditions=Conditions(
            fidelity=known(contender.profiling),
            round_seconds=ROUND_SECONDS,
            **contender.shares,
            interference=scaled(interference(run.interference), setting.interference_scale),
        ),
        seed=run.seed,
    )
    began = time.process_time()
    m = simulate(scenario, fitter=FITTER).metrics
    return Outcome(
        jct=m.avg_jct_hours,
        jct_large=m.avg_jct_hours_large,
        jct_small=m.avg_jct_hours_small,
        queueing=m.avg_queueing_hours,
        queueing_large=m.avg_queueing_hours_large,
        queueing_small=m.avg_queueing_hours_small,
        unfinished=m.unfinished,
        cpu_seconds=time.process_time() - began,
    )


def wanted() -> list[Run]:
    """Order the quick ones first, seed by seed.

    Partial results then compare all policies.
    """
    shared = [name for name, contender in CONTENDERS.items() if contender.jobs_per_gpu > 1]
    small, large = (
        [Run(name, jobs, seed) for seed in SEEDS for name in CONTENDERS] for jobs in SIZES
    )
    constant = [
        Run(name, SIZES[0], seed, f"{xi:g}") for seed in XI_SEEDS for xi in XIS for name in shared
    ]
    nearby = [replace(run, nodes=1) for run in constant if float(run.interference) <= MILD_XI]
    elastic = [
        Run(name, jobs, seed) for jobs in SIZES for seed in ELASTIC_SEEDS for name in ELASTIC
    ]
    return [*small, *constant, *nearby, *large, *decisions(), *elastic]


def decisions() -> list[Run]:
    """Return the runs that show where SJF-FFS falls behind SJF.

    Milder constants, one thing varied at a time, and an SJF that knows less.
    """
    mild = [
        Run("SJF-FFS", SIZES[0], seed, f"{xi:g}") for seed in DECISION_SEEDS for xi in DECISION_XIS
    ]
    uninformed = [Run(UNINFORMED, jobs, seed) for jobs in SIZES for seed in DECISION_SEEDS]
    varied = [
        Run(name, SIZES[0], seed, variation=key)
        for key in VARIATIONS
        if key
        for seed in DECISION_SEEDS
        for name in ("SJF", "SJF-FFS")
    ]
    return [*mild, *uninformed, *varied]


def as_row(run: Run, outcome: Outcome) -> dict[str, object]:
    return {**asdict(run), **asdict(outcome)}


def from_row(row: dict[str, Any]) -> tuple[Run, Outcome]:
    return Run(**{f.name: row[f.name] for f in fields(Run) if f.name in row}), Outcome(
        **{f.name: row[f.name] for f in fields(Outcome)}
    )


def workload(jobs: int, seed: int, setting: Setting = AS_FIXED) -> Workload:
    """Return the jobs of docs/sharing.md: by default those of `--generate sharing`."""
    shape = SharingShape(
        setting.hours,
        setting.large_share,
        setting.mean_hours_large,
        setting.mean_hours_small,
        setting.sigma,
    )
    return sharing_workload(jobs, seed=seed, shape=shape)
