"""Longest remaining time first."""

from dataclasses import dataclass
from typing import ClassVar

from maat.scheduling.parameters import knob
from maat.scheduling.policies.ordering import HeadOfLine, in_order, order_of, walk
from maat.scheduling.policies.requests import requests
from maat.scheduling.rounds import Decision, Order, RoundInput


@dataclass(frozen=True)
class LongestFirst:
    """Jobs by remaining time on the fastest type, longest first."""

    head_of_line: HeadOfLine = knob(
        HeadOfLine.BACKFILL, "Whether later jobs may pass one that does not fit."
    )
    default_round_seconds: ClassVar[float] = 120.0

    def order(self, round_input: RoundInput) -> Order:
        wanted = requests(round_input)
        remaining = wanted.remaining_seconds()
        rows = in_order({row: (-float(remaining[row]),) for row in range(len(wanted.jobs))})
        return order_of(wanted, rows, self.head_of_line)

    def allocate(self, round_input: RoundInput) -> Decision:
        order = self.order(round_input)
        return walk(round_input, requests(round_input), order, state=round_input.state)
