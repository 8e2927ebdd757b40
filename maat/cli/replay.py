"""`maat replay`: what a cluster has had, played again under other policies, job by job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.output import write_table
from maat.cli.output_files import check_outputs
from maat.cli.plot_options import OF_MEANS, PlotFile, figure_option, write_plot
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.library.study_plots import ComparisonPlots

if TYPE_CHECKING:
    from maat.api.simulation_answers import Comparison, Interval, SimulationOut
    from maat.client import Client
    from maat.library.replaying import Replay

_MOST_SHOWN = 10


def replay(
    policy: Annotated[
        str, typer.Option(help="Policies, separated by commas. The live one is always played too.")
    ],
    since: Annotated[
        str, typer.Option(help="How long ago the window begins, in cluster time: 24h, 90m, 7d.")
    ] = "24h",
    until: Annotated[str, typer.Option(help="How long ago it ends.")] = "0s",
    placer: Annotated[
        str | None, typer.Option(help="Placer of the other policies; default: each one's own.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="POLICY.NAME=VALUE", help="A parameter of a policy. May be repeated."
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(help="Seeds of every run.")] = "0",
    cluster: Annotated[
        str | None, typer.Option(help="Cluster id or name; default: the first.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write one line per run.")] = None,
    plot: PlotFile = None,
    figure: Annotated[str | None, figure_option(ComparisonPlots, more=OF_MEANS)] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Play a cluster's last hours again under other policies, and compare them job by job.

    Nothing on the cluster changes. Ctrl+C cancels.
    """
    from maat.cli.policy_options import read_contestants
    from maat.cli.run_options import RunOptions
    from maat.library.replaying import play_again, read_window

    wanted = read_contestants(policy, placer, set_ or [], elsewhere=True)
    window, numbers = read_window(since, until), RunOptions(seed_list=seeds).seeds()
    check_outputs(ComparisonPlots, csv=csv, plot=plot, figure=figure)
    with client_of(url) as maat:

        def say(begun: SimulationOut, runs: int) -> None:
            page = f"{maat.url}/simulations/{begun['id']}"
            typer.echo(f"Plays {runs} runs: {page}. Ctrl+C cancels.", err=True)

        found = play_again(
            maat,
            wanted,
            cluster=cluster,
            window=window,
            since=since,
            own_placers=placer is None,
            seeds=numbers,
            quiet=False,
            on_begun=say,
        )
        words = "" if as_json else "\n".join(_lines(found, cache(partial(_named, maat))))
    try:
        if csv is not None:
            write_table(csv, found.runs)
        write_plot(plot, figure, found.plot)
    finally:  # what was played is printed, whatever becomes of the files
        show(found.to_dict(), as_json, words)


def _lines(found: Replay, told: Callable[[str], str]) -> list[str]:
    """Return what was played, the means, the paired differences and the jobs that differ most."""
    means = [
        [each["name"], *(_mean(each["figures"], key) for key in ("avg_jct_hours", "p99_jct_hours"))]
        for each in found.comparison["contestants"]
    ]
    return [
        *(*found.window, *found.never_run, *found.notes),
        "",
        table_of(("policy + placer", "average JCT, h", "99th percentile, h"), means),
        "",
        *_paired_lines(found.comparison, found.contestants, found.baseline),
        *(
            line
            for name in found.contestants
            if name != found.baseline
            for line in _job_lines(found, name, told)
        ),
        "",
        f"More: /simulations/{found.simulation['id']} on the pages.",
    ]


def _mean(figures: Any, key: str) -> str:
    spread = figures.get(key)
    if spread is None:
        return "-"
    deviation = "" if spread["deviation"] is None else f" ± {spread['deviation']:.3f}"
    return f"{spread['mean']:.3f}{deviation}"


def _paired_lines(found: Comparison, names: Sequence[str], baseline: str) -> list[str]:
    from maat.cli.compare import BASES

    if not found["paired"]:
        return ["No job finished under two policies, so that nothing can be compared."]
    basis = {str(known): words for known, words in BASES.items()}[found["paired"][0]["basis"]]
    columns = ("policy + placer", "JCT difference, h", "JCT ratio", "jobs sooner", "mean JCT is")
    rows = [
        [
            names[each["contestant"]],
            _interval(each["difference_hours"], "{:+.3f}"),
            _interval(each["ratio"], "{:.3f}"),
            f"{each['sooner']:.0%} of {each['jobs']}",
            each["verdict"],
        ]
        for each in found["paired"]
    ]
    heading = f"Job by job against {baseline}; in brackets the 95 % interval {basis}"
    notes = [note for each in found["paired"] if (note := each.get("note"))]
    return [heading, table_of(columns, rows), *notes]


def _interval(found: Interval, form: str) -> str:
    known = found["low"] is not None and found["high"] is not None
    bounds = f"{form.format(found['low'])}, {form.format(found['high'])}" if known else "unknown"
    return f"{form.format(found['estimate'])} [{bounds}]"


def _job_lines(found: Replay, name: str, told: Callable[[str], str]) -> list[str]:
    """Return the jobs whose hours differ most from the baseline's.

    `told`: names a job of which the trace has the id.
    """
    changed = list(found.changed(name))
    if not changed:
        return ["", f"{name}: every job takes as long as under {found.baseline}."]
    rows = [
        [told(str(job["job"])), str(job["model"]), f"{job['difference_hours']:+.3f}"]
        for job in changed[:_MOST_SHOWN]
    ]
    more = f", of {len(changed)} that differ" if len(changed) > len(rows) else ""
    heading = f"{name}: the jobs that differ most{more} (h, first seed)"
    return ["", heading, table_of(("job", "model", "difference"), rows)]


def _named(maat: Client, job_id: str) -> str:
    """Return a job's name and id; the id alone where the visitor may not see it, or it is gone."""
    from maat.client import ApiError

    try:
        return f"{maat.job(job_id)['name']} ({job_id})"
    except ApiError as refused:
        if refused.status != HTTPStatus.NOT_FOUND:
            raise
        return job_id
