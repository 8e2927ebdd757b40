"""`maat policies`: what can decide, with parameters; and own policies that cannot be used."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from maat.cli.output import print_json, print_table, say
from maat.cli.policy_options import named_policy
from maat.cli.service import AsJson
from maat.scheduling.own.loading import OwnEntry
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.protocols import Policy
from maat.scheduling.registry import Entry


def policies(
    name: Annotated[
        str | None, typer.Argument(help="A policy, or module:Class: shows its parameters.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List policies, Maat's and those of installed distributions; of one, its parameters."""
    for why in POLICIES.refused.values():
        typer.echo(f"maat: {why}", err=True)
    shown = list(POLICIES) if name is None else [POLICIES.entry(named_policy(name))]
    if as_json:
        print_json([_described(entry) for entry in shown])
    elif name is None:
        rows = [(e.name, suiting_placer(e.name), _origin(e), e.summary) for e in shown]
        print_table(("Policy", "Placer", "From", "What it does"), (), rows)
    else:
        _print_one(shown[0])


def _origin(entry: Entry[Policy]) -> str:
    if not isinstance(entry, OwnEntry):
        return "Maat"
    return entry.where if entry.distribution is None else entry.distribution


def _described(entry: Entry[Policy]) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "summary": entry.summary,
        "from": _origin(entry),
        "placer": suiting_placer(entry.name),
        "round_seconds": entry.build({}).default_round_seconds,
        "parameters": [asdict(parameter) for parameter in entry.parameters],
    }


def _print_one(entry: Entry[Policy]) -> None:
    rounds = entry.build({}).default_round_seconds
    say(f"{entry.title}: {entry.summary}")
    say(f"From {_origin(entry)}; placer {suiting_placer(entry.name)}; rounds of {rounds:g} s.")
    rows = [
        (p.name, p.type, "none" if p.default is None else f"{p.default}", p.unit or "", p.help)
        for p in entry.parameters
    ]
    if rows:
        print_table(("Parameter", "Type", "Default", "Unit", "What it is"), (), rows)
    else:
        say("It has no parameters.")
