"""`maat forecast` and `maat calibration`: when jobs start and end, and what changes would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.completion import job_names
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, job_id_of, show, table_of
from maat.cli.stay_options import LeastStay, MostMoves
from maat.library.durations import bounds_of
from maat.library.what_if import ask, changes_of
from maat.scheduling.errors import ParameterError
from maat.vocabulary import PromiseKind

if TYPE_CHECKING:
    from maat.api.forecasts import (
        CalibrationOut,
        ForecastOut,
        ForecastTimes,
        JobForecastOut,
        QuantilesOut,
        SideOut,
    )
    from maat.api.operations import OperationOut
    from maat.client import Client

MOST_SLOWED = 10
_SIDES = (
    *("", "jobs", "waiting: mean start", "waiting: mean end", "all: mean end", "last end"),
    "later than 14 days",
)
_NEAR = ("P50 of", "known", "within 1 min", "within 10 min", "median error", "median P90 - P50")
_SLOWED = ("job", "ends later by", "at {}", "in draws")


def forecast(
    job: Annotated[
        str | None,
        typer.Argument(
            help="The job's id; or its name, if no other job has it.", autocompletion=job_names
        ),
    ] = None,
    drain: Annotated[
        list[str] | None,
        typer.Option("--drain", metavar="NODE", help="What if this node is drained? Repeatable."),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            "--add", metavar="SHAPE", help="What if nodes are added, such as a100=2x8? Repeatable."
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="What if this policy decides from now on?")
    ] = None,
    placer: Annotated[
        str | None, typer.Option(help="What if this placer places from now on?")
    ] = None,
    least_stay_seconds: LeastStay = None,
    most_moves_per_hour: MostMoves = None,
    cluster: Annotated[
        str | None, typer.Option(help="Cluster id or name; default: the first.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show when a job starts and ends, or what a change of the cluster would do to all jobs.

    Nothing is changed. For a job that is not submitted yet: maat submit ... --forecast.
    """
    changes = changes_of(drain or [], add or [], policy, placer)
    changes |= bounds_of(least_stay_seconds, most_moves_per_hour)
    if (job is None) == (not changes):
        raise ParameterError(
            "is missing" if job is None else "is given beside a change of the cluster",
            field="job",
            value=job,
            remedy="Name a job; or ask what if, with --drain, --add, --policy, --placer, "
            "--least-stay-seconds or --most-moves-per-hour.",
        )
    with client_of(url) as maat:
        if job is not None:
            found = maat.job_forecast(job_id_of(maat, job))
            show(found, as_json, "\n".join(job_lines(found)))
            return
        named = {} if cluster is None else {"cluster_id": cluster}
        answer_question(maat, {"changes": changes, **named}, as_json)


