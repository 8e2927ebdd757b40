"""The fields of a job: which apply to which kind of job, what they offer, what is wrong in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

from frontend.components.labels import label_texts, labels_of, wrong_labels
from frontend.formatting import count, plural
from frontend.forms import FormValues, Told, wrong_number
from frontend.forms import still_wrong as not_mended
from frontend.problems import friendly_message
from frontend.shell import NO_CLUSTER
from maat.api.clusters import ClusterStateOut
from maat.api.job_answers import JobOut
from maat.api.jobs import MAX_WORK, JobBody
from maat.api.models import ModelOnTypeOut, ModelOut
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

# Field of the API -> its label in the form; the form asks for the cluster and for preemption apart,
# and not for a command, the jobs to follow, or a deadline.
LABELS = {
    name: str(field.title)
    for name, field in JobBody.model_fields.items()
    if name not in ("cluster_id", "preemptible", "run", "after", "deadline")
}
FIELDS = tuple(LABELS)
SHAPED = ("gpu_count", "min_gpus", "max_gpus", "batch_size", "max_batch_size", "promised_seconds")
_LAID_OUT = {
    *SHAPED,
    "name",
    "model",
    "adaptivity",
    "workload_kind",
    "gpu_types",
    "work_scale",
    "labels",
    "external_id",
    "priority",
}
NUMBERS = tuple(name for name in FIELDS if name not in _LAID_OUT)
"""Fields without a place of their own: numbers that stand below the others."""
ADAPTIVITY = (
    ("adaptive", "GPUs and batch size"),
    ("strong-scaling", "GPUs only"),
    ("rigid", "Nothing"),
)
KINDS = (
    ("training", "Training"),
    ("batch-inference", "Batch inference"),
    ("latency-inference", "Latency-bound inference"),
)
LATENCY = "latency-inference"
EMPTY_NAME = "Give the job a name."

Values: TypeAlias = FormValues
Capacity: TypeAlias = Mapping[str, int]
"""GPUs of the cluster by type, drained ones included; empty where there is no cluster."""


class Model(TypedDict):
    """What the form has to know of a model of the catalog."""

    name: str
    initial_batch_size: int
    max_batch_size: int
    restart_seconds: float
    gpu_types: list[ModelOnTypeOut]


def named_model(models: Sequence[Model] | None, name: str | None) -> Model | None:
    return next((model for model in models or () if model["name"] == name), None)


def model_of(model: ModelOut) -> Model:
    """Return the part of a model of the catalog that the form keeps."""
    return {
        "name": model["name"],
        "initial_batch_size": model["initial_batch_size"],
        "max_batch_size": model["max_batch_size"],
        "restart_seconds": model["restart_seconds"],
        "gpu_types": model["gpu_types"],
    }


def meaningless(adaptivity: str, kind: str) -> set[str]:
    """Return the fields that do not apply to such a job.

    Latency-bound inference always has a batch size: the requests that it answers together.
    """
    by_adaptivity = {
        "rigid": {"min_gpus", "max_gpus", "max_batch_size"},
        "strong-scaling": {"gpu_count", "max_batch_size"},
        "adaptive": {"gpu_count", "batch_size"},
    }[adaptivity]
    return (
        (by_adaptivity - {"batch_size"} | {"max_batch_size"})
        if kind == LATENCY
        else by_adaptivity | {"promised_seconds"}
    )


def capacity_of(state: ClusterStateOut) -> dict[str, int]:
    """Of a cluster's state."""
    found: dict[str, int] = {}
    for node in state["free_gpus_by_node"]:
        found[node["gpu_type"]] = found.get(node["gpu_type"], 0) + node["gpu_count"]
    return found


def types_of(model: Model | ModelOut | None, capacity: Capacity | None) -> list[str]:
    """Return the GPU types of which the cluster has enough for a replica of the model.

    Every type on which the model runs if no cluster is known.
    """
    fits = model["gpu_types"] if model else ()
    return [
        fit["gpu_type"]
        for fit in fits
        if not capacity or capacity.get(fit["gpu_type"], 0) >= fit["gpus_per_replica"]
    ]


def most_gpus(
    model: Model | ModelOut | None, chosen: Sequence[str] | None, capacity: Capacity | None
) -> int | None:
    """The most GPUs of one type that the job could hold; None where no cluster is known."""
    usable = (
        [capacity[name] for name in types_of(model, capacity) if not chosen or name in chosen]
        if capacity
        else []
    )
    return max(usable, default=None)


def unfinished(
    values: Values, model: Model | ModelOut | None, capacity: Capacity | None
) -> dict[str, str]:
    """All that the form itself can see, by field. The service checks everything again."""
    empty = meaningless(values["adaptivity"], values["workload_kind"])
    found = {
        "name": "" if (values["name"] or "").strip() else EMPTY_NAME,
        "model": "" if values["model"] else "Choose a model.",
    }
    found |= _counts(values, most_gpus(model, values["gpu_types"], capacity))
    found |= _batches(values, model)
    if not _positive(values["promised_seconds"]):
        found["promised_seconds"] = "Say in how many seconds a batch is to be answered."
    found["labels"] = wrong_labels(values["labels"])
    found |= {name: wrong_number(JobBody, name, values[name]) for name in NUMBERS}
    found |= {
        name: wrong_number(JobBody, name, values[name]) for name in SHAPED if not found.get(name)
    }
    work = values["work_scale"]
    if not _positive(work) or work > MAX_WORK:
        found["work_scale"] = f"Give a number above 0, at most {count(int(MAX_WORK))}."
    return {field: words for field, words in found.items() if words and field not in empty}


