"""What a model's own step times across nodes tell the placers, and how a simulation goes by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import maat
from maat.models.truth import Shape, StepTime
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, LocalityError
from maat.simulation.conditions import Conditions
from maat.simulation.scenario import Scenario
from maat.simulation.step_penalties import step_penalties
from maat.simulation.world import World
from maat.simulation.world_models import catalog_models, measured_models
from maat.workloads.workloads import TraceJob, Workload

COLUMNS = (
    "model,gpu_type,gpu_count,per_gpu_batch_size,node_count,within_seconds,across_seconds,steps\n"
)


class Planted:
    """Steps on t4 take `factor` times as long on several nodes; of three GPUs nothing is known."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def gpu_types(self) -> list[str]:
        return ["t4", "a100"]

    def smallest_per_gpu(self, gpu_type: str) -> int:
        return 4

    def largest_per_gpu(self, gpu_type: str, gpu_count: int) -> int:
        return 64 if gpu_type == "t4" else 0

    def step(self, gpu_type: str, shape: Shape, per_gpu_batch_size: int) -> StepTime:
        if sum(shape) == 3:
            raise InputError("is unmeasured", field="num_replicas", value=3, remedy="Measure it.")
        seconds = 0.01 * per_gpu_batch_size * (self.factor if len(shape) > 1 else 1.0)
        return StepTime(seconds, 0.0)


@pytest.mark.parametrize(
    ("cluster", "found"),
    [("t4=2x4", {"t4": 1.6}), ("t4=2x4,a100=1x8", {"t4": 1.6}), ("t4=4x1", {}), ("rtx=2x8", {})],
)
def test_a_planted_factor_is_found_where_a_job_of_two_gpus_fits_a_node(
    cluster: str, found: dict[str, float]
) -> None:
    truth: Any = Planted(1.6)
    assert step_penalties(truth, Cluster.parse(cluster), {}) == found


def test_a_replica_of_two_gpus_is_never_torn_apart() -> None:
    shapes = set[Shape]()

    class Seen(Planted):
        def step(self, gpu_type: str, shape: Shape, per_gpu_batch_size: int) -> StepTime:
            shapes.add(shape)
            return super().step(gpu_type, shape, per_gpu_batch_size)

    truth: Any = Seen(1.3)
    assert step_penalties(truth, Cluster.parse("t4=2x4"), {"t4": 2}) == {"t4": 1.3}
    assert shapes == {(4,), (2, 2)}


def test_of_the_catalog_bert_loses_much_on_t4_and_nothing_on_a100() -> None:
    bert = catalog_models()["bert"]
    found = step_penalties(bert.truth, Cluster.parse("t4=6x4,a100=2x8"), bert.gpus_per_replica)
    assert found["t4"] > 1.5
    assert "a100" not in found


@pytest.mark.needs_data
def test_the_published_profiles_hold_the_penalties_that_the_docs_name(data_folder: Path) -> None:
    cluster = Cluster.parse("t4=6x4,rtx=3x8,a100=2x8")
    found = {
        name: step_penalties(model.truth, cluster, model.gpus_per_replica)
        for name, model in measured_models(data_folder / "sia-artifact" / "profiles").items()
    }
    assert found == {
        "bert": {"rtx": 1.06, "t4": 2.59},
        "cifar10": {"rtx": 1.03, "t4": 1.28},
        "deepspeech2": {"a100": 1.04, "t4": 1.15},
        "gpt": {},
        "imagenet": {"rtx": 1.01, "t4": 1.2},
        "ncf": {"rtx": 1.08, "t4": 2.06},
        "yolov3": {"rtx": 1.11, "t4": 2.19},
    }


