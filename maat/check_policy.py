"""Holds a policy to the contracts of all policies, and prints which it keeps.

    python -m maat.check_policy longest-first
    python -m maat.check_policy fair.queue:LongestFirst --set power=2 --examples 500

Exit codes: 0 it keeps all, 1 it breaks one, 2 bad input. Needs hypothesis
(pip install 'maat[check]').
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from maat.scheduling.errors import InputError, ParameterError
from maat.scheduling.policies import POLICIES, admitted, suiting_placer
from maat.scheduling.protocols import Policy
from maat.watched import watched

if TYPE_CHECKING:
    from maat.contracts.checking import Outcome
    from maat.contracts.subject import Trial

QUICK_SHRINK_SECONDS = 2.0
ANSWER_SECONDS = 30.0  # as a service gives an own policy, if its operator says nothing else
USUAL_EXAMPLES, QUICK_EXAMPLES, MOST_EXAMPLES = 200, 25, 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the policy that the arguments name; return the exit code."""
    given = _parser().parse_args(arguments)
    try:
        return _checked(given)
    except InputError as wrong:
        print(f"maat: {wrong}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m maat.check_policy",
        description="Hold a policy to the contracts of all policies.",
        epilog="Exit codes: 0 it keeps all, 1 it breaks one, 2 bad input.",
    )
    parser.add_argument("policy", help="a name that `maat policies` lists, or module:Class")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a knob; may be repeated"
    )
    parser.add_argument(
        "--examples",
        metavar="N",
        help=f"rounds for each contract; default {USUAL_EXAMPLES}",
    )
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK_EXAMPLES} rounds")
    parser.add_argument("--seed", type=int, default=0, help="of the rounds that are drawn")
    return parser


def _checked(given: argparse.Namespace) -> int:
    examples = _examples(given)
    name, knobs = _name(given.policy), _knobs(given.set)
    POLICIES.build(name, knobs)
    try:
        from maat.contracts.checking import SHRINK_SECONDS, NoAnswer, outcomes
        from maat.contracts.subject import Subject
    except ModuleNotFoundError as missing:
        raise InputError(
            f"needs {missing.name}, which is not installed",
            field="check_policy",
            remedy="Install it: pip install 'maat[check]'.",
        ) from None

    def make() -> Policy:
        return POLICIES.build(name, knobs)

    print(f"{name}, {examples} rounds for each contract:", flush=True)
    subject, broken = Subject(make, suiting_placer(name), ANSWER_SECONDS), 0
    seconds = QUICK_SHRINK_SECONDS if given.quick else SHRINK_SECONDS
    found = outcomes(subject, examples=examples, seed=given.seed, shrink_seconds=seconds)
    try:
        for outcome in found:
            print("\n".join(_lines(outcome)), flush=True)
            broken += not outcome.is_kept
    except NoAnswer as late:
        print("\n".join(_unanswered(late.trial)))
        return 1
    print("It keeps every contract." if not broken else f"It breaks {broken} of them.")
    return 1 if broken else 0


def _lines(outcome: Outcome) -> Iterator[str]:
    from maat.contracts.words import lines_of

    yield f"  {'kept  ' if outcome.is_kept else 'BROKEN'}  {outcome.contract.sentence}"
    if outcome.left_out:
        yield f"            Not judged in {outcome.left_out} rounds, which break the rules above."
    if not outcome.is_kept:
        yield f"            {outcome.broken}"
        if outcome.trial is not None:
            yield "            The smallest round that was found:"
            yield from (f"              {line}" for line in lines_of(outcome.trial))


def _unanswered(trial: Trial) -> Iterator[str]:
    from maat.contracts.words import lines_of

    yield f"  BROKEN  It answers within {ANSWER_SECONDS:g} s. Nothing more is checked."
    yield "            It has not in this round:"
    yield from (f"              {line}" for line in lines_of(trial))


def _name(text: str) -> str:
    """Return the policy's name. Raises InputError, also for one that is left out for a reason."""
    if ":" in text and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    name = POLICIES.entry(admitted(text)).name
    if name in POLICIES.refused:
        print(f"maat: {POLICIES.refused[name]}", file=sys.stderr)
    return name


def _knobs(pairs: Sequence[str]) -> Mapping[str, object]:
    knobs: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ParameterError(
                "is not of the form NAME=VALUE",
                field="set",
                value=pair,
                remedy="Write for example --set p=-1.",
            )
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        knobs[name] = text if isinstance(value, list | dict) else value
    return knobs


def _examples(given: argparse.Namespace) -> int:
    if given.examples is None:
        return QUICK_EXAMPLES if given.quick else USUAL_EXAMPLES
    if not given.examples.isdecimal() or not 1 <= int(given.examples) <= MOST_EXAMPLES:
        raise InputError(
            "is no number of rounds",
            field="examples",
            value=given.examples,
            remedy=f"Give a whole number from 1 to {MOST_EXAMPLES}.",
        )
    return int(given.examples)


if __name__ == "__main__":
    sys.exit(watched(main, what="checked the policy"))
