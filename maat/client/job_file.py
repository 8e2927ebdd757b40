"""A job as a file: a YAML mapping with exactly the fields of `JobBody`.

`maat submit` reads it; the page's form reads and writes it. It is read as YAML 1.2: `no` and `on`
are words. What the schema says is text stays as it was written, such as `EPOCHS: 010`. Tags,
anchors and aliases are refused. This module knows fields and lines, not what may stand in a field:
the service checks that, and `JobFile.line_of` finds the line of what it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, NoReturn

import yaml

from maat.api.jobs import JobBody
from maat.scheduling.errors import InputError

MOST_CHARACTERS = 1_000_000
_MOST_LEVELS = 20
_NULL = re.compile(r"(?:~|null|Null|NULL|)")
_TRUE, _FALSE = re.compile(r"true|True|TRUE"), re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]{1,40}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

Schema = Mapping[str, Any]
_ANYTHING: Schema = {}


class JobFileError(InputError):
    """A job's file cannot be read. `row` is the line, counted from 1."""

    row_word = "line"


@dataclass(frozen=True, slots=True)
class JobFile:
    """What a file says. `lines`: JSON pointer into `body` -> line, counted from 1."""

    body: dict[str, Any]
    lines: Mapping[str, int]

    def line_of(self, pointer: str) -> int:
        """Return the line of a value, or of what should hold it; 1 if that is the whole file."""
        while pointer not in self.lines and pointer:
            pointer = pointer.rpartition("/")[0]
        return self.lines.get(pointer, 1)


def read_job_file(text: str, *, source: str | None = None) -> dict[str, Any]:
    """Return the body of the job that `text` describes. Raises JobFileError."""
    return parse_job_file(text, source=source).body


def parse_job_file(text: str, *, source: str | None = None) -> JobFile:
    """Return the body of a job, and the line of each of its values.

    Args:
        source: Name of the file, for errors.

    Raises:
        JobFileError: The text is no YAML mapping, or has a field that jobs do not have.
    """
    if len(text) > MOST_CHARACTERS:
        raise JobFileError(
            f"has more than {MOST_CHARACTERS} characters",
            field="job",
            remedy="Give one job; a long command reads its data from a file.",
            source=source,
        )
    reader = _Reader(yaml.parse(text, Loader=yaml.SafeLoader), source)
    try:
        return JobFile(reader.job(), reader.lines)
    except yaml.reader.ReaderError as wrong:
        line = text.count("\n", 0, wrong.position) + 1
        reader.refuse("holds a character that no text file has", line=line, remedy="Remove it.")
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark or wrong.context_mark
        reader.refuse(
            f"cannot be read as YAML: {wrong.problem or wrong.context}",
            line=None if mark is None else mark.line + 1,
            remedy="Write field: value, one field a line; put text with : or # between quotes, "
            "and indent with spaces.",
        )


