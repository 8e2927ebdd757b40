"""`maat.compare` and `maat.sweep`: their tables, their errors, executors, own policies."""

from __future__ import annotations

import doctest
import importlib
import json
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from laboratory.untimed_results import columns_of

import maat
from maat.scheduling.errors import InputError, MaatError
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import RoundInput

TRACE = maat.generate("philly", jobs=6, hours=1)
CLUSTER = "t4=4x4,a100=2x8"


def one_process(given: dict[str, Any]) -> dict[str, Any]:
    """Add that this process runs all, unless an executor does."""
    return given if "executor" in given else {"workers": 1, **given}


def compared(policies: Any = ("fifo", "srtf"), traces: Any = TRACE, **given: Any) -> Any:
    values: dict[str, Any] = {"cluster": CLUSTER, "seeds": [0, 1], **one_process(given)}
    return maat.compare(policies, traces, **values)


def swept(vary: Any, trace: Any = TRACE, **given: Any) -> Any:
    values: dict[str, Any] = {"cluster": CLUSTER, **one_process(given)}
    return maat.sweep(trace, vary, **values)


def two_each(round_input: RoundInput) -> dict[str, tuple[str, int]]:
    """Grant every job two GPUs of the last type, as long as there are any."""
    kind, free = round_input.cluster.type_names[-1], int(round_input.cluster.capacity[-1])
    return {job.id: (kind, 2) for job in round_input.jobs[: free // 2]}


@pytest.mark.parametrize("module", ["comparing", "sweeping"])
def test_the_examples_of_studies_are_true(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"maat.library.{module}")).failed == 0


def test_the_tables_of_a_comparison_agree_with_single_runs() -> None:
    found = compared(["fifo", maat.policies.Sia(p=-1)])
    assert found.means["contestant"] == ["fifo + packed-sticky", "sia (p=-1) + whole-node"]
    assert found.runs["seed"] == [0, 1, 0, 1]
    alone = maat.simulate(TRACE, cluster=CLUSTER, policy=maat.policies.Sia(p=-1), seed=1)
    assert found.runs["avg_jct_hours"][3] == alone.summary["avg_jct_hours"]
    mean = sum(found.runs["avg_jct_hours"][2:]) / 2
    assert found.means["avg_jct_hours"][1] == pytest.approx(mean)
    hours = [row["jct_hours"] for row in found.jobs if row["contestant"].startswith("sia")]
    assert hours[6:] == [seconds / 3600 for seconds in alone.jobs["jct_seconds"]]
    assert found.differences["contestant"] == ["sia (p=-1) + whole-node"]
    assert found.differences["jobs"] == [12]


def test_an_own_policy_is_compared_beside_the_others() -> None:
    found = compared(["fifo", two_each, maat.policies.Own(two_each, name="again")])
    assert found.means["policy"] == ["fifo", "two_each", "again"]
    figures = found.means["avg_jct_hours"]
    assert figures[1] == figures[2] != figures[0]
    assert found.differences["contestant"][0] == "two_each + packed-sticky"


def test_own_policies_run_beside_processes_and_on_any_executor() -> None:
    def here(round_input: RoundInput) -> dict[str, tuple[str, int]]:  # no process can import it
        return two_each(round_input)

    policies = ["fifo", here]
    expected = columns_of(compared(policies).runs)
    assert columns_of(compared(policies, workers=2).runs) == expected
    with ThreadPoolExecutor(2) as executor:
        assert columns_of(compared(policies, executor=executor).runs) == expected


def test_a_policy_has_tuned_jobs_beside_one_that_has_not() -> None:
    found = compared(["fifo", maat.policies.Fifo(tuned="best-batch:4")], seeds=[0])
    assert found.means["contestant"] == [
        "fifo + packed-sticky",
        "fifo (tuned=best-batch:4) + packed-sticky",
    ]
    assert found.means["avg_jct_hours"][0] != found.means["avg_jct_hours"][1]
    alone = maat.simulate(
        TRACE, cluster=CLUSTER, policy=maat.policies.Fifo(tuned="best-batch:4"), progress=False
    )
    assert alone.summary["avg_jct_hours"] == found.means["avg_jct_hours"][1]
    assert max(alone.jobs["gpu_count_requested"]) <= 4
    with pytest.raises(InputError, match=r"tuned: is no rule by which jobs are tuned \(got 'x'\)"):
        maat.policies.Fifo(tuned="x")


def test_an_own_policy_may_state_its_programme_in_cvxpy() -> None:
    def most_jobs(round_input: RoundInput) -> dict[str, tuple[str, int]]:
        import cvxpy

        jobs, cluster = round_input.jobs, round_input.cluster
        if not jobs:
            return {}
        shares = cvxpy.Variable((len(jobs), len(cluster.type_names)), nonneg=True)
        limits = [cvxpy.sum(shares, axis=1) <= 1, 2 * cvxpy.sum(shares, axis=0) <= cluster.capacity]
        cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(shares)), limits).solve()
        chosen: dict[str, tuple[str, int]] = {}
        left = cluster.capacity.tolist()
        for row, job in enumerate(jobs):
            kind = int(shares.value[row].argmax())
            if left[kind] >= 2:
                left[kind] -= 2
                chosen[job.id] = (cluster.type_names[kind], 2)
        return chosen

    found = compared(["fifo", most_jobs], seeds=[0])
    assert found.runs["unfinished"] == [0, 0]


