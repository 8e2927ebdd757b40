"""`maat submit [options] -- python train.py`: a command as the body of a job."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from maat.scheduling.errors import ParameterError

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")


class RunOptions(NamedTuple):
    """The options of `maat submit` that are of commands only."""

    cwd: Path | None = None
    env: Sequence[str] = ()
    secret_env: Sequence[str] = ()
    stop_seconds: float | None = None
    retries: int | None = None
    total_samples: float | None = None
    profile: bool | None = None
    dram: float | None = None
    functional_unit: float | None = None

    def refuse_any(self) -> None:
        """Refuse those that are given where there is no command. Raises ParameterError."""
        for name, value in self._asdict().items():
            if value not in (None, (), []):
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
        "env": _once(dict(map(_assigned, options.env)), options.env),
        "secret_env": {name: _secret(name, present) for name in options.secret_env},
    }
    given = {
        "stop_seconds": options.stop_seconds,
        "max_retries": options.retries,
        "total_samples": options.total_samples,
        "profile": options.profile,
        "utilisation": _utilisation(options),
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


def _once(assigned: dict[str, str], given: Sequence[str]) -> dict[str, str]:
    names = [text.partition("=")[0] for text in given]
    for name in assigned:
        if names.count(name) > 1:
            raise ParameterError(
                "is given twice", field="--env", value=name, remedy="Give each variable once."
            )
    return assigned


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