def _counts(values: Values, most: int | None) -> dict[str, str]:
    found = {}
    for field in ("gpu_count", "min_gpus"):
        value = values[field]
        if not _positive(value):
            found[field] = (
                "Say how many GPUs it needs."
                if field == "gpu_count"
                else "Give a whole number from 1 up."
            )
        elif most is not None and value > most:
            found[field] = (
                f"The cluster has at most {plural(most, 'GPU')} of one type that this job may use."
            )
    least, limit = values["min_gpus"], values["max_gpus"]
    if limit not in ("", None) and not _positive(limit):
        found["max_gpus"] = "Give a whole number from 1 up, or leave it empty."
    elif _positive(limit) and _positive(least) and limit < least:
        found["max_gpus"] = f"Give at least {count(least)}, as many as it needs, or leave it empty."
    return found


def _batches(values: Values, model: Model | ModelOut | None) -> dict[str, str]:
    if model is None:
        return {}
    kind, batch, limit = values["workload_kind"], values["batch_size"], values["max_batch_size"]
    low, high = (model["initial_batch_size"] if kind == "training" else 1), model["max_batch_size"]
    found = {}
    if kind == LATENCY and batch in ("", None):
        found["batch_size"] = "Say how many requests are answered together."
    elif batch not in ("", None) and not _is_within(batch, low, high):
        found["batch_size"] = (
            f"Give {count(low)} to {count(high)}: at those the model was measured."
        )
    if limit not in ("", None) and not _is_within(limit, model["initial_batch_size"], high):
        found["max_batch_size"] = (
            f"Give {count(model['initial_batch_size'])} to {count(high)}, or leave it empty."
        )
    return found


def refused(problems: Sequence[FieldProblem]) -> dict[str, str]:
    """What the service said, by field, with the form's labels in place of its own names."""
    found: dict[str, str] = {}
    for problem in problems:
        field = (
            problem.field if problem.field in LABELS else problem.pointer.strip("/").split("/")[0]
        )
        if field in LABELS:
            words = in_form_words(friendly_message(problem, empty_name=EMPTY_NAME))
            found[field] = " ".join(filter(None, (found.get(field), words)))
    return found


def in_form_words(text: str) -> str:
    """The API's names of fields as the form labels them."""
    names = "|".join(sorted((name for name in LABELS if "_" in name), key=len, reverse=True))
    return re.sub(rf"\b({names})\b", lambda found: f"“{LABELS[found[1]].split(' (')[0]}”", text)


def still_wrong(
    values: Values,
    told: Told | None,
    model: Model | ModelOut | None,
    capacity: Capacity | None,
) -> dict[str, str]:
    """Return the errors to show; what was said of another kind of job is not among them."""
    if told and any(
        values[name] != told["values"][name] for name in ("adaptivity", "workload_kind")
    ):
        told = {**told, "errors": {}}
    return not_mended(values, told, unfinished(values, model, capacity))


def body_of(
    values: Values, *, preemptible: bool, cluster_id: str | None, own_batch: int | None = None
) -> RawBody:
    """Return the form as the API's body, without empty fields and those that do not apply.

    `own_batch`: of the model, which stands for a fixed batch that was left empty.
    """
    empty = meaningless(values["adaptivity"], values["workload_kind"])
    body = {
        name: _sent(name, value)
        for name, value in values.items()
        if name not in empty and value not in ("", None, [])
    }
    if "batch_size" not in empty and values["workload_kind"] != LATENCY and own_batch is not None:
        body.setdefault("batch_size", own_batch)
    if cluster_id and cluster_id != NO_CLUSTER:
        body["cluster_id"] = cluster_id
    return {
        "name": values["name"] or "",
        "model": values["model"] or "",
        **body,
        "preemptible": preemptible,
    }


def _sent(name: str, value: Any) -> object:
    """Return a field as the API takes it."""
    if name == "labels":
        return labels_of(value)
    return int(value) if name == "priority" else value


def values_like(job: JobOut, changes: Mapping[str, object]) -> dict[str, object]:
    """Return the form as a job was declared, with changes. Its own id, being unique, is empty."""
    given = {
        **job,
        **changes,
        "external_id": "",
        "labels": label_texts(job["labels"]),
        "priority": str(job["priority"]),
    }
    return {
        field: []
        if field == "gpu_types" and given[field] is None
        else ""
        if given[field] is None
        else given[field]
        for field in FIELDS
    }


def _is_within(value: object, low: int, high: int) -> bool:
    """Return whether it is a number in these bounds: a field keeps a text that is none."""
    return isinstance(value, int | float) and low <= value <= high


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and value > 0
