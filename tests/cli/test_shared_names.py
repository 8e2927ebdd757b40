"""Library, command line and REST name one thing in one way; what one has, the others have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import typer
from pydantic import BaseModel

import maat
from maat.api.clusters import ClusterBody
from maat.api.experiments import AutoscalingBody, TuningBody
from maat.api.forecasts import ClusterChangesBody
from maat.api.jobs import JobBody, JobChanges
from maat.api.simulations import ConditionsBody
from maat.cli.app import COMMANDS
from maat.cli.cluster_commands import CLUSTER_COMMANDS
from maat.laboratory.axes import AXES
from maat.library.conditions import ConditionValues, read_conditions
from maat.scheduling.policies import POLICIES

PRINTED = {"json", "csv", "plot", "figure", "figures", "fairness", "fairness_rule"}
GENERATED = {"generate", *inspect.signature(maat.generate).parameters} - {"family", "seed"}
SINGULAR = {"policies": "policy", "reservations": "reservation", "items": "item"}
"""An option that stands several times, or a place, names one of what a keyword or a field lists."""


def keywords(function: Callable[..., object]) -> set[str]:
    return {SINGULAR.get(name, name) for name in inspect.signature(function).parameters}


def fields(body: type[BaseModel]) -> set[str]:
    return {SINGULAR.get(name, name) for name in body.model_fields}


def options(command: str) -> set[str]:
    """Return the options and arguments of a command, as a keyword would be written."""
    entry = next(each for each in (*COMMANDS, *CLUSTER_COMMANDS) if each.name == command)
    alone = typer.Typer(add_completion=False)
    alone.command(command)(entry.function())
    found: set[str] = set()
    for parameter in typer.main.get_command(alone).params:
        names = [name for name in parameter.opts if name.startswith("--")]
        found |= {name.removeprefix("--").replace("-", "_") for name in names} or {parameter.name}
    return {SINGULAR.get(name, name) for name in found}


@pytest.mark.parametrize(
    ("command", "function", "library", "line"),
    [
        ("simulate", maat.simulate, set(), {*GENERATED, "set", "series"}),
        ("compare", maat.compare, {"executor"}, {*GENERATED, "set"}),
        ("sweep", maat.sweep, {"executor"}, {*GENERATED, "set"}),
        ("replay", maat.replay, {"client"}, {"url", "set"}),
        ("forecast", maat.what_if, {"client"}, {"url"}),
        ("autoscale", maat.autoscale, set(), set()),
        ("tune", maat.tune, set(), set()),
        ("reproduce", maat.reproduce, {"executor", "cache"}, {"list", "output", "replace"}),
    ],
)
def test_a_command_has_the_names_of_its_function(
    command: str, function: Callable[..., object], library: set[str], line: set[str]
) -> None:
    of_function, of_command = keywords(function), options(command)
    assert of_function - of_command == {"progress", *library}
    assert of_command - of_function - PRINTED == line


def test_a_simulation_has_the_same_conditions_by_rest_and_in_the_library() -> None:
    by_rest = fields(ConditionsBody) - {"name", "quotas"}
    given = {*ConditionValues.__annotations__, "round_seconds", "cluster", "jobs_per_gpu"}
    in_library = {SINGULAR.get(name, name) for name in given | {"profiles"}}
    of_failures = {"failures_mtbf_hours", "repair_seconds"}  # REST's `failures` has both
    assert by_rest - in_library == {"failures"}
    assert in_library - by_rest == of_failures
    failures: Any = ConditionsBody.model_fields["failures"].annotation
    nested = set(failures.__args__[0].model_fields)
    assert nested == {name.removeprefix("failures_") for name in of_failures}


@pytest.mark.parametrize(
    ("body", "function", "extra"),
    [
        (AutoscalingBody, maat.autoscale, {"policy_parameters"}),
        (TuningBody, maat.tune, set()),
    ],
)
def test_an_experiment_has_the_same_settings_by_rest_and_in_the_library(
    body: type[BaseModel], function: Callable[..., object], extra: set[str]
) -> None:
    assert fields(body) - keywords(function) == {"kind", "name", *extra}
    assert keywords(function) - fields(body) == {"progress"}


def test_what_a_sweep_varies_has_the_name_by_which_it_is_set() -> None:
    conditions = set(inspect.signature(read_conditions).parameters)
    knobs = {knob.name for policy in POLICIES for knob in policy.parameters}
    only_varied = {"arrival_rate", "jobs_per_hour", "cluster_size"}
    assert set(AXES) - conditions - knobs - keywords(maat.generate) == {
        "policy",
        "placer",
        *only_varied,
    }


@pytest.mark.parametrize("name", ["least_stay_seconds", "most_moves_per_hour"])
def test_how_long_jobs_stay_has_one_name(name: str) -> None:
    for body in (ClusterBody, ClusterChangesBody, JobBody, JobChanges):
        assert name in body.model_fields
    for command in ("create-cluster", "change-cluster", "forecast", "submit", "simulate"):
        assert name in options(command)
