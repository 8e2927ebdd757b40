"""The fields of a command: what applies to which kind, what is wrong in them, the job they make."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from frontend.components.labels import label_texts, labels_of, wrong_labels
from frontend.forms import FormValues, wrong_number
from frontend.pages.submit.model import EMPTY_NAME
from maat.api.commands import CommandBody, CommandOut, UtilisationBody, stem_of
from maat.api.fields import Body
from maat.api.job_answers import JobOut
from maat.api.jobs import JobBody
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

ADAPTS = (
    ("adaptive", "GPUs and batch size"),
    ("strong-scaling", "GPUs only"),
    ("rigid", "Nothing"),
)
SHAPED = ("gpu_count", "batch_size", "max_batch_size", "min_gpus", "max_gpus")
MORE_OF_RUN = ("stop_seconds", "max_retries", "total_samples", "locality_penalty")
SHARES = ("dram", "functional_unit")
SWITCHES = ("profile", "preemptible")
_PLAYED = frozenset({"work_scale", "workload_kind", "promised_seconds"})  # of jobs of the catalog
_TEXTS = (
    "name",
    "line",
    "cwd",
    "env",
    "secrets",
    "adaptivity",
    "gpu_types",
    "model",
    "labels",
    "external_id",
    "priority",
)
MORE_OF_JOB = tuple(
    name
    for name in JobBody.model_fields
    if name not in {*_TEXTS, *SHAPED, *SWITCHES, *_PLAYED, "cluster_id", "run", "after", "deadline"}
)
"""Numbers of every job that have no place of their own."""
NUMBERS: Mapping[str, type[Body]] = {
    **dict.fromkeys((*SHAPED, *MORE_OF_JOB), JobBody),
    **dict.fromkeys(MORE_OF_RUN, CommandBody),
    **dict.fromkeys(SHARES, UtilisationBody),
}
"""Number of the form -> the schema that describes it."""
FIELDS = (*_TEXTS, *NUMBERS)
FOLDED = frozenset(FIELDS) - {*_TEXTS[:6], *SHAPED} | {
    "gpu_types",
    "model",
    "labels",
    "external_id",
    "priority",
}
# Pointer into `run` -> field of the form; any other is a field of its own name.
_PLACES = {"": "line", "argv": "line", "secret_env": "secrets"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_NAMING = "A name has letters, digits and _, and begins with no digit"


class Secret(NamedTuple):
    """A row of the form: a variable, and the value that nobody is shown again."""

    name: str
    value: str


def meaningless(adaptivity: str) -> set[str]:
    """Return the fields that do not apply to such a command."""
    return {
        "rigid": {"min_gpus", "max_gpus", "max_batch_size", "profile"},
        "strong-scaling": {"gpu_count", "max_batch_size"},
        "adaptive": {"gpu_count"},
    }[adaptivity]


def secrets_of(names: Sequence[str | None], values: Sequence[str | None]) -> list[Secret]:
    """Return the rows in which something was typed."""
    rows = [Secret((n or "").strip(), v or "") for n, v in zip(names, values, strict=True)]
    return [row for row in rows if row.name or row.value]


def shown_values(values: FormValues) -> dict[str, Any]:
    """Return what a page may keep of a form: of secrets only the names."""
    return {**values, "secrets": [secret.name for secret in values["secrets"]]}


def unfinished(values: FormValues) -> dict[str, str]:
    """All that the form itself can see, by field. The service checks everything again."""
    folder = values["cwd"] or ""
    found = {
        "name": "" if (values["name"] or "").strip() else EMPTY_NAME,
        "line": _wrong_line(values["line"] or ""),
        "cwd": "" if folder.startswith("/") else "Begin it with /, such as /home/me/work.",
        "env": _wrong_lines(values["env"] or ""),
        "labels": wrong_labels(values["labels"]),
        "secrets": _wrong_secrets(values["secrets"], dict(_variables(values["env"] or ""))),
        **{name: wrong_number(body, name, values[name]) for name, body in NUMBERS.items()},
        **wrong_shape(values),
    }
    if not folder:
        found["cwd"] = "Say in which folder it is to run."
    for name, other in (SHARES, SHARES[::-1]):
        if values[name] in ("", None) and values[other] not in ("", None):
            found[name] = "Give both shares, or neither."
    absent = meaningless(values["adaptivity"])
    return {field: words for field, words in found.items() if words and field not in absent}


def wrong_shape(values: FormValues) -> dict[str, str]:
    """Return what is wrong in the numbers of GPUs and in the batch sizes, by field."""
    found = {name: wrong_number(JobBody, name, values[name]) for name in SHAPED}
    rigid = values["adaptivity"] == "rigid"
    if rigid and values["gpu_count"] in ("", None):
        found["gpu_count"] = "Say how many GPUs it needs."
    if not rigid and values["batch_size"] in ("", None):
        found["batch_size"] = "Say for which batch size it was tuned."
    for low, high in (("min_gpus", "max_gpus"), ("batch_size", "max_batch_size")):
        least, most = values[low], values[high]
        if not found[high] and _both_numbers(least, most) and most < least:
            found[high] = f"Give at least {least}, or leave it empty."
    absent = meaningless(values["adaptivity"])
    return {name: words for name, words in found.items() if words and name not in absent}


def body_of(values: FormValues, *, cluster_id: str | None) -> RawBody:
    """Return the form as the API's body, without empty fields and those that do not apply."""
    argv = shlex.split(values["line"])
    absent = meaningless(values["adaptivity"])
    given = {
        name: value
        for name, value in values.items()
        if name not in absent and value not in ("", None, [])
    }
    shares = {name: given[name] for name in SHARES if name in given}
    run = {
        "argv": argv,
        "cwd": values["cwd"],
        "env": dict(_variables(values["env"] or "")),
        **{name: given[name] for name in (*MORE_OF_RUN, "profile") if name in given},
        **({"utilisation": shares} if shares else {}),
    }
    if values["secrets"]:
        run["secret_env"] = {secret.name: secret.value for secret in values["secrets"]}
    of_job = {
        "name",
        "adaptivity",
        "gpu_types",
        "labels",
        "external_id",
        "priority",
        "preemptible",
        *SHAPED,
        *MORE_OF_JOB,
    }
    if "labels" in given:
        given["labels"] = labels_of(given["labels"])
    if "priority" in given:
        given["priority"] = int(given["priority"])
    return {
        **{name: value for name, value in given.items() if name in of_job},
        "model": given.get("model") or stem_of(argv),
        "cluster_id": cluster_id,
        "run": run,
    }


