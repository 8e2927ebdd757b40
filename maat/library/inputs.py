"""Reads what runs need: cluster, models and traces, given as texts, files or objects."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

from maat.laboratory.setup import GeneratedTrace, GivenTrace, Trace, TraceSource
from maat.library.files import path_of
from maat.library.numbers import whole_number_reader
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, ParameterError, ProfileError
from maat.simulation.iteration_models import shipped_models
from maat.simulation.world_models import Model, measured_models
from maat.vocabulary import MAX_JOBS_PER_GPU
from maat.workloads.generators import MAX_SEED
from maat.workloads.reading import read_workload
from maat.workloads.workloads import Workload

DEFAULT_CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"
"""The cluster of the Sia paper's simulations."""

GivenTraces = str | Path | Workload | TraceSource
"""A trace: its file, its text, its jobs, or what generates it."""

Profiles = Mapping[str, Model]
"""Models by name."""

MOST_WORKERS = 256
"""Processes of one comparison or sweep."""

seed_of = whole_number_reader("seed", least=0, most=MAX_SEED)
_seed_of_several = whole_number_reader("seeds", least=0, most=MAX_SEED)
_workers = whole_number_reader("workers", least=1, most=MOST_WORKERS)
_jobs_per_gpu = whole_number_reader("jobs_per_gpu", least=1, most=MAX_JOBS_PER_GPU)


def generate(
    family: str = "philly",
    *,
    jobs: int | None = None,
    hours: float | None = None,
    seed: int | None = None,
    xxl_share: float = 0.0,
) -> GeneratedTrace:
    """Return a generated trace of a family (docs/traces.md), such as `philly` or `sharing`.

    Args:
        family: What the jobs are, and how they arrive.
        jobs: How many; by default 20 an hour, or the family's own.
        hours: In how many hours they are submitted; by default the family's own.
        seed: What draws them; by default the seed of the run, so that runs with other seeds have
            other jobs.
        xxl_share: Share (0-1) of jobs that fine-tune GPT (Sia section 5.3).

    Its jobs are drawn, and what is wrong is said (InputError), when a run begins.

    >>> import maat
    >>> trace = maat.generate("philly", jobs=40, seed=1)
    >>> maat.simulate(trace, policy="fifo").summary["jobs"]
    40
    """
    own_seed = None if seed is None else seed_of(seed)
    return GeneratedTrace(family, jobs, hours, own_seed, xxl_share)


def profiles(folder: str | Path, *, gpu_types: Collection[str] | None = None) -> Profiles:
    """Return the models of a folder of measured profiles, or of a JSON table of throughputs.

    Give them as `profiles` to `simulate`, `compare` and `sweep`, which otherwise have the catalog's
    fitted models. `gpu_types`: reads only the measurements on these. Raises ProfileError, which
    names file, row and field.

    >>> import maat
    >>> maat.profiles("no-folder")
    Traceback (most recent call last):
    ...
    maat.scheduling.errors.ProfileError: profiles: is no folder and no file (got 'no-folder'). \
Name a folder of measured profiles, or a JSON table of throughputs.
    """
    path = path_of(folder, field="profiles")
    if not path.exists():
        raise ProfileError(
            "is no folder and no file",
            field="profiles",
            value=str(folder),
            remedy="Name a folder of measured profiles, or a JSON table of throughputs.",
        )
    return measured_models(path, gpu_types=gpu_types)


def read_cluster(given: str | Cluster, jobs_per_gpu: int | None) -> Cluster:
    """Return the cluster. `jobs_per_gpu` None: its own. Raises ClusterError, ParameterError."""
    cluster = given if isinstance(given, Cluster) else Cluster.parse(str(given), racks=True)
    if jobs_per_gpu is None:
        return cluster
    return replace(cluster, jobs_per_gpu=_jobs_per_gpu(jobs_per_gpu))


def read_models(given: str | Path | Profiles | None, cluster: Cluster) -> Profiles:
    """Return the models; None: all that Maat ships. Raises ProfileError."""
    if given is None:
        return shipped_models()
    if isinstance(given, Mapping):
        return given
    return measured_models(path_of(given, field="profiles"), gpu_types=cluster.type_names)


def read_seeds(given: Iterable[int]) -> tuple[int, ...]:
    """Return the seeds. Raises ParameterError, also for a number: of seeds, or one seed?"""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(
            "are no list of seeds",
            field="seeds",
            value=given,
            remedy="Give each, as in [0, 1, 2] or range(3).",
        )
    return tuple(_seed_of_several(seed) for seed in given)


def workers_of(given: int | None, executor: Executor | None) -> int:
    """Return how many processes run; None: one per core; 1 beside an executor, which runs instead.

    Raises ParameterError for what is no executor, and for both.
    """
    if executor is None:
        return (os.cpu_count() or 1) if given is None else _workers(given)
    if not isinstance(executor, Executor):
        raise ParameterError(
            "is no concurrent.futures.Executor",
            field="executor",
            value=executor,
            remedy="Give for example ThreadPoolExecutor(4), or client.get_executor() of Dask.",
        )
    if given is not None:
        raise ParameterError(
            "start processes, and the executor runs all instead",
            field="workers",
            value=given,
            remedy="Give workers or an executor.",
        )
    return 1


def read_trace(given: GivenTraces, models: Collection[str]) -> TraceSource:
    """Return the source of a run's jobs.

    A text of several lines is a trace itself, of one line its path. Raises TraceError.
    """
    if isinstance(given, Workload):
        return GivenTrace(given)
    if isinstance(given, str):
        source = given if "\n" in given else Path(given)
        return GivenTrace(read_workload(source, known_models=models))
    if isinstance(given, Path):
        return GivenTrace(read_workload(given, known_models=models))
    if not hasattr(given, "workload"):
        raise InputError(
            "is no trace",
            field="trace",
            value=type(given).__name__,
            remedy='Give a path, the text of a trace, a Workload, or maat.generate("philly").',
        )
    return given


def read_traces(
    given: GivenTraces | Sequence[GivenTraces] | Mapping[str, GivenTraces], models: Collection[str]
) -> tuple[Trace, ...]:
    """Return one or several traces with the names that tables show. Raises TraceError.

    A mapping names them; else a file has its folder's name and its own.
    """
    if isinstance(given, Mapping):
        return tuple(Trace(name, read_trace(each, models)) for name, each in given.items())
    several: Sequence[GivenTraces] = given if isinstance(given, list | tuple) else (given,)
    return tuple(_named(each, read_trace(each, models)) for each in several)


def _named(given: GivenTraces, source: TraceSource) -> Trace:
    if isinstance(given, str | Path) and "\n" not in str(given):
        return Trace(f"{Path(given).parent.name}/{Path(given).stem}", source)
    if isinstance(source, GeneratedTrace):
        name = source.family if source.seed is None else f"{source.family}-{source.seed}"
        return Trace(name, source)
    return Trace(source.given.name if isinstance(source, GivenTrace) else "trace", source)
