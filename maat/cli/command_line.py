"""`maat submit [options] -- python train.py`: a command as the body of a job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from maat.scheduling.errors import ParameterError


def run_body(
    argv: Sequence[str],
    *,
    cwd: Path | None,
    env: Sequence[str],
    secret_env: Sequence[str],
    stop_seconds: float | None,
    retries: int | None,
    profile: bool | None = None,
    present: Mapping[str, str] = os.environ,
) -> dict[str, Any]:
    """Return `run` of a job. Secrets come from the caller's own environment, `present`.

    Raises ParameterError.
    """
    if not argv:
        raise ParameterError(
            "is missing", field="--", remedy="Give a command after it: -- python train.py."
        )
    body: dict[str, Any] = {
        "argv": list(argv),
        "cwd": str((cwd or Path()).absolute()),
        "env": dict(_assigned(text) for text in env),
        "secret_env": {name: _secret(name, present) for name in secret_env},
    }
    given = {"stop_seconds": stop_seconds, "max_retries": retries, "profile": profile}
    return body | {name: value for name, value in given.items() if value is not None}


def _assigned(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ParameterError(
            "has no name and value", field="env", value=text, remedy="Write NAME=VALUE."
        )
    return name, value


def _secret(name: str, present: Mapping[str, str]) -> str:
    if name not in present:
        raise ParameterError(
            "is not in your environment",
            field="secret_env",
            value=name,
            remedy=f"Set it first: export {name}=...; its value is read from there.",
        )
    return present[name]
