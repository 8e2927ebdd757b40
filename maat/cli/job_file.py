"""`maat submit job.yaml`: a job that a file describes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from maat.cli.lazy_commands import words_after_dashes
from maat.cli.terminal_text import without_controls
from maat.compression import problem_and_remedy
from maat.scheduling.errors import InputError, ParameterError

if TYPE_CHECKING:
    from maat.client.job_file import JobFile

SUFFIXES = (".yaml", ".yml")
_BESIDE_A_FILE = frozenset(
    {"name", "dry_run", "forecast", "array", "idempotency_key", "url", "as_json"}
)


def is_job_file(named: str | None) -> bool:
    return named is not None and named.lower().endswith(SUFFIXES)


def read(context: typer.Context, path: Path) -> JobFile:
    """Return the job that a file describes, with its secrets from the caller's environment.

    Raises InputError if it cannot be read, or if the command line describes a job too.
    """
    _refuse_fields_beside(context)
    from maat.client.job_file import parse_job_file, with_secrets

    try:
        content = path.read_bytes()
        if packed := problem_and_remedy(content):
            raise InputError(packed[0], field="file", value=str(path), remedy=packed[1])
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as failed:
        why = failed.strerror if isinstance(failed, OSError) else "it is not UTF-8"
        raise InputError(
            f"cannot be read ({why})",
            field="file",
            value=str(path),
            remedy="Name a YAML file with the fields of a job.",
        ) from failed
    found = parse_job_file(text, source=str(path))
    return replace(found, body=with_secrets(found.body, os.environ))


@contextmanager
def refusals_by_line(path: Path, file: JobFile) -> Iterator[None]:
    """End with exit code 2 and the line of each field that the service refuses."""
    from maat.client import ApiError

    try:
        yield
    except ApiError as refused:
        if refused.status != 422 or not refused.errors:
            raise
        for error in refused.errors:
            place = f"{path}, line {file.line_of(error.pointer)}"
            sentence = without_controls(f"{place}: {error.field}: {error.full_sentence}")
            typer.echo(f"maat: {sentence}", err=True)
        raise typer.Exit(2) from None


def _refuse_fields_beside(context: typer.Context) -> None:
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in _BESIDE_A_FILE and _is_typed(context, parameter.name or "")
    ]
    if words_after_dashes(context) is not None:
        given.append("--")
    if given:
        raise ParameterError(
            "is given beside a file, which says all of a job",
            field=given[0],
            remedy="Write it in the file, or leave the file out.",
        )


def _is_typed(context: typer.Context, name: str) -> bool:
    """Return whether a parameter's value is from the command line, and not its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
