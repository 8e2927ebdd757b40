"""`maat submit [options] -- python train.py`: a command as the body of a job."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.numbers import number_option, whole_option
from maat.scheduling.errors import ParameterError
from maat.vocabulary import MOST_LOCALITY_PENALTY

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")


_PANEL = "Options of a command"
MAX_STOP_SECONDS, MAX_RETRIES, MAX_SAMPLES = 900.0, 100, 1e15  # the limits of the service


@dataclass(frozen=True)
class RunOptions:
    """The options of `maat submit` that are of commands only."""

    cwd: Annotated[
        Path | None,
        typer.Option(help="Folder to run in; default: the present one.", rich_help_panel=_PANEL),
    ] = None
    env: Annotated[
        list[str] | None,
        typer.Option(help="A variable, as NAME=VALUE. May be repeated.", rich_help_panel=_PANEL),
    ] = None
    secret_env: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a variable of your own environment, whose value it gets, stored "
            "encrypted. May be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    stop_seconds: Annotated[
        float | None,
        number_option(
            "--stop-seconds",
            least=1,
            most=MAX_STOP_SECONDS,
            help="Time to save and end when it is told to; default: 120.",
            panel=_PANEL,
        ),
    ] = None
    retries: Annotated[
        int | None,
        whole_option(
            "--retries",
            least=0,
            most=MAX_RETRIES,
            help="Failures in a row, without a checkpoint in between, that are retried; "
            "default: 3.",
            panel=_PANEL,
        ),
    ] = None
    total_samples: Annotated[
        float | None,
        number_option(
            "--total-samples",
            least=0,
            most=MAX_SAMPLES,
            help="Effective samples of the whole training; default: the script says.",
            panel=_PANEL,
        ),
    ] = None
    profile: Annotated[
        bool | None,
        typer.Option(
            help="Whether it is measured on one GPU of each type, for seconds, before it trains, "
            "if it adapts; default: yes.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    dram: Annotated[
        float | None,
        number_option(
            "--dram",
            least=0,
            most=1,
            help="Share of a GPU's DRAM bandwidth that it was measured to use, 0 to 1.",
            panel=_PANEL,
        ),
    ] = None
    functional_unit: Annotated[
        float | None,
        number_option(
            "--functional-unit",
            least=0,
            most=1,
            help="The same of the GPU's busiest functional unit.",
            panel=_PANEL,
        ),
    ] = None
    locality_penalty: Annotated[
        float | None,
        number_option(
            "--locality-penalty",
            least=1,
            most=MOST_LOCALITY_PENALTY,
            help="Time of a step across nodes over one within a node, which the placer pal weighs; "
            "default: as measured.",
            panel=_PANEL,
        ),
    ] = None

    def refuse_any(self) -> None:
        """Refuse those that are given where there is no command. Raises ParameterError."""
        for name, value in vars(self).items():
            if value not in (None, []):
                raise ParameterError(
                    "is of commands, and there is none",
                    field="--" + name.replace("_", "-"),
                    remedy="Give the command after --: maat submit [options] -- python train.py.",
                )


def run_body(
    argv: Sequence[str], options: RunOptions, *, present: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return `run` of a job. Secrets come from the caller's own environment, `present`.

    Raises ParameterError.
    """
    if not argv:
        raise ParameterError(
            "is missing", field="--", remedy="Give a command after it: -- python train.py."
        )
    body: dict[str, Any] = {
        "argv": [_utf8(word, "--") for word in argv],
        "cwd": _utf8(str((options.cwd or Path()).absolute()), "--cwd"),
        "env": _variables(options.env or []),
        "secret_env": {name: _secret(name, present) for name in options.secret_env or []},
    }
    given = {
        "stop_seconds": options.stop_seconds,
        "max_retries": options.retries,
        "total_samples": options.total_samples,
        "profile": options.profile,
        "utilisation": _utilisation(options),
        "locality_penalty": options.locality_penalty,
    }
    return body | {name: value for name, value in given.items() if value is not None}


def _assigned(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not _VARIABLE.fullmatch(name):
        raise ParameterError(
            "does not give a variable a value",
            field="--env",
            value=_shown(text),
            remedy="Write NAME=VALUE. A name has letters, digits and _, and begins with no digit.",
        )
    return name, _utf8(value, "--env")


def _variables(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, value = _assigned(text)
        if name in found:
            raise ParameterError(
                "is given twice", field="--env", value=name, remedy="Give each variable once."
            )
        found[name] = value
    return found


def _utilisation(options: RunOptions) -> dict[str, float] | None:
    shares = {"dram": options.dram, "functional_unit": options.functional_unit}
    given = {name: value for name, value in shares.items() if value is not None}
    if len(given) == 1:
        raise ParameterError(
            "needs the other share too",
            field="--dram" if "dram" in given else "--functional-unit",
            value=next(iter(given.values())),
            remedy="Give --dram and --functional-unit, or neither.",
        )
    return given or None


def _utf8(text: str, field: str) -> str:
    """Refuse what is no text: an argument may be any bytes, and the service takes UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParameterError(
            "is not UTF-8",
            field=field,
            value=_shown(text),
            remedy="Give it as UTF-8, or let the command read it from a file.",
        ) from None
    return text


def _shown(text: str) -> str:
    return text[:100].encode(errors="backslashreplace").decode()


def _secret(name: str, present: Mapping[str, str]) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ParameterError(
            "takes the name of a variable, not its value",
            field="--secret-env",
            remedy="Set it first: export NAME=...; then give --secret-env NAME.",
        )
    if name not in present:
        raise ParameterError(
            "is not in your environment",
            field="--secret-env",
            value=name,
            remedy=f"Set it first: export {name}=...; its value is read from there.",
        )
    try:
        present[name].encode()
    except UnicodeEncodeError:
        raise ParameterError(
            "has a value that is not UTF-8",
            field="--secret-env",
            value=name,
            remedy="Give it as UTF-8, or let the command read it from a file.",
        ) from None
    return present[name]