def test_policies_and_placers_are_named_as_on_the_command_line() -> None:
    assert compared("fifo,las", seeds=[0]).means["policy"] == ["fifo", "las"]
    found = compared(["fifo"], placer=["packed-sticky", "whole-node"], seeds=[0])
    assert found.means["placer"] == ["packed-sticky", "whole-node"]
    assert found.differences["baseline"] == ["fifo + packed-sticky"]
    from maat.library.policies import read_policies

    assert [chosen.name for chosen in read_policies("all")] == list(POLICIES.names)


def test_traces_are_named_by_their_files_or_by_the_caller(tmp_path: Path) -> None:
    lines = "time,name,application,num_replicas,batch_size\n"
    for name, jobs in (("one", "0,a,cifar10,1,128\n"), ("two", "0,a,cifar10,2,256\n")):
        (tmp_path / f"{name}.csv").write_text(lines + jobs)
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    folder = tmp_path.name
    found = compared(["fifo", "las"], files, seeds=[0])
    assert set(found.runs["trace"]) == {f"{folder}/one", f"{folder}/two"}
    named = compared(["fifo", "las"], {"small": files[0], "large": str(files[1])}, seeds=[0])
    assert set(named.runs["trace"]) == {"small", "large"}


def test_a_baseline_is_a_policy_or_its_name() -> None:
    policies = ["fifo", maat.policies.Sia(p=-1), "srtf"]
    by_name = compared(policies, baseline="srtf", seeds=[0])
    assert set(by_name.differences["baseline"]) == {"srtf + packed-sticky"}
    by_policy = compared(policies, baseline=maat.policies.Sia(p=-1), seeds=[0])
    assert set(by_policy.differences["baseline"]) == {"sia (p=-1) + whole-node"}
    with pytest.raises(InputError, match=r"baseline: is not among the compared ones .*Use one of"):
        compared(policies, baseline=maat.policies.Sia(p=0.5))


