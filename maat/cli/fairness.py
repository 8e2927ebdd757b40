"""`maat fairness` and `maat rho`: were tenants and jobs treated alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from maat.cli.moments import From, To
from maat.cli.numbers import whole_option
from maat.cli.service import (
    DEFAULT_URL,
    AsJson,
    JobNamed,
    Url,
    client_of,
    job_id_of,
    show,
    table_of,
)
from maat.scheduling.errors import ParameterError
from maat.vocabulary import FairnessState

if TYPE_CHECKING:
    from maat.api.fairness import (
        FairnessOut,
        JobFairnessOut,
        RhoFiguresOut,
        SharesOut,
        TenantShareOut,
        WhyOut,
    )
    from maat.client import Client
    from maat.client.calls import PeriodAsked

_OTHERS = "other tenants"
_TENANTS = ("tenant", "jobs", "mean", "median", "p90", "worst", "rho > 1")
_WORST = ("job", "name", "tenant", "rho", "JCT h", "alone h", "why")
_SHARES = ("tenant", "deserved", "actual", "could use")
MOST_WORST = MOST_TENANTS = 500


def fairness(
    cluster: Annotated[
        str | None, typer.Option(help="Cluster id or name; default: the first.")
    ] = None,
    week: Annotated[bool, typer.Option("--week", help="This week: the default.")] = False,
    period: Annotated[
        str | None, typer.Option(help="A period by name, such as last-week or this-month.")
    ] = None,
    start: From = None,
    end: To = None,
    worst: Annotated[
        int,
        whole_option("--worst", least=1, most=MOST_WORST, help="Show so many of the worst jobs."),
    ] = 5,
    most: Annotated[
        int,
        whole_option(
            "--most", least=1, most=MOST_TENANTS, help="Show so many tenants, the largest ones."
        ),
    ] = 20,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Work rho of the period out again, then end.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show finish-time fairness: rho by tenant, the worst jobs, and shares of the GPUs."""
    asked = _asked(cluster, week=week, period=period, start=start, end=end)
    with client_of(url) as maat:
        if recompute:
            _recompute(maat, asked, as_json)
            return
        found = maat.fairness(points=0, most=most, **asked)
        cases = maat.worst_fairness(limit=worst, **asked)
        shares = maat.shares(most=most, **asked)
    shown = [*_summary(found), *_worst_lines(cases), *_share_lines(shares)]
    show({"fairness": found, "worst": cases, "shares": shares}, as_json, "\n".join(shown))


def rho(
    job: JobNamed,
    skip: Annotated[
        bool, typer.Option("--skip", help="It need not be worked out: leave it, and end.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show finish-time fairness of a job that has ended."""
    with client_of(url) as maat:
        job_id = job_id_of(maat, job)
        found = maat.skip_fairness(job_id) if skip else maat.job_fairness(job_id)
    show(found, as_json, "\n".join(_job_lines(found)))


def _asked(
    cluster: str | None, *, week: bool, period: str | None, start: str | None, end: str | None
) -> PeriodAsked:
    if week and (period or start or end):
        raise ParameterError(
            "names a period beside another one",
            field="week",
            value=True,
            remedy="Give --week, or --period, or --from and --to.",
        )
    return {
        "cluster": cluster,
        "period": "this-week" if week else period,
        "start": start,
        "end": end,
    }


def _recompute(maat: Client, asked: PeriodAsked, as_json: bool) -> None:
    from maat.client.calls import period_fields

    operation = maat.recompute_fairness(period_fields(asked))
    text = f"{operation['id']}: {operation['message']} `maat fairness` shows what is ready."
    show(operation, as_json, text)


def _summary(found: FairnessOut) -> list[str]:
    period, progress = found["period"], found["progress"]
    by_state = progress["by_state"]
    done = by_state[FairnessState.DONE]
    open_ = by_state[FairnessState.WAITING] + by_state[FairnessState.WORKING]
    lines = [
        f"Jobs that ended from {period['from']} to {period['to']}, cluster time: "
        f"{progress['total']}; {done} have a rho"
        + (f", {open_} are being worked out." if open_ else ".")
    ]
    for left in found["without_rho"]:
        lines.append(f"  {left['jobs']} without: {left['sentence']}")
    if found["all"]["jobs"]:
        rows = [
            _figures(one["tenant"] or _OTHERS, one["figures"], few=one["is_few"])
            for one in found["tenants"]
        ]
        lines += ["", table_of(_TENANTS, [*rows, _figures("all", found["all"], few=False)])]
        if found["tenants_together"]:
            lines.append(
                f"{_OTHERS}: {found['tenants_together']} of yours to see; --most shows more"
            )
        lines.append(f"{found['formula']['text']} (version {found['formula']['version']})")
        if any(one["is_few"] for one in found["tenants"]):
            lines.append("* few jobs: single cases rather than a distribution")
    return lines


def _figures(name: str, figures: RhoFiguresOut, *, few: bool) -> list[str]:
    unfair = figures["unfair_share"]
    return [
        f"{name}*" if few else name,
        str(figures["jobs"]),
        *(rho_words(figures[key]) for key in ("mean", "median", "p90", "worst")),
        "-" if unfair is None else f"{unfair:.0%}",
    ]


def _worst_lines(cases: list[JobFairnessOut]) -> list[str]:
    if not cases:
        return []
    rows = [
        [
            one["job_id"],
            one["job_name"],
            one["tenant"],
            rho_words(one["rho"]),
            _hours(one["jct_seconds"]),
            _hours(one["baseline_seconds"]),
            "" if one["why"] is None else _why(one["why"]),
        ]
        for one in cases
    ]
    return ["", "Worst:", table_of(_WORST, rows)]


def _share_lines(found: SharesOut) -> list[str]:
    whole = found["whole"]
    if whole is None or not whole["tenants"]:
        return []
    rows = [
        [one["tenant"] or _OTHERS, *(f"{share:.1%}" for share in _shares_of(one))]
        for one in whole["tenants"]
    ]
    jain = whole["jain_index"]
    lines = ["", "Shares of the GPUs in service:", table_of(_SHARES, rows)]
    return lines if jain is None else [*lines, f"Jain's index of actual / deserved: {jain:.3f}"]


def _shares_of(one: TenantShareOut) -> tuple[float, float, float]:
    return one["deserved"], one["actual"], one["demanded"]


def _job_lines(found: JobFairnessOut) -> list[str]:
    lines = [f"{found['job_name']}: {found['state']}. {found['sentence']}"]
    if found["rho"] is None:
        return lines
    lines.append(
        f"rho {rho_words(found['rho'])}: JCT {_hours(found['jct_seconds'])} h, alone "
        f"{_hours(found['baseline_seconds'])} h; {rho_words(found['contention'])} active jobs "
        f"on average; {found['rule']}, version {found['formula_version']}"
    )
    for kind, seconds in (found["isolated_seconds"] or {}).items():
        lines.append(f"  alone on {kind}: {_hours(seconds)} h")
    why = found["why"]
    if why is not None:
        lines.append(_why(why))
        lines += [f"  {_hours(r['seconds'])} h: {r['sentence']}" for r in why["reasons"]]
    return lines


def _why(why: WhyOut) -> str:
    return " ".join(part for part in (why["cause_sentence"], why["sentence"]) if part)


def rho_words(value: float | None) -> str:
    """Write a rho, or a number of jobs beside it, with two decimals as a report does."""
    return "-" if value is None else f"{value:.2f}"


def _hours(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds / 3600:.2f}"
