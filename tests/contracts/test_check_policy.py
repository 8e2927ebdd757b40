"""`python -m maat.check_policy`: a policy that does not answer is named, and the check ends."""

from __future__ import annotations

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
