"""Policies of an installed distribution and of a module, in the terminal and in the library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from own_policies.installing import environment_with, installed

from maat.scheduling.errors import InputError, ParameterError
from maat.scheduling.own.loading import read_entry

SMALL = ("--generate", "philly", "--jobs", "5")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("fair-queues"))


def run(target: Path, *arguments: str) -> CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env=environment_with(target, NO_COLOR="1", COLUMNS="250"),
        cwd=target.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_policies_lists_those_of_distributions_and_says_which_are_left_out(target: Path) -> None:
    listed = run(target, "maat", "policies", "--json")
    found = {policy["name"]: policy for policy in json.loads(listed.stdout)}
    longest = found["longest-first"]
    assert (longest["title"], longest["from"], longest["placer"]) == (
        "Longest first",
        "fair-queues",
        "packed-sticky",
    )
    assert longest["summary"] == "Jobs by remaining time on the fastest type, longest first."
    assert longest["round_seconds"] == 120.0
    (knob,) = longest["parameters"]
    assert (knob["name"], knob["default"], knob["choices"]) == (
        "head_of_line",
        "backfill",
        ["block", "backfill"],
    )
    (gpus,) = found["few-each"]["parameters"]
    assert (gpus["type"], gpus["default"], gpus["help"]) == ("integer", 2, "GPUs of each job.")
    assert found["fifo"]["from"] == "Maat"
    assert "half-written" not in found
    refused = listed.stderr.splitlines()
    assert len(refused) == 2
    assert (
        "the policy fifo of fair-queues is left out: name: is the name of a policy that"
        in (refused[0])
    )
    assert "the policy half-written of fair-queues is left out: power: has no default" in refused[1]


def test_simulate_compare_and_sweep_run_them_also_in_processes_of_their_own(target: Path) -> None:
    options = ("--set", "head_of_line=block", "--json", *SMALL)
    alone = run(target, "maat", "simulate", "--policy", "longest-first", *options)
    assert json.loads(alone.stdout)["policy"] == "longest-first"

    several = "longest-first,few=few-each,fair_queues.functions:few_each"
    settings = ("--set", "few.gpus=1", "--set", "fair_queues.functions:few_each.gpus=4")
    both = ("--workers", "2", "--json", *SMALL)
    compared = run(target, "maat", "compare", "--policy", several, *settings, *both)
    names = [each["name"] for each in json.loads(compared.stdout)["contestants"]]
    assert names == [
        "longest-first + packed-sticky",
        "few-each (gpus=1) + packed-sticky",
        "fair_queues.functions:few_each (gpus=4) + packed-sticky",
    ]

    vary = "policy=longest-first,fair_queues.longest:LongestFirst"
    swept = run(target, "maat", "sweep", "--vary", vary, *both)
    figures = [point["figures"]["avg_jct_hours"] for point in json.loads(swept.stdout)["points"]]
    assert figures[0] == figures[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policy", "no_such.module:Thing"), "there is no no_such"),
        (("--policy", "fair_queues.longest:Nothing"), "It has: LongestFirst."),
        (("--policy", "fair_queues.functions:half_written"), "power: has no default"),
        (("--policy", "half-written"), "cannot be used: the policy half-written of fair-queues"),
        (("--policy", "fair_queues:"), "is not of the form module:Class"),
        (("--policy", "os:environ"), "neither class nor function"),
        (("--policy", "json:dumps"), "cls: is of a type that no form can show"),
        (("--policy", "longest-first", "--set", "p=1"), "p: is no parameter of longest-first"),
    ],
)
def test_what_is_no_policy_is_refused_in_one_line(
    target: Path, arguments: tuple[str, ...], words: str
) -> None:
    refused = run(target, "maat", "simulate", *arguments, *SMALL)
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert words in line


def test_the_library_has_them_by_the_names_of_their_classes(target: Path) -> None:
    script = (
        "import maat\n"
        "trace = maat.generate('philly', jobs=4, hours=1, seed=1)\n"
        "policy = maat.policies.LongestFirst(head_of_line='block')\n"
        "for chosen in (policy, 'few-each', 'fair_queues.longest:LongestFirst'):\n"
        "    print(maat.simulate(trace, policy=chosen, progress=False).summary['policy'])\n"
        "print('LongestFirst' in dir(maat.policies), maat.policies.LongestFirst.__doc__)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=environment_with(target),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert ran.stdout.splitlines()[:3] == [
        "longest-first",
        "few-each",
        "fair_queues.longest:LongestFirst",
    ]
    assert "True Jobs by remaining time" in ran.stdout
    assert "head_of_line: Whether later jobs may pass one that does not fit." in ran.stdout


def test_check_policy_says_which_contracts_are_kept(target: Path) -> None:
    kept = run(target, "maat.check_policy", "longest-first", "--examples", "10")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert "kept    A rigid job gets exactly what it asks for, or nothing." in kept.stdout
    assert kept.stdout.splitlines()[-1] == "It keeps every contract."

    broken = run(target, "maat.check_policy", "few-each", "--examples", "25", "--quick")
    assert broken.returncode == 1
    words = broken.stdout.partition("BROKEN  A rigid job gets exactly what it asks for")[2]
    assert " and is granted 2" in words.splitlines()[1]
    assert "cluster: " in words.splitlines()[3]
    assert ": rigid, may use " in words.partition("BROKEN")[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no_such:Thing",), "policy: names no module: there is no no_such (got 'no_such:Thing')"),
        (("fair_queues.functions:half_written",), "power: has no default"),
        (("half-written",), "power: has no default"),
        (("longest-first", "--set", "p=1"), "p: is no parameter of longest-first (got 1)"),
        (("longest-first", "--examples", "none"), "examples: is no number of rounds (got 'none')"),
    ],
)
def test_check_policy_refuses_what_is_no_policy(
    target: Path, arguments: tuple[str, ...], words: str
) -> None:
    refused = run(target, "maat.check_policy", *arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_knob_that_no_form_can_show_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "odd_knobs.py"
    module.write_text(
        "from dataclasses import dataclass\n"
        "from maat.scheduling.parameters import knob\n"
        "@dataclass(frozen=True)\n"
        "class Listed:\n"
        "    queues: list[int] = knob(None, 'Queues.')\n"
        "    def allocate(self, round_input): return {}\n"
        "@dataclass(frozen=True)\n"
        "class Outside:\n"
        "    share: float = knob(2.0, 'A share.', minimum=0, maximum=1)\n"
        "    def allocate(self, round_input): return {}\n"
        "class Unmade:\n"
        "    def __init__(self): raise OSError('no file')\n"
        "    def allocate(self, round_input): return {}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match="policy: cannot be made with its defaults: OSError"):
        read_entry("odd_knobs:Unmade")
    with pytest.raises(
        InputError, match=r"queues: is of a type that no form can show \(got 'list'\)"
    ):
        read_entry("odd_knobs:Listed")
    with pytest.raises(ParameterError, match="share: is out of range"):
        read_entry("odd_knobs:Outside")


def test_other_code_of_the_same_name_is_other_content(target: Path) -> None:
    """Results that a cache holds are not taken for those of code that was changed since."""
    script = (
        "import maat\n"
        "from maat.laboratory.content import content_key\n"
        "from maat.library.run import setup_of\n"
        "setup = setup_of(maat.generate(jobs=2, hours=1, seed=1), cluster='t4=1x4', seed=0,\n"
        "    jobs_per_gpu=None, policy='longest-first', placer=None, profiles=None,\n"
        "    round_seconds=None)\n"
        "print(content_key(setup.scenario()))\n"
    )

    def digest() -> str:
        command = [sys.executable, "-c", script]
        env = environment_with(target)
        ran = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return ran.stdout

    first = digest()
    assert digest() == first
    changed = target / "fair_queues" / "functions.py"
    text = changed.read_text()
    try:
        changed.write_text(text.replace("gpus: int = 2", "gpus: int = 3"))
        assert digest() != first
    finally:
        changed.write_text(text)