class Absent(Executor):
    """An executor whose workers fail, or answer nothing."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.failure = failure

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.failure is None:
            future.set_result(None)
        else:
            future.set_exception(self.failure)
        return future


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            OSError("node died"),
            r"fifo \+ packed-sticky on philly-0, seed 0, failed on the executor "
            r"\(OSError: node died\)",
        ),
        (None, "fifo .* on philly-0, seed 0: the executor returned no result, but NoneType"),
        (BrokenExecutor("gone"), r"ended without a result.* `if __name__ == \"__main__\":`"),
    ],
)
def test_an_executor_that_fails_is_told(failure: BaseException | None, message: str) -> None:
    with pytest.raises(MaatError, match=message):
        compared(["fifo"], seeds=[0], executor=Absent(failure))


def shut_down_executor() -> Executor:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    return executor


@pytest.mark.parametrize(
    "study",
    [lambda **how: compared(["fifo"], **how), lambda **how: swept({"policy": ["fifo"]}, **how)],
)
def test_an_executor_that_was_shut_down_is_refused_with_a_remedy(study: Any) -> None:
    with pytest.raises(
        InputError, match=r"executor: takes no runs .*after shutdown.* inside its `with`"
    ):
        study(executor=shut_down_executor())


class Needy:
    """A policy that cannot be made without an argument."""

    def __init__(self, share: float) -> None:
        self.share = share

    def allocate(self, round_input: RoundInput) -> dict[str, tuple[str, int]]:
        return {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policies": []}, "policy: is empty"),
        ({"policies": ["fifo", "fifo"]}, "policy: names one twice"),
        ({"policies": "fifo,none"}, "policy: is no policy that Maat has"),
        ({"placer": "none"}, "placer: is no placer"),
        ({"traces": []}, "trace: is empty"),
        ({"traces": [TRACE, TRACE]}, "trace: names one twice"),
        ({"seeds": []}, "seeds: is empty"),
        ({"seeds": [0, -1]}, "seeds: is not between 0"),
        ({"seeds": 3}, r"seeds: are no list of seeds \(got 3\). Give each, as in .* range\(3\)"),
        ({"seeds": "0,1"}, "seeds: are no list of seeds"),
        ({"executor": 5}, r"executor: is no concurrent.futures.Executor \(got 5\). Give for ex"),
        ({"executor": ThreadPoolExecutor}, "executor: is no concurrent.futures.Executor"),
        ({"executor": Absent(), "workers": 2}, "workers: start processes, and the executor runs"),
        ({"cache": 5}, r"cache: is no path \(got 5\). Give a text or a pathlib.Path."),
        ({"policies": [Needy]}, r"policy: is a class that needs arguments .*object of it: Needy"),
        ({"workers": 0}, "workers: is not between 1"),
        ({"baseline": "las"}, "baseline: is not among"),
    ],
)
def test_a_comparison_answers_bad_input_with_field_and_remedy(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        compared(**given)


def test_a_comparison_without_effect_of_its_interval_is_no_comparison() -> None:
    found = compared([maat.policies.Fifo(round_seconds=300), "fifo"], seeds=[0])
    assert found.means["contestant"][0] == "fifo (round_seconds=300) + packed-sticky"
    assert found.means["rounds"][0] < found.means["rounds"][1]


def test_a_sweep_has_a_row_per_point_and_a_mean_per_value() -> None:
    found = swept({"round_seconds": [60, 600], "rigid_share": [0, 1]}, seeds=[0, 1], policy="las")
    assert len(found.table) == 8
    assert found.table["seed"] == [0, 1] * 4
    assert found.means["rigid_share"] == [0.0, 1.0, 0.0, 1.0]
    mean = sum(found.table["rounds"][:2]) / 2
    assert found.means["rounds"][0] == mean
    assert len(found.failed) == 0


def test_a_sweep_takes_an_own_policy_and_an_executor() -> None:
    vary = {"arrival_rate": [1, 2]}
    with ThreadPoolExecutor(1) as executor:
        found = swept(vary, policy=two_each, executor=executor)
    assert columns_of(found.table) == columns_of(swept(vary, policy=two_each).table)
    assert found.sweep.base.policy == "two_each"


def test_a_sweep_varies_policies_of_ones_own_beside_the_others() -> None:
    given = ["fifo", two_each, maat.policies.Sia(p=-1), maat.policies.Sia(p=1)]
    found = swept({"placer": ["packed-sticky", "whole-node"], "policy": given})
    assert found.means["policy"] == 2 * ["fifo", "two_each", "sia (p=-1)", "sia (p=1)"]
    one_each = swept({"policy": given})
    assert [point.scenario.placer for point in one_each.points] == [
        "packed-sticky",
        "packed-sticky",
        "whole-node",
        "whole-node",
    ]
    alone = maat.simulate(TRACE, cluster=CLUSTER, policy=two_each, seed=0)
    assert one_each.table["avg_jct_hours"][1] == alone.summary["avg_jct_hours"]


def test_a_policy_that_only_this_process_has_runs_in_it() -> None:
    seen: list[int] = []

    def local(round_input: RoundInput) -> dict[str, tuple[str, int]]:
        seen.append(round_input.round_number)
        return two_each(round_input)

    found = swept({"policy": [two_each, local]}, workers=2)
    assert seen
    assert found.table["avg_jct_hours"][0] == found.table["avg_jct_hours"][1]


@pytest.mark.parametrize(
    ("vary", "given", "message"),
    [
        ({}, {}, "vary: are not one or two"),
        ({"colour": [1]}, {}, "vary: is nothing that can be varied"),
        (["round_seconds"], {}, "vary: are no settings with their values"),
        ({"round_seconds": 60}, {}, "vary: are no settings with their values"),
        ({"policy": "fifo"}, {}, "vary: are no settings with their values"),
        ({"round_seconds": []}, {}, "round_seconds: has no values"),
        ({"round_seconds": [60, 60]}, {}, "round_seconds: stands twice"),
        ({"policy": ["fifo"]}, {"policy": "sia"}, "policy: is varied, and set"),
        ({"policy": ["fifo"]}, {"policy": two_each}, "policy: is varied, and set"),
        ({"round_seconds": [60]}, {"round_seconds": 60}, "round_seconds: is varied, and set"),
        ({"p": [1]}, {"policy": two_each}, "p: is no parameter of two_each"),
        ({"p": [1]}, {"seeds": [-1]}, "seeds: is not between"),
        ({"p": [1]}, {"seeds": 2}, "seeds: are no list of seeds"),
        ({"p": [1]}, {"executor": 5}, "executor: is no concurrent.futures.Executor"),
        ({"policy": ["fifo", 7]}, {}, "policy: is no policy"),
        ({"policy": [two_each, two_each]}, {}, "policy: stands twice"),
        (
            {"policy": [maat.policies.Sia(p=-1)], "p": [1]},
            {},
            r"p: is varied, and set by sia \(p=-1\)",
        ),
        (
            {"round_seconds": [60], "policy": [maat.policies.Fifo(round_seconds=300)]},
            {},
            "round_seconds: is varied, and set by fifo",
        ),
    ],
)
def test_a_sweep_answers_bad_input_with_field_and_remedy(
    vary: Any, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        swept(vary, **given)


def test_results_are_kept_in_a_cache(tmp_path: Path) -> None:
    first = swept({"round_seconds": [60, 600]}, policy="fifo", cache=tmp_path)
    again = swept({"round_seconds": [60, 600]}, policy="fifo", cache=str(tmp_path))
    assert [point.origin for point in first.result.points] == ["simulated"] * 2
    assert [point.origin for point in again.result.points] == ["cache"] * 2
    assert again.table.to_dict() == first.table.to_dict()


def test_studies_give_what_the_command_line_prints_as_json() -> None:
    found = json.loads(json.dumps(compared().to_dict()))
    assert [run["policy"] for run in found["runs"]] == ["fifo", "fifo", "srtf", "srtf"]
    points = json.loads(json.dumps(swept({"round_seconds": [60]}).to_dict()))["points"]
    assert points[0]["settings"] == {"round_seconds": 60.0}


def test_shown_studies_escape_names() -> None:
    found = compared(["fifo", maat.policies.Own(two_each, name="<i>")], seeds=[0])
    assert "<i>" not in found._repr_html_()
    assert "&lt;i&gt; + packed-sticky" in found._repr_html_()
    assert "<table>" in swept({"round_seconds": [60]}, policy="fifo")._repr_html_()
