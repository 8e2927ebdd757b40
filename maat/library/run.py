"""`maat.simulate`: one run, and its tables."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from maat.laboratory.setup import Setup
from maat.library.conditions import ConditionValues, read_conditions, takes_conditions
from maat.library.fairness import fairness_of
from maat.library.inputs import (
    DEFAULT_CLUSTER,
    GivenTraces,
    Profiles,
    read_cluster,
    read_models,
    read_trace,
    seed_of,
)
from maat.library.plots import RunPlots
from maat.library.policies import GivenPolicy, read_placer, read_policy
from maat.library.progress import Bar
from maat.library.series_tables import (
    efficiency_table,
    gpus_table,
    job_series_table,
    nodes_table,
    waits_table,
)
from maat.library.tables import Table
from maat.scheduling.cluster import Cluster
from maat.simulation.engine import simulate as simulate_scenario
from maat.simulation.record import Position, SimulationResult
from maat.simulation.scenario import Scenario


@takes_conditions
def simulate(
    trace: GivenTraces,
    *,
    cluster: str | Cluster = DEFAULT_CLUSTER,
    jobs_per_gpu: int | None = None,
    policy: GivenPolicy = "sia",
    placer: str | None = None,
    profiles: str | Path | Profiles | None = None,
    seed: int = 0,
    round_seconds: float | None = None,
    progress: bool = True,
    **conditions: Unpack[ConditionValues],
) -> Run:
    """Simulate a trace under a policy.

    Raises InputError, which names the argument, its value and a remedy, for what cannot be
    simulated.

    Args:
        trace: A path, the text of a trace, a workload, or `maat.generate("philly")`.
        cluster: GPU types and nodes: `type=NODESxGPUS,...`.
        jobs_per_gpu: How many jobs may share a GPU; None: one, or as the cluster object says.
        policy: A name, `maat.policies.Sia(p=-1)`, or one of your own.
        placer: Name of what decides on which GPUs; None: the policy's own.
        profiles: Folder of measured profiles, or `maat.profiles(folder)`; None: the catalog.
        seed: Of all random choices.
        round_seconds: Seconds between rounds; None: the policy's own.
        progress: Whether to show a progress bar, on a terminal or in a notebook.
        **conditions: See docs/library.md; they have the names of `maat simulate --help`.

    >>> import maat
    >>> run = maat.simulate(
    ...     maat.generate("philly", jobs=6, hours=1, seed=1),
    ...     cluster="t4=6x4,a100=2x8",
    ...     policy=maat.policies.Sia(p=-1),
    ... )
    >>> run.summary["policy"], run.summary["unfinished"]
    ('sia', 0)
    >>> run.jobs.columns[:3]
    ('name', 'model', 'submit_seconds')
    """
    setup = setup_of(
        trace,
        cluster=cluster,
        jobs_per_gpu=jobs_per_gpu,
        policy=policy,
        placer=placer,
        profiles=profiles,
        seed=seed,
        round_seconds=round_seconds,
        **conditions,
    )
    return run_scenario(setup.scenario(), quiet=not progress)


def setup_of(
    trace: GivenTraces,
    *,
    cluster: str | Cluster,
    jobs_per_gpu: int | None,
    policy: GivenPolicy,
    placer: str | None,
    profiles: str | Path | Profiles | None,
    seed: int,
    round_seconds: float | None,
    **conditions: Unpack[ConditionValues],
) -> Setup:
    """Read the arguments of `simulate`. Raises InputError."""
    read = read_cluster(cluster, jobs_per_gpu)
    models = read_models(profiles, read)
    under = read_conditions(read, models, round_seconds=round_seconds, **conditions)
    chosen = read_policy(policy)
    return Setup(
        read_trace(trace, models),
        models,
        read,
        policy=chosen.name,
        placer=None if placer is None else read_placer(placer, chosen),
        policy_parameters=chosen.parameters,
        conditions=under,
        seed=seed_of(seed),
        round_seconds=chosen.round_seconds,
        own_policy=chosen.own,
        tuned_by_policy={} if chosen.tuned is None else {chosen.name: chosen.tuned},
    )


def run_scenario(scenario: Scenario, *, quiet: bool) -> Run:
    """Run a scenario under a progress bar. Raises InputError as the simulation does."""
    with Bar(scenario.policy, quiet=quiet, total=len(scenario.workload)) as bar:

        def show(position: Position) -> None:
            at = f"jobs ended, round {position.round_number}, hour {position.now / 3600:.1f}"
            bar.show(position.finished, position.jobs, at)

        return Run(simulate_scenario(scenario, on_progress=show))


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A simulated run: its figures (`summary`), and tables of its jobs, rounds and allocations.

    Times are in seconds of the simulation, from 0, unless a name says hours. In a notebook it shows
    its figures.

    >>> import maat
    >>> run = maat.simulate(maat.generate(jobs=5, hours=1, seed=1), policy="fifo")
    >>> len(run.jobs), run.notes
    (5, ())
    >>> run
    fifo + packed-sticky: 5 jobs of philly-1
    >>> run.summary["jobs"], run.rounds["gpus"][-1], run.spans.columns[0]
    (5, 0, 'job')
    >>> max(run.gpus["gpus"]), run.nodes["nodes"], run.waits.columns[0], run.job_series.columns[0]
    (20, [11], 'job', 'job')
    >>> run.efficiency.columns
    ('time_seconds', 'efficiency', 'efficiency_by_gpu')
    >>> run.plot.gpus_over_time().layout.yaxis.title.text
    'GPUs in use'
    """

    result: SimulationResult

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """The figures of the run, as `maat simulate --json` prints them."""
        return self.result.summary()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures should know, as sentences."""
        return tuple(self.summary["notes"])

    @cached_property
    def jobs(self) -> Table:
        """One row per job; without a start, a finish or a time where there was none.

        `gpu_seconds`: GPU time held, on all types, profiling included. `waited_seconds`:
        without GPUs, of a job that finished. `placement_slowdown`: L x max V (PAL eq. 1), the mean
        over the GPU time that it trained; 1: its GPUs and nodes cost it nothing.
        """
        slowdowns = self.result.series.placement_slowdown.tolist()
        rows = [
            (
                record.name,
                record.model,
                record.submit,
                record.start,
                record.finish,
                record.jct,
                record.queueing_delay,
                record.waited,
                record.restarts,
                record.gpu_count_requested,
                sum(record.gpu_seconds.values()),
                record.adaptivity.value,
                record.interruptions,
                None if math.isnan(slowdown) else slowdown,
            )
            for record, slowdown in zip(self.result.records, slowdowns, strict=True)
        ]
        return Table(
            {
                "name": str,
                "model": str,
                "submit_seconds": float,
                "start_seconds": float,
                "finish_seconds": float,
                "jct_seconds": float,
                "queueing_seconds": float,
                "waited_seconds": float,
                "restarts": int,
                "gpu_count_requested": int,
                "gpu_seconds": float,
                "adaptivity": str,
                "interruptions": int,
                "placement_slowdown": float,
            },
            rows,
        )

    @cached_property
    def rounds(self) -> Table:
        """One row per round: its time, active jobs, GPUs held, and those of each type (`t4_gpus`).

        A series of idle rounds that were skipped has only its first and its last.
        """
        result, types = self.result, self.result.gpus_by_type
        return Table(
            {
                "time_seconds": float,
                "active_jobs": int,
                "gpus": int,
                **{f"{name}_gpus": int for name in types},
            },
            [
                (time, jobs, sum(held), *held)
                for time, jobs, *held in zip(
                    result.round_times, result.contention, *types.values(), strict=True
                )
            ],
        )

    @cached_property
    def spans(self) -> Table:
        """One row per allocation of a job, from `start_seconds` to `end_seconds`.

        It ends with the job's next one, its finish, or (None) not before the run. Without GPUs the
        job was preempted, or its node failed. `total_batch_size`: what the policy set, if it did.
        """
        return Table(
            {
                "job": str,
                "start_seconds": float,
                "end_seconds": float,
                "gpu_type": str,
                "gpu_count": int,
                "node_count": int,
                "total_batch_size": int,
            },
            self._spans(),
        )

    def _spans(self) -> Iterator[tuple[Any, ...]]:
        ends = {record.name: record.finish for record in self.result.records}
        rows = []
        for span in reversed(self.result.spans):
            rows.append(
                (
                    span.job,
                    span.start,
                    ends.get(span.job),
                    span.gpu_type,
                    span.gpu_count,
                    span.node_count,
                    span.total_batch_size,
                )
            )
            ends[span.job] = span.start
        return reversed(rows)

    @cached_property
    def gpus(self) -> Table:
        """GPUs in use over time: a row where they change, exactly, not only at rounds.

        A GPU that jobs share counts once. GPUs that profile a job before it may run are not among
        them. The integral is the GPU time of all jobs, where none are shared.
        """
        return gpus_table(self.result.series)

    @cached_property
    def efficiency(self) -> Table:
        """The cluster's statistical efficiency over time: EFFICIENCY of Pollux eq. 6.

        `efficiency`: the mean over the jobs that train (Pollux, figure 5); `efficiency_by_gpu`:
        weighted by their GPUs; None while no job trains.
        """
        return efficiency_table(self.result.series)

    @cached_property
    def nodes(self) -> Table:
        """Nodes in service and their GPUs over time: a row at each failure and repair."""
        return nodes_table(self.result.series)

    @cached_property
    def waits(self) -> Table:
        """One row per wait of a job, from `start_seconds` to `end_seconds`.

        The first begins at its submission. All waits and holdings of a job are its life.
        """
        return waits_table(self.result.series)

    @cached_property
    def job_series(self) -> Table:
        """One row per stretch of a job's life in which nothing changed; they leave no gaps.

        `total_batch_size`: as the policy or the agent set it; None in waits and restarts, as
        are `efficiency` and `slowdown`. `locality` x `variability`: what its place costs, L x max V
        (PAL eq. 1); `slowdown`: true over nominal seconds of a step, partners included.
        """
        return job_series_table(self.result.series)

    @property
    def plot(self) -> RunPlots:
        """The figures: `run.plot.jct_cdf()`, `run.plot.efficiency_over_time()` and others."""
        return RunPlots({self.result.scenario.policy: self})

    def fairness(self) -> Mapping[str, float | None]:
        """Return finish-time fairness rho by every rule, against every job alone; slow.

        >>> import maat
        >>> run = maat.simulate(maat.generate(jobs=3, hours=1, seed=1), policy="fifo")
        >>> run.fairness()["rho_worst"] > 0
        True
        """
        return fairness_of([self.result])[0]

    def __repr__(self) -> str:
        scenario = self.result.scenario
        jobs = f"{len(scenario.workload)} jobs of {scenario.workload.name}"
        return f"{scenario.policy} + {scenario.placer}: {jobs}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{summary_table(self.summary)}"


def summary_table(summary: Mapping[str, Any]) -> str:
    """Return the figures of a run in HTML, with the notes below."""
    shown = Table(
        {"figure": str, "value": str},
        [(name, _shown(value)) for name, value in summary.items() if name != "notes"],
    )
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in summary["notes"])
    return shown.as_html(most=len(shown)) + notes


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
