"""A submission as text to paste: with curl, in Python, on the command line. Secrets are only named.

Each takes the secrets and MAAT_TOKEN from the environment that it runs in.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pprint import pformat
from typing import Any

from maat.client.submit_words import submit_words

_WITH_TOKEN = """${MAAT_TOKEN:+-H"Authorization: Bearer $MAAT_TOKEN"}"""  # noqa: S105  (a variable)
_END = "JOB"


@dataclass(frozen=True)
class _FromEnvironment:
    """A secret in Python's own words."""

    name: str

    def __repr__(self) -> str:
        return f'os.environ["{self.name}"]'


def with_curl(body: Mapping[str, Any], *, origin: str, indices: Sequence[int] | None = None) -> str:
    """Return a command for a POSIX shell."""
    path = "jobs" if indices is None else "jobs:array"
    names = _secret_names(body)
    marked = {name: f"MAAT-SECRET-{index}-" for index, name in enumerate(names)}
    whole = _request(_with_secrets(body, marked), indices)
    # The shell expands the text, since secrets come from its variables.
    text = json.dumps(whole, indent=2, ensure_ascii=False)
    for letter in ("\\", "$", "`"):
        text = text.replace(letter, "\\" + letter)
    for name, mark in marked.items():
        text = text.replace(f'"{mark}"', f'"${{{name}}}"')
    address = shlex.quote(f"{origin}/api/v1/{path}")
    lines = [
        f"curl -sS --fail-with-body -X POST {address} \\",
        f"  {_WITH_TOKEN} \\",
        f"  -H 'Content-Type: application/json' --data-binary @- <<{_END}",
        text,
        _END,
    ]
    note = f'# {", ".join(names)}: taken from this shell; write \\" for a quote inside one.'
    return "\n".join([*([note] if names else []), *lines]) + "\n"


def in_python(body: Mapping[str, Any], *, origin: str, indices: Sequence[int] | None = None) -> str:
    """Return a script."""
    secrets = {name: _FromEnvironment(name) for name in _secret_names(body)}
    job = pformat(_with_secrets(body, secrets), sort_dicts=False, width=88)
    if indices is None:
        sends = [f"    job = maat.submit_job({_below(job)})", 'print(job["id"])']
    else:
        sends = [
            f"    made = maat.submit_array({_below(job)}, indices={list(indices)})",
            'print(made["created"])',
        ]
    return "\n".join(
        [
            "import os",
            "",
            "from maat.client import Client",
            "",
            f'with Client({json.dumps(origin)}, token=os.environ.get("MAAT_TOKEN")) as maat:',
            *sends,
            "",
        ]
    )


def on_command_line(
    body: Mapping[str, Any], *, origin: str, indices: Sequence[int] | None = None
) -> str:
    """Return a `maat submit` with an option in each line."""
    words = submit_words(body, indices=indices)
    words[3:3] = ["--url", origin]
    cut = words.index("--") if "--" in words else len(words)
    lines = [shlex.join(words[:3])]
    for word in words[3:cut]:
        if word.startswith("--"):
            lines.append(shlex.quote(word))
        else:
            lines[-1] += f" {shlex.quote(word)}"
    if cut < len(words):
        lines.append(shlex.join(words[cut:]))
    return " \\\n  ".join(lines) + "\n"


def _request(job: Mapping[str, Any], indices: Sequence[int] | None) -> Mapping[str, Any]:
    return job if indices is None else {"job": job, "indices": list(indices)}


def _below(text: str) -> str:
    return text.replace("\n", "\n" + " " * 8)


def _secret_names(body: Mapping[str, Any]) -> list[str]:
    return list((body.get("run") or {}).get("secret_env") or ())


def _with_secrets(body: Mapping[str, Any], secrets: Mapping[str, object]) -> dict[str, Any]:
    if not secrets:
        return dict(body)
    return {**body, "run": {**body["run"], "secret_env": dict(secrets)}}
