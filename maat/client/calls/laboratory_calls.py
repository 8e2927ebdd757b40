"""Calls about the laboratory: measurements, simulations, sweeps, experiments and the papers."""

from __future__ import annotations

from collections.abc import Sequence

from maat.api.experiments import (
    AutoscalingBody,
    AutoscalingOut,
    ExperimentDetail,
    ExperimentOut,
    TuningBody,
    TuningOut,
)
from maat.api.fields import Page
from maat.api.imports import ColumnsOut, TraceImportBody, TraceImportOut
from maat.api.laboratory import LaboratoryUseOut
from maat.api.measurements import (
    MeasurementBody,
    MeasurementFiguresOut,
    MeasurementFilesOut,
    MeasurementOut,
)
from maat.api.papers import (
    PapersOut,
    ReproducedItemDetail,
    ReproductionBody,
    ReproductionOut,
)
from maat.api.simulation_answers import (
    Comparison,
    FiguresOut,
    RunResult,
    SimulationOut,
    SimulationTraceOut,
)
from maat.api.simulations import SimulationBody
from maat.api.sweeps import SweepBody, SweepDetail, SweepOut
from maat.client.calls.core import (
    ANY_FORM,
    Call,
    Fields,
    as_json,
    given_of,
    keyed_by,
    path_of,
)
from maat.vocabulary import FairnessRule


def laboratory_use() -> Call[Page[LaboratoryUseOut]]:
    """CPU time of simulations and other work within 24 hours; the own tenant first."""
    return Call("GET", path_of("laboratory", "use"))


def measurements(
    *, kind: str | None = None, limit: int = 500, cursor: str | None = None
) -> Call[Page[MeasurementOut]]:
    """List measurements, newest first."""
    return Call("GET", path_of("measurements"), given_of(kind=kind, limit=limit, cursor=cursor))


def measurement(measurement_id: str) -> Call[MeasurementOut]:
    return Call("GET", path_of("measurements", measurement_id))


def measurement_figures(
    measurement_id: str, *, model: str | None = None, gpu_type: str | None = None
) -> Call[MeasurementFiguresOut]:
    path = path_of("measurements", measurement_id, "figures")
    return Call("GET", path, given_of(model=model, gpu_type=gpu_type))


def measurement_files(measurement_id: str) -> Call[MeasurementFilesOut]:
    return Call("GET", path_of("measurements", measurement_id, "files"))


def upload_measurement(
    body: MeasurementBody | Fields, *, idempotency_key: str | None = None
) -> Call[MeasurementOut]:
    return Call(
        "POST", path_of("measurements"), body=as_json(body), headers=keyed_by(idempotency_key)
    )


def delete_measurement(measurement_id: str) -> Call[None]:
    """Delete measurements; operations that use them keep them."""
    return Call("DELETE", path_of("measurements", measurement_id))


def import_trace(body: TraceImportBody | Fields) -> Call[TraceImportOut]:
    """Read other systems' records of jobs as a trace; give the answer's `trace` to `simulate`."""
    return Call("POST", path_of("imports", "trace"), body=as_json(body))


def csv_columns(text: str) -> Call[ColumnsOut]:
    """Read the header of a CSV, and what its columns seem to be."""
    return Call("POST", path_of("imports", "columns"), body={"text": text})


def simulations(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[SimulationOut]]:
    return Call("GET", path_of("simulations"), given_of(limit=limit, cursor=cursor))


def simulation(simulation_id: str) -> Call[SimulationOut]:
    return Call("GET", path_of("simulations", simulation_id))


def simulate(
    body: SimulationBody | Fields, *, idempotency_key: str | None = None
) -> Call[SimulationOut]:
    return Call(
        "POST", path_of("simulations"), body=as_json(body), headers=keyed_by(idempotency_key)
    )


def run_result(
    simulation_id: str,
    run_id: str,
    *,
    jobs: Sequence[str] = (),
    fairness_rule: FairnessRule | None = None,
) -> Call[RunResult]:
    """Get a run's result. `jobs`: names of jobs whose allocations to return."""
    asked = given_of(jobs=list(jobs) or None, fairness_rule=fairness_rule)
    return Call("GET", path_of("simulations", simulation_id, "runs", run_id, "result"), asked)


