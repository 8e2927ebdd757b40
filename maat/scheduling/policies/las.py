"""Least attained service first, without queues: preemptive at rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from maat.scheduling.parameters import knob
from maat.scheduling.policies.ordering import (
    HeadOfLine,
    ServiceUnit,
    attained_service,
    in_order,
    order_of,
    walk,
)
from maat.scheduling.policies.requests import requests
from maat.scheduling.rounds import Decision, Order, RoundInput


@dataclass(frozen=True)
class Las:
    """Run jobs by attained service / weight, least first; ties by submission."""

    service: ServiceUnit = knob(
        ServiceUnit.GPU_SECONDS,
        "What counts as service.",
        source="Tiresias: GPU time; Blox: time alone",
    )
    head_of_line: HeadOfLine = knob(
        HeadOfLine.BACKFILL,
        "Whether jobs of more service may pass one that does not fit.",
        source="Blox",
    )
    default_round_seconds: ClassVar[float] = 300.0  # PAL, which runs LAS on Blox: 300
    weighs_jobs: ClassVar[bool] = True
    name: str = "las"

    def order(self, round_input: RoundInput) -> Order:
        """Return the order in which jobs are granted what they request."""
        served = {
            row: (attained_service(job, self.service) / job.spec.weight, job.spec.submitted_at)
            for row, job in enumerate(round_input.jobs)
        }
        return order_of(requests(round_input), in_order(served), self.head_of_line)

    def allocate(self, round_input: RoundInput) -> Decision:
        return walk(
            round_input,
            requests(round_input),
            self.order(round_input),
            state=round_input.state,
            held_by="jobs that have had less service",
        )