def with_secrets(body: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    """Return the body with the values of secrets that it only names, such as `WANDB_API_KEY:`.

    Args:
        known: Values by name, such as the caller's environment.

    Raises:
        JobFileError: One of them has no value.
    """
    run = body.get("run")
    secrets = run.get("secret_env") if isinstance(run, Mapping) else None
    if not isinstance(run, Mapping) or not isinstance(secrets, Mapping):
        return dict(body)
    for name, value in secrets.items():
        if value is None and not known.get(name):
            raise JobFileError(
                "has no value",
                field="run.secret_env",
                value=name,
                remedy=f"Set it in your environment first: export {name}=...",
            )
    filled = {name: known[name] if value is None else value for name, value in secrets.items()}
    return {**body, "run": {**run, "secret_env": filled}}


def job_file_text(body: Mapping[str, Any]) -> str:
    """Return a body as the text of a file, its fields in the order of the schema.

    `parse_job_file` reads the same body from it, and so does any reader of YAML 1.1.
    """
    order = list(JobBody.model_fields)
    known = {name: body[name] for name in order if name in body}
    written: str = yaml.dump(
        {**known, **body},
        Dumper=_Dumper,
        allow_unicode=True,
        sort_keys=False,
        width=100,
    )
    return written


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # the library has no types
    """Writes text so that nobody reads a number in it: quotes also what is one in YAML 1.2."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(rf"(?:{_FLOAT.pattern})$"), list("-+.0123456789")
)


@dataclass(slots=True)
class _Reader:
    """Makes values of the events of one document, as the schema of a job describes them."""

    events: Iterator[yaml.Event]
    source: str | None
    lines: dict[str, int] = field(default_factory=dict)

    def job(self) -> dict[str, Any]:
        next(self.events)  # the start of the stream
        if isinstance(next(self.events), yaml.StreamEndEvent):
            self.refuse("is empty", line=1, remedy="Begin with name: and model:.")
        first = next(self.events)
        if not isinstance(first, yaml.MappingStartEvent):
            self.refuse(
                "is not a list of fields",
                line=_line(first),
                remedy="Write one job as field: value, such as name: night-run.",
            )
        body = self._mapping(first, _schema(), "")
        next(self.events)  # the end of the document
        if isinstance(more := next(self.events), yaml.DocumentStartEvent):
            self.refuse("holds a second document", line=_line(more), remedy="Give one job a file.")
        return body

    def refuse(
        self,
        problem: str,
        *,
        line: int | None,
        remedy: str,
        field: str = "job",
        value: object = None,
    ) -> NoReturn:
        raise JobFileError(
            problem, field=field, value=value, remedy=remedy, source=self.source, row=line
        )

    def _value(self, event: yaml.Event, schema: Schema, pointer: str) -> Any:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            self.refuse(
                "has an anchor or an alias (& or *)",
                line=_line(event),
                field=_named(pointer),
                remedy="Write the value out, or put text that begins so between quotes.",
            )
        if event.tag is not None:
            self.refuse(
                "has a tag (!)",
                line=_line(event),
                field=_named(pointer),
                remedy="Leave the tag out, or put text that begins so between quotes.",
            )
        if pointer.count("/") > _MOST_LEVELS:
            self.refuse(
                "is nested too deep",
                line=_line(event),
                field=_named(pointer),
                remedy="No field of a job holds so many levels.",
            )
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, schema, pointer)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(schema, pointer)
        plain = event.style is None
        if plain and _NULL.fullmatch(event.value):
            return None
        return event.value if not plain or _is_text(schema) else _resolved(event.value)

    def _mapping(self, start: yaml.Event, schema: Schema, pointer: str) -> dict[str, Any]:
        shape = _branch(schema, "object")
        found: dict[str, Any] = {}
        self.lines.setdefault(pointer, _line(start))
        while not isinstance(key := next(self.events), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                self.refuse(
                    "has a name that is no word",
                    line=_line(key),
                    field=_named(pointer),
                    remedy="Write name: value; put text that begins with [ or { between quotes.",
                )
            self._check_name(key, found, shape, pointer)
            inner = f"{pointer}/{key.value.replace('~', '~0').replace('/', '~1')}"
            self.lines[inner] = _line(key)
            found[key.value] = self._value(next(self.events), _of_key(shape, key.value), inner)
        return found

    def _check_name(
        self, key: yaml.Event, found: Mapping[str, Any], shape: Schema, pointer: str
    ) -> None:
        name = key.value
        if name in found:
            self.refuse(
                "is given twice", line=_line(key), field=name, remedy="Give each field once."
            )
        fields: Sequence[str] = list(shape.get("properties", {}))
        if fields and name not in fields:
            near = get_close_matches(name, fields, n=1)
            self.refuse(
                "is no field of a job" if not pointer else f"is no field of {_named(pointer)}",
                line=_line(key),
                field=name,
                remedy=f"Did you mean {near[0]}?" if near else f"Fields: {', '.join(fields)}.",
            )

    def _sequence(self, schema: Schema, pointer: str) -> list[Any]:
        of_item = _branch(schema, "array").get("items", _ANYTHING)
        found: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            inner = f"{pointer}/{len(found)}"
            self.lines[inner] = _line(event)
            found.append(self._value(event, of_item, inner))
        return found


def _line(event: yaml.Event) -> int:
    return int(event.start_mark.line) + 1


def _named(pointer: str) -> str:
    return pointer.strip("/").replace("/", ".") or "job"


def _resolved(text: str) -> object:
    """Return what a word without quotes is in YAML 1.2."""
    if _TRUE.fullmatch(text) or _FALSE.fullmatch(text):
        return text.lower() == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and abs(number := float(text)) < float("inf"):
        return number
    return text


@cache
def _schema() -> Schema:
    return JobBody.model_json_schema()


def _branches(schema: Schema) -> list[Schema]:
    """Return what a value may be, each alone."""
    if "$ref" in schema:
        return [_schema()["$defs"][schema["$ref"].rpartition("/")[2]]]
    return (
        [one for each in schema["anyOf"] for one in _branches(each)]
        if "anyOf" in schema
        else [schema]
    )


def _branch(schema: Schema, kind: str) -> Schema:
    return next((each for each in _branches(schema) if each.get("type") == kind), _ANYTHING)


def _is_text(schema: Schema) -> bool:
    return {each.get("type") for each in _branches(schema)} - {"null"} == {"string"}


def _of_key(shape: Schema, name: str) -> Schema:
    """Return the schema of what a mapping holds under a name."""
    of_any_name = next(iter(shape.get("patternProperties", {}).values()), _ANYTHING)
    found = shape.get("properties", {}).get(name) or shape.get("additionalProperties")
    return found if isinstance(found, Mapping) else of_any_name
