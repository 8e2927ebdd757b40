"""The contract of registries: each line names the class that it returns."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, is_dataclass
from typing import Any, get_type_hints

import pytest

from maat.scheduling.errors import ParameterError
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.protocols import Placer, Policy
from maat.scheduling.registry import Entry

LINES = [
    pytest.param(protocol, entry, id=entry.name)
    for protocol, registry in ((Policy, POLICIES), (Placer, PLACERS))
    for entry in registry
]
SOLVERS = ("scipy.optimize", "highspy", "cvxpy")


def members(protocol: type) -> Iterator[tuple[str, object]]:
    return ((name, member) for name, member in vars(protocol).items() if not name.startswith("_"))


@pytest.mark.parametrize(("protocol", "entry"), LINES)
def test_the_class_of_a_line_answers_to_its_protocol(protocol: type, entry: Entry[object]) -> None:
    assert is_dataclass(entry.cls)
    for name, member in members(protocol):
        if isinstance(member, property):
            assert get_type_hints(entry.cls)[name] == get_type_hints(member.fget)["return"]
        else:
            method = getattr(entry.cls, name)
            assert list(inspect.signature(method).parameters) == list(
                inspect.signature(member).parameters
            )  # type: ignore[arg-type]
            assert get_type_hints(method) == get_type_hints(member)


@pytest.mark.parametrize(("protocol", "entry"), LINES)
def test_what_is_built_bears_the_name_of_its_line_and_keeps_no_state(
    protocol: type, entry: Entry[object]
) -> None:
    """State comes with every round; a frozen implementation cannot keep any itself."""
    built: Any = entry.cls()
    assert built.name == entry.name
    with pytest.raises(FrozenInstanceError):
        built.name = "another"


@pytest.mark.parametrize("entry", tuple(POLICIES), ids=lambda entry: entry.name)
def test_a_policy_says_how_long_its_rounds_are_and_goes_with_a_placer_that_there_is(
    entry: Entry[Policy],
) -> None:
    assert 1.0 <= entry.cls.default_round_seconds <= 86400.0
    with pytest.raises(ParameterError, match=f"round_seconds: is no parameter of {entry.name}"):
        POLICIES.build(entry.name, {"round_seconds": 77.0})
    assert suiting_placer(entry.name) in PLACERS.names


def test_one_policy_does_not_load_what_others_need() -> None:
    """A solver takes longer to import than a trace under Tiresias takes to play."""
    build = "from maat.scheduling.policies import POLICIES; POLICIES.build('tiresias')"
    loaded = subprocess.run(
        [sys.executable, "-c", f"{build}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not set(SOLVERS) & set(loaded.stdout.split())
