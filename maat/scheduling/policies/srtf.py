"""Shortest remaining time first: preemptive at rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from maat.scheduling.parameters import knob
from maat.scheduling.policies.ordering import HeadOfLine, by_remaining_time, order_of, walk
from maat.scheduling.policies.requests import requests
from maat.scheduling.rounds import Decision, Order, RoundInput


@dataclass(frozen=True)
class Srtf:
    """Run jobs by their remaining time on the fastest type, as estimated, over their weight."""

    head_of_line: HeadOfLine = knob(
        HeadOfLine.BACKFILL,
        "Whether longer jobs may pass one that does not fit.",
        source="Blox",
    )
    default_round_seconds: ClassVar[float] = 60.0
    weighs_jobs: ClassVar[bool] = True
    name: str = "srtf"

    def order(self, round_input: RoundInput) -> Order:
        """Return the order in which jobs are granted what they request."""
        wanted = requests(round_input)
        return order_of(wanted, by_remaining_time(wanted), self.head_of_line)

    def allocate(self, round_input: RoundInput) -> Decision:
        return walk(
            round_input,
            requests(round_input),
            self.order(round_input),
            state=round_input.state,
            held_by="jobs with less time left",
        )