def calibration(
    cluster: Annotated[
        str | None, typer.Option(help="Cluster id or name; default: the first.")
    ] = None,
    kind: Annotated[
        PromiseKind | None, typer.Option(help="Promises of these moments; default: all.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show what forecasts were worth: how often what was promised came in time, and how near."""
    with client_of(url) as maat:
        found = maat.calibration(cluster=cluster, kind=None if kind is None else kind.value)
    show(found, as_json, "\n".join(calibration_lines(found)))


def answer_question(maat: Client, body: dict[str, Any], as_json: bool) -> None:
    """Ask, follow the operation, and print the answer. Ctrl+C cancels it.

    What the first draw says is told before, as progress is. Raises MaatError if it fails or is
    cancelled.
    """
    told, first = Told(), FirstAnswer(maat)

    def tell(operation: OperationOut, forecast_id: str) -> None:
        told.tell(operation)
        first.tell(forecast_id)

    found = ask(maat, body, tell=tell).answer
    show(found, as_json, "\n".join(answer_lines(found)))


class Told:
    """Tells how far an operation is, each time that it is further."""

    def __init__(self) -> None:
        self._last = ""

    def tell(self, operation: OperationOut) -> None:
        if operation["message"] != self._last:
            self._last = operation["message"]
            typer.echo(self._last, err=True)


class FirstAnswer:
    """Tells the first answer to a question, as soon as there is one."""

    def __init__(self, maat: Client) -> None:
        self._maat, self._is_told = maat, False

    def tell(self, forecast_id: str) -> None:
        if self._is_told:
            return
        found = self._maat.forecast(forecast_id)
        if found["draws"]:
            self._is_told = True
            lines = ["", "A first answer; a better one follows.", *answer_lines(found), ""]
            typer.echo("\n".join(lines), err=True)


def job_lines(found: JobForecastOut) -> list[str]:
    """Return the forecast of a job in words, with the GPUs it would hold."""
    lines = [found["sentence"]]
    if found["times"] is not None:
        lines += [
            _grounds(found["times"]),
            *_allocations(found["times"]),
            f"From {found['draws']} draw{'' if found['draws'] == 1 else 's'}, {found['made_at']}.",
        ]
    return lines


def answer_lines(found: ForecastOut) -> list[str]:
    """Return the answer to a question in words and tables."""
    from maat.api.forecasts import late_quantile, means_in_words

    draws = found["draws"] or 0
    lines = [] if found["job"] is None else _times_lines(found["job"], draws)
    slowed = found["slowed"] or []
    if slowed:
        heads = tuple(head.format(late_quantile(draws)) for head in _SLOWED)
        lines += [table_of(heads, [_slowed_row(row) for row in slowed[:MOST_SLOWED]])]
    else:
        lines.append("No other job ends earlier or later.")
    lines += found["notes"] or []
    if len(slowed) > MOST_SLOWED:
        lines.append(f"and {len(slowed) - MOST_SLOWED} other jobs: --json has all.")
    if found["before"] is not None and found["after"] is not None:
        rows = [_side_row("as it is", found["before"]), _side_row("as asked", found["after"])]
        lines += ["", *_decided_by(found["before"], found["after"]), table_of(_SIDES, rows)]
        lines += [words] if (words := means_in_words(found["after"])) else []
    return [*lines, f"From {draws} draw{'' if draws == 1 else 's'} of each, by P50."]


def calibration_lines(found: CalibrationOut) -> list[str]:
    """Return the shares of promises that were held, and how near they came, as tables."""
    rows = [
        (
            one["quantity"],
            f"P{one['quantile'] * 100:.0f}",
            str(one["promises"]),
            _share(one["held"]),
        )
        for one in found["bins"]
    ]
    near = [
        (
            one["quantity"],
            str(one["promises"]),
            _share(one["within_1_minute"]),
            _share(one["within_10_minutes"]),
            _mean(one["median_error_seconds"]),
            _mean(one["median_width_seconds"]),
        )
        for one in found["sharpness"]
    ]
    return [
        table_of(("promise", "quantile", "come due", "held"), rows),
        "",
        table_of(_NEAR, near),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _times_lines(times: ForecastTimes, draws: int) -> list[str]:
    lines = []
    if times["start"] is not None:
        lines.append(f"It would start {_when(times['start'], draws)},")
    lines.append(f"{'and end' if lines else 'It would end'} {_when(times['end'], draws)}.")
    return [*lines, _grounds(times), *_allocations(times)]


def _grounds(times: ForecastTimes) -> str:
    from maat.api.forecasts import grounds_in_words
    from maat.vocabulary import ForecastBasis

    return grounds_in_words(ForecastBasis(times["basis"]), times["precedents"])


def _when(quantiles: QuantilesOut, draws: int) -> str:
    from maat.api.forecasts import is_first_guess, p90_probability

    p50, p90 = (_duration(quantiles["p50_seconds"]), _duration(quantiles["p90_seconds"]))
    if is_first_guess(draws):
        return f"in about {p50} (a first guess)"
    return f"in about {p50}, with probability {p90_probability(draws):.2g} in at most {p90}"


def _allocations(times: ForecastTimes) -> list[str]:
    return [
        f"  from {one['from_at']}: "
        + (f"{one['gpu_count']} × {one['gpu_type']}" if one["gpu_count"] else "no GPUs")
        for one in times["allocations"]
    ]


def _slowed_row(row: Any) -> tuple[str, ...]:
    name = row["job_id"] if row["name"] is None else f"{row['name']} ({row['job_id']})"
    return (
        name,
        _duration(row["p50_seconds"]),
        _duration(row["p90_seconds"]),
        f"{100 * row['share']:.0f} %",
    )


def _decided_by(before: SideOut, after: SideOut) -> list[str]:
    """Name what decides and places, and what bounds moves, as far as it is not the same."""
    from maat.api.move_words import bound_words

    sides = (before, after)
    pairs = (
        [f"{side['policy']} with {side['placer']}" for side in sides],
        [bound_words(side["least_stay_seconds"], side["most_moves_per_hour"]) for side in sides],
    )
    return [f"As it is: {one}. As asked: {other}." for one, other in pairs if one != other]


def _side_row(name: str, side: SideOut) -> tuple[str, ...]:
    means = map(
        _mean,
        (
            side["mean_start_seconds"],
            side["mean_end_of_waiting_seconds"],
            side["mean_end_seconds"],
        ),
    )
    last = _duration(side["last_end_seconds"]) if side["jobs"] else "-"
    return (name, str(side["jobs"]), *means, last, str(side["later"]))


def _mean(seconds: float | None) -> str:
    """`-` where there is nothing to take a mean of: no job waits, or none has an end."""
    return "-" if seconds is None else _duration(seconds)


def _duration(seconds: float | None) -> str:
    """`1.5 h`, `12 min`, `-30 s`; `more than 14 days` for None."""
    if seconds is None:
        return "more than 14 days"
    if abs(seconds) < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if abs(seconds) < 5400 else f"{seconds / 3600:.1f} h"
