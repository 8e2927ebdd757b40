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
    walk,
)
from maat.scheduling.policies.requests import requests
from maat.scheduling.rounds import Decision, RoundInput


@dataclass(frozen=True)
class Las:
    """Run jobs by attained service, least first; ties by submission."""

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
    name: str = "las"

    def allocate(self, round_input: RoundInput) -> Decision:
        served = {
            row: (attained_service(job, self.service), job.spec.submitted_at)
            for row, job in enumerate(round_input.jobs)
        }
        order = in_order(served)
        return walk(
            round_input,
            requests(round_input),
            order,
            head_of_line=self.head_of_line,
            keep_running=False,
            state=round_input.state,
            held_by="jobs that have had less service",
        )