def figures(
    simulation_id: str, *, runs: Sequence[str] = (), fairness_rule: FairnessRule | None = None
) -> Call[FiguresOut]:
    """Get figures. `runs`: ids of runs; by default the first finished ones."""
    return Call(
        "GET",
        path_of("simulations", simulation_id, "figures"),
        given_of(runs=list(runs) or None, fairness_rule=fairness_rule),
    )


def simulation_trace(simulation_id: str, number: int) -> Call[SimulationTraceOut]:
    """Get the text of a CSV trace that a simulation was sent with. `number`: 0 for the first."""
    return Call("GET", path_of("simulations", simulation_id, "traces", number))


def comparison(
    simulation_id: str, *, baseline: int | None = None, fairness_rule: FairnessRule | None = None
) -> Call[Comparison]:
    """Compare contestants. `baseline`: number of the one to compare the others with."""
    return Call(
        "GET",
        path_of("simulations", simulation_id, "comparison"),
        given_of(baseline=baseline, fairness_rule=fairness_rule),
    )


def sweeps(*, limit: int | None = None, cursor: str | None = None) -> Call[Page[SweepOut]]:
    return Call("GET", path_of("sweeps"), given_of(limit=limit, cursor=cursor))


def sweep(sweep_id: str, *, fairness_rule: FairnessRule | None = None) -> Call[SweepDetail]:
    return Call("GET", path_of("sweeps", sweep_id), given_of(fairness_rule=fairness_rule))


def start_sweep(
    body: SweepBody | Fields, *, idempotency_key: str | None = None
) -> Call[SweepDetail]:
    return Call("POST", path_of("sweeps"), body=as_json(body), headers=keyed_by(idempotency_key))


def papers(
    *,
    profiles: str | None = None,
    trace: str | None = None,
    variability: str | None = None,
    interference: str | None = None,
) -> Call[PapersOut]:
    """List the papers' tables and figures: what can be made now, and what was made last.

    Uploads, by name or id: with these in place of published data.
    """
    own = given_of(
        profiles=profiles, trace=trace, variability=variability, interference=interference
    )
    return Call("GET", path_of("papers"), own)


def reproductions(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[ReproductionOut]]:
    return Call("GET", path_of("reproductions"), given_of(limit=limit, cursor=cursor))


def reproduction(reproduction_id: str) -> Call[ReproductionOut]:
    return Call("GET", path_of("reproductions", reproduction_id))


def start_reproduction(
    body: ReproductionBody | Fields, *, idempotency_key: str | None = None
) -> Call[ReproductionOut]:
    return Call(
        "POST", path_of("reproductions"), body=as_json(body), headers=keyed_by(idempotency_key)
    )


def reproduced_item(reproduction_id: str, key: str) -> Call[ReproducedItemDetail]:
    """Get an item's table and figure. `key`: as the paper names it, such as `fig-8`."""
    return Call("GET", path_of("reproductions", reproduction_id, "items", key))


def reproduced_table(reproduction_id: str, key: str) -> Call[bytes]:
    """Get an item's table as CSV."""
    path = path_of("reproductions", reproduction_id, "items", key, "csv")
    return Call("GET", path, headers=ANY_FORM)


def reproduction_report(reproduction_id: str, form: str) -> Call[bytes]:
    """Get all items that were made in one file. `form`: `html` or `md`."""
    return Call("GET", path_of("reproductions", reproduction_id, "report", form), headers=ANY_FORM)


def experiments(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[ExperimentOut]]:
    return Call("GET", path_of("experiments"), given_of(limit=limit, cursor=cursor))


def experiment(experiment_id: str) -> Call[ExperimentDetail]:
    return Call("GET", path_of("experiments", experiment_id))


def start_autoscaling(
    body: AutoscalingBody | Fields, *, idempotency_key: str | None = None
) -> Call[AutoscalingOut]:
    path = path_of("experiments", "autoscaling")
    return Call("POST", path, body=as_json(body), headers=keyed_by(idempotency_key))


def start_tuning(
    body: TuningBody | Fields, *, idempotency_key: str | None = None
) -> Call[TuningOut]:
    """Begin a hyper-parameter search."""
    path = path_of("experiments", "tuning")
    return Call("POST", path, body=as_json(body), headers=keyed_by(idempotency_key))
