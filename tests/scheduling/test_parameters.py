"""Knobs and registries: what may be set, what is refused, and what a form shows."""

from __future__ import annotations

import dataclasses
import sys

import pytest

from maat.scheduling.errors import ParameterError, UnknownNameError
from maat.scheduling.parameters import parameter_hash, parameters_of
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.pollux.policy import Pollux
from maat.scheduling.policies.sia import ScaleUpBase, Sia


@pytest.mark.parametrize(
    ("policy", "values", "message"),
    [
        (
            "sia",
            {"power": 1},
            r"power: is no parameter of sia \(got 1\). "
            r"Use one of: p, idle_penalty, scale_up_factor",
        ),
        ("sia", {"p": "big"}, r"p: is no number \(got 'big'\). Give a finite number."),
        ("sia", {"p": True}, r"p: is no number \(got True\)"),
        ("sia", {"p": float("nan")}, r"p: is no number \(got nan\)"),
        ("sia", {"p": 99}, r"p: is out of range \(got 99\). Give a value from -10 to 10."),
        (
            "sia",
            {"scale_up_factor": 0},
            r"scale_up_factor: is out of range \(got 0\). Give a value from 1 to 64.",
        ),
        ("sia", {"utility_decimals": 1.5}, r"utility_decimals: is no integer \(got 1.5\)"),
        (
            "sia",
            {"scale_up_base": "any"},
            r"scale_up_base: is not one of its choices \(got 'any'\). "
            r"Use one of: current, largest.",
        ),
        (
            "sia",
            {"solver": "glpk"},
            r"solver: is not one of its choices \(got 'glpk'\). Use one of: prices, cvxpy.",
        ),
        (
            "sia",
            {"solver": "cvxpy", "random_ties": True},
            r"solver: cannot choose among equally good answers at random \(random_ties\) "
            r"\(got 'cvxpy'\). Set random_ties to false, or use prices.",
        ),
        ("fifo", {"head_of_line": None}, r"head_of_line: is not one of its choices"),
        ("sia", {"name": "x"}, r"name: is no parameter of sia"),
    ],
)
def test_a_bad_parameter_is_refused_by_name_value_and_remedy(
    policy: str, values: dict[str, object], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        POLICIES.build(policy, values)


@pytest.mark.parametrize("policy", ["sia", "gavel", "themis", "shockwave"])
def test_without_cvxpy_its_engine_is_refused_with_the_extra_that_installs_it(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)  # as if it were not installed
    message = (
        r"solver: needs the package cvxpy, which is not installed \(got 'cvxpy'\). "
        r"Install maat\[policies\], or use prices."
    )
    with pytest.raises(ParameterError, match=message):
        POLICIES.build(policy, {"solver": "cvxpy"})
    assert POLICIES.build(policy).name == policy


def test_a_flag_takes_no_number() -> None:
    with pytest.raises(
        ParameterError, match=r"random_ties: is no boolean \(got 1\). Give true or false."
    ):
        POLICIES.build("sia", {"random_ties": 1})


def test_parameters_arrive_as_their_types() -> None:
    policy = POLICIES.build("sia", {"p": 1, "scale_up_base": "largest", "utility_decimals": 2.0})
    assert isinstance(policy, Sia)
    assert (policy.p, type(policy.p)) == (1.0, float)
    assert policy.scale_up_base is ScaleUpBase.LARGEST
    assert (policy.utility_decimals, type(policy.utility_decimals)) == (2, int)


def test_none_may_be_given_where_it_is_the_default() -> None:
    assert POLICIES.build("sia", {"utility_decimals": None}) == Sia()


def test_an_unknown_name_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(
        UnknownNameError,
        match=r"policy: is no policy that Maat has \(got 'lifo'\). Use one of: sia, fifo, srtf",
    ):
        POLICIES.build("lifo")
    with pytest.raises(
        UnknownNameError,
        match=r"placer: is no placer that Maat has \(got 'anywhere'\). "
        r"Use one of: whole-node, packed-sticky, packed",
    ):
        PLACERS.entry("anywhere")


@pytest.mark.parametrize("registry", [POLICIES, PLACERS], ids=lambda registry: registry.kind)
def test_every_entry_is_built_by_its_own_name_and_explained(registry) -> None:
    for entry in registry:
        built = registry.build(entry.name)
        assert built.name == entry.name
        assert entry.title
        assert entry.summary.endswith(".")
        for parameter in entry.parameters:
            assert parameter.help.endswith(".")
            assert getattr(built, parameter.name) == parameter.default


def test_every_knob_with_a_range_has_its_default_within_it() -> None:
    for registry in (POLICIES, PLACERS):
        for entry in registry:
            for parameter in entry.parameters:
                if (
                    isinstance(parameter.default, int | float)
                    and parameter.minimum is not None
                    and parameter.maximum is not None
                ):
                    assert parameter.minimum <= parameter.default <= parameter.maximum, (
                        entry.name,
                        parameter.name,
                    )


def test_a_form_learns_type_range_unit_and_source() -> None:
    by_name = {p.name: p for p in parameters_of(Sia)}
    cost = {p.name: p for p in parameters_of(Pollux)}["reallocation_seconds"]
    assert (cost.type, cost.unit) == ("number", "s")
    assert by_name["scale_up_base"].choices == ("current", "largest")
    assert by_name["utility_decimals"].type == "integer"
    assert by_name["p"].source == "Sia section 3.4"
    assert "name" not in by_name, "wiring, no knob"


def test_other_parameters_have_another_hash_and_wiring_has_none() -> None:
    assert parameter_hash(Sia()) == parameter_hash(Sia(name="another"))
    assert parameter_hash(Sia()) != parameter_hash(dataclasses.replace(Sia(), p=-1.0))
