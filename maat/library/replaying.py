"""`maat.replay`: what a live cluster has had, played again by its service under other policies."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from maat.client.shapes import shape_in_service
from maat.laboratory.comparison import Contestant
from maat.laboratory.figures import FIGURES, RunFigures, never_run
from maat.library.comparing import read_contestants
from maat.library.durations import seconds_of
from maat.library.inputs import read_seeds
from maat.library.live import client_or_here, cluster_or_first
from maat.library.played import PlayedRun
from maat.library.policies import GivenPolicy
from maat.library.progress import Bar
from maat.library.study_plots import ComparisonPlots
from maat.library.study_tables import DIFFERENCES, difference_row, kind_of, mean_kinds
from maat.library.tables import Table
from maat.scheduling.errors import InputError, MaatError, ParameterError

if TYPE_CHECKING:
    from maat.api import simulation_answers as answers
    from maat.api.clusters import ClusterOut
    from maat.client import Client

Begun = Callable[["answers.SimulationOut", int], object]


def replay(
    policies: str | Sequence[GivenPolicy],
    *,
    client: Client | None = None,
    cluster: str | None = None,
    since: str = "24h",
    until: str = "0s",
    placer: str | Sequence[str] | None = None,
    seeds: Iterable[int] = (0,),
    progress: bool = True,
) -> Replay:
    """Play a live cluster's last hours again under other policies, and compare them job by job.

    The cluster's own policy is always played too, and is what the others are compared with. The
    service plays them; nothing on the cluster changes. Ctrl+C cancels.

    Raises InputError, which names the argument, its value and a remedy, for what cannot be played,
    ApiError for what the service refuses, Unreachable if it does not answer, and MaatError if it
    was cancelled or failed there.

    Args:
        policies: Names and `maat.policies.Sia(p=-1)`; not your own, which the service does not have.
        client: Of the service, `maat.Client(url, token=...)`; None: the one on this machine.
        cluster: Id or name; None: the first.
        since: How long ago the window begins, in cluster time: `24h`, `90m`, `7d`.
        until: How long ago it ends.
        placer: Name or names, each with every policy; None: each policy's own.
        seeds: Of every run.
        progress: Whether to show a progress bar, on a terminal or in a notebook.

    >>> import maat
    >>> client = maat.Client("http://127.0.0.1:9")
    >>> maat.replay("fifo", client=client, since="soon")
    Traceback (most recent call last):
    ...
    maat.scheduling.errors.ParameterError: since: is no duration (got 'soon'). Write for example 24h, 90m or 7d.
    """  # noqa: E501
    wanted = read_contestants(policies, placer)
    window, numbers = read_window(since, until), read_seeds(seeds)
    with client_or_here(client) as maat:
        return play_again(
            maat,
            wanted,
            cluster=cluster,
            window=window,
            since=since,
            own_placers=placer is None,
            seeds=numbers,
            quiet=not progress,
        )


def read_window(since: str, until: str) -> dict[str, float]:
    """Return the window as a trace's fields. Raises ParameterError."""
    begins, ends = seconds_of(since, field="since"), seconds_of(until, field="until")
    if begins <= ends:
        raise ParameterError(
            "is no longer ago than the window's end",
            field="since",
            value=since,
            remedy=f"Give more than {until}, or a smaller until.",
        )
    return {"since_seconds_ago": begins} | ({"until_seconds_ago": ends} if ends > 0 else {})


def play_again(
    maat: Client,
    wanted: Sequence[Contestant],
    *,
    cluster: str | None,
    window: Mapping[str, float],
    since: str,
    own_placers: bool,
    seeds: Sequence[int],
    quiet: bool,
    on_begun: Begun = lambda _begun, _runs: None,
) -> Replay:
    """Let the service play a window under the cluster's policy and the wanted ones.

    `own_placers`: whether each has its policy's own placer. `on_begun`: called with the simulation
    and the number of its runs once it is accepted.
    """
    live = maat.cluster(cluster_or_first(maat, cluster))
    runs = _runs(live, wanted, own_placers=own_placers)
    asked = [run | {"seed": seed} for run in runs for seed in seeds]
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
    on_begun(begun, len(asked))
    return read_replay(maat, _played(maat, begun, quiet=quiet))


