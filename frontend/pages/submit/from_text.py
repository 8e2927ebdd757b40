"""The form filled as a text describes the job. Says by line what is wrong with the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from frontend.components.priority import priority_choices
from frontend.forms import FormValues
from frontend.pages.submit import model, run_model
from frontend.pages.submit.later import LATER
from frontend.problems import friendly_message
from maat.api.commands import CommandBody
from maat.api.fields import Body
from maat.api.jobs import JobBody
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem
from maat.client.job_file import JobFile

Lines = list[tuple[int, str]]
"""What is wrong: line, and words."""


def declared(body: RawBody) -> dict[str, Any]:
    """Return all fields with their defaults. Raises ValidationError."""
    run = body.get("run")
    if isinstance(run, Mapping) and isinstance(run.get("secret_env"), Mapping):
        named = {name: value or "" for name, value in run["secret_env"].items()}
        body = {**body, "run": {**run, "secret_env": named}}
    return JobBody.model_validate(body).model_dump()


def without_defaults(body: RawBody) -> RawBody:
    """Return the body without what the service would take by itself."""
    kept = {
        name: value
        for name, value in body.items()
        if JobBody.model_fields[name].is_required() or value != _default(name)
    }
    if run := body.get("run"):
        kept["run"] = {
            name: value
            for name, value in run.items()
            if CommandBody.model_fields[name].is_required() or value != _default(name, CommandBody)
        }
    return kept


def _default(name: str, of: type[Body] = JobBody) -> object:
    return of.model_fields[name].get_default(call_default_factory=True)


def wrong_lines(file: JobFile, *, runs: bool) -> Lines:
    """Return what the form cannot take of a file that can be read.

    `runs`: whether the cluster runs commands.
    """
    try:
        declared(file.body)
    except ValidationError as error:
        return [_line(file, problem) for problem in error.errors(include_url=False)]
    run = file.body.get("run")
    if runs and run is None:
        return [(1, "run is missing: this cluster runs commands. Say what to run, and where.")]
    if run is not None and not runs:
        words = "run: this cluster plays models. Choose a cluster that runs commands."
        return [(file.line_of("/run"), words)]
    several = [name for name, value in (run or {}).get("env", {}).items() if "\n" in value]
    words = "has several lines, which the form cannot hold: maat submit takes this file."
    return [(file.line_of(f"/run/env/{name}"), f"{name} {words}") for name in several]


def refused_lines(file: JobFile, problems: Sequence[FieldProblem]) -> Lines:
    """Return what the service said of a file."""
    return [
        (file.line_of(one.pointer), f"{one.field}: {friendly_message(one, empty_name='Name it.')}")
        for one in problems
    ]


def played_values(body: RawBody) -> tuple[FormValues, bool]:
    """Return the fields of the form of models, and whether the job may be preempted."""
    job: Any = declared(body)
    values = {**model.values_like(job, {}), "external_id": job["external_id"] or ""}
    return values, job["preemptible"]


def run_values(body: RawBody) -> FormValues:
    """Return the fields of the form of commands, but for the secrets."""
    job: Any = declared(body)
    return {**run_model.values_like(job, job["run"]), "external_id": job["external_id"] or ""}


def later_values(body: RawBody) -> FormValues:
    """Return the fields that both forms have, but for the array: no file says one."""
    job = declared(body)
    moment = job["deadline"]
    values = {"after": job["after"], "deadline": f"{moment:%Y-%m-%d %H:%M:%S}" if moment else ""}
    return {name: values[name] for name in LATER if name in values}


def priorities(body: RawBody) -> list[dict[str, str]]:
    return priority_choices(declared(body)["priority"])


def _line(file: JobFile, problem: Any) -> tuple[int, str]:
    pointer = "".join(f"/{part}" for part in problem["loc"] if part != "[key]")
    field = str(problem["loc"][-1]) if problem["loc"] else "job"
    message = problem["msg"].removeprefix("Value error, ")
    told = FieldProblem(pointer, field, f"{message}.", code=problem["type"])
    return file.line_of(pointer), f"{field}: {friendly_message(told, empty_name='Name it.')}"
