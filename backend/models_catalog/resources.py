"""Catalog models as the API answers them."""

from __future__ import annotations

from backend.answers import answer_of
from maat.api.models import FitErrorOut, ModelOnTypeOut, ModelOut
from maat.models.catalog import CatalogFit, CatalogModel


def show_model(model: CatalogModel) -> ModelOut:
    return answer_of(
        ModelOut,
        model,
        gpu_types=[_on_type(fit) for fit in model.fits.values()],
        noise_scale_curve=list(model.noise_scale_curve),
    )


def _on_type(fit: CatalogFit) -> ModelOnTypeOut:
    errors = fit.fit_error
    return answer_of(
        ModelOnTypeOut,
        fit,
        throughput_parameters=fit.throughput_parameters._asdict(),
        fit_error=None if errors is None else errors.median,
        fit_errors=None if errors is None else FitErrorOut(median=errors.median, p95=errors.p95),
    )
