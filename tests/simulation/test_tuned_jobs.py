"""TunedJobs: which GPU counts and batch sizes jobs are given, and that they keep them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation.small import under

from maat.laboratory.content import content_key
from maat.laboratory.setup import GivenTrace, Setup
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ParameterError
from maat.scheduling.job import Allocation
from maat.scheduling.regimes import Regime
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.executor import SimulatedExecutor, epoch_ends
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.scenario import Scenario
from maat.simulation.simulated_job import SimulatedJob
from maat.simulation.tuned_jobs import TunedJobs, tuned, valid_pairs
from maat.simulation.world import World
from maat.simulation.world_models import Model, catalog_models
from maat.vocabulary import Adaptivity, TuningRule, WorkloadKind
from maat.workloads.generators import generate
from maat.workloads.workloads import TraceJob, Workload

MODELS = catalog_models()
CLUSTER = Cluster.parse("t4=6x4,rtx=3x8,a100=2x8")
TRAINED = sorted(name for name, model in MODELS.items() if not model.gpus_per_replica)


def run_seconds(model: Model, gpu_type: str, job: TraceJob, per_node: int) -> float:
    """Return the simulated seconds of a training on these GPUs at this batch size.

    The start costs nothing.
    """
    declared = model.job_spec(job, FIDELITIES["paper"], adaptivity=Adaptivity.RIGID)
    lone = SimulatedJob(
        declared,
        model.truth,
        0.0,
        epoch_ends(model.truth, 1.0, ()),
        model.truth.max_batch_size,
    )
    whole, rest = divmod(job.gpu_count, per_node)
    shape = (per_node,) * whole + ((rest,) if rest else ())
    lone.hold(
        Allocation(gpu_type, tuple(range(job.gpu_count))), shape, None, restarts=True, now=0.0
    )
    lone.advance(0.0, float("inf"), fitter=lambda _: None, whole_second_epochs=False)  # type: ignore[arg-type, return-value]
    assert lone.finished_at is not None
    return lone.finished_at


@settings(max_examples=25)
@given(
    name=st.sampled_from(TRAINED),
    shape=st.sampled_from(("t4=16x4", "a100=4x8", "t4=6x4,rtx=3x8,a100=2x8")),
    rule=st.sampled_from(TuningRule),
    seed=st.integers(0, 5),
)
def test_every_pair_that_is_drawn_is_within_the_band_as_the_simulator_runs_it(
    name: str, shape: str, rule: TuningRule, seed: int
) -> None:
    cluster, model, how = Cluster.parse(shape), MODELS[name], TunedJobs(rule)
    pairs = valid_pairs(model, cluster, how)
    job = tuned(
        [TraceJob(name="j", submit_seconds=0.0, model=name, gpu_count=7, batch_size=1)],
        MODELS,
        cluster,
        how,
        seed=seed,
    )["j"]
    chosen = next(
        pair
        for pair in pairs
        if (pair.gpu_count, pair.batch_size) == (job.gpu_count, job.batch_size)
    )
    kind = min(cluster.type_names, key=lambda t: model.memory[t].largest_per_gpu)
    per_node = int(cluster.gpus_per_node[cluster.type_index[kind]])
    alone = [
        pair
        for pair in valid_pairs(model, cluster, TunedJobs(rule, 1, 1e-9, 1e9))
        if pair.gpu_count == 1
    ]
    best = min(
        run_seconds(
            model,
            kind,
            TraceJob(
                name="b", submit_seconds=0.0, model=name, gpu_count=1, batch_size=pair.batch_size
            ),
            per_node,
        )
        for pair in alone
    )
    share = best / run_seconds(model, kind, job, per_node) / job.gpu_count
    assert share == pytest.approx(chosen.share, rel=1e-6)
    assert (0.5 <= chosen.share <= 0.8) or len(pairs) == 1
    assert job.gpu_count <= 16


def test_of_each_count_pollux_looks_at_its_best_batch_size_alone() -> None:
    every = valid_pairs(MODELS["cifar10"], CLUSTER, TunedJobs(TuningRule.ANY_PAIR))
    best = valid_pairs(MODELS["cifar10"], CLUSTER, TunedJobs(TuningRule.BEST_BATCH))
    counts = [pair.gpu_count for pair in best]
    assert len(set(counts)) == len(counts) > 5
    assert set(best) <= set(every)
    for pair in best:
        assert pair.share == max(
            other.share for other in every if other.gpu_count == pair.gpu_count
        )


def test_a_model_that_never_comes_into_the_band_gets_the_nearest_pair() -> None:
    """On one node of four T4, all four GPUs still reach more than 80 % of the ideal speed.

    The model is ImageNet at its best batch size.
    """
    pairs = valid_pairs(MODELS["imagenet"], Cluster.parse("t4=1x4"), TunedJobs())
    assert [pair.gpu_count for pair in pairs] == [4]
    assert pairs[0].share > 0.8


def test_the_same_seed_draws_the_same_pairs_and_another_one_others() -> None:
    jobs = [
        TraceJob(name=f"j{n}", submit_seconds=0.0, model=name, gpu_count=1)
        for n, name in enumerate(["cifar10", "bert"] * 20)
    ]
    first, again, other = (
        tuned(jobs, MODELS, CLUSTER, TunedJobs(), seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_hybrid_parallel_jobs_and_those_that_adapt_themselves_stay_as_they_are() -> None:
    jobs = [
        TraceJob(name="gpt", submit_seconds=0.0, model="gpt", gpu_count=8),
        TraceJob(
            name="own",
            submit_seconds=0.0,
            model="cifar10",
            gpu_count=1,
            batch_size=128,
            regimes=(Regime(128, 3),),
        ),
    ]
    assert tuned(jobs, MODELS, CLUSTER, TunedJobs(), seed=0) == {}


@pytest.mark.parametrize(
    "bound",
    [
        {"adaptivity": Adaptivity.RIGID},
        {"adaptivity": Adaptivity.STRONG_SCALING},
        {"preemptible": False},
        {"workload_kind": WorkloadKind.BATCH_INFERENCE},
        {"workload_kind": WorkloadKind.LATENCY_INFERENCE, "promised_seconds": 1.0},
    ],
)
def test_jobs_that_are_bound_to_what_they_ask_for_stay_as_they_are(
    bound: dict[str, object],
) -> None:
    job, free = (
        TraceJob(
            name="bound", submit_seconds=0.0, model="cifar10", gpu_count=3, batch_size=200, **bound
        ),
        TraceJob(name="free", submit_seconds=0.0, model="cifar10", gpu_count=3, batch_size=200),
    )  # type: ignore[arg-type]
    assert set(tuned([job, free], MODELS, CLUSTER, TunedJobs(), seed=0)) == {"free"}
    assert tuned([job, free], MODELS, CLUSTER, TunedJobs(), seed=0) == tuned(
        [free, free], MODELS, CLUSTER, TunedJobs(), seed=0
    ), "the draw"


def test_a_tuned_job_stays_within_what_its_owner_lets_anybody_choose() -> None:
    bounds = {"min_gpus": 2, "max_gpus": 3, "max_batch_size": 1024}
    jobs = [
        TraceJob(name=f"j{i}", submit_seconds=0.0, model="cifar10", gpu_count=2, **bounds)
        for i in range(30)
    ]  # type: ignore[arg-type]
    drawn = tuned(jobs, MODELS, CLUSTER, TunedJobs(TuningRule.ANY_PAIR), seed=0).values()
    assert {job.gpu_count for job in drawn} <= {2, 3}
    assert 0 < max(job.batch_size or 0 for job in drawn) <= 1024


@pytest.mark.parametrize("values", [{"most_gpus": 0}, {"least_share": 0.0}, {"least_share": 0.9}])
def test_a_tuning_that_nothing_could_meet_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(ParameterError) as caught:
        TunedJobs(**values)  # type: ignore[arg-type]
    assert caught.value.field in values


def scenario(**changes: object) -> Scenario:
    jobs = tuple(
        TraceJob(
            name=f"j{n}",
            submit_seconds=30.0 * n,
            model="cifar10",
            gpu_count=1,
            batch_size=128,
            work_scale=0.2,
        )
        for n in range(4)
    )
    return under(
        Scenario(Workload("w", jobs, "sia"), MODELS, CLUSTER), **{"tuned": TunedJobs(), **changes}
    )


def test_tuned_jobs_are_rigid_under_every_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    submit = SimulatedExecutor.submit
    monkeypatch.setattr(
        SimulatedExecutor,
        "submit",
        lambda self, spec, *rest, **named: (seen.append(spec), submit(self, spec, *rest, **named)),
    )
    played = scenario()
    result = simulate(played)
    wanted = World.of(played).tuned_jobs
    assert [(s.adaptivity, s.gpu_count, s.batch_size) for s in seen] == [
        (Adaptivity.RIGID, wanted[s.id].gpu_count, wanted[s.id].batch_size) for s in seen
    ]
    counts = {span.job: span.gpu_count for span in result.spans if span.gpu_count}
    assert counts == {name: job.gpu_count for name, job in wanted.items()}


def test_jobs_that_a_study_or_a_fidelity_binds_are_not_tuned_but_run_as_the_trace_says() -> None:
    half = World.of(scenario(rigid_share=0.25, strong_scaling_share=0.25))
    assert sorted(half.adaptivity[name] for name in half.tuned_jobs) == [Adaptivity.ADAPTIVE] * 2
    jobs = (
        TraceJob(
            name="n", submit_seconds=0.0, model="ncf", gpu_count=1, batch_size=32768, work_scale=0.1
        ),
        TraceJob(
            name="c",
            submit_seconds=0.0,
            model="cifar10",
            gpu_count=1,
            batch_size=128,
            work_scale=0.1,
        ),
    )
    conditions = Conditions(FIDELITIES["pollux-artifact"], tuned=TunedJobs())
    bound = Scenario(Workload("w", jobs, "sia"), MODELS, CLUSTER, conditions=conditions)
    assert set(World.of(bound).tuned_jobs) == {"c"}


@pytest.mark.parametrize("family", ["philly", "helios", "newtrace"])
def test_generated_traces_are_tuned_too(family: str) -> None:
    workload = generate(family, jobs=12, hours=0.5, seed=3, work_scale=0.05)
    played = Scenario(
        workload,
        MODELS,
        CLUSTER,
        policy="fifo",
        placer="packed-sticky",
        conditions=Conditions(tuned=TunedJobs()),
    )
    assert set(World.of(played).tuned_jobs) == {
        job.name for job in workload.jobs if not MODELS[job.model].gpus_per_replica
    }
    assert simulate(played).complete


def test_a_tuned_simulation_is_another_one_and_sweeps_know_it() -> None:
    plain, once = scenario(tuned=None), scenario()
    assert (
        len(
            {
                content_key(s)
                for s in (plain, once, under(once, tuned=TunedJobs(TuningRule.ANY_PAIR)))
            }
        )
        == 3
    )
    setup = Setup(
        GivenTrace(plain.workload),
        MODELS,
        Cluster.parse("t4=6x4,rtx=3x8,a100=2x8"),
        conditions=Conditions(tuned=TunedJobs()),
    )
    assert setup.scenario().conditions.tuned == TunedJobs()


def test_the_command_line_tunes_jobs(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "name,time,application,num_replicas,batch_size,work_scale\na,0,cifar10,1,128,0.05\n",
        encoding="utf-8",
    )
    command = [
        sys.executable,
        "-m",
        "maat",
        "simulate",
        str(trace),
        "--cluster",
        "t4=4x4",
        "--policy",
        "fifo",
        "--json",
    ]
    run = [*command, "--tuned", "best-batch", "--tuned-gpus", "8"]
    done = subprocess.run(
        run,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    plain = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=120,
    )
    assert json.loads(done.stdout)["avg_jct_hours"] < json.loads(plain.stdout)["avg_jct_hours"]
