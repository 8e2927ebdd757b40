"""What the submit form offers: models and GPU types of the cluster, and which fields there are.

The answer that brings the models brings what the chosen one can use and its goodput too: the page
shows all three at first, and need not ask for one after the other.
"""

from __future__ import annotations

from functools import partial
from typing import TypedDict

from dash import Dash, Input, Output, State

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.weight import weight_help
from frontend.formatting import count, plural
from frontend.forms import FormValues
from frontend.pages.submit.fields import SHOWN, box_id, field_id
from frontend.pages.submit.model import (
    LATENCY,
    SHAPED,
    Capacity,
    Model,
    capacity_of,
    meaningless,
    model_of,
    most_gpus,
    named_model,
    types_of,
)
from frontend.pages.submit.preview import FIELDS as PREVIEWED
from frontend.pages.submit.preview import SHOWN_PREVIEW, preview
from frontend.pages.submit.run_fields import run_id
from frontend.pages.submit.submission import Like
from frontend.shell import NO_CLUSTER
from maat.client import calls
from maat.colours import gpu_order

COUNTS = ("gpu_count", "min_gpus", "max_gpus")
SUITED = {
    "types": ("submit-gpu-types", "data"),
    "chosen": ("submit-gpu-types", "value"),
    "batch": ("submit-batch-size", "placeholder"),
    "max_batch": ("submit-max-batch-size", "placeholder"),
}
"""Name of what suits a model -> the component and the property that show it."""


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(offer_and_show, api),
        output={
            "offered": {
                "models": Output("submit-models", "data"),
                "capacity": Output("submit-capacity", "data"),
                "choices": Output("submit-model", "data"),
                "chosen": Output("submit-model", "value"),
                "weight_help": Output(field_id("weight"), "description"),
                "run_weight_help": Output(run_id("weight"), "description"),
            },
            "suited": {
                name: Output(*place, allow_duplicate=True) for name, place in SUITED.items()
            },
            "shown": {
                name: Output(*place, allow_duplicate=True) for name, place in SHOWN_PREVIEW.items()
            },
        },
        inputs={"cluster_id": Input("cluster-select", "value")},
        state={
            "like": State("submit-like", "data"),
            "given": {name: State(*place) for name, place in PREVIEWED.items()},
        },
        prevent_initial_call="initial_duplicate",
    )
    answer(
        app,
        suit,
        output={name: Output(*place) for name, place in SUITED.items()},
        inputs={
            "name": Input("submit-model", "value"),
            "models": Input("submit-models", "data"),
            "capacity": Input("submit-capacity", "data"),
            "kind": Input("submit-workload-kind", "value"),
        },
        state={"chosen": State("submit-gpu-types", "value")},
    )
    answer(
        app,
        limit,
        output={name: Output(field_id(name), "max") for name in COUNTS},
        inputs={
            "name": Input("submit-model", "value"),
            "chosen": Input("submit-gpu-types", "value"),
            "capacity": Input("submit-capacity", "data"),
        },
        state={"models": State("submit-models", "data")},
    )
    answer(
        app,
        shape,
        output={name: Output(box_id(name), "style") for name in SHAPED},
        inputs={
            "adaptivity": Input("submit-adaptivity", "value"),
            "kind": Input("submit-workload-kind", "value"),
        },
    )


class Offered(TypedDict):
    """What the form offers of a cluster, by the names of the outputs of `offer_and_show`."""

    models: list[Model]
    capacity: Capacity
    choices: list[dict[str, str]]
    chosen: str | None
    weight_help: str
    run_weight_help: str


async def offer(api: Api, *, cluster_id: str | None, chosen: str | None) -> Offered | None:
    """Offer the models that run on the cluster that the job goes to; None if none came."""
    capacity: Capacity = {}
    cluster = None
    try:
        async with api.visitor() as maat:
            models = (await maat.send(calls.models()))["items"]
            if cluster_id is not None and cluster_id != NO_CLUSTER:
                capacity = capacity_of(await maat.send(calls.cluster_state(cluster_id)))
                cluster = await maat.cluster(cluster_id)
    except Failure:
        return None
    runs_here = [model for model in models if types_of(model, capacity)]
    choices = [
        {"value": model["name"], "label": f"{model['title']} · {model['dataset']}"}
        for model in runs_here
    ]
    names = [model["name"] for model in runs_here]
    return {
        "models": [model_of(model) for model in runs_here],
        "capacity": capacity,
        "choices": choices,
        "chosen": chosen if chosen in names else next(iter(names), None),
        "weight_help": weight_help(cluster),
        "run_weight_help": weight_help(cluster),
    }


async def offer_and_show(
    api: Api, *, cluster_id: str | None, like: Like, given: FormValues
) -> Changes:
    """Offer the models, and show what suits the chosen one and its goodput.

    A form that is to be filled as another job is shows that once it is filled.
    """
    offered = await offer(api, cluster_id=cluster_id, chosen=given["model"])
    if offered is None or like["job"]:
        return {"offered": offered or NOTHING}
    models, capacity, name = offered["models"], offered["capacity"], offered["chosen"]
    suited = await suit(
        name=name, models=models, capacity=capacity, kind=given["kind"], chosen=given["gpu_types"]
    )
    values = {**given, "model": name, "gpu_types": suited.get("chosen", given["gpu_types"])}
    types = type_choices(named_model(models, name), capacity)
    shown = await preview(api, offered=types, models=models, capacity=capacity, **values)
    return {"offered": offered, "suited": suited, "shown": shown}


def type_choices(model: Model | None, capacity: Capacity | None) -> list[dict[str, str]]:
    """The GPU types that the model can use; with their GPUs where a cluster is known."""
    return [
        {
            "value": each,
            "label": f"{each} ({plural(capacity[each], 'GPU')})" if capacity else each,
        }
        for each in gpu_order(types_of(model, capacity))
    ]


async def suit(
    *,
    name: str | None,
    models: list[Model],
    capacity: Capacity | None,
    kind: str,
    chosen: list[str] | None,
) -> Changes:
    """Offer the GPU types that the model can use, and say what an empty batch size means."""
    model = named_model(models, name)
    types = type_choices(model, capacity)
    offered = {each["value"] for each in types}
    kept = [each for each in chosen or () if each in offered]
    changes: dict[str, object] = {"types": types, "batch": "", "max_batch": ""}
    if model is None:  # before the models have come, the types of the address stay
        return {**changes, "chosen": kept} if models else changes
    own = f"{count(model['initial_batch_size'])}, the model's own"
    changes["batch"] = "requests" if kind == LATENCY else own
    changes["max_batch"] = count(model["max_batch_size"])
    return changes if kept == chosen else {**changes, "chosen": kept}


async def limit(
    *,
    name: str | None,
    chosen: list[str] | None,
    capacity: Capacity | None,
    models: list[Model],
) -> Changes:
    """Offer no more GPUs than the cluster has of one type."""
    return dict.fromkeys(COUNTS, most_gpus(named_model(models, name), chosen, capacity))


async def shape(*, adaptivity: str, kind: str) -> Changes:
    """Hide the fields that mean nothing for this kind of job."""
    empty = meaningless(adaptivity, kind)
    return {name: HIDDEN if name in empty else SHOWN for name in SHAPED}
