"""The options that choose which figures a table shows, and by which rule rho is computed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated

import typer

from maat.laboratory.figures import (
    DEFAULT_RULE,
    FIGURES,
    UNFAIR_FRACTION,
    WORST_RHO,
    name_by_rule,
)
from maat.scheduling.errors import InputError, UnknownNameError
from maat.vocabulary import FairnessRule

ALL = "all"

FigureNames = Annotated[
    str | None,
    typer.Option(
        "--figures",
        help="Figures to print, by the names of --json, with commas between; "
        "all for every one. Default: the most used.",
    ),
]
RuleOfFairness = Annotated[
    FairnessRule,
    typer.Option(
        "--fairness-rule",
        help="How worst_rho and unfair_fraction of the table are computed; --json has every rule.",
    ),
]


def read_figures(
    given: str | None,
    *,
    usual: Sequence[str],
    known: Collection[str],
    rule: FairnessRule = DEFAULT_RULE,
) -> tuple[str, ...]:
    """Return the names of the figures that a table shows.

    `usual`: without the option. `known`: those that the table can have, in any order. Figures of
    fairness are those of the rule. Raises UnknownNameError or InputError.
    """
    if given is None:
        return tuple(_by(rule, name) for name in usual)
    possible = [name for name in FIGURES if name in known]
    if given.strip() == ALL:
        return tuple(possible)
    names = [name.strip() for name in given.split(",") if name.strip()]
    if not names:
        raise InputError(
            "names no figure",
            field="figures",
            value=given,
            remedy=f"Write for example {','.join(usual[:2])}, or {ALL}.",
        )
    for name in names:
        if name not in possible:
            raise UnknownNameError(
                "is no figure of this table",
                field="figures",
                value=name,
                remedy=f"Use {ALL}, or some of: {', '.join(possible)}.",
            )
    return tuple(dict.fromkeys(_by(rule, name) for name in names))


def _by(rule: FairnessRule, name: str) -> str:
    return name_by_rule(name, rule) if name in (WORST_RHO, UNFAIR_FRACTION) else name
