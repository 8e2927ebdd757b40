"""Reads a run's conditions by the names that the command line has too."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, TypeVar

from maat.library.availability import read_failures, read_reservations
from maat.library.durations import least_stay_of_text
from maat.library.files import path_of
from maat.library.numbers import number_reader, whole_number_reader
from maat.models.locality_table import LocalityTable, read_locality
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, ParameterError
from maat.scheduling.reservations import Reservation
from maat.scheduling.stability import Stability
from maat.scheduling.stay_bounds import least_stay_of, most_moves_of
from maat.simulation.conditions import (
    Conditions,
    check_interference,
    penalties_of,
    penalties_of_table,
    with_draw,
)
from maat.simulation.fidelity import fidelity as preset_of
from maat.simulation.interference import Interference
from maat.simulation.interference import interference as interference_of
from maat.simulation.job_window import JobWindow
from maat.simulation.tuned_jobs import TunedJobs, read_tuned
from maat.simulation.variability import Variability, read_variability
from maat.vocabulary import (
    LEAST_ROUND_SECONDS,
    MAX_GPUS,
    MEASURED,
    MOST_CONTENTION,
    MOST_RACK_PENALTY,
    MOST_ROUND_SECONDS,
    ProfilingMode,
    ScoreDraw,
    TuningRule,
)

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Word = TypeVar("Word", bound=StrEnum)

round_seconds_of = number_reader(
    "round_seconds", least=LEAST_ROUND_SECONDS, most=MOST_ROUND_SECONDS
)
_tuned_gpus = whole_number_reader("tuned_gpus", least=1, most=MAX_GPUS)
_rack_penalty = number_reader("rack_penalty", least=1, most=MOST_RACK_PENALTY)
_network_contention = number_reader("network_contention", least=0, most=MOST_CONTENTION)


class ConditionValues(TypedDict, total=False):
    """The conditions that a function of the library takes by name: see `read_conditions`."""

    fidelity: str
    profiling: ProfilingMode | str | None
    rigid_share: float
    strong_scaling_share: float
    failures_mtbf_hours: float | None
    repair_seconds: float | None
    reservations: Sequence[str | Reservation]
    interference: str | float | Path | Interference | None
    variability: str | Path | Variability | None
    variability_draw: ScoreDraw | str | None
    locality_penalty: float | Mapping[str, float] | str | Path | LocalityTable | None
    rack_penalty: float
    network_contention: float
    tuned: TuningRule | TunedJobs | str | None
    tuned_gpus: int | None
    measured_jobs: str | tuple[int, int] | JobWindow | None
    least_stay_seconds: str | float | None
    most_moves_per_hour: str | int | None


def read_conditions(
    cluster: Cluster,
    models: Collection[str],
    *,
    round_seconds: float | None = None,
    fidelity: str = "paper",
    profiling: ProfilingMode | str | None = None,
    rigid_share: float = 0.0,
    strong_scaling_share: float = 0.0,
    failures_mtbf_hours: float | None = None,
    repair_seconds: float | None = None,
    reservations: Sequence[str | Reservation] = (),
    interference: str | float | Path | Interference | None = None,
    variability: str | Path | Variability | None = None,
    variability_draw: ScoreDraw | str | None = None,
    locality_penalty: float | Mapping[str, float] | str | Path | LocalityTable | None = None,
    rack_penalty: float = 1.0,
    network_contention: float = 0.0,
    tuned: TuningRule | TunedJobs | str | None = None,
    tuned_gpus: int | None = None,
    measured_jobs: str | tuple[int, int] | JobWindow | None = None,
    least_stay_seconds: str | float | None = None,
    most_moves_per_hour: str | int | None = None,
) -> Conditions:
    """Read the conditions.

    Raises InputError for an invalid value, or one without effect because another is missing.

    Args:
        cluster: The cluster that the runs begin with.
        models: The names of the models that there are.
        round_seconds: Seconds between rounds; None: each policy's own.
        fidelity: Name of a preset of modelling switches, such as `paper`.
        profiling: What is known of a job before it runs; None: the fidelity's.
        rigid_share: Share of jobs (0-1) that keep the trace's GPU count and batch size.
        strong_scaling_share: Share of jobs (0-1) that keep the trace's batch size.
        failures_mtbf_hours: Mean hours between failures of a node; None: nodes do not fail.
        repair_seconds: Until a failed node is in service again; None: 1800.
        reservations: GPUs that are kept free, such as `t4=8,tenant=vision,from=1,until=5` (hours).
        interference: Slowdown of jobs on one GPU: a table's path, `synthetic`, or a number.
        variability: Folder of measured GPUs: how fast each of the cluster's GPUs is.
        variability_draw: Whether to draw GPUs or single measurements.
        locality_penalty: Slowdown across nodes: of every model, by model, or the path of a table of
            `maat measure locality`. `measured`: placers know what the models' step times show.
        rack_penalty: Further slowdown across racks, of every model.
        network_contention: Share of its speed (0-0.99) that a job across nodes loses to another
            such job on one of them.
        tuned: Rule by which jobs get well-chosen, fixed GPU counts and batch sizes: `any-pair`,
            `best-batch`, or with the most GPUs `any-pair:64`. A policy may have its own.
        tuned_gpus: The most GPUs that a tuned job asks for.
        measured_jobs: The jobs that figures are of, such as `2000-3000`: counted from 0 in order of
            submission, both included.
        least_stay_seconds: For how long rounds leave a job on its GPUs; also a text such as `30m`.
        most_moves_per_hour: How often a job is moved within an hour at most.
    """
    read = Conditions(
        fidelity=with_draw(
            preset_of(str(fidelity), profiling=word_of(ProfilingMode, profiling, "profiling")),
            word_of(ScoreDraw, variability_draw, "variability_draw"),
            measured=variability is not None,
        ),
        round_seconds=None if round_seconds is None else round_seconds_of(round_seconds),
        rigid_share=number_reader("rigid_share")(rigid_share),
        strong_scaling_share=number_reader("strong_scaling_share")(strong_scaling_share),
        failures=read_failures(
            _number_or_none("failures_mtbf_hours", failures_mtbf_hours),
            _number_or_none("repair_seconds", repair_seconds),
        ),
        reservations=read_reservations(
            [reservations] if isinstance(reservations, str) else reservations
        ),
        interference=_interference(interference),
        variability=_variability(variability, cluster),
        locality_penalties=_penalties(locality_penalty, models, cluster),
        weighs_steps=locality_penalty == MEASURED,
        rack_penalty=_rack_penalty(rack_penalty),
        network_contention=_network_contention(network_contention),
        tuned=_tuned(tuned, tuned_gpus),
        measured_jobs=_window(measured_jobs),
        stability=Stability(_least_stay(least_stay_seconds), most_moves_of(most_moves_per_hour)),
    )
    check_interference(read.interference, jobs_per_gpu=cluster.jobs_per_gpu)
    return read


def takes_conditions(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Name the conditions in a function's signature, and refuse others by name (TypeError).

    The function takes them as `**conditions: Unpack[ConditionValues]`.
    """
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    of_conditions = inspect.signature(read_conditions).parameters
    conditions = [of_conditions[name] for name in ConditionValues.__annotations__]
    known = [each.name for each in (*own, *conditions)]

    @functools.wraps(function)
    def checked(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        for name in kwargs:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"Did you mean {near[0]}?" if near else f"Use: {', '.join(known)}."
                raise TypeError(f"{function.__name__}() takes no {name}. {hint}")
        return function(*args, **kwargs)

    checked.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, *conditions]
    )
    return checked