def values_like(job: JobOut, command: CommandOut) -> dict[str, Any]:
    """Return the form as a command was declared, but for its secrets and its own id."""
    own_name = "" if job["model"] == stem_of(command["argv"]) else job["model"]
    lines = [f"{name}={value}" for name, value in command["env"].items() if _fits_a_line(value)]
    given: Mapping[str, Any] = {
        **job,
        **command,
        **(command["utilisation"] or {}),
        "line": shlex.join(command["argv"]),
        "env": "\n".join(lines),
        "model": own_name,
        "external_id": "",
    }
    return {
        field: "" if given.get(field) is None else given[field]
        for field in (*FIELDS, *SWITCHES)
        if field not in ("secrets", "gpu_types", "labels", "priority")
    } | {
        "gpu_types": job["gpu_types"] or [],
        "labels": label_texts(job["labels"]),
        "priority": str(job["priority"]),
    }


def left_out(command: CommandOut) -> list[str]:
    """Return the variables that the form cannot hold, one in a line."""
    return [name for name, value in command["env"].items() if not _fits_a_line(value)]


def place_of(problem: FieldProblem) -> str | None:
    """Return the form's field for a problem: `/run/argv/0` is the command."""
    first, _, rest = problem.pointer.strip("/").partition("/")
    if first == "run":
        inner, _, last = rest.partition("/")
        place = last if inner == "utilisation" else _PLACES.get(inner, inner)
        return place if place in FIELDS else None
    return first if first in FIELDS else None


def _fits_a_line(value: str) -> bool:
    return len(value.splitlines()) < 2 and not value.endswith(("\n", "\r"))


def _both_numbers(*values: object) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _variables(lines: str) -> Iterator[tuple[str, str]]:
    for line in lines.splitlines():
        if line.strip():
            name, _, value = line.partition("=")
            yield name.strip(), value


def _wrong_line(line: str) -> str:
    try:
        words = shlex.split(line)
    except ValueError as error:
        return f"A shell could not read it: {str(error).lower()}. Close every quote."
    return "" if words and words[0] else "Give a command, such as python train.py."


def _wrong_lines(lines: str) -> str:
    seen: set[str] = set()
    for number, line in enumerate(lines.splitlines(), start=1):
        if not line.strip():
            continue
        name = line.partition("=")[0].strip()
        if not name:
            return f"Line {number} has no name: write NAME=VALUE."
        if "=" not in line:
            return f"Line {number} has no value: write {line.strip()}=VALUE."
        if not _VARIABLE.fullmatch(name):
            return f"Line {number}: {_NAMING}."
        if name in seen:
            return f"Line {number} gives {name} again: give it once."
        seen.add(name)
    return ""


def _wrong_secrets(secrets: Sequence[Secret], env: Mapping[str, str]) -> str:
    seen: set[str] = set()
    for name, value in secrets:
        if not name:
            return "A value has no name: give both, or neither."
        if not _VARIABLE.fullmatch(name):
            return f"{_NAMING}: change {name[:40]}."
        if not value:
            return f"Give the value of {name}, or remove its name."
        if name in seen or name in env:
            where = "here" if name in seen else "in the environment"
            return f"{name} stands {where} already: give it once."
        seen.add(name)
    return ""
