"""What charts draw of uploaded measurements. Commits nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from sqlmodel import Session

from backend.measurements.contents import (
    EVERY_GPU,
    Texts,
    interference_of,
    locality_of,
    table_rates,
    variability_of,
)
from backend.measurements.models import Measurement
from backend.measurements.repository import texts_of
from backend.problems import FieldError, Invalid
from maat.api.measurements import (
    MeasurementFiguresOut,
    PairsOut,
    RatePoint,
    RatesOut,
    ScoresOut,
    SpreadOut,
)
from maat.laboratory.requested import Interference
from maat.models.catalog_fit import fit_measurements, measurements_of
from maat.models.locality_table import LocalityTable
from maat.models.measurements import StepTable
from maat.models.profiles import read_profile_texts
from maat.scheduling.throughput import step_seconds
from maat.scheduling.variability import BinRule, binned
from maat.vocabulary import MeasurementKind

MOST_BATCHES = 3


def figures_of(
    session: Session, measurement: Measurement, *, model: str | None, gpu_type: str | None
) -> MeasurementFiguresOut:
    """Return what to draw of a measurement; of profiles, one model on one GPU type.

    Raises Invalid for a model or a GPU type that it does not cover.
    """
    kind = MeasurementKind(measurement.kind)
    drawn = MeasurementFiguresOut(kind=kind, scores=[], pairs=None, rates=None, spreads=[])
    chosen = _chosen_type(measurement.covers, gpu_type)
    texts = texts_of(session, measurement.id)
    if kind is MeasurementKind.VARIABILITY:
        drawn["scores"] = _scores(texts)
    if kind is MeasurementKind.INTERFERENCE:
        of_type = None if chosen == EVERY_GPU else chosen
        drawn["pairs"] = pairs_of(interference_of(texts, name=measurement.name, gpu_type=of_type))
    if kind is MeasurementKind.LOCALITY:
        drawn["spreads"] = spreads_of(locality_of(texts))
    if kind is MeasurementKind.PROFILES:
        names = measurement.covers[chosen]
        known = names[0] if model is None else model
        if known not in names:
            raise _unknown("model", known, names)
        drawn["rates"] = _rates(tuple(sorted(texts.items())), known, chosen)
    return drawn


def _chosen_type(covers: Mapping[str, list[str]], gpu_type: str | None) -> str:
    chosen = next(iter(covers)) if gpu_type is None else gpu_type
    if chosen not in covers:
        raise _unknown("gpu_type", chosen, list(covers))
    return chosen


def _unknown(field: str, given: str, known: list[str]) -> Invalid:
    message = "The measurement does not cover it."
    remedy = f"Use one of: {', '.join(known)}."
    return Invalid(
        f"{message} {remedy}", errors=[FieldError(f"/{field}", "unknown", message, remedy, given)]
    )


def _scores(texts: Texts) -> list[ScoresOut]:
    shown = []
    for (gpu_type, application), measured in sorted(variability_of(texts).measured.items()):
        scores = np.sort(measured.medians())
        bins = binned(scores, BinRule.SILHOUETTE)
        shown.append(
            ScoresOut(
                application=application,
                gpu_type=gpu_type,
                scores=scores.tolist(),
                bins=bins.tolist(),
            )
        )
    return shown


def spreads_of(table: LocalityTable) -> list[SpreadOut]:
    """Return the penalty of each model on each GPU type, by model."""
    return [
        SpreadOut(
            model=model,
            gpu_type=gpu_type,
            penalty=known.penalty,
            least=min(ratios),
            most=max(ratios),
            steps=known.steps,
        )
        for model in sorted({row.model for row in table.rows})
        for gpu_type, known in table.by_type(model).items()
        if (ratios := [r.ratio for r in table.rows if (r.model, r.gpu_type) == (model, gpu_type)])
    ]


def pairs_of(table: Interference) -> PairsOut:
    """Return the slowdown of each victim by each partner, on the fewest GPUs measured."""
    models = sorted({name for pair in table.pairs for name in pair})

    def slowdown(victim: str, partner: str) -> float | None:
        by_count = table.pairs.get((victim, partner))
        value = math.inf if not by_count else by_count[min(by_count)]
        return value if math.isfinite(value) else None

    rows = [[slowdown(victim, partner) for partner in models] for victim in models]
    return PairsOut(models=models, slowdowns=rows)


@lru_cache(maxsize=16)
def _rates(texts: tuple[tuple[str, str], ...], model: str, gpu_type: str) -> RatesOut:
    """Return measured and fitted samples per second of a few batch sizes.

    A table of throughputs has no fit: it does not tell synchronisation apart.
    """
    rates = table_rates(dict(texts), model=model, gpu_type=gpu_type)
    if rates is None:
        measured = read_profile_texts(dict(texts), gpu_types=[gpu_type])[model]
        points = _fitted_points(measured.steps[gpu_type])
    else:
        points = [
            RatePoint(gpus=gpus, per_gpu_batch=batch, rate=rate, fitted=None)
            for gpus, batch, rate in rates
        ]
    batches = sorted({point["per_gpu_batch"] for point in points})
    last, steps = len(batches) - 1, MOST_BATCHES - 1
    shown = {batches[place * last // steps] for place in range(MOST_BATCHES)}
    kept = [point for point in points if point["per_gpu_batch"] in shown]
    return RatesOut(model=model, gpu_type=gpu_type, points=kept)


def _fitted_points(table: StepTable) -> list[RatePoint]:
    """Return each GPU count on its fewest nodes, measured and by the fit (Pollux eq. 8 to 11)."""
    measured = measurements_of(table)
    parameters = np.array(fit_measurements(measured).parameters)
    seconds = step_seconds(
        parameters,
        measured.per_gpu_batch,
        node_count=measured.node_count,
        replica_count=measured.replica_count,
    )
    fewest: dict[float, float] = {}
    for gpus, nodes in zip(measured.gpu_count, measured.node_count, strict=True):
        fewest[gpus] = min(fewest.get(gpus, nodes), nodes)
    samples = measured.per_gpu_batch * measured.replica_count
    found: dict[tuple[int, float], list[tuple[float, float]]] = {}
    for row, (gpus, nodes) in enumerate(zip(measured.gpu_count, measured.node_count, strict=True)):
        if nodes == fewest[gpus]:
            rates = samples[row] / measured.step_seconds[row], samples[row] / seconds[row]
            found.setdefault((int(gpus), float(measured.per_gpu_batch[row])), []).append(rates)
    return [
        RatePoint(
            gpus=gpus,
            per_gpu_batch=batch,
            rate=float(np.mean([rate for rate, _ in rates])),
            fitted=float(np.mean([fitted for _, fitted in rates])),
        )
        for (gpus, batch), rates in sorted(found.items())
    ]
