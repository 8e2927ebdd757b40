"""Tables of what jobs on one GPU lose: where they come from, how they are looked up, and what is said of those that cannot be used."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InterferenceError
from maat.simulation.engine import simulate
from maat.simulation.interference import Interference, interference, read_table, synthetic
from maat.simulation.interference_builder import synthetic_pairs
from maat.simulation.models import catalog_models
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.workloads import TraceJob, Workload

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
    with pytest.raises(InterferenceError, match="says nothing of a beside c"):
        read_table(OWN, name="own").between({"a", "c"}, (1,))


def test_a_constant_slows_whomever() -> None:
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
    ],
)
def test_a_table_that_cannot_be_used_is_refused_by_its_field(text: str, field: str) -> None:
    with pytest.raises(InterferenceError) as caught:
        read_table(text, name="own")
    assert caught.value.field == field


def test_pals_measurements_are_read_in_both_directions_and_only_where_data_parallel() -> None:
    pairs = read_table(PAL, name="pal").pairs
    assert pairs["Big", "Small"] == {2: 2.0}
    assert pairs["Small", "Big"] == {2: 2.0}
    assert pairs["Huge", "Small"] == {4: math.inf}
    assert pairs["Small", "Small"] == {1: pytest.approx(1 / 0.9)}


def test_gavels_throughputs_are_read_for_one_type_and_speak_of_the_catalogs_models(tmp_path: Path) -> None:
    small, large, wide = "('ResNet-18 (batch size 64)', 1)", "('ResNet-50 (batch size 64)', 1)", "('ResNet-50 (batch size 64)', 2)"
    row = {small: {"null": 10.0, large: [5.0, 0.0]}, large: {"null": 4.0, small: [0.0, 5.0]}, wide: {"null": 8.0, wide: [0.0, 0.0]}}
    path = tmp_path / "throughputs.json"
    path.write_text(json.dumps({"v100": row, "p100": {}}))
    pairs = interference(str(path)).pairs
    assert pairs["cifar10", "imagenet"] == {1: 2.0}
    assert pairs["imagenet", "cifar10"] == {1: math.inf}
    assert ("imagenet", "imagenet") not in pairs
    with pytest.raises(InterferenceError, match="no GPU type k80"):
        interference(f"{path}#k80")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"v100": {"a": 1}}', '{"v100": 3}'])
def test_json_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InterferenceError):
        interference(str(path))


def test_the_shipped_table_knows_every_pair_of_the_six_models_and_says_that_it_is_synthetic() -> None:
    table = synthetic()
    assert all(1.0 <= xi <= 6.0 for xi in table.between(SIX, (1, 64)).values())
    assert "not measured" in table.name


def test_the_shipped_table_is_what_its_builder_makes_of_the_measured_pairs(data_folder: Path) -> None:
    gavel = interference(str(data_folder / "gavel" / "simulation_throughputs.json"))
    pal = read_table(data_folder / "pal" / "colocation" / "norm_speed.csv")
    built = synthetic_pairs(gavel, pal)
    assert {
        pair: {1: xi} for victim, row in built.items() for pair, xi in (((victim, p), xi) for p, xi in row.items())
    } == synthetic().pairs
    assert gavel.between(("cifar10", "imagenet"), (1,))["imagenet", "imagenet", 1] == pytest.approx(2.01, abs=0.005)
    assert pal.pairs["vgg19", "resnet50"][1] == pytest.approx(1.25)


def test_two_jobs_on_a_gpu_end_as_late_as_the_table_says_and_the_summary_names_it() -> None:
    """A job that shares its one GPU with another of its kind from the same round on: at xi 2 each takes twice as long."""
    alone, slowed = (_played(given, jobs_per_gpu=n) for given, n in ((None, 1), (Interference.constant(2.0), 2)))
    took = [r.finish - r.start for r in slowed.records if r.finish is not None and r.start is not None]
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
        _played(apart, jobs_per_gpu=2, policy="fifo", placer="packed-sticky")
    assert _played(apart, jobs_per_gpu=2).complete, "a policy that reads the table keeps them apart"


RESTART_SECONDS = 50.0


def _played(given: Interference | None, *, jobs_per_gpu: int, policy: str = "sjf-ffs", placer: str = "shared") -> SimulationResult:
    """Two short cifar10 jobs, submitted together, on one GPU."""
    jobs = tuple(TraceJob(f"cifar10-{n}", 0.0, "cifar10", 1, 128, 0.01) for n in (1, 2))
    cluster = replace(Cluster.parse("t4=1x1"), jobs_per_gpu=jobs_per_gpu)
    return simulate(
        Scenario(Workload("two", jobs, "sia"), catalog_models(), cluster, policy=policy, placer=placer, rigid_share=1.0, interference=given)
    )


def test_nobody_is_slowed_by_less_than_nothing() -> None:
    with pytest.raises(InterferenceError):
        Interference.constant(0.99)
