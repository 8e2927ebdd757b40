"""Traces of other artifacts as they are, and names of models that mean another paper's."""

from __future__ import annotations

from pathlib import Path

import pytest

from maat.models.catalog import load_catalog
from maat.scheduling.errors import TraceError
from maat.simulation.iteration_models import iteration_models, shipped_models
from maat.simulation.world_models import measured_models
from maat.vocabulary import Adaptivity
from maat.workloads.formats.pal import PAL_MODELS
from maat.workloads.reading import read_workload

GAVEL = (
    "Transformer (batch size 128)\tpython3 train.py -data %s/x -batch_size 128\ttranslation\t-step"
    "\t1\t346\t2\t1\t-1.000000\t0\n"
    "ResNet-18 (batch size 64)\tpython3 main.py --data_dir=%s/cifar10\tcifar10\t--num_steps"
    "\t1\t1000\t1\t1\t-1.000000\t30\n"
)
SHOCKWAVE = (
    "LM (batch size 10)\tpython3 main.py --batch_size 10\tlanguage_modeling\t--steps"
    "\t1\t134583\t1\tgns\t1\t-1.000000\t1418\t0\n"
)
BSBF = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time\n"
    "33,8,6568,294,a2c,64,162000,16000,555\n"
    "195,8,245438,732,bert,4,174542000,3000,192\n"
)
SIA_HEADER = "name,time,application,num_replicas,batch_size\n"
PAL_HEADER = "job_id,num_gpus,submit_time,duration,model\n"


def refusal(text: str) -> TraceError:
    with pytest.raises(TraceError) as refused:
        read_workload(text, known_models=shipped_models())
    return refused.value


def test_gavels_trace_of_ten_columns_is_read() -> None:
    workload = read_workload(GAVEL, known_models={"Transformer", "ResNet-18"})
    assert workload.format == "gavel"
    assert [
        (job.model, job.submit_seconds, job.gpu_count, job.batch_size) for job in workload.jobs
    ] == [("Transformer", 0.0, 2, 256), ("ResNet-18", 30.0, 1, 64)]
    assert workload.jobs[1].work_scale == 1000 / 782  # epochs of 50,000 samples, 64 at a time


@pytest.mark.parametrize("text", [GAVEL, SHOCKWAVE], ids=["gavel", "shockwave"])
def test_their_models_need_the_table_of_throughputs(text: str) -> None:
    assert "--profiles" in refusal(text).remedy


@pytest.mark.needs_data
def test_gavels_own_table_knows_the_models_of_its_traces(data_folder: Path) -> None:
    models = measured_models(data_folder / "gavel" / "simulation_throughputs.json")
    assert read_workload(GAVEL, known_models=models).models <= models.keys()


def test_the_jobs_of_bsbf_run_for_their_iterations() -> None:
    workload = read_workload(BSBF, known_models=shipped_models())
    assert [
        (job.name, job.submit_seconds, job.gpu_count, job.work_scale) for job in workload.jobs
    ] == [("33", 6.568, 8, pytest.approx(163.17)), ("195", 245.438, 8, pytest.approx(140.544))]
    assert {job.adaptivity for job in workload.jobs} == {Adaptivity.RIGID}
    assert [job.labels for job in workload.jobs] == [("model=a2c",), ("model=bert",)]


@pytest.mark.needs_data
@pytest.mark.parametrize(("name", "jobs"), [("jobs-30.csv", 30), ("jobs-61.csv", 61)])
def test_the_published_jobs_of_bsbf_are_read_whole(data_folder: Path, name: str, jobs: int) -> None:
    workload = read_workload(data_folder / "bsbf" / name, known_models=shipped_models())
    assert len(workload) == jobs


def test_the_models_of_pals_format_are_those_whose_iterations_are_known() -> None:
    assert iteration_models().keys() == PAL_MODELS


@pytest.mark.parametrize("model", sorted(PAL_MODELS))
def test_a_model_of_pal_is_refused_where_jobs_count_trainings(model: str) -> None:
    error = refusal(f"{SIA_HEADER}a,0,{model},1,\n")
    assert (error.field, error.value, error.row) == ("application", model, 2)
    assert "PAL's columns" in error.remedy
    assert ("Write bert" in error.remedy) == (model == "BERT")


@pytest.mark.parametrize("model", sorted(load_catalog()))
def test_a_model_of_the_catalog_is_refused_where_jobs_count_iterations(model: str) -> None:
    error = refusal(f"{PAL_HEADER}a,1,0,1000,{model}\n")
    assert (error.field, error.value, error.row) == ("model", model, 2)


def test_other_letters_of_a_known_name_are_told() -> None:
    assert "Did you mean cifar10?" in refusal(f"{SIA_HEADER}a,0,CIFAR10,1,\n").remedy


def test_measured_profiles_may_have_any_name() -> None:
    workload = read_workload(f"{SIA_HEADER}a,0,vgg19,1,\n", known_models={"vgg19"})
    assert workload.models == {"vgg19"}
