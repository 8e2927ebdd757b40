"""`maat.simulate`: what it takes, its tables, its errors, and policies of one's own."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import pytest

import maat
from maat.laboratory.setup import GivenTrace
from maat.library.conditions import ConditionValues, read_conditions
from maat.library.experiment_plots import AutoscaledPlots, TunedPlots
from maat.library.plots import Plots, RunPlots
from maat.library.study_plots import ComparisonPlots, SweepPlots
from maat.scheduling.errors import ContractViolation, InputError
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.fifo import Fifo
from maat.scheduling.policies.sia import Sia
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.report import SolveReport
from maat.workloads.generators import generate

SMALL = maat.generate("philly", jobs=5, hours=1, seed=1)
CLUSTER = "t4=4x4,a100=2x8"


def simulated(**changes: Any) -> maat.Run:
    given: dict[str, Any] = {"trace": SMALL, "cluster": CLUSTER, "policy": "fifo", **changes}
    return maat.simulate(given.pop("trace"), **given)


def one_each(round_input: RoundInput) -> dict[str, tuple[str, int]]:
    """Grant every job one GPU of the first type, as long as there are any."""
    kind, many = round_input.cluster.type_names[0], int(round_input.cluster.capacity[0])
    return {job.id: (kind, 1) for job in round_input.jobs[:many]}


ASKS_A_SERVICE = {"maat.client.clients", "maat.library.replaying", "maat.library.what_if"}
"""Their examples run in tests/client/test_library_examples.py."""
PUBLIC = {name: getattr(maat, name) for name in maat.__all__}
CLASSES = {name: each for name, each in PUBLIC.items() if inspect.isclass(each)}
MODULES = {each.__module__ for each in PUBLIC.values() if not inspect.ismodule(each)}
DRAWN = (Plots, RunPlots, ComparisonPlots, SweepPlots, AutoscaledPlots, TunedPlots)
PLOTS = {each.__name__: each for each in DRAWN}
MEMBERS = [
    (name, member)
    for name, each in (CLASSES | PLOTS).items()
    for member, value in vars(each).items()
    if not member.startswith("_")
    and (inspect.isfunction(value) or isinstance(value, property | cached_property))
]


def examples_of(documented: object) -> str:
    """Return the code of the examples in a docstring."""
    text = inspect.getdoc(documented) or ""
    return "".join(example.source for example in doctest.DocTestParser().get_examples(text))


@pytest.mark.parametrize(
    "module",
    sorted(
        {"maat", "maat.figures", "maat.policies", "maat.library.policies", *MODULES}
        - ASKS_A_SERVICE
    ),
)
def test_the_examples_of_every_public_name_are_true(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAAT_DATA", raising=False)  # they show what comes out without data
    found = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


@pytest.mark.parametrize("name", [*maat.__all__, "policies.Own"])
def test_every_public_name_has_an_example(name: str) -> None:
    assert examples_of(attrgetter(name)(maat)), name


@pytest.mark.parametrize(("owner", "member"), MEMBERS)
def test_every_public_method_is_described_and_stands_in_an_example(owner: str, member: str) -> None:
    of = (CLASSES | PLOTS)[owner]
    value = vars(of)[member]

    assert inspect.getdoc(value), f"{owner}.{member}"
    assert re.search(rf"\.{member}\b", examples_of(of) + examples_of(value)), f"{owner}.{member}"


def test_maat_lists_its_names_and_refuses_others() -> None:
    assert set(maat.__all__) <= set(dir(maat))
    with pytest.raises(AttributeError, match=r"maat has no simulat. It has: "):
        maat.simulat  # noqa: B018
    with pytest.raises(AttributeError, match=r"maat.policies has no Foo. Use one of: Own, Sia, "):
        maat.policies.Foo  # noqa: B018


def test_every_module_of_figures_is_there_once_maat_is_imported() -> None:
    script = "import maat; print(maat.figures.lines.lines.__name__, *dir(maat.figures))"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith("lines ")
    assert {"areas", "bars", "distributions"} <= set(ended.stdout.split())
    with pytest.raises(AttributeError, match=r"maat.figures has no line. It has: areas, axes, "):
        maat.figures.line  # type: ignore[attr-defined]  # noqa: B018


def test_what_a_training_script_imports_brings_none_of_the_library() -> None:
    script = (
        "import sys, maat, maat.launch.control; print(*(n for n in sys.modules if 'maat' in n))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = ended.stdout.split()
    assert "maat" in loaded
    assert not [name for name in loaded if name.startswith(("maat.library", "maat.scheduling"))]


def test_a_run_has_the_figures_of_the_command_line() -> None:
    run = simulated()
    assert run.summary["jobs"] == 5
    assert run.summary["placer"] == "packed-sticky"
    assert run.summary["avg_jct_hours"] == pytest.approx(
        sum(jct for jct in run.jobs["jct_seconds"] if isinstance(jct, float)) / 5 / 3600
    )


def test_the_tables_of_a_run_agree_with_each_other() -> None:
    run = simulated(policy="srtf", profiling="oracle")
    finish = dict(zip(run.jobs["name"], run.jobs["finish_seconds"], strict=True))
    seconds = dict.fromkeys(finish, 0.0)
    last: dict[Any, Any] = {}
    for span in run.spans:
        assert span["end_seconds"] >= span["start_seconds"]
        seconds[span["job"]] += span["gpu_count"] * (span["end_seconds"] - span["start_seconds"])
        last[span["job"]] = span["end_seconds"]
    assert last == finish
    assert seconds == pytest.approx(
        dict(zip(run.jobs["name"], run.jobs["gpu_seconds"], strict=True))
    )
    for row in run.rounds:
        assert row["gpus"] == row["t4_gpus"] + row["a100_gpus"]


def test_a_trace_is_a_path_a_text_jobs_or_what_generates_them(tmp_path: Path) -> None:
    text = "time,name,application,num_replicas,batch_size\n0,one,cifar10,1,128\n"
    file = tmp_path / "trace.csv"
    file.write_text(text)
    jobs = generate("philly", jobs=5, hours=1, seed=1)
    for trace in (file, str(file), text):
        assert simulated(trace=trace).jobs["name"] == ["one"]
    for source in (jobs, GivenTrace(jobs), SMALL):
        assert simulated(trace=source, seed=3).jobs["name"] == [job.name for job in jobs.jobs]


def test_a_generated_trace_without_a_seed_follows_that_of_the_run() -> None:
    trace = maat.generate("philly", jobs=5, hours=1)
    first, same, other = (simulated(trace=trace, seed=seed).jobs for seed in (1, 1, 2))
    assert first.to_dict() == same.to_dict() == simulated().jobs.to_dict()
    assert first["submit_seconds"] != other["submit_seconds"]


def test_the_conditions_have_one_set_of_names() -> None:
    signature = inspect.signature(maat.simulate).parameters
    keywords = [
        name
        for name, each in inspect.signature(read_conditions).parameters.items()
        if each.kind is each.KEYWORD_ONLY and name != "round_seconds"
    ]
    assert list(ConditionValues.__annotations__) == keywords
    assert set(keywords) < set(signature)
    with pytest.raises(TypeError, match=r"simulate\(\) takes no rigid_shares. Did you mean rigid_"):
        simulated(rigid_shares=1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cluster": "t4"}, "cluster"),
        ({"cluster": 5}, "cluster: .*5"),
        ({"placer": 3}, "placer: is no placer that Maat has .got '3'"),
        ({"fidelity": ["x"]}, "fidelity: is no fidelity"),
        ({"reservations": [3]}, "reservations: does not read as a reservation .got '3'"),
        ({"jobs_per_gpu": 0}, "jobs_per_gpu: is not between 1 and"),
        ({"policy": "sja"}, "policy: is no policy that Maat has .got 'sja'"),
        ({"policy": 3}, "policy: is no policy .got 3"),
        ({"placer": "nowhere"}, "placer: is no placer"),
        ({"seed": -1}, "seed: is not between 0 and"),
        ({"seed": "x"}, "seed: is not a whole number"),
        ({"round_seconds": 0.1}, "round_seconds: is not between 1 and"),
        ({"fidelity": "none"}, "fidelity: is no fidelity"),
        ({"profiling": "some"}, "profiling: is not one of its choices .got 'some'.. Use one of: "),
        ({"tuned": "yes"}, "tuned: is no rule by which jobs are tuned .got 'yes'.. Use one of: "),
        ({"tuned_gpus": 4}, "tuned_gpus: limits tuned jobs"),
        ({"variability_draw": "x"}, "variability_draw: is not one of its choices"),
        ({"rigid_share": 2}, "rigid_share: is not between 0 and 1"),
        ({"rigid_share": "half"}, "rigid_share: is not a number"),
        ({"repair_seconds": 3}, "repair_seconds: repairs nodes"),
        ({"failures_mtbf_hours": -1}, "^failures_mtbf_hours: is no time of 0.1 hours or more"),
        ({"variability": 0.2}, r"variability: is no path \(got 0.2\). Give a text or a pathlib"),
        ({"profiles": 5}, "profiles: is no path"),
        ({"reservations": 5}, "reservations: does not read as a reservation"),
        ({"measured_jobs": 5}, "measured_jobs: "),
        ({"reservations": "t4"}, "reservations: does not read as a reservation"),
        ({"least_stay_seconds": "soon"}, "least_stay_seconds: is no duration"),
        ({"least_stay_seconds": -1}, "least_stay_seconds: is no time from 0"),
        ({"locality_penalty": {"x": 2}}, "locality_penalty: is no known model"),
        ({"rack_penalty": 2}, "rack_penalty: slows jobs across racks, but all nodes stand in one"),
        ({"network_contention": 1}, "network_contention: is not between 0 and 0.99"),
        ({"interference": 1.5}, "interference: says what jobs on one GPU lose"),
        ({"profiles": "no-folder"}, "no-folder"),
        ({"trace": "no-file.csv"}, "no-file.csv"),
        ({"trace": 3}, "trace: is no trace"),
        ({"trace": maat.generate("phily")}, "phily"),
        ({"trace": maat.generate(jobs=0)}, "jobs"),
    ],
)
def test_bad_input_is_answered_with_field_value_and_remedy(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        simulated(**changes)


def test_conditions_have_their_effect() -> None:
    plain = simulated(policy="sia").jobs.to_dict()
    rigid = simulated(policy="sia", rigid_share=1.0)
    assert set(rigid.jobs["adaptivity"]) == {"rigid"}
    assert rigid.jobs.to_dict() != plain
    slower = simulated(policy="sia", locality_penalty=3.0, round_seconds=120)
    assert slower.jobs.to_dict() != plain


def test_every_registered_policy_is_a_constructor_with_its_knobs() -> None:
    assert len(maat.policies.__all__) == len(POLICIES.built_in) + 1
    for entry in POLICIES.built_in:
        constructor = getattr(maat.policies, entry.where.partition(":")[2])
        assert constructor().name == entry.name
        named = list(inspect.signature(constructor).parameters)
        assert named == ["round_seconds", "tuned", *(p.name for p in entry.parameters)]
        assert entry.summary in constructor.__doc__


def test_a_policy_may_be_given_as_name_constructor_class_or_object() -> None:
    expected = simulated(policy="sia").jobs.to_dict()
    for given in (maat.policies.Sia, maat.policies.Sia(), Sia, Sia()):
        assert simulated(policy=given).jobs.to_dict() == expected
    assert simulated(policy=Fifo()).summary["policy"] == "fifo"
    setting = simulated(policy=Sia(p=-1.0)).result.scenario.policy_parameters
    assert setting == {"p": -1.0}


def test_a_function_is_a_policy() -> None:
    run = simulated(policy=one_each)
    assert run.summary["policy"] == "one_each"
    assert run.summary["unfinished"] == 0
    assert {span["gpu_count"] for span in run.spans} == {1}
    assert all(span["total_batch_size"] for span in run.spans)


def test_a_class_is_a_policy() -> None:
    class Mine:
        def allocate(self, round_input: RoundInput) -> dict[str, tuple[str, int]]:
            return one_each(round_input)

    expected = simulated(policy=one_each).jobs.to_dict()
    assert simulated(policy=Mine).jobs.to_dict() == expected
    assert simulated(policy=Mine()).summary["policy"] == "Mine"


def test_an_object_of_the_policies_protocol_is_a_policy() -> None:
    @dataclass(frozen=True)
    class Nothing:
        name: str = "nothing"
        default_round_seconds: ClassVar[float] = 600.0

        def allocate(self, round_input: RoundInput) -> Decision:
            granted = Fifo().allocate(round_input)
            return Decision(granted.grants, SolveReport(), {})

    run = simulated(policy=Nothing)
    assert run.summary["policy"] == "nothing"
    assert run.rounds["time_seconds"][1] == 600.0
    half = maat.policies.Own(Nothing(), name="half", round_seconds=300)
    assert simulated(policy=half).rounds["time_seconds"][1] == 300.0


def test_a_knob_that_an_own_policy_lacks_is_refused() -> None:
    policy = maat.policies.Own(one_each)
    with pytest.raises(InputError, match="p: is no parameter of one_each"):
        simulated(policy=type(policy)("one_each", {"p": 1}, own=policy.own))


@pytest.mark.parametrize("answer", [None, {"x": "t4"}, {"x": ("t4", "4")}, [1]])
def test_a_function_that_returns_no_grants_is_told_what_to_return(answer: object) -> None:
    with pytest.raises(InputError, match=r"policy: wrong returned no grants .*Return GPU type and"):
        simulated(policy=maat.policies.Own(lambda _: answer, name="wrong"))


def test_grants_that_break_a_rule_are_named() -> None:
    def too_many(round_input: RoundInput) -> dict[str, tuple[str, int]]:
        return {job.id: ("t4", 17) for job in round_input.jobs}

    def unknown(round_input: RoundInput) -> dict[str, tuple[str, int]]:
        return {job.id: ("h100", 1) for job in round_input.jobs}

    with pytest.raises(ContractViolation, match="allows 16 places"):
        simulated(policy=too_many)
    with pytest.raises(ContractViolation, match="cannot use 1 h100"):
        simulated(policy=unknown)


def test_an_own_policy_may_not_have_the_name_of_a_registered_one() -> None:
    with pytest.raises(InputError, match="policy: is the name of a policy that Maat has"):
        maat.policies.Own(one_each, name="sia")


def test_a_shown_run_escapes_names() -> None:
    run = simulated(policy=maat.policies.Own(one_each, name="<b>"))
    shown = run._repr_html_()
    assert "<b>" not in shown
    assert "&lt;b&gt; + packed-sticky" in shown


def test_the_series_of_a_run_are_tables_that_agree_with_its_jobs() -> None:
    run = maat.simulate(maat.generate(jobs=6, hours=1, seed=1), policy="sia", progress=False)
    times, used = run.gpus["time_seconds"], run.gpus["gpus"]
    integral = sum(
        count * (until - since) for count, since, until in zip(used, times, times[1:], strict=False)
    )
    held = [row for row in run.job_series if row["gpu_count"]]
    spent = sum(row["gpu_count"] * (row["end_seconds"] - row["start_seconds"]) for row in held)
    assert integral == pytest.approx(spent)
    assert set(run.gpus.columns[2:]) == {f"{name}_gpus" for name in run.result.series.types}

    waited = dict.fromkeys(run.jobs["name"], 0.0)
    for wait in run.waits:
        waited[wait["job"]] += wait["wait_seconds"]
    assert list(waited.values()) == pytest.approx(run.jobs["waited_seconds"])

    training = [row for row in held if row["total_batch_size"] is not None]
    assert all(0 < row["efficiency"] <= 1 for row in training)
    assert {value for value in run.efficiency["efficiency"] if value is not None} <= {
        value for value in run.efficiency["efficiency"] if value and 0 < value <= 1
    }
    assert run.nodes.to_dict()["time_seconds"] == [0.0]
    assert set(run.jobs["placement_slowdown"]) == {1.0}
    assert len(run.job_series.to_dict()["slowdown"]) == len(run.job_series)