def _runs(
    live: ClusterOut, wanted: Sequence[Contestant], *, own_placers: bool
) -> list[dict[str, Any]]:
    """Return the cluster's own run, then those that differ from it. Raises InputError."""
    names = ("policy", "policy_parameters", "placer", "placer_parameters")
    runs: list[dict[str, Any]] = [{name: live[name] for name in names}]  # type: ignore[literal-required]
    for each in wanted:
        run = _run_of(each)
        is_live = each.policy == live["policy"] and own_placers
        if not (is_live and len(run) == 3 and not each.policy_parameters) and run not in runs:
            runs.append(run)
    if len(runs) == 1:
        raise ParameterError(
            "is the policy that the cluster has",
            field="policy",
            value=",".join(each.policy for each in wanted),
            remedy=f"Name another policy than {live['policy']}, or set a parameter of it.",
        )
    return runs


def _run_of(who: Contestant) -> dict[str, Any]:
    if who.own_policy is not None:
        raise InputError(
            "is your own, which the service does not have",
            field="policy",
            value=who.policy,
            remedy="Compare it on a trace, with maat.compare.",
        )
    if who.tuned is not None:
        raise InputError(
            "tunes its jobs, but jobs of a cluster are what their owners declared",
            field="policy",
            value=who.name,
            remedy="Leave tuned out, or compare it on a trace, with maat.compare.",
        )
    rounds = {} if who.round_seconds is None else {"round_seconds": who.round_seconds}
    run = {"policy": who.policy, "policy_parameters": dict(who.policy_parameters)}
    return {**run, "placer": who.placer or None, **rounds}  # the service has one that suits


def _sharing(live: ClusterOut) -> dict[str, Any]:
    """Return how jobs share GPUs on the cluster; nothing where each GPU runs one."""
    if live["jobs_per_gpu"] == 1:
        return {}
    return {"jobs_per_gpu": live["jobs_per_gpu"], "interference": live["interference"]}


def _bounds(live: ClusterOut) -> dict[str, Any]:
    """Return how long jobs stay where they are on the cluster."""
    names = ("least_stay_seconds", "most_moves_per_hour")
    return {name: value for name in names if (value := dict(live)[name]) is not None}


def _shape(maat: Client, live: ClusterOut) -> str:
    shape = shape_in_service(maat.every_node(live["id"]))
    if not shape:
        raise ParameterError(
            "has no GPU in service",
            field="cluster",
            value=live["name"],
            remedy="Return a node to service: maat undrain NODE.",
        )
    return shape


def _played(maat: Client, begun: answers.SimulationOut, *, quiet: bool) -> answers.SimulationOut:
    """Follow a simulation to its end; Ctrl+C cancels it. Raises MaatError if it fails."""
    with Bar("replay", quiet=quiet) as bar:
        operation = maat.follow(
            begun["operation_id"],
            tell=lambda now: bar.show(int(now["done"]), int(now["total"]), now["message"]),
        )
    if operation["state"] != "succeeded":
        detail = (operation["error"] or {}).get("detail", "It was cancelled.")
        raise MaatError(f"The replay did not end: {detail}")
    return maat.simulation(begun["id"])


