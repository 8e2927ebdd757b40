"""`maat replay`: what a cluster has had, played again under other policies, job by job."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.following import followed
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, cluster_or_first, show, table_of
from maat.client.shapes import shape_in_service
from maat.library.durations import seconds_of
from maat.scheduling.errors import MaatError, ParameterError

if TYPE_CHECKING:
    from maat.api.clusters import ClusterOut
    from maat.api.simulation_answers import Comparison, Interval, RunResult, SimulationOut
    from maat.client import Client

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
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Play a cluster's last hours again under other policies, and compare them job by job.

    Nothing on the cluster changes. Ctrl+C cancels.
    """
    from maat.cli.policy_options import read_contestants
    from maat.cli.run_options import RunOptions

    wanted = read_contestants(policy, placer, set_ or [])
    window = _window(since, until)
    numbers = RunOptions(seed_list=seeds).seeds()
    with client_of(url) as maat:
        live = maat.cluster(cluster_or_first(maat, cluster))
        runs = [_run_of_live(live)]
        for each in wanted:
            run = {
                "policy": each.policy,
                "policy_parameters": dict(each.policy_parameters),
                "placer": each.placer,
            }
            is_live = each.policy == live["policy"] and placer is None
            if not (is_live and not each.policy_parameters) and run not in runs:
                runs.append(run)
        if len(runs) == 1:
            remedy = f"Name another policy than {live['policy']}, or set a parameter with --set."
            raise ParameterError(
                "is the policy that the cluster has", field="policy", value=policy, remedy=remedy
            )
        asked = [run | {"seed": seed} for run in runs for seed in numbers]
        body = {
            "name": f"Replay of {live['name']}, last {since}",
            "traces": [{"kind": "cluster", "cluster_id": live["id"], **window}],
            "cluster": _shape(maat, live),
            "round_seconds": live["round_seconds"],
            "runs": asked,
            **_sharing(live),
            **_bounds(live),
        }
        begun = maat.simulate(body)
        page = f"{maat.url}/simulations/{begun['id']}"
        typer.echo(f"Plays {len(asked)} runs: {page}. Ctrl+C cancels.", err=True)
        done = _played(maat, begun)
        found = maat.comparison(done["id"])
        jobs = _jobs_by_policy(maat, done)
        told = cache(partial(_named, maat))
        words = "" if as_json else "\n".join(_lines(done, found, jobs, told))
    show({"simulation": done, "comparison": found, "jobs": jobs}, as_json, words)


def _window(since: str, until: str) -> dict[str, float]:
    """Return the window as a trace's fields. Raises ParameterError."""
    begins, ends = seconds_of(since, field="since"), seconds_of(until, field="until")
    if begins <= ends:
        raise ParameterError(
            "is no longer ago than the window's end",
            field="since",
            value=since,
            remedy=f"Give more than {until}, or a smaller --until.",
        )
    return {"since_seconds_ago": begins} | ({"until_seconds_ago": ends} if ends > 0 else {})


def _sharing(live: ClusterOut) -> dict[str, Any]:
    """Return how jobs share GPUs on the cluster; nothing where each GPU runs one."""
    if live["jobs_per_gpu"] == 1:
        return {}
    return {"jobs_per_gpu": live["jobs_per_gpu"], "interference": live["interference"]}


def _bounds(live: ClusterOut) -> dict[str, Any]:
    """Return how long jobs stay where they are on the cluster."""
    names = ("least_stay_seconds", "most_moves_per_hour")
    return {name: value for name in names if (value := dict(live)[name]) is not None}


def _run_of_live(live: ClusterOut) -> dict[str, Any]:
    return {
        name: live[name] for name in ("policy", "policy_parameters", "placer", "placer_parameters")
    }


def _shape(maat: Client, live: ClusterOut) -> str:
    from maat.cli.nodes import every_node

    shape = shape_in_service(every_node(maat, live["id"]))
    if not shape:
        raise ParameterError(
            "has no GPU in service",
            field="cluster",
            value=live["name"],
            remedy="Return a node to service: maat undrain NODE.",
        )
    return shape


def _played(maat: Client, begun: SimulationOut) -> SimulationOut:
    """Follow a simulation to its end; Ctrl+C cancels it. Raises MaatError if it fails."""
    from maat.library.progress import Bar

    with Bar("replay", quiet=False) as bar:
        operation = followed(
            maat,
            begun["operation_id"],
            tell=lambda now: bar.show(int(now["done"]), int(now["total"]), now["message"]),
        )
    if operation["state"] != "succeeded":
        detail = (operation["error"] or {}).get("detail", "It was cancelled.")
        raise MaatError(f"The replay did not end: {detail}")
    return maat.simulation(begun["id"])


