"""The job of the form that is shown: of a model, or of a command where the cluster runs them.

For what reads both forms: the text of the job, and its forecast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dash import Input, State

from frontend.forms import FormValues
from frontend.pages.submit import model, run_model
from frontend.pages.submit.fields import field_id
from frontend.pages.submit.later import indices_of, later_body, later_sources, unfinished_later
from frontend.pages.submit.run_fields import run_id
from frontend.pages.submit.run_secrets import secret_sources
from maat.client.calls import RawBody

Given: TypeAlias = Mapping[str, Any]
"""What `form_sources` gives a callback."""


@dataclass(frozen=True)
class GivenJob:
    """The body that the form would send, of secrets only names, and what is wrong in the form.

    `indices`: of the array that it is to become, or None.
    """

    body: RawBody
    wrong: Mapping[str, str]
    indices: Sequence[int] | None
    runs: bool


def form_sources(kind: type[Input] | type[State]) -> dict[str, Any]:
    """Return what `given_job` takes: both forms, and which of them is shown."""
    return {
        "values": {name: kind(field_id(name), "value") for name in model.FIELDS},
        "preemptible": kind("submit-preemptible", "checked"),
        "later": later_sources("submit", kind),
        "run_values": {
            **{name: kind(run_id(name), "value") for name in run_model.FIELDS if name != "secrets"},
            **{name: kind(run_id(name), "checked") for name in run_model.SWITCHES},
        },
        "run_secrets": secret_sources(kind),
        "run_later": later_sources("submit-run", kind),
        "runs": kind("submit-run", "opened"),
        "cluster_id": kind("cluster-select", "value"),
        "models": kind("submit-models", "data"),
        "capacity": kind("submit-capacity", "data"),
    }


def given_job(given: Given, *, name: str = "") -> GivenJob:
    """Return the job of the form. `name`: what stands for an empty one."""
    return _command(given, name) if given["runs"] else _played(given, name)


def _played(given: Given, name: str) -> GivenJob:
    values = _named(given["values"], name)
    later: FormValues = given["later"]
    known = model.named_model(given["models"], values["model"])
    wrong = model.unfinished(values, known, given["capacity"]) | unfinished_later(later)
    own_batch = None if known is None else known["initial_batch_size"]
    body = model.body_of(
        values,
        preemptible=given["preemptible"],
        cluster_id=given["cluster_id"],
        own_batch=own_batch,
    )
    return GivenJob({**body, **later_body(later)}, wrong, indices_of(later["array"]), False)


def _command(given: Given, name: str) -> GivenJob:
    secrets, later = given["run_secrets"], given["run_later"]
    rows = run_model.secrets_of(secrets["names"], secrets["values"])
    values = {**_named(given["run_values"], name), "secrets": rows}
    wrong = run_model.unfinished(values) | unfinished_later(later)
    line = "" if "line" in wrong else values["line"]
    body = run_model.body_of({**values, "line": line or "''"}, cluster_id=given["cluster_id"])
    if not line:
        body["run"]["argv"] = []
    if rows:
        body["run"]["secret_env"] = {row.name: None for row in rows if row.name}
    whole = {**body, **later_body(later)}
    return GivenJob(whole, wrong, indices_of(later["array"]), True)


def _named(values: FormValues, name: str) -> dict[str, Any]:
    return {**values, "name": values["name"] or name}


def without_secrets(body: RawBody) -> RawBody:
    """Return the body without its secrets: for a question to which they do not matter."""
    run = body.get("run")
    if not run or "secret_env" not in run:
        return body
    return {**body, "run": {name: run[name] for name in run if name != "secret_env"}}
