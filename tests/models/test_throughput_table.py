"""Tests of tables of measured throughputs and of their traces: reading, jobs and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.laboratory.fairness import fairness, static_fairness
from maat.models.throughput_table import EPOCH_SAMPLES
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, ProfileError, TraceError
from maat.scheduling.regimes import Regime
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import Model, measured_models
from maat.workloads.batch_regimes import GNS_DOUBLES_AT, LARGEST_PER_GPU, Adaptation, regimes_of
from maat.workloads.reading import read_workload
from maat.workloads.workloads import Workload

RATES = {
    "v100": {
        "('ResNet-18 (batch size 50)', 1)": {"null": 10.0, "('LM (batch size 5)', 1)": [5.0, 5.0]},
        "('ResNet-18 (batch size 100)', 1)": {"null": 5.0},
        "('ResNet-18 (batch size 50)', 4)": {"null": 20.0},
        "('ResNet-18 (batch size 100)', 4)": {"null": 16.0},
        "('Transformer (batch size 256)', 1)": {"null": 0.0},
    },
    "v100_unconsolidated": {
        "('ResNet-18 (batch size 50)', 4)": {"null": 8.0},
        "('ResNet-18 (batch size 100)', 4)": {"null": 4.0},
    },
}
TRACE_NAME = "120_0.2_5_100_40_25_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace"


def models_of(table: object, folder: Path) -> dict[str, Model]:
    path = folder / "table.json"
    path.write_text(table if isinstance(table, str) else json.dumps(table), encoding="utf-8")
    return dict(measured_models(path))


def line(**cells: object) -> str:
    values: dict[str, object] = {
        "job_type": "ResNet-18 (batch size 50)",
        "command": "python3 main.py --data_dir=%s/cifar10 --batch_size 50",
        "working_directory": "image_classification/cifar10",
        "steps_argument": "--num_steps",
        "needs_data_folder": 1,
        "total_steps": 3000,
        "scale_factor": 1,
        "mode": "static",
        "priority_weight": 1,
        "slo": "-1.000000",
        "duration": 300,
        "arrival_time": 0,
        **cells,
    }
    return "\t".join(map(str, values.values()))


def trace(*lines: str) -> Workload:
    return read_workload("\n".join(lines) + "\n", known_models=EPOCH_SAMPLES)


# ---- the table


def test_steps_are_counted_over_all_gpus_together(tmp_path: Path) -> None:
    truth = models_of(RATES, tmp_path)["ResNet-18"].truth
    assert truth.step("v100", (1,), 50).step_seconds == pytest.approx(1 / 10)
    assert truth.step("v100", (4,), 50).step_seconds == pytest.approx(4 / 20)
    assert truth.step("v100", (4,), 50).sync_seconds == pytest.approx(4 / 20 - 1 / 10)


def test_a_job_spread_over_nodes_runs_as_it_was_measured_apart(tmp_path: Path) -> None:
    truth = models_of(RATES, tmp_path)["ResNet-18"].truth
    assert truth.step("v100", (2, 2), 50).step_seconds == pytest.approx(4 / 8)
    assert truth.gpu_types() == ("v100",)


def test_between_batch_sizes_it_is_interpolated_and_beyond_them_refused(tmp_path: Path) -> None:
    truth = models_of(RATES, tmp_path)["ResNet-18"].truth
    assert truth.step("v100", (1,), 75).step_seconds == pytest.approx(0.15)
    for shape, batch in (((1,), 49), ((1,), 101), ((2,), 50)):
        with pytest.raises(InputError) as caught:
            truth.step("v100", shape, batch)
        assert "1 with 50 to 100, 4 with 50 to 100" in caught.value.remedy


def test_what_did_not_fit_is_no_model(tmp_path: Path) -> None:
    assert set(models_of(RATES, tmp_path)) == {"ResNet-18"}


@pytest.mark.parametrize(
    ("table", "field"),
    [
        ("not json", "file"),
        ("[1]", "file"),
        ("{}", "file"),
        ('{"v100": 3}', "file"),
        ({"v100": {"ResNet-18": {"null": 1.0}}}, "key"),
        ({"v100": {"('ResNet-18 (batch size 0)', 1)": {"null": 1.0}}}, "key"),
        ({"v100": {"('VGG (batch size 8)', 1)": {"null": 1.0}}}, "model"),
        (
            {"v100": {"('LM (batch size 5)', 1)": {"null": -1.0}}},
            "v100: ('LM (batch size 5)', 1): null",
        ),
        ({"v100": {"('LM (batch size 5)', 1)": {}}}, "v100: ('LM (batch size 5)', 1): null"),
        (
            '{"v100": {"(\'LM (batch size 5)\', 1)": {"null": NaN}}}',
            "v100: ('LM (batch size 5)', 1): null",
        ),
        ({"v100": {"('LM (batch size 5)', 1)": {"null": 0.0}}}, "null"),
    ],
)
def test_a_file_that_is_no_table_is_refused_saying_why(
    tmp_path: Path, table: object, field: str
) -> None:
    with pytest.raises(ProfileError) as caught:
        models_of(table, tmp_path)
    assert caught.value.field == field
    assert caught.value.remedy
    assert "table.json" in str(caught.value)


# ---- the trace


def test_a_trace_without_a_header_is_told_by_its_tabs() -> None:
    workload = trace(
        line(arrival_time=7.5), line(total_steps=1500, scale_factor=4, priority_weight=2)
    )
    assert workload.format == "shockwave"
    second, first = workload.jobs
    assert (first.name, first.submit_seconds, first.model, first.gpu_count, first.batch_size) == (
        "job-0",
        7.5,
        "ResNet-18",
        1,
        50,
    )
    assert first.work_scale == pytest.approx(3.0)
    assert first.regimes == (Regime(50, 3),)
    assert (second.name, second.batch_size, second.weight) == ("job-1", 200, 2.0)
    assert second.regimes == (Regime(200, 2),)


@pytest.mark.parametrize(
    ("cells", "field"),
    [
        ({"job_type": "ResNet-18"}, None),
        ({"job_type": "ResNet-18 (batch size 0)"}, "job_type"),
        ({"job_type": "VGG (batch size 8)"}, "job_type"),
        ({"total_steps": 0}, "total_steps"),
        ({"total_steps": 10**9, "job_type": "A3C (batch size 4)"}, "total_steps"),
        ({"scale_factor": "many"}, "scale_factor"),
        ({"mode": "sometimes"}, "mode"),
        ({"priority_weight": 0}, "priority_weight"),
        ({"priority_weight": 1e-308}, "priority_weight"),
        ({"arrival_time": -1}, "arrival_time"),
        ({"arrival_time": "0\t1"}, "line"),
    ],
)
def test_a_record_with_a_bad_cell_is_left_out_by_row_and_field(
    cells: dict[str, Any], field: str | None
) -> None:
    if field is None:
        assert trace(line(**cells)).jobs[0].batch_size == 1
        return
    found = trace(line(), line(**cells))
    assert len(found.jobs) == 1
    (note,) = found.notes
    assert f"line 2 ({field} " in note


def test_a_model_that_the_table_lacks_is_refused() -> None:
    with pytest.raises(TraceError) as caught:
        read_workload(line(job_type="LM (batch size 5)") + "\n", known_models=("ResNet-18",))
    assert (caught.value.field, caught.value.row) == ("job_type", 1)


# ---- the regimes


def sizes(adaptation: Adaptation, model: str, batch: int, gpus: int, epochs: int) -> list[int]:
    stretches = regimes_of(
        adaptation, model, per_gpu_batch_size=batch, gpu_count=gpus, epochs=epochs
    )
    return [regime.batch_size for regime in stretches for _ in range(regime.epochs)]


def test_accordion_goes_large_outside_critical_epochs() -> None:
    assert regimes_of(
        Adaptation.ACCORDION, "ResNet-50", per_gpu_batch_size=32, gpu_count=2, epochs=45
    ) == (
        Regime(64, 10),
        Regime(256, 20),
        Regime(64, 10),
        Regime(256, 5),
    )


def test_gns_doubles_at_its_epochs() -> None:
    assert regimes_of(Adaptation.GNS, "LM", per_gpu_batch_size=20, gpu_count=4, epochs=70) == (
        Regime(80, 11),
        Regime(160, 50),
        Regime(320, 9),
    )


def test_models_that_do_not_adapt_keep_their_batch() -> None:
    for adaptation in Adaptation:
        assert set(sizes(adaptation, "Transformer", 16, 2, 100)) == {32}


@given(
    adaptation=st.sampled_from(Adaptation),
    job=st.sampled_from([(model, batch, gpus) for model, batch, gpus in GNS_DOUBLES_AT]),
    epochs=st.integers(1, 400),
)
def test_regimes_cover_every_epoch_between_the_first_batch_and_the_largest(
    adaptation: Adaptation, job: tuple[str, int, int], epochs: int
) -> None:
    model, batch, gpus = job
    found = sizes(adaptation, model, batch, gpus, epochs)
    assert len(found) == epochs
    assert found[0] == batch * gpus
    assert all(batch * gpus <= size <= LARGEST_PER_GPU[model] * gpus for size in found)
    if adaptation is Adaptation.GNS:
        assert found == sorted(found)


# ---- together


def test_a_job_takes_the_time_that_its_steps_take_at_its_own_batch_sizes(tmp_path: Path) -> None:
    """The table ends at batch 100 and lacks the largest batch of Accordion, so the job is static.

    Its model is ResNet-18 at batch size 50.
    """
    models = models_of(RATES, tmp_path)
    quiet = FIDELITIES["sia-artifact"]
    scenario = Scenario(
        trace(line()),
        models,
        Cluster.parse("v100=1x4"),
        policy="fifo",
        placer="packed",
        conditions=Conditions(fidelity=quiet, round_seconds=120.0),
    )
    result = simulate(scenario)
    assert result.records[0].jct == pytest.approx(20.0 + 3000 / 10.0, abs=2.0)


def test_a_job_whose_batch_sizes_were_never_measured_is_refused_before_anything_runs(
    tmp_path: Path,
) -> None:
    models = models_of(RATES, tmp_path)
    workload = trace(line(mode="accordion", total_steps=50_000))
    with pytest.raises(TraceError):
        simulate(
            Scenario(workload, models, Cluster.parse("v100=1x4"), policy="fifo", placer="packed")
        )


@pytest.mark.needs_data
def test_the_published_trace_and_table_read_together(data_folder: Path) -> None:
    models = measured_models(data_folder / "shockwave" / "tacc_throughputs.json")
    workload = read_workload(data_folder / "shockwave" / TRACE_NAME, known_models=models)
    counts = [job.gpu_count for job in workload.jobs]
    assert (len(workload), counts.count(1), counts.count(2), counts.count(4)) == (120, 92, 20, 8)
    for job in workload.jobs:
        declared = models[job.model].job_spec(job, FIDELITIES["paper"])
        assert "v100" in declared.memory, job
        assert declared.work == pytest.approx(job.work_scale * EPOCH_SAMPLES[job.model])


def test_static_fairness_counts_a_share_of_the_time_by_jobs_over_gpus(tmp_path: Path) -> None:
    """Eight jobs of 100 s on four GPUs: alone on its share a job takes 200 s.

    The first four do not wait.
    """
    models = models_of(RATES, tmp_path)
    workload = trace(*[line(total_steps=1000)] * 8)
    quiet = FIDELITIES["shockwave-artifact"]
    scenario = Scenario(
        workload,
        models,
        Cluster.parse("v100=1x4"),
        policy="fifo",
        placer="packed",
        conditions=Conditions(fidelity=quiet, round_seconds=120.0),
    )
    result = simulate(scenario)
    rho = static_fairness(result).rho
    assert [rho[f"job-{n}"] for n in (0, 3, 4, 7)] == pytest.approx(
        [120 / 200, 120 / 200, 240 / 200, 240 / 200]
    )
    # By Sia's rule a job has one whole GPU: four jobs on average over the three rounds of its life.
    # Alone on it, the job takes 100 s.
    assert fairness(result).rho["job-7"] == pytest.approx(240 / 100)
