"""Fields of both forms: after which jobs a job starts, its deadline, and how often it is submitted.

The form of models calls them `submit-...`, the form of commands `submit-run-...`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State
from dash.development.base_component import Component

from frontend.callbacks import Changes, answer
from frontend.components.cards import folded_fields
from frontend.components.deadline import deadline_body, deadline_field, wrong_deadline
from frontend.components.names import isolated
from frontend.formatting import count, plural
from frontend.forms import FormValues, Told, still_wrong
from frontend.problems import friendly_message
from frontend.routing import path_to
from maat.api.job_answers import JobOut
from maat.api.job_words import warning_words
from maat.api.jobs import MAX_ARRAY_INDEX, MAX_BATCH_JOBS, MOST_NEEDS, JobBody
from maat.client import AsyncClient, calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

LATER = ("after", "deadline", "array")
_RANGE = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")
_PLACES = {"indices": "array", "count": "array"}


def later_id(prefix: str, name: str) -> str:
    return f"{prefix}-{name}"


def later_fields(prefix: str) -> Component:
    """Return the fields, folded."""
    after = dmc.TagsInput(
        id=later_id(prefix, "after"),
        label=JobBody.model_fields["after"].title,
        description="Jobs that must succeed first: their ids, or your own ids of them.",
        value=[],
        placeholder="id, then Enter",
        clearable=True,
        splitChars=[",", " "],
        inputWrapperOrder=["label", "input", "description", "error"],
    )
    array = dmc.TextInput(
        id=later_id(prefix, "array"),
        label="Submit as an array",
        description="One job for each index; a command finds its own in MAAT_ARRAY_INDEX.",
        placeholder="0-9, or 0, 3, 7",
        value="",
        debounce=300,
        inputWrapperOrder=["label", "input", "description", "error"],
    )
    fields = [after, deadline_field(later_id(prefix, "deadline")), array]
    return folded_fields("After others, deadline, array", fields, box_id=f"{prefix}-later")


def later_sources(prefix: str, kind: type[Input] | type[State]) -> dict[str, Any]:
    return {name: kind(later_id(prefix, name), "value") for name in LATER}


def register_later(app: Dash, prefix: str, *, told: str) -> None:
    """Say beside the fields what is wrong in them. `told`: the store of what the service said."""
    answer(
        app,
        tell_later,
        output={name: Output(later_id(prefix, name), "error") for name in LATER},
        inputs={"told": Input(told, "data"), "later": later_sources(prefix, Input)},
        prevent_initial_call=True,
    )


async def tell_later(*, told: Told | None, later: FormValues) -> Changes:
    wrong = still_wrong(later, told, unfinished_later(later))
    return {name: wrong.get(name, "") for name in LATER}


def unfinished_later(later: FormValues) -> dict[str, str]:
    """Return what the form itself sees to be wrong, by field."""
    found = {}
    if len(later["after"] or ()) > MOST_NEEDS:
        found["after"] = f"Name at most {MOST_NEEDS} jobs."
    if wrong := wrong_deadline(later["deadline"]):
        found["deadline"] = wrong
    if (later["array"] or "").strip() and indices_of(later["array"]) is None:
        found["array"] = (
            f"Write 0-9 or 0, 3, 7: at most {count(MAX_BATCH_JOBS)} indices, each once, "
            f"up to {count(MAX_ARRAY_INDEX)}."
        )
    return found


def later_body(later: FormValues) -> RawBody:
    """Return the fields of the job's body that these fields make."""
    body: RawBody = {"after": list(later["after"])} if later["after"] else {}
    moment = deadline_body(later["deadline"])
    return body if moment is None else {**body, "deadline": moment}


def indices_of(text: str | None) -> list[int] | None:
    """Return the indices that a field holds; None if it holds none, or is wrong."""
    found: list[int] = []
    for part in (text or "").replace(",", " ").split():
        match = _RANGE.fullmatch(part)
        if match is None:
            return None
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low or high > MAX_ARRAY_INDEX or high - low >= MAX_BATCH_JOBS:
            return None
        found += range(low, high + 1)
    once = len(set(found)) == len(found)
    return found if found and once and len(found) <= MAX_BATCH_JOBS else None


class Submitted(NamedTuple):
    """Where to go, what was submitted, and why no round will start it as things stand."""

    where: str
    what: str
    warnings: list[str]


async def submit_all(maat: AsyncClient, body: RawBody, later: FormValues, *, key: str) -> Submitted:
    """Submit the job, or the array of jobs."""
    indices = indices_of(later["array"])
    whole = {**body, **later_body(later)}
    if indices is None:
        job = await maat.send(calls.submit_job(whole, idempotency_key=key))
        return Submitted(f"/jobs/{job['id']}", f"{isolated(job['name'])} submitted", _warned([job]))
    made = await maat.send(calls.submit_array(whole, indices=indices, idempotency_key=key))
    first = next(one["job"] for one in made["items"] if one["job"] is not None)
    array = first["array_id"] or ""
    jobs = [one["job"] for one in made["items"] if one["job"] is not None]
    what = f"{plural(made['created'], 'job')} submitted"
    return Submitted(path_to("/jobs", q=array), what, _warned(jobs))


def _warned(jobs: Sequence[JobOut]) -> list[str]:
    return list(dict.fromkeys(warning_words(one) for job in jobs for one in job["warnings"]))


def of_job(problems: Sequence[FieldProblem]) -> list[FieldProblem]:
    """Return problems of an array's job as problems of a job."""
    return [
        replace(one, pointer=one.pointer.removeprefix("/job")) if _is_inside(one) else one
        for one in problems
    ]


def later_place(problem: FieldProblem) -> str | None:
    """Return the field here that a problem is about."""
    name = problem.pointer.strip("/").split("/")[0]
    name = _PLACES.get(name, name)
    return name if name in LATER else None


def refused_later(problems: Sequence[FieldProblem]) -> Mapping[str, str]:
    """Return what the service said of these fields."""
    found: dict[str, str] = {}
    for problem in problems:
        name = later_place(problem)
        if name is not None:
            words = friendly_message(problem, empty_name="")
            found[name] = " ".join(filter(None, (found.get(name), words)))
    return found


def _is_inside(problem: FieldProblem) -> bool:
    return problem.pointer.startswith("/job/")