def word_of(kind: type[Word], given: str | None, field: str) -> Word | None:
    """Return the member of an enumeration that a word names. Raises ParameterError."""
    if given is None:
        return None
    try:
        return kind(given)
    except ValueError:
        raise ParameterError(
            "is not one of its choices",
            field=field,
            value=given,
            remedy=f"Use one of: {', '.join(member.value for member in kind)}.",
        ) from None


def _number_or_none(field: str, given: float | None) -> float | None:
    return None if given is None else number_reader(field)(given)


def _interference(given: str | float | Path | Interference | None) -> Interference | None:
    if given is None or isinstance(given, Interference):
        return given
    return interference_of(str(given))


def _variability(given: str | Path | Variability | None, cluster: Cluster) -> Variability | None:
    if given is None or isinstance(given, Variability):
        return given
    return read_variability(path_of(given, field="variability"), gpu_types=cluster.type_names)


def _penalties(given: Any, models: Collection[str], cluster: Cluster) -> dict[str, float]:
    read = number_reader("locality_penalty")
    if given is None or given == MEASURED:
        return {}
    if isinstance(given, str | Path):
        given = read_locality(Path(given))
    if isinstance(given, LocalityTable):
        return penalties_of_table(given, models, cluster.type_names)
    if isinstance(given, Mapping):
        return penalties_of({model: read(factor) for model, factor in given.items()}, models)
    return penalties_of(read(given), models)


def _tuned(given: TuningRule | TunedJobs | str | None, most_gpus: int | None) -> TunedJobs | None:
    """Return how jobs are tuned, None if not.

    Raises InputError for a limit without tuning.
    """
    how = given if given is None or isinstance(given, TunedJobs) else read_tuned(str(given))
    if how is not None:
        return how if most_gpus is None else replace(how, most_gpus=_tuned_gpus(most_gpus))
    if most_gpus is not None:
        raise InputError(
            "limits tuned jobs, and there are none",
            field="tuned_gpus",
            value=most_gpus,
            remedy="Say by which rule (tuned best-batch), or leave it out.",
        )
    return None


def _window(given: str | tuple[int, int] | JobWindow | None) -> JobWindow | None:
    if given is None or isinstance(given, JobWindow):
        return given
    if isinstance(given, str):
        return JobWindow.read(given)
    return JobWindow.read("-".join(map(str, given)) if isinstance(given, Sequence) else str(given))


def _least_stay(given: str | float | None) -> float | None:
    return least_stay_of_text(given) if isinstance(given, str) else least_stay_of(given)
