"""Shortest job first: by time alone, no preemption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from maat.scheduling.parameters import knob
from maat.scheduling.policies.ordering import HeadOfLine, by_remaining_time, walk
from maat.scheduling.policies.requests import requests
from maat.scheduling.rounds import Decision, RoundInput


@dataclass(frozen=True)
class Sjf:
    """Start waiting jobs by their time on the fastest type; running jobs stay."""

    head_of_line: HeadOfLine = knob(
        HeadOfLine.BACKFILL,
        "Whether longer jobs may pass one that does not fit.",
        source="SJF-BSBF",
    )
    default_round_seconds: ClassVar[float] = 60.0
    name: str = "sjf"

    def allocate(self, round_input: RoundInput) -> Decision:
        wanted = requests(round_input)
        return walk(
            round_input,
            wanted,
            by_remaining_time(wanted),
            head_of_line=self.head_of_line,
            keep_running=True,
            state=round_input.state,
            held_by="shorter jobs, and jobs that run already,",
        )
