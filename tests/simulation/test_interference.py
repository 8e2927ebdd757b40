"""Tests of interference tables: where they come from, their look-up, and refusals."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InterferenceError
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import fidelity
from maat.simulation.interference import (
    Interference,
    interference,
    read_interference_text,
    read_table,
    synthetic,
)
from maat.simulation.interference_builder import synthetic_pairs
from maat.simulation.iteration_models import shipped_models
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import (
    TABLE_RESTART_SECONDS,
    Model,
    catalog_models,
    measured_models,
)
from maat.workloads.workloads import TraceJob, Workload

SIX = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
OWN = "victim,partner,gpu_count,slowdown\na,b,1,1.5\na,b,4,2\nb,a,1,1.25\na,a,1,1\nb,b,1,3\n"
PAL = """index,model1,gpu_num1,speed1,pipeline_strategy,model2,gpu_num2,speed2
0,Big,2,0.8,DP24,Empty,0,0.0
1,Big,2,0.4,DP24,Small,2,0.5
2,Big,2,0.1,TP24,Small,2,0.1
3,Huge,4,0.0,DP24,Small,4,0.0
4,Small,1,0.9,NA,Small,1,1.0
"""


def test_a_count_that_was_not_measured_has_the_figure_of_the_next_smaller_one() -> None:
    known = read_table(OWN, name="own").between({"a", "b"}, (1, 3, 4, 64))
    assert [known["a", "b", n] for n in (1, 3, 4, 64)] == [1.5, 1.5, 2.0, 2.0]
    assert known["b", "a", 64] == 1.25


def test_a_pair_that_the_table_lacks_is_an_error_and_not_a_slowdown_of_one() -> None:
    with pytest.raises(InterferenceError, match="has no slowdown of a with c"):
        read_table(OWN, name="own").between({"a", "c"}, (1,))


def test_a_constant_slows_every_job_alike() -> None:
    assert interference("1.25").between({"x", "y"}, (1, 2))["x", "y", 2] == 1.25


@pytest.mark.parametrize("given", ["0.9", "nan", "inf", "no-such-file.csv"])
def test_what_names_no_interference_is_refused(given: str) -> None:
    with pytest.raises(InterferenceError) as caught:
        interference(given)
    assert caught.value.field == "interference"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("victim,partner,gpu_count\na,b,1\n", "slowdown"),
        ("victim,partner,gpu_count,slowdown\na,b,1,0.5\n", "slowdown"),
        ("victim,partner,gpu_count,slowdown\na,b,0,1.5\n", "gpu_count"),
        ("victim,partner,gpu_count,slowdown\n", "rows"),
        ("victim,partner,gpu_count,slowdown\n,b,1,2\n", "victim"),
        (PAL.splitlines()[0] + "\n", "rows"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_by_its_field(text: str, field: str) -> None:
    with pytest.raises(InterferenceError) as caught:
        read_table(text, name="own")
    assert caught.value.field == field


def test_a_pair_that_has_two_slowdowns_is_refused_by_its_second_line() -> None:
    rows = ("bert,ncf,1,1.2", "ncf,bert,1,1.3", "bert,ncf,2,1.4", "bert,ncf,1,1.9")
    twice = "\n".join(("victim,partner,gpu_count,slowdown", *rows))
    with pytest.raises(InterferenceError, match="after that of line 2") as refused:
        read_table(twice, name="pairs.csv")
    assert (refused.value.field, refused.value.row, refused.value.value) == ("slowdown", 5, "1.9")


def test_pals_measurements_are_read_in_both_directions_and_only_where_data_parallel() -> None:
    pairs = read_table(PAL, name="pal").pairs
    assert pairs["Big", "Small"] == {2: 2.0}
    assert pairs["Small", "Big"] == {2: 2.0}
    assert pairs["Huge", "Small"] == {4: math.inf}
    assert pairs["Small", "Small"] == {1: pytest.approx(1 / 0.9)}


def test_models_that_pal_measured_but_not_beside_each_other_are_kept_apart_and_its_traces_names_are_known() -> (  # noqa: E501
    None
):
    table = read_table(PAL.replace("Huge", "Bert-Base"), name="pal")
    known = table.between({"BERT", "bert", "Small"}, (4,))
    assert known["BERT", "BERT", 4] == math.inf
    assert known["BERT", "bert", 4] == math.inf
    assert known["Small", "Small", 4] == pytest.approx(1 / 0.9)


@pytest.mark.parametrize(("batch", "size"), [(20, 20), (39, 20), (64, 40), (3, 10)])
def test_a_job_is_found_by_its_model_and_the_next_smaller_batch_that_was_measured(
    batch: int, size: int
) -> None:
    types = [f"LM (batch size {n})" for n in (10, 20, 40)]
    table = Interference(
        "types", {(a, b): {1: 1.0} for a in (*types, "A3C") for b in (*types, "A3C")}
    )
    assert table.called("LM", batch) == f"LM (batch size {size})"
    assert table.called("A3C", batch) == "A3C"
    assert table.called("unknown", batch) == "unknown"


def test_a_models_own_name_goes_before_its_types() -> None:
    table = Interference(
        "both", {("LM", "LM"): {1: 1.0}, ("LM (batch size 5)", "LM (batch size 5)"): {1: 2.0}}
    )
    assert table.called("LM", 5) == "LM"


def test_gavels_throughputs_are_read_for_one_type_and_speak_of_the_catalogs_models(
    tmp_path: Path,
) -> None:
    small, large, wide = (
        "('ResNet-18 (batch size 64)', 1)",
        "('ResNet-50 (batch size 64)', 1)",
        "('ResNet-50 (batch size 64)', 2)",
    )
    row = {
        small: {"null": 10.0, large: [5.0, 0.0]},
        large: {"null": 4.0, small: [0.0, 5.0]},
        wide: {"null": 8.0, wide: [0.0, 0.0]},
    }
    path = tmp_path / "throughputs.json"
    path.write_text(json.dumps({"v100": row, "p100": {}}))
    pairs = interference(str(path)).pairs
    assert pairs["cifar10", "imagenet"] == {1: 2.0}
    assert pairs["imagenet", "cifar10"] == {1: math.inf}
    assert ("imagenet", "imagenet") not in pairs
    with pytest.raises(InterferenceError, match="no GPU type k80"):
        interference(f"{path}#k80")


GAVEL = """{"v100": {"('A', 1)": {"null": ALONE, "('A', 1)": [5.0, 5.0]}}}"""
NO_GAVEL = (
    "",
    "[]",
    "{}",
    '{"v100": {"a": 1}}',
    '{"v100": 3}',
    '{"v100": 3, "p100": {"a": {}}}',
    "[" * 100_000,
    *(
        GAVEL.replace("ALONE", given)
        for given in ("NaN", "Infinity", "-1", '"x"', "null", "9" * 400, "9" * 5000)
    ),
)


@pytest.mark.parametrize("text", NO_GAVEL, ids=lambda text: text[:40])
def test_json_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InterferenceError):
        interference(str(path))
    if text:
        with pytest.raises(InterferenceError):
            read_interference_text(text, name="other")


def test_a_text_is_recognised_by_its_contents() -> None:
    assert read_interference_text(OWN, name="own").pairs["a", "b"] == {1: 1.5, 4: 2.0}
    assert read_interference_text(PAL, name="pal").pairs["Big", "Small"] == {2: 2.0}
    gavel = GAVEL.replace("ALONE", "10")
    assert read_interference_text(gavel, name="gavel").pairs["A", "A"] == {1: 2.0}
    with pytest.raises(InterferenceError, match="no GPU type p100"):
        read_interference_text(gavel, name="gavel", gpu_type="p100")
    with pytest.raises(InterferenceError, match="is no measurement of one GPU type"):
        read_interference_text(OWN, name="own", gpu_type="p100")


def test_the_shipped_table_knows_every_pair_of_the_six_models_and_says_that_it_is_synthetic() -> (
    None
):
    table = synthetic()
    assert all(1.0 <= xi <= 6.0 for xi in table.between(SIX, (1, 64)).values())
    assert "not measured" in table.name


def test_the_shipped_table_is_what_its_builder_makes_of_the_measured_pairs(
    data_folder: Path,
) -> None:
    gavel = interference(str(data_folder / "gavel" / "simulation_throughputs.json"))
    pal = read_table(data_folder / "pal" / "colocation" / "norm_speed.csv")
    built = synthetic_pairs(gavel, pal)
    assert {
        pair: {1: xi}
        for victim, row in built.items()
        for pair, xi in (((victim, p), xi) for p, xi in row.items())
    } == synthetic().pairs
    assert gavel.between(("cifar10", "imagenet"), (1,))["imagenet", "imagenet", 1] == pytest.approx(
        2.01, abs=0.005
    )
    assert pal.pairs["vgg19", "resnet50"][1] == pytest.approx(1.25)


def test_two_jobs_on_a_gpu_end_as_late_as_the_table_says_and_the_summary_names_it() -> None:
    """Two jobs of one kind share a GPU from the same round: at xi 2 each takes twice as long."""
    alone, slowed = (
        _played(given, jobs_per_gpu=n) for given, n in ((None, 1), (Interference.constant(2.0), 2))
    )
    took = [
        r.finish - r.start for r in slowed.records if r.finish is not None and r.start is not None
    ]
    first = alone.records[0]
    assert first.finish is not None
    assert first.start is not None
    running = first.finish - first.start - RESTART_SECONDS
    assert took == pytest.approx([RESTART_SECONDS + 2 * running] * 2)
    assert slowed.summary()["interference"] == "constant 2"
    assert slowed.summary()["jobs_per_gpu"] == 2


def test_sharing_without_knowing_what_it_costs_is_refused() -> None:
    with pytest.raises(InterferenceError, match="missing where several jobs may share a GPU"):
        _played(None, jobs_per_gpu=2)


def test_jobs_that_do_not_fit_on_one_gpu_are_not_simulated_on_one() -> None:
    apart = Interference("apart", {("cifar10", "cifar10"): {1: math.inf}})
    with pytest.raises(InterferenceError, match="on which they do not fit"):
        _played(apart, jobs_per_gpu=2, placer="packed-sticky", gpus=2)
    assert _played(apart, jobs_per_gpu=2, policy="fifo", placer="packed-sticky").complete
    assert _played(apart, jobs_per_gpu=2).complete, "a policy that reads the table keeps them apart"


def test_jobs_of_pals_traces_share_gpus_as_its_measurements_say(data_folder: Path) -> None:
    """vgg19 takes 300.610341 s alone and does a second's work in 1.087 s until PointNet ends.

    PointNet takes 281.25 s and is not slowed.
    """
    pal = data_folder / "pal" / "colocation" / "norm_speed.csv"
    vgg19, pointnet = _times_taken(
        "vgg19", "PointNet", models=shipped_models(), given=pal, work=1000.0
    )
    assert pointnet == pytest.approx(281.25)
    assert vgg19 == pytest.approx(281.25 + 300.610341 - 281.25 * 0.92)


def test_what_pal_never_ran_together_runs_one_after_the_other(data_folder: Path) -> None:
    pal = data_folder / "pal" / "colocation" / "norm_speed.csv"
    assert _times_taken(
        "BERT", "GPT2", models=shipped_models(), given=pal, work=1000.0
    ) == pytest.approx([179.0, 3571.4])


@pytest.mark.parametrize(("batch", "slowdown"), [(20, 1.53166), (80, 1.61483)])
def test_jobs_of_gavels_types_share_gpus_at_their_own_batch_size(
    data_folder: Path, batch: int, slowdown: float
) -> None:
    """The largest batch that was measured too: the table, not its limits, says whether two fit."""
    gavel = data_folder / "gavel" / "simulation_throughputs.json"
    models = measured_models(gavel)
    (alone,) = _times_taken("LM", models=models, given=gavel, work=10.0, batch=batch)
    took = _times_taken("LM", "LM", models=models, given=gavel, work=10.0, batch=batch)
    assert took == pytest.approx(
        [TABLE_RESTART_SECONDS + slowdown * (alone - TABLE_RESTART_SECONDS)] * 2, rel=1e-4
    )


def _times_taken(
    *names: str, models: Mapping[str, Model], given: Path, work: float, batch: int | None = None
) -> list[float]:
    """Return the seconds from start to end of jobs that are submitted together to one GPU.

    SJF-FFS may put two jobs on it.
    """
    jobs = tuple(
        TraceJob(
            name=f"{n}",
            submit_seconds=0.0,
            model=name,
            gpu_count=1,
            batch_size=batch,
            work_scale=work,
        )
        for n, name in enumerate(names)
    )
    cluster = replace(Cluster.parse("v100=1x1"), jobs_per_gpu=2)
    scenario = Scenario(
        Workload("pair", jobs, "sia"),
        models,
        cluster,
        policy="sjf-ffs",
        placer="shared",
        conditions=Conditions(
            fidelity=replace(fidelity("paper"), calibrated=False),
            rigid_share=1.0,
            interference=interference(str(given)),
        ),
    )
    records = {record.name: record for record in simulate(scenario).records}
    ends = [(records[job.name].finish, records[job.name].start) for job in jobs]
    return [finish - start for finish, start in ends if finish is not None and start is not None]


RESTART_SECONDS = 50.0


def _played(
    given: Interference | None,
    *,
    jobs_per_gpu: int,
    policy: str = "sjf-ffs",
    placer: str = "shared",
    gpus: int = 1,
) -> SimulationResult:
    """Two short cifar10 jobs, submitted together, on one GPU or more."""
    jobs = tuple(
        TraceJob(
            name=f"cifar10-{n}",
            submit_seconds=0.0,
            model="cifar10",
            gpu_count=1,
            batch_size=128,
            work_scale=0.01,
        )
        for n in (1, 2)
    )
    cluster = replace(Cluster.parse(f"t4=1x{gpus}"), jobs_per_gpu=jobs_per_gpu)
    return simulate(
        Scenario(
            Workload("two", jobs, "sia"),
            catalog_models(),
            cluster,
            policy=policy,
            placer=placer,
            conditions=Conditions(rigid_share=1.0, interference=given),
        )
    )


def test_nobody_is_slowed_by_less_than_nothing() -> None:
    with pytest.raises(InterferenceError):
        Interference.constant(0.99)
