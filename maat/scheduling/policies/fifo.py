"""First in, first out: the highest priority first, then arrival order; no preemption."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from maat.scheduling.parameters import knob
from maat.scheduling.policies.ordering import HeadOfLine, in_order, order_of, walk
from maat.scheduling.policies.requests import requests
from maat.scheduling.rounds import Decision, Order, RoundInput


@dataclass(frozen=True)
class Fifo:
    """Start jobs in order of submission; running jobs stay."""

    head_of_line: HeadOfLine = knob(
        HeadOfLine.BLOCK,
        "Whether later jobs may pass one that does not fit.",
        source="Blox, Gavel: block",
    )
    default_round_seconds: ClassVar[float] = 60.0
    name: str = "fifo"

    def order(self, round_input: RoundInput) -> Order:
        """Return the order in which jobs are granted what they request."""
        rows = in_order(
            {
                row: (-job.spec.priority, job.spec.submitted_at)
                for row, job in enumerate(round_input.jobs)
            }
        )
        return order_of(requests(round_input), rows, self.head_of_line, keep_running=True)

    def allocate(self, round_input: RoundInput) -> Decision:
        return walk(
            round_input,
            requests(round_input),
            self.order(round_input),
            state=round_input.state,
            order_stands_until=math.inf,
            held_by="jobs that came before it, of higher priority, or running already,",
        )