def read_replay(maat: Client, done: answers.SimulationOut) -> Replay:
    """Return a simulation that the service has finished, with the results of its runs."""
    results = {run["id"]: maat.run_result(done["id"], run["id"]) for run in done["runs"]}
    return Replay(done, maat.comparison(done["id"]), results)


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """What a service played: tables of runs, means, differences and jobs, like a Comparison's.

    `simulation`, `comparison` and `results` (by id of a run) are the service's answers. In a
    notebook it shows the means and the differences. Made by `maat.replay`.

    >>> import maat
    >>> found = maat.replay(["fifo", "srtf"], client=client)  # a client of a running service
    >>> found.contestants, found.baseline
    (('sia + whole-node', 'fifo + packed-sticky', 'srtf + packed-sticky'), 'sia + whole-node')
    >>> found.means["jobs"], found.runs["jobs"], found.differences["jobs"]
    ([3.0, 3.0, 3.0], [3, 3, 3], [3, 3])
    >>> found.jobs.columns, found.changed("fifo + packed-sticky").columns
    (('contestant', 'seed', 'job', 'model', 'jct_hours'), ('job', 'model', 'difference_hours'))
    >>> found.plot.jct_cdf().layout.yaxis.title.text, found.window[0][:7]
    ('Share of jobs', '3 jobs ')
    >>> len(found.kept()), [line.name for line in found.plot.gpus_over_time().data][0]
    (3, 'sia + whole-node')
    >>> found.run("fifo + packed-sticky").plot.gpus_over_time().layout.yaxis.title.text
    'GPUs in use'
    >>> found.never_run, found.notes, list(found.to_dict())
    ((), (), ['simulation', 'comparison', 'jobs'])
    """

    simulation: answers.SimulationOut
    comparison: answers.Comparison
    results: Mapping[str, answers.RunResult]

    @property
    def contestants(self) -> tuple[str, ...]:
        """The names of what was played, in order."""
        return tuple(each["name"] for each in self.comparison["contestants"])

    @property
    def baseline(self) -> str:
        """The name of what the others are compared with: the cluster's own policy."""
        return self.contestants[self.comparison["baseline"]]

    @cached_property
    def runs(self) -> Table:
        """One row per run: contestant, policy, placer, seed, and the known figures."""
        known = [_figures(run, self.results[run["id"]]) for run in self.simulation["runs"]]
        names = [name for name in FIGURES if any(name in figures for figures in known)]
        kinds = {n: kind_of([figures[n] for figures in known if n in figures]) for n in names}
        return Table(
            {"contestant": str, "policy": str, "placer": str, "seed": int, **kinds},
            [
                (
                    *(run["name"], run["policy"], run["placer"], run["seed"]),
                    *(figures.get(name) for name in names),
                )
                for run, figures in zip(self.simulation["runs"], known, strict=True)
            ],
        )

    @cached_property
    def means(self) -> Table:
        """One row per contestant: the mean of each figure, and its deviation (`_deviation`)."""
        contestants = self.comparison["contestants"]
        names = [name for name in FIGURES if any(name in each["figures"] for each in contestants)]
        rows = []
        for each in contestants:
            row: list[Any] = [each["name"], each["policy"], each["placer"]]
            for name in names:
                spread = each["figures"].get(name)
                row += [None, None] if spread is None else [spread["mean"], spread["deviation"]]
            rows.append(row)
        return Table(mean_kinds(names), rows)

    @cached_property
    def differences(self) -> Table:
        """One row per other contestant: JCT against the baseline, job by job.

        `_low`, `_high`: the 95 % interval, over what `basis` says (seeds or jobs).
        """
        names = self.contestants
        return Table(
            DIFFERENCES,
            [
                difference_row({**each, "contestant": names[each["contestant"]]}, self.baseline)
                for each in self.comparison["paired"]
            ],
        )

    @cached_property
    def jobs(self) -> Table:
        """One row per job of every run: contestant, seed, job, model, JCT in hours.

        `job`: its id on the cluster, or a key such as `other-1` of another tenant's. Without hours
        it did not finish.
        """
        return Table(
            {"contestant": str, "seed": int, "job": str, "model": str, "jct_hours": float},
            [
                (run["name"], run["seed"], job["name"], job["model"], _hours(job["jct"]))
                for run in self.simulation["runs"]
                for job in self.results[run["id"]]["jobs"]
            ],
        )

    def changed(self, contestant: str) -> Table:
        """Return one row per job that takes longer or shorter than under the baseline.

        The largest difference of hours first, of the first seed. Raises InputError for what was
        not played.
        """
        ours, theirs = self._first_hours(contestant), self._first_hours(self.baseline)
        rows = [
            (job, model, hours - before)
            for job, (model, hours) in ours.items()
            if hours is not None
            and (before := theirs.get(job, ("", None))[1]) is not None
            and hours != before
        ]
        rows.sort(key=lambda row: (-abs(row[2]), row[0]))
        return Table({"job": str, "model": str, "difference_hours": float}, rows)

    def _first_hours(self, contestant: str) -> dict[str, tuple[str, float | None]]:
        return {
            job["name"]: (job["model"], _hours(job["jct"]))
            for job in self._first(contestant)[1]["jobs"]
        }

    def _first(self, contestant: str) -> tuple[answers.RunOut, answers.RunResult]:
        for run in self.simulation["runs"]:
            if run["name"] == contestant:
                return run, self.results[run["id"]]
        raise InputError(
            "was not played",
            field="contestant",
            value=contestant,
            remedy=f"Use one of: {', '.join(self.contestants)}.",
        )

    def run(self, contestant: str) -> PlayedRun:
        """Return a contestant's run of the first seed, with tables and figures like a Run's.

        Raises InputError for what was not played.
        """
        run, result = self._first(contestant)
        return PlayedRun(run["name"], result, run["seed"])

    def kept(self) -> tuple[PlayedRun, ...]:
        """Return every run, in order, with tables and figures like a Run's."""
        return tuple(
            PlayedRun(run["name"], self.results[run["id"]], run["seed"])
            for run in self.simulation["runs"]
        )

    @property
    def plot(self) -> ComparisonPlots:
        """The figures: `found.plot.jct_cdf()`, `found.plot.gpus_over_time()` and others."""
        return ComparisonPlots(self)

    @cached_property
    def window(self) -> tuple[str, ...]:
        """Which jobs were played, and as what, as sentences."""
        window = self.simulation["request"]["traces"][0]["window"]
        played = window["begun_before"] + window["waiting_before"] + window["submitted"]
        about = [
            f"{played} jobs of {window['start']} to {window['end']} (cluster time): "
            f"{window['submitted']} came in it, {window['waiting_before']} waited when it began, "
            f"{window['begun_before']} had begun and have the work that was left.",
            "All runs are simulations that begin with free GPUs; the live policy is simulated too.",
        ]
        kinds = {
            "cut_short": "were cancelled or failed: they have the work that they had done until "
            "then",
            "as_recorded": "are commands: they run for as long as they did, on as many GPUs",
            "without_work": "are left out: nothing is known of their work in the window",
        }
        return (*about, *(f"{window[k]} {words}." for k, words in kinds.items() if window[k]))

    @cached_property
    def never_run(self) -> tuple[str, ...]:
        """A sentence for each contestant under which jobs can never run."""
        contestants = self.comparison["contestants"]
        means = [{name: of["mean"] for name, of in each["figures"].items()} for each in contestants]
        return tuple(
            note
            for each, figures in zip(contestants, means, strict=True)
            for note in never_run([RunFigures(each["policy"], each["placer"], figures)])
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What else a reader of the figures should know, as sentences, each once."""
        summaries = [
            run["summary"] for run in self.simulation["runs"] if run["summary"] is not None
        ]
        others = (
            note
            for summary in summaries
            for note in summary["notes"][1 if summary["cannot_run"] else 0 :]
        )
        return tuple(note for note in dict.fromkeys(others) if note not in self.never_run)

    def to_dict(self) -> dict[str, Any]:
        """Return what `maat replay --json` prints: simulation, comparison, and jobs by policy."""
        hours: dict[str, dict[str, object]] = {}
        for name in self.contestants:
            for job, (model, value) in self._first_hours(name).items():
                hours.setdefault(job, {"job": job, "model": model})[name] = value
        return {
            "simulation": self.simulation,
            "comparison": self.comparison,
            "jobs": list(hours.values()),
        }

    def __repr__(self) -> str:
        return f"{', '.join(self.contestants)}: {self.simulation['name']}"

    def _repr_html_(self) -> str:
        said = (*self.window, *self.never_run, *self.notes)
        notes = "".join(f"<p>{html.escape(each)}</p>" for each in said)
        return f"{self.means.as_html()}{self.differences.as_html()}{notes}"


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 3600.0


def _figures(run: answers.RunOut, result: answers.RunResult) -> dict[str, float | int | bool]:
    """Return the figures of a run that tables have."""
    fair = result["fairness"]
    rho = {"worst_rho": fair["worst_rho"], "unfair_fraction": fair["unfair_fraction"]}
    found: Mapping[str, Any] = {**(run["summary"] or {}), **rho}
    return {name: found[name] for name in FIGURES if isinstance(found.get(name), int | float)}