def _jobs_by_policy(maat: Client, done: SimulationOut) -> list[dict[str, object]]:
    """Return each job's hours under every contestant, of the first seed; None: did not finish."""
    results: dict[str, RunResult] = {}
    for run in done["runs"]:
        if run["name"] not in results:
            results[run["name"]] = maat.run_result(done["id"], run["id"])
    hours: dict[str, dict[str, object]] = {}
    for name, result in results.items():
        for job in result["jobs"]:
            row = hours.setdefault(job["name"], {"job": job["name"], "model": job["model"]})
            row[name] = None if job["jct"] is None else job["jct"] / 3600.0
    return list(hours.values())


def _lines(
    done: SimulationOut,
    found: Comparison,
    jobs: list[dict[str, object]],
    told: Callable[[str], str],
) -> list[str]:
    """Return what was played, the means, the paired differences and the jobs that differ most."""
    window = done["request"]["traces"][0]["window"]
    names = [each["name"] for each in found["contestants"]]
    baseline = names[found["baseline"]]
    means = [
        [each["name"], *(_mean(each["figures"], key) for key in ("avg_jct_hours", "p99_jct_hours"))]
        for each in found["contestants"]
    ]
    return [
        *_about(window),
        *_notes(done, _never(found)),
        "",
        table_of(("policy + placer", "average JCT, h", "99th percentile, h"), means),
        "",
        *_paired_lines(found, names, baseline),
        *_job_lines(jobs, baseline, [name for name in names if name != baseline], told),
        "",
        f"More: /simulations/{done['id']} on the pages.",
    ]


def _about(window: dict[str, Any]) -> list[str]:
    """Say which jobs were played, and as what."""
    played = window["begun_before"] + window["waiting_before"] + window["submitted"]
    lines = [
        f"{played} jobs of {window['start']} to {window['end']} (cluster time): "
        f"{window['submitted']} came in it, {window['waiting_before']} waited when it began, "
        f"{window['begun_before']} had begun and have the work that was left.",
        "All runs are simulations that begin with free GPUs; the live policy is simulated too.",
    ]
    notes = {
        "cut_short": "were cancelled or failed: they have the work that they had done until then",
        "as_recorded": "are commands: they run for as long as they did, on as many GPUs",
        "without_work": "are left out: nothing is known of their work in the window",
    }
    return [*lines, *(f"{window[key]} {words}." for key, words in notes.items() if window[key])]


def _never(found: Comparison) -> list[str]:
    """Say first which jobs can never run: the means are of the others."""
    from maat.laboratory.figures import RunFigures, never_run

    contestants = found["contestants"]
    means = [{name: one["mean"] for name, one in each["figures"].items()} for each in contestants]
    return [
        note
        for each, figures in zip(contestants, means, strict=True)
        for note in never_run([RunFigures(each["policy"], each["placer"], figures)])
    ]


def _notes(done: SimulationOut, never: list[str]) -> list[str]:
    """Return what can never run, then what else a reader of the runs should know, each once."""
    summaries = [run["summary"] for run in done["runs"] if run["summary"] is not None]
    others = (
        note
        for summary in summaries
        for note in summary["notes"][1 if summary["cannot_run"] else 0 :]
    )
    return list(dict.fromkeys([*never, *others]))


def _mean(figures: Any, key: str) -> str:
    spread = figures.get(key)
    if spread is None:
        return "-"
    deviation = "" if spread["deviation"] is None else f" ± {spread['deviation']:.3f}"
    return f"{spread['mean']:.3f}{deviation}"


def _paired_lines(found: Comparison, names: list[str], baseline: str) -> list[str]:
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


def _job_lines(
    jobs: list[dict[str, object]], baseline: str, others: list[str], told: Callable[[str], str]
) -> list[str]:
    """Return the jobs whose hours differ most from the baseline's, by policy.

    `told`: names a job of which the trace has the id.
    """
    lines: list[str] = []
    for other in others:
        changed = [
            (then - now, job)
            for job in jobs
            if isinstance(now := job.get(baseline), float)
            and isinstance(then := job.get(other), float)
            and then != now
        ]
        changed.sort(key=lambda each: (-abs(each[0]), str(each[1]["job"])))
        if not changed:
            lines += ["", f"{other}: every job takes as long as under {baseline}."]
            continue
        rows = [
            [told(str(job["job"])), str(job["model"]), f"{difference:+.3f}"]
            for difference, job in changed[:_MOST_SHOWN]
        ]
        more = f", of {len(changed)} that differ" if len(changed) > len(rows) else ""
        lines += ["", f"{other}: the jobs that differ most{more} (h, first seed)"]
        lines.append(table_of(("job", "model", "difference"), rows))
    return lines


def _named(maat: Client, job_id: str) -> str:
    """Return a job's name and id; the id alone where the visitor may not see it, or it is gone."""
    from maat.client import ApiError

    try:
        return f"{maat.job(job_id)['name']} ({job_id})"
    except ApiError as refused:
        if refused.status != HTTPStatus.NOT_FOUND:
            raise
        return job_id
