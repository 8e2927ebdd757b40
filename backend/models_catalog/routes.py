"""Routes of the catalog of models, and of the preview in the submit form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.models_catalog.preview import Question, preview
from backend.models_catalog.resources import show_model
from backend.problems import FieldError, Invalid, NotFound
from backend.web.strict_json import StrictRoute
from maat.api.fields import LARGEST_BATCH, Page
from maat.api.models import GoodputOut, ModelOut
from maat.models.catalog import CatalogModel, load_catalog, shipped_catalog
from maat.vocabulary import WorkloadKind

router = APIRouter(prefix="/models", tags=["models"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.MODELS_READ))]

MAX_PREVIEW_GPUS = 512


@router.get("", operation_id="listModels")
def list_models(_: Reader) -> Page[ModelOut]:
    """Every model that jobs can train, with its fitted parameters and their source."""
    return Page(items=[show_model(model) for model in load_catalog().values()], next_cursor=None)


@router.get("/{name}", operation_id="getModel")
def read_model(_: Reader, name: str) -> ModelOut:
    return show_model(_model(name))


@router.get("/{name}/goodput", operation_id="previewGoodput")
def preview_goodput(
    _: Reader,
    name: str,
    gpu_types: Annotated[
        list[str],
        Query(max_length=50, description="Default: all on which it runs; commas may separate."),
    ] = [],  # noqa: B006
    max_gpus: Annotated[int, Query(ge=1, le=MAX_PREVIEW_GPUS)] = 16,
    progress: Annotated[
        float,
        Query(ge=0, le=1, allow_inf_nan=False, description="Share of the training that is done."),
    ] = 0.0,
    batch_size: Annotated[
        int | None,
        Query(ge=1, le=LARGEST_BATCH, description="Fixed total batch size; default: the best."),
    ] = None,
    workload_kind: Annotated[
        WorkloadKind, Query(description="For inference, goodput is throughput.")
    ] = WorkloadKind.TRAINING,
) -> GoodputOut:
    """Predicted goodput by GPU count, one series per GPU type.

    GPUs are on whole nodes, as measured.
    """
    model = _model(name)
    _check_batch(
        model,
        batch_size,
        least=model.initial_batch_size if workload_kind is WorkloadKind.TRAINING else 1,
    )
    types = _types(model, [part for given in gpu_types for part in given.split(",") if part])
    question = Question(
        max_gpus, progress, batch_size, learns=workload_kind is WorkloadKind.TRAINING
    )
    return GoodputOut(
        model=name, series=preview(model, types, question, gpus_per_node=_gpus_per_node())
    )


def _model(name: str) -> CatalogModel:
    models = load_catalog()
    if name not in models:
        raise NotFound(
            f"There is no model {name!r} in the catalog. Use one of: {', '.join(sorted(models))}."
        )
    return models[name]


def _types(model: CatalogModel, wanted: Sequence[str]) -> Sequence[str]:
    for name in wanted:
        if name not in model.fits:
            message = "The model was not measured on this GPU type."
            remedy = f"Use some of: {', '.join(model.fits)}."
            raise Invalid(
                f"{message} {remedy}",
                errors=[FieldError("/gpu_types", "no_such_gpu_type", message, remedy, name)],
            )
    return list(dict.fromkeys(wanted)) or model.gpu_types


def _check_batch(model: CatalogModel, batch_size: int | None, *, least: int) -> None:
    if batch_size is not None and not least <= batch_size <= model.max_batch_size:
        message = "The model was not measured at this batch size."
        remedy = f"Give {least} to {model.max_batch_size}."
        raise Invalid(
            f"{message} {remedy}",
            errors=[FieldError("/batch_size", "out_of_range", message, remedy, batch_size)],
        )


def _gpus_per_node() -> Mapping[str, int]:
    return {name: kind.gpus_per_node for name, kind in shipped_catalog().gpu_types.items()}
