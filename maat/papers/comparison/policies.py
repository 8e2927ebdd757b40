"""Every policy with the placer that suits it, on one trace; the others against Sia, job by job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from maat.figures.data import Estimate
from maat.figures.ratios import ratios
from maat.laboratory.comparison import Contestant, Outcome, PairedDifference, paired
from maat.papers.bench import Bench
from maat.papers.items import Item, Outcomes, Row, Runs, Shown, WithRho
from maat.papers.observation import Observation
from maat.papers.sia.policies import MEASURES
from maat.papers.sia.runs import HETEROGENEOUS, USES, firsts, of
from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.simulation.conditions import Conditions
from maat.simulation.interference import interference
from maat.simulation.scenario import Scenario

BASELINE = "sia"
SHARING = ("sjf-ffs", "sjf-bsbf")
QUICK = (BASELINE, "fifo", "tiresias", "gavel", "pollux", *SHARING)
TRACE = "philly-1"
CLUSTER = Cluster.parse(HETEROGENEOUS)
LOSING = Conditions(interference=interference("synthetic"))
FIGURES = {
    **{name: title for name, title in MEASURES.items() if not name.startswith("contention")},
    "worst_rho": "worst rho",
    "unfair_fraction": "share with rho above 1",
    "unfinished": "unfinished",
}


def _runs(bench: Bench) -> Runs:
    """Policies that share GPUs may put two jobs on one, under the declared interference."""
    names = bench.pick(
        tuple(entry.name for entry in POLICIES.built_in),
        quick=QUICK,
        tiny=(BASELINE, "fifo", SHARING[0]),
    )
    models = bench.sia_models()
    workload = bench.sia_trace("philly", 1, models)
    return {
        (f"{name} + {suiting_placer(name)}",): WithRho(
            Scenario(
                workload,
                models,
                replace(CLUSTER, jobs_per_gpu=2) if name in SHARING else CLUSTER,
                policy=name,
                placer=suiting_placer(name),
                conditions=LOSING if name in SHARING else Conditions(),
            )
        )
        for name in names
    }


def _shown(bench: Bench, outcomes: Outcomes) -> Shown:
    names = firsts(outcomes)
    against = _against_baseline(outcomes)
    rows = [
        Row((name,), title, [of(outcomes, name).figures[figure]])
        for name in names
        for figure, title in FIGURES.items()
    ]
    rows += [
        Row((each.contestant.name,), measure, [value])
        for each in against
        for measure, value in _differences(each).items()
    ]
    return Shown(
        ("policy + placer",),
        rows,
        why=(
            f"Nobody published this comparison: philly-1 ({_job_count(outcomes)} jobs) on "
            f"{HETEROGENEOUS}, fidelity paper, seed 0. Intervals are over the jobs of this one "
            "run, and say nothing of other traces. Jobs of policies that adapt nothing run with "
            "the GPU count and batch size of the trace; SJF-FFS and SJF-BSBF may put two jobs on a "
            "GPU, and what these lose is a declared table, for nobody measured these models "
            "together."
        ),
        figure=ratios(
            {
                each.contestant.name: Estimate(each.ratio.estimate, each.ratio.low, each.ratio.high)
                for each in against
                if each.ratio.low is not None
            },
            x=f"JCT relative to {names[0]}, geometric mean over jobs",
        ),
    )


def _job_count(outcomes: Outcomes) -> int:
    run: Observation = next(iter(outcomes.values()))
    return len(run.jobs["name"])


def _against_baseline(outcomes: Outcomes) -> Sequence[PairedDifference]:
    ran = [_outcome(name, of(outcomes, name)) for name in firsts(outcomes)]
    return paired(ran, ran[0].contestant)


def _outcome(name: str, run: Observation) -> Outcome:
    policy, placer = name.split(" + ")
    jct = zip(run.jobs["name"], run.jobs["jct_seconds"], strict=True)
    hours = {str(job): float(seconds) / 3600 for job, seconds in jct if seconds is not None}
    return Outcome(Contestant(policy, placer), TRACE, 0, run.figures, hours)


def _differences(each: PairedDifference) -> Mapping[str, float]:
    """Return what is said of the policy against the baseline; without ends, one job finished."""
    told: dict[str, float | None] = {
        "JCT less Sia's, h": each.difference_hours.estimate,
        "least of it (95 %)": each.difference_hours.low,
        "most of it (95 %)": each.difference_hours.high,
        "JCT / Sia's": each.ratio.estimate,
        "least of the ratio": each.ratio.low,
        "most of the ratio": each.ratio.high,
        "jobs sooner, %": 100 * each.sooner,
    }
    return {measure: value for measure, value in told.items() if value is not None}


ITEMS = (
    Item(
        "policies",
        "Every policy with its own placer, and JCT against Sia's, job by job",
        _shown,
        runs=_runs,
        uses=USES[:2],
        cpu_minutes=(None, 4.0),
    ),
)
