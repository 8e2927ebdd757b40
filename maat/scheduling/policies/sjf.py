"""Shortest job first: by time alone, no preemption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from maat.scheduling.parameters import knob
from maat.scheduling.policies.misjudged import length_error_knob, misjudged
from maat.scheduling.policies.ordering import HeadOfLine, by_remaining_time, order_of, walk
from maat.scheduling.policies.requests import requests
from maat.scheduling.rounds import Decision, Order, RoundInput


@dataclass(frozen=True)
class Sjf:
    """Start waiting jobs by their time on the fastest type over weight; running jobs stay."""

    head_of_line: HeadOfLine = knob(
        HeadOfLine.BACKFILL,
        "Whether longer jobs may pass one that does not fit.",
        source="SJF-BSBF",
    )
    length_error: float = length_error_knob()
    default_round_seconds: ClassVar[float] = 60.0
    weighs_jobs: ClassVar[bool] = True
    name: str = "sjf"

    def order(self, round_input: RoundInput) -> Order:
        """Return the order in which jobs are granted what they request."""
        wanted = requests(misjudged(round_input, self.length_error))
        return order_of(wanted, by_remaining_time(wanted), self.head_of_line, keep_running=True)

    def allocate(self, round_input: RoundInput) -> Decision:
        return walk(
            round_input,
            requests(round_input),
            self.order(round_input),
            state=round_input.state,
            held_by="shorter jobs, and jobs that run already,",
        )
