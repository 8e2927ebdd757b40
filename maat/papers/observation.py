"""What is kept of a run for the papers' tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from maat.laboratory.fairness import fairness_by_rule
from maat.laboratory.figures import figures_of
from maat.library.run import Run
from maat.library.tables import Cell
from maat.simulation.engine import simulate
from maat.simulation.record import Cancelled, Progress
from maat.simulation.scenario import Scenario

Columns = Mapping[str, list[Cell]]
"""A table by its columns, as `Table.to_dict` gives it."""
SERIES = ("gpus", "efficiency", "job_series")


@dataclass(frozen=True)
class Observation:
    """A run as the papers' items read it.

    `figures`: as of sweeps; `jobs`, `rounds`, `spans`: the tables of `maat.simulate`; `rho`: by
    rule, by job, if it was asked for; `policy_seconds`, `placement_seconds`: CPU seconds of each
    round, of this machine; `series`: the tables `gpus`, `efficiency` and `job_series`, if they were
    asked for.
    """

    figures: Mapping[str, float]
    jobs: Columns
    rounds: Columns
    spans: Columns
    rho: Mapping[str, Mapping[str, float]]
    policy_seconds: list[float]
    placement_seconds: list[float]
    cpu_seconds: float
    series: Mapping[str, Columns]

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Observation:
        return cls(**kept)

    def jct_hours(self) -> list[float]:
        """Return the JCT of every job that finished, in the trace's order."""
        return [float(jct) / 3600 for jct in self.jobs["jct_seconds"] if jct is not None]


def observe(
    scenario: Scenario,
    *,
    rho: bool = False,
    series: bool = False,
    alone: Scenario | None = None,
    on_progress: Progress | None = None,
) -> Mapping[str, Any]:
    """Simulate, and return what is kept.

    `rho`: with finish-time fairness; each job is played alone too, which takes longer than a run of
    rigid jobs; under the rules of `alone`, if it is given. `series`: with what jobs and cluster did
    over time, about a megabyte. Raises InputError as the simulation does, and Cancelled if
    `on_progress` did.
    """
    result = simulate(scenario, on_progress=on_progress)
    if result.stopped:
        raise Cancelled
    run, fair = Run(result), fairness_by_rule(result, alone=alone) if rho else {}
    return asdict(
        Observation(
            figures=dict(figures_of(result, fairness=fair)),
            jobs=run.jobs.to_dict(),
            rounds=run.rounds.to_dict(),
            spans=run.spans.to_dict(),
            rho={rule.value: dict(fairness.rho) for rule, fairness in fair.items()},
            policy_seconds=list(result.policy_seconds),
            placement_seconds=list(result.placement_seconds),
            cpu_seconds=result.cpu_seconds,
            series={name: getattr(run, name).to_dict() for name in SERIES} if series else {},
        )
    )
