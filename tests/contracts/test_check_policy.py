"""`python -m maat.check_policy`: a policy that does not answer is named, and the check ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from maat.check_policy import main
from maat.scheduling.policies import POLICIES

ENDLESS = """
class Endless:
    \"\"\"Decide nothing, for ever.\"\"\"

    def allocate(self, round_input):
        while True:
            try:
                len(round_input.jobs) / 0
            except Exception:
                pass
"""

ENDING = """
import os, signal

class Exits:
    \"\"\"End the process in order, as if all was done.\"\"\"

    def allocate(self, round_input):
        os._exit(0)

class Interrupts:
    \"\"\"Do as Ctrl-C does.\"\"\"

    def allocate(self, round_input):
        raise KeyboardInterrupt

class Crashes:
    \"\"\"End the process by a signal.\"\"\"

    def allocate(self, round_input):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("maat.check_policy", "ending_policy:Exits", "--quick"),
            "checked the policy ended with exit code 0",
        ),
        (
            ("maat", "simulate", "--generate", "philly", "--policy", "ending_policy:Crashes"),
            "simulated ended by SIGKILL",
        ),
    ],
)
def test_a_policy_that_ends_the_process_is_told(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "ending_policy.py").write_text(ENDING)
    ended = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line == (
        f"maat: The process that {words} in the middle. "
        "A policy must not end it (os._exit), nor crash it."
    )


def test_a_policy_that_does_not_answer_ends_the_check_with_its_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "endless_policy.py").write_text(ENDLESS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr("maat.check_policy.ANSWER_SECONDS", 0.2)
    try:
        assert main(["endless_policy:Endless", "--quick"]) == 1
    finally:
        POLICIES.dismiss_admitted()
    said = capsys.readouterr().out
    assert "BROKEN  It answers within 0.2 s. Nothing more is checked." in said
    assert "It has not in this round:" in said


def test_an_interrupt_ends_the_check_with_a_word(tmp_path: Path) -> None:
    (tmp_path / "ending_policy.py").write_text(ENDING)
    ended = subprocess.run(
        [sys.executable, "-m", "maat.check_policy", "ending_policy:Interrupts", "--quick"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (ended.returncode, ended.stderr) == (130, "maat: Interrupted.\n")
