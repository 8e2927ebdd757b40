"""`maat sweep`: varies one or two settings of a simulation, over several seeds.

Prints a table, JSON or CSV.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from maat.cli.condition_options import ConditionOptions
from maat.cli.figure_options import read_figures
from maat.cli.option_groups import takes_groups
from maat.cli.output import heading, print_json, print_table, printed_aside, say, warn
from maat.cli.plot_options import OF_MEANS, figure_option
from maat.cli.policy_options import PlacerName, Setting, named_policy, read_settings
from maat.cli.round_options import RoundSeconds
from maat.cli.run_options import RunOptions
from maat.cli.study_output import StudyOutput
from maat.cli.workload_options import ClusterOptions, WorkloadOptions
from maat.laboratory.figures import FIGURES, POOLED_P99, UNFAIR_FRACTION
from maat.laboratory.setup import Setup
from maat.laboratory.sweep import FailedPoint, Row, Sweep, Varied
from maat.laboratory.sweep_runner import Origin, SweepResult
from maat.library.study_plots import SweepPlots
from maat.library.sweeping import Swept, check_policy_once, run_points
from maat.scheduling.errors import MaatError, ParameterError
from maat.scheduling.policies import suiting_placer
from maat.simulation.notes import notes_before

Vary = Annotated[
    list[str] | None,
    typer.Option("--vary", help="Setting to vary: NAME=VALUE,VALUE,... Once or twice."),
]
PolicyName = Annotated[
    str | None,
    typer.Option(help="Policy, default: sia; to compare several, use --vary policy=sia,fifo."),
]


@dataclass(frozen=True)
class SweepOutput(StudyOutput):
    plots = SweepPlots

    figure: Annotated[str | None, figure_option(SweepPlots, more=OF_MEANS)] = None

    def columns(self) -> tuple[str, ...]:
        """Return the figures of the table. Raises InputError."""
        known = [name for name in FIGURES if name != POOLED_P99]
        return read_figures(self.figure_names, usual=USUAL, known=known, rule=self.rule)


USUAL = (
    "unfinished",
    "avg_jct_hours",
    "p99_jct_hours",
    "makespan_hours",
    "gpu_hours_per_job",
    "restarts_per_job",
    UNFAIR_FRACTION,
)


@takes_groups
def sweep_command(
    workload: WorkloadOptions,
    hardware: ClusterOptions,
    condition: ConditionOptions,
    runs: RunOptions,
    output: SweepOutput,
    vary: Vary = None,
    policy: PolicyName = None,
    placer: PlacerName = None,
    setting: Setting = None,
    round_seconds: RoundSeconds = None,
) -> None:
    """Vary one or two settings of a simulation and print the figures over seeds."""
    models, cluster = hardware.read()
    base = Setup(
        workload.read(models),
        models,
        cluster,
        policy=named_policy(policy or "sia"),
        placer=placer,
        policy_parameters=read_settings(setting or []),
        conditions=condition.read(cluster, models, round_seconds=round_seconds),
        tuned_by_policy=condition.tuning.by_label,
    )
    axes = tuple(_varied(text) for text in vary or [])
    condition.tuning.check_labels(_policies(base, axes))
    check_policy_once(policy, axes)
    sweep, columns = Sweep(base, axes, runs.seeds()), output.columns()
    output.check(inputs=[*workload.inputs(), *hardware.inputs(), *condition.inputs()])
    planned = sweep.planned()
    warn(
        note
        for point in planned.points
        for note in notes_before(point.scenario.workload, point.scenario.conditions.round_seconds)
    )
    with printed_aside():
        swept = run_points(
            sweep,
            planned,
            workers=runs.workers,
            cache=runs.cache,
            series=output.needs_series,
            quiet=output.as_json,
        )
    _say_repaired(swept.result)
    try:
        output.write(swept, swept.table)
    finally:  # what was computed is printed, whatever becomes of the files
        if output.as_json:
            print_json(swept.to_dict())
        else:
            _print_table(swept, columns)
    if swept.result.failed:
        raise PointsFailed(swept.result)


class PointsFailed(MaatError):
    """Some points of a sweep have no figures; those of the others are printed."""

    def __init__(self, result: SweepResult) -> None:
        points = len(result.points) + len(result.failed)
        lines = [f"{len(result.failed)} of {points} points could not be simulated:"]
        lines += [f"  {_settings(point)}: {point.error}" for point in result.failed]
        super().__init__("\n".join(lines))


def _settings(point: FailedPoint) -> str:
    """`cluster_size 2, seed 0`"""
    named = (f"{name} {_value(value)}" for name, value in point.settings.items())
    return ", ".join([*named, f"seed {point.seed}"])


def _varied(text: str) -> Varied:
    """Read `p=-1,0.5` as an axis and its values."""
    name, equals, values = text.partition("=")
    if not equals:
        raise ParameterError(
            "is not of the form NAME=VALUE,VALUE,...",
            field="vary",
            value=text,
            remedy="Write for example --vary round_seconds=60,120.",
        )
    given = [value.strip() for value in values.split(",") if value.strip()]
    if name.strip() == "policy":
        given = [named_policy(value) for value in given]
    return Varied.of(name.strip(), given)


def _say_repaired(result: SweepResult) -> None:
    count = sum(point.origin is Origin.REPAIRED for point in result.points)
    if count:
        typer.echo(
            f"maat: {count} stored result(s) were damaged and have been simulated again", err=True
        )


def _print_table(swept: Swept, columns: Sequence[str]) -> None:
    sweep, result = swept.sweep, swept.result
    total = len(result.points) + len(result.failed)
    simulated = len({point.key for point in result.points if point.origin is not Origin.CACHE})
    seeds = ", ".join(map(str, sweep.seeds))
    over = (
        f"mean ± sample standard deviation over seeds {seeds}"
        if len(sweep.seeds) > 1
        else f"seed {seeds}"
    )
    say(f"{total} points, {simulated} simulated; {over}")
    say(
        f"{scheduler_names(sweep)} on {sweep.base.cluster.describe()}, "
        f"fidelity {sweep.base.conditions.fidelity.name}"
    )
    for line in swept.never_run:
        say(line)
    rows = [
        (
            *(_value(value) for value in row.settings.values()),
            *(_cell(row, name) for name in columns),
        )
        for row in result.rows()
    ]
    print_table(
        [varied.axis.name for varied in sweep.axes],
        [heading(FIGURES[name]) for name in columns],
        rows,
    )
    for line in swept.notes:
        say(line)


def _policies(base: Setup, axes: Sequence[Varied]) -> list[str]:
    """Return the policies that run."""
    varied = [v.values for v in axes if v.axis.name == "policy"]
    return [str(name) for name in varied[0]] if varied else [base.policy]


def scheduler_names(sweep: Sweep) -> str:
    """Name policy and placer as far as all points share them."""
    vary, base = {varied.axis.name for varied in sweep.axes}, sweep.base
    if "placer" in vary:
        return f"{'Each policy' if 'policy' in vary else base.policy} with each placer"
    if "policy" in vary:
        return f"Each policy with {base.placer or 'its own placer'}"
    return f"{base.policy} + {base.placer or suiting_placer(base.policy)}"


def _value(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _cell(row: Row, name: str) -> str:
    """Format a mean, or a dash if a seed lacks the figure (if no job completed)."""
    if name not in row.mean:
        return "-"
    form = FIGURES[name].form
    mean = form.format(row.mean[name])
    return f"{mean} ± {form.format(row.spread[name])}" if len(row.seeds) > 1 else mean
