"""The options for policies and placers, with their parameters."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

import typer

from maat.cli.tuned_options import Tuning
from maat.laboratory.comparison import Contestant
from maat.scheduling.errors import InputError, ParameterError
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, admitted, suiting_placer

PlacerName = Annotated[str | None, typer.Option(help="Placer; default: the policy's own.")]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of the policy: NAME=VALUE. May be repeated."),
]

NOT_TUNED = Tuning()
ALL = "all"
NO_ROUNDS: Mapping[str, float] = MappingProxyType({})


def named_policy(text: str) -> str:
    """Return the name of a policy as it was typed; `module:Class` is imported first.

    The module may be in the folder where the command was started. Raises InputError for what is no
    policy.
    """
    name = text.strip()
    if ":" in name and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return POLICIES.entry(admitted(name)).name


def read_settings(pairs: Sequence[str], *, compared: bool = False) -> dict[str, object]:
    """Read NAME=VALUE pairs. Raises ParameterError.

    Values are plain JSON values if they parse as such, otherwise text. `compared`: of several
    policies, each of which may have an interval of rounds of its own.
    """
    found: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ParameterError(
                "is not of the form NAME=VALUE",
                field="set",
                value=pair,
                remedy="Write for example --set p=-1.",
            )
        _check_not_rounds(name, text, compared=compared)
        if name in found:
            raise ParameterError(
                "sets one parameter twice", field="set", value=pair, remedy="Set each once."
            )
        found[name] = _value(text, name)
    return found


def _check_not_rounds(name: str, text: str, *, compared: bool) -> None:
    """Refuse the interval of rounds: it is no parameter of a policy."""
    label, _, parameter = name.rpartition(".")
    if parameter == "round_seconds":
        wanted = f"{label}={text}" if label and compared else text
        raise ParameterError(
            "is no parameter of a policy",
            field="set",
            value=name,
            remedy=f"Write --round-seconds {wanted}.",
        )


def _value(text: str, name: str) -> object:
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return text
    except ValueError:  # too many digits
        raise ParameterError(
            "has too many digits", field=name, value=text, remedy="Give a plain number."
        ) from None
    return text if isinstance(value, list | dict) else value


def read_contestants(
    policies: str,
    placers: str | None,
    settings: Sequence[str] = (),
    round_seconds: Mapping[str, float] = NO_ROUNDS,
    tuning: Tuning = NOT_TUNED,
    *,
    elsewhere: bool = False,
) -> tuple[Contestant, ...]:
    """Return every policy with every placer, each with the settings given for it.

    `elsewhere`: a service runs them, which may have policies that this machine has not: it judges
    these itself, and chooses their placer.

    `policies`: names, or LABEL=NAME to use a policy twice; `settings`: POLICY.NAME=VALUE, by name
    or label; `round_seconds`, `tuning`: by name or label. Raises UnknownNameError or ParameterError
    naming what does not exist.
    """
    named = _named_policies(policies, known=_as_typed if elsewhere else named_policy)
    chosen = (
        None
        if placers is None
        else [PLACERS.entry(name.strip()).name for name in placers.split(",")]
    )
    own = _settings_by_policy(settings, tuple(named))
    _check_labels(round_seconds, tuple(named))
    tuning.check_labels(tuple(named))
    here = {label: policy for label, policy in named.items() if POLICIES.has(policy)}
    for label, policy in here.items():
        POLICIES.build(policy, dict(own[label]))
    return tuple(
        Contestant(
            policy,
            where,
            policy_parameters=own[label],
            round_seconds=round_seconds.get(label),
            tuned=tuning.by_label.get(label, tuning.of_all if tuning.by_label else None),
        )
        for label, policy in named.items()
        for where in chosen or [suiting_placer(policy) if label in here else ""]
    )


def _as_typed(text: str) -> str:
    return text.strip()


def _named_policies(text: str, *, known: Callable[[str], str]) -> dict[str, str]:
    """Return policies by label, which is by default the policy's name."""
    if text.strip() == ALL:
        return {name: name for name in POLICIES.names}
    found: dict[str, str] = {}
    for part in text.split(","):
        label, equals, policy = part.strip().rpartition("=")
        if equals and not label.strip():
            raise InputError(
                "has no label before the =",
                field="policy",
                value=part.strip(),
                remedy=f"Write {policy.strip()}, or for example soft={policy.strip()}.",
            )
        policy = known(policy)
        label = label.strip() or policy
        if label in found:
            remedy = (
                "Name each once; to compare a policy with itself, "
                "write for example sia,soft=sia --set soft.p=-1."
            )
            raise InputError("names one twice", field="policy", value=label, remedy=remedy)
        found[label] = policy
    return found


def _check_labels(round_seconds: Mapping[str, float], labels: Sequence[str]) -> None:
    for label, seconds in round_seconds.items():
        if label not in labels:
            raise ParameterError(
                "names no compared policy",
                field="round_seconds",
                value=f"{label}={seconds:g}",
                remedy=f"The compared ones are: {', '.join(labels)}.",
            )


def _settings_by_policy(
    pairs: Sequence[str], labels: Sequence[str]
) -> Mapping[str, tuple[tuple[str, object], ...]]:
    found: dict[str, list[tuple[str, object]]] = {label: [] for label in labels}
    for name, value in read_settings(pairs, compared=True).items():
        label, dot, parameter = name.rpartition(".")
        if not dot or label not in found:
            raise ParameterError(
                "names no compared policy",
                field="set",
                value=name,
                remedy="Write POLICY.NAME=VALUE, for example sia.p=-1; "
                f"the compared ones are: {', '.join(labels)}.",
            )
        found[label].append((parameter, value))
    return {label: tuple(sorted(given)) for label, given in found.items()}