def bert_under_pal(*, weighs_steps: bool) -> Scenario:
    """A job of two GPUs; the second GPU of every node takes 1.5 times as long."""
    job = TraceJob(name="a", submit_seconds=0.0, model="bert", gpu_count=2, batch_size=24)
    cluster = replace(
        Cluster.parse("t4=2x2"), scores=dict.fromkeys(("A", "B", "C"), (1.0, 1.5) * 2)
    )
    return Scenario(
        Workload("one", (job,), "test"),
        catalog_models(),
        cluster,
        policy="fifo",
        placer="pal",
        conditions=Conditions(weighs_steps=weighs_steps),
    )


def test_placers_know_what_nodes_apart_cost_only_if_the_conditions_say_so() -> None:
    (blind,), (knowing,) = (
        World.of(bert_under_pal(weighs_steps=knows)).submissions for knows in (False, True)
    )
    assert blind.spec.step_penalty == {}
    assert knowing.spec.step_penalty["t4"] > 1.5
    assert blind.spec == replace(knowing.spec, step_penalty={})


def test_measured_penalties_keep_a_job_on_one_node_and_shorten_it(tmp_path: Path) -> None:
    """Apart, bert steps more than twice as long: worse than on GPUs that are 1.5 times as slow.

    Every second one of the measured GPUs is one of these.
    """
    times = "uuid,perf\n" + "".join(f"g{n},{1.5 if n % 2 else 1.0}\n" for n in range(40))
    gpus = tmp_path / "gpus"
    gpus.mkdir()
    for application in ("bert", "pagerank", "resnet"):
        (gpus / f"{application}-t4.csv").write_text(times)
    trace = tmp_path / "trace.csv"
    trace.write_text("name,time,application,num_replicas,batch_size\na,0,bert,4,48\n")
    hours = [
        maat.simulate(
            trace,
            cluster="t4=4x4",
            policy="fifo",
            placer="pal",
            variability=gpus,
            locality_penalty=penalty,
            progress=False,
            rigid_share=1.0,
            seed=1,
        ).summary["avg_jct_hours"]
        for penalty in (None, "measured")
    ]
    assert hours[1] < 0.9 * hours[0]


def test_a_table_of_measured_steps_gives_the_penalty_of_its_models_on_the_clusters_types(
    tmp_path: Path,
) -> None:
    table = tmp_path / "locality.csv"
    rows = ["bert,t4,4,12,2,0.1,0.2,30", "bert,t4,2,12,2,0.1,0.3,30", "bert,a100,4,12,2,1,9,30"]
    table.write_text(COLUMNS + "\n".join([*rows, "other,t4,4,8,2,0.1,0.15,30"]) + "\n")
    read = maat.library.conditions.read_conditions(
        Cluster.parse("t4=2x4"), ["bert", "ncf"], locality_penalty=table
    )
    assert read.locality_penalties == {"bert": 2.5}
    assert not read.weighs_steps


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("", "rows: holds no rows"),
        ("bert,t4,4,8,1,0.1,0.2,30\n", "node_count: is not between 2"),
        ("bert,t4,2,8,4,0.1,0.2,30\n", "gpu_count: is not between 4"),
        ("bert,t4,2,8,2,0,0.2,30\n", "within_seconds: must be above 0"),
        (",t4,2,8,2,0.1,0.2,30\n", "model: is no name"),
        ("bert,t4,2,8,2,0.1,0.2,30\n" * 2, "model: stands here twice"),
        ("bert,a100,2,8,2,0.1,0.2,30\n", "gpu_type: has no row of a GPU type of this cluster"),
        ("net,t4,2,8,2,0.1,0.2,30\n", "model: has no row of a model that jobs may have"),
    ],
)
def test_a_table_that_cannot_be_used_says_why(tmp_path: Path, rows: str, words: str) -> None:
    table = tmp_path / "locality.csv"
    table.write_text(COLUMNS + rows)
    with pytest.raises(LocalityError, match=words):
        maat.library.conditions.read_conditions(
            Cluster.parse("t4=2x4"), ["bert"], locality_penalty=str(table)
        )
