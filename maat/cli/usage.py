"""`maat usage`, `maat prices` and what changes prices: GPU-hours and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.api.periods import PeriodName
from maat.api.usage import UsageBy
from maat.cli.moments import From, To
from maat.cli.service import (
    DEFAULT_URL,
    AsJson,
    Url,
    client_of,
    show,
    table_of,
)
from maat.library.live import cluster_or_first
from maat.scheduling.errors import ParameterError

if TYPE_CHECKING:
    from maat.api.usage import PriceOut, UsageFigures, UsageOut

PriceId = Annotated[str, typer.Argument(help="The price's id: see maat prices.")]
Cluster = Annotated[str | None, typer.Option(help="Cluster id or name; default: the first.")]


def usage(
    by: Annotated[UsageBy, typer.Option(help="What the rows are.")] = UsageBy.TENANT,
    week: Annotated[bool, typer.Option("--week", help="This week; the default.")] = False,
    month: Annotated[bool, typer.Option("--month", help="This month.")] = False,
    period: Annotated[
        PeriodName | None, typer.Option(help="A period of the cluster's calendar, in UTC.")
    ] = None,
    start: From = None,
    end: To = None,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """GPU-hours of a period: allocated, used, useful, lost, and what they cost."""
    named = _period(week=week, month=month, period=period)
    if as_json and as_csv:
        raise ParameterError(
            "asks for two formats", field="--csv", remedy="Give --json or --csv, not both."
        )
    with client_of(url) as maat:
        found = maat.usage(
            cluster=cluster, by=by.value, period=None if named is None else named.value,
            start=start, end=end,
        )  # fmt: skip
    if as_csv:
        from maat.client.usage_csv import usage_csv

        typer.echo(usage_csv(found), nl=False)
        return
    show(found, as_json, "\n".join(_report(found)))


def prices(cluster: Cluster = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List what GPU-hours cost, and from which day on."""
    with client_of(url) as maat:
        found = maat.prices(cluster_or_first(maat, cluster))
    columns = ("id", "gpu_type", "price_per_gpu_hour", "currency", "valid_from", "valid_until")
    rows = [
        ["-" if (value := one.get(column)) is None else str(value) for column in columns]
        for one in found
    ]
    show(
        found, as_json, table_of(columns, rows) if rows else "No price yet: maat price t4 0.35 EUR"
    )


def price(
    gpu_type: Annotated[str, typer.Argument(help="GPU type.")],
    amount: Annotated[str, typer.Argument(help="Per GPU-hour, such as 2.50.")],
    currency: Annotated[str, typer.Argument(help="ISO 4217, such as EUR.")],
    valid_from: Annotated[
        str | None,
        typer.Option("--from", help="First day, such as 2026-11-01; default: today, in UTC."),
    ] = None,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Set what a GPU-hour of a type costs from a day on. Earlier days cost what they cost."""
    body: Any = {"gpu_type": gpu_type, "price_per_gpu_hour": amount, "currency": currency}
    body |= {} if valid_from is None else {"valid_from": valid_from}
    with client_of(url) as maat:
        made = maat.add_price(cluster_or_first(maat, cluster), body)
    show(made, as_json, _price_line(made))


def change_price(
    price_id: PriceId,
    amount: Annotated[
        str | None, typer.Option(help="The right price per GPU-hour, such as 2.50.")
    ] = None,
    valid_from: Annotated[
        str | None, typer.Option("--from", help="The right first day, such as 2026-11-01.")
    ] = None,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Correct a price: its days cost what it says then, past ones too."""
    given = {"price_per_gpu_hour": amount, "valid_from": valid_from}
    body: Any = {field: value for field, value in given.items() if value is not None}
    if not body:
        raise ParameterError(
            "are missing", field="changes", remedy="Say what to correct: --amount or --from."
        )
    with client_of(url) as maat:
        where = cluster_or_first(maat, cluster)
        version = maat.price(where, price_id)["version"]
        changed = maat.change_price(where, price_id, body, version=version)
    show(changed, as_json, _price_line(changed))


def unprice(
    price_id: PriceId,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Remove a price: the one before it counts on."""
    with client_of(url) as maat:
        where = cluster_or_first(maat, cluster)
        known = maat.price(where, price_id)
        maat.remove_price(where, price_id, version=known["version"])
    show({"removed": known}, as_json, f"{price_id} is removed")


def _price_line(price: PriceOut) -> str:
    words = f"{price['price_per_gpu_hour']} {price['currency']} per GPU-hour"
    return f"{price['id']}: {price['gpu_type']} costs {words} from {price['valid_from']} on"


def _period(*, week: bool, month: bool, period: PeriodName | None) -> PeriodName | None:
    """Return the period by name; None leaves it to --from, or to the service's default."""
    given = [
        name
        for name, is_given in (
            (PeriodName.THIS_WEEK, week),
            (PeriodName.THIS_MONTH, month),
            (period, period is not None),
        )
        if is_given
    ]
    if len(given) > 1:
        raise ParameterError(
            "names a second period",
            field="--period",
            remedy="Give one of --week, --month, --period.",
        )
    return given[0] if given else None


def _report(found: UsageOut) -> list[str]:
    """Return the report as lines: the rows, the GPU types, and what the reader should know."""
    period = found["period"]
    partial = " (has not ended yet)" if period["is_partial"] else ""
    head = f"{found['cluster']}, {period['from']} to {period['to']}{partial}, by {found['by']}"
    columns = ("name", "allocated", "used", "useful", "restarts", "lost", "cost")
    rows = [
        _cells(row["name"], row["figures"], found["currency"])
        for row in (*found["rows"], *([found["others"]] if found["others"] else []))
    ]
    total = _cells("total", found["total"], found["currency"])
    types = [
        [
            one["gpu_type"],
            *(
                f"{hours:,.1f}"
                for hours in (
                    one["capacity_gpu_hours"],
                    one["allocated_gpu_hours"],
                    one["idle_gpu_hours"],
                    one["fragmented_gpu_hours"],
                    one["reserved_idle_gpu_hours"],
                )
            ),
            "-" if one["utilisation"] is None else f"{one['utilisation']:.1%}",
        ]
        for one in found["gpu_types"]
    ]
    of_types = ("gpu_type", "capacity", "allocated", "idle", "fragmented", "reserved idle", "use")
    lines = [head, "", "GPU-hours", table_of(columns, [*rows, total])]
    lines += ["", table_of(of_types, types)] if types else []
    return [*lines, *_waits(found), *_notes(found)]


def _cells(name: str, figures: UsageFigures, currency: str | None) -> list[str]:
    hours = (
        figures["allocated_gpu_hours"],
        figures["used_gpu_hours"],
        figures["useful_gpu_hours"],
        figures["restart_gpu_hours"],
        figures["lost_gpu_hours"],
    )
    cost = "-" if figures["cost"] is None else f"{figures['cost']} {currency}"
    return [name, *(f"{each:,.1f}" for each in hours), cost]


def _waits(found: UsageOut) -> list[str]:
    waits = found["waits"]
    if not waits["jobs"]:
        return ["", "No job was first started in this period."]
    named = ("mean", "median", "p90", "longest")
    texts = ", ".join(f"{name} {waits[f'{name}_seconds']:,.0f} s" for name in named)  # type: ignore[literal-required]
    return ["", f"{waits['jobs']} jobs first started, after a wait of: {texts}"]


def _notes(found: UsageOut) -> list[str]:
    hours = found["total"]["unpriced_gpu_hours"]
    if hours <= 0:
        return []
    return [f"{hours:,.1f} GPU-hours have no price: maat price GPU_TYPE 0.35 EUR"]
