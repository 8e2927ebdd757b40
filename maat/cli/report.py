"""`maat report`: a report for managers, printed or written as PDF, CSV or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zipfile import ZipFile

import typer

from maat.cli.moments import From, To
from maat.cli.output import say
from maat.cli.service import (
    DEFAULT_URL,
    AsJson,
    Url,
    client_of,
    show,
    table_of,
)
from maat.cli.tables import drawn
from maat.library.live import cluster_or_first
from maat.scheduling.errors import MaatError, ParameterError

if TYPE_CHECKING:
    from maat.api.reports import FigureOut, ReportOut
    from maat.client import Client

NAMED = {
    "week": "this-week",
    "last_week": "last-week",
    "month": "this-month",
    "last_month": "last-month",
}
OF_CLUSTER = typer.Option(help="Cluster id or name; default: the first.")
PdfFile = Annotated[Path | None, typer.Option("--pdf", help="Write it to this file as PDF.")]
CsvFile = Annotated[Path | None, typer.Option("--csv", help="Write it to this file as CSV.")]
JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json-file", help="Write it to this file as JSON: the bytes that its checksum is of."
    ),
]
PaperOfPdf = Annotated[str, typer.Option("--paper", help="Paper of the PDF: a4 or letter.")]


def report(
    week: Annotated[bool, typer.Option("--week", help="This week.")] = False,
    last_week: Annotated[bool, typer.Option("--last-week", help="Last week.")] = False,
    month: Annotated[bool, typer.Option("--month", help="This month.")] = False,
    last_month: Annotated[bool, typer.Option("--last-month", help="Last month.")] = False,
    start: From = None,
    end: To = None,
    tenant: Annotated[
        str | None, typer.Option(help="Of this tenant; default: of all that you may see.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep it: it gets an id.")] = False,
    pdf: PdfFile = None,
    csv: CsvFile = None,
    paper: PaperOfPdf = "a4",
    cluster: Annotated[str | None, OF_CLUSTER] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Report a period to managers; without one, this week.

    It answers: were we fair, were we busy, who waited, what did it cost, what should we buy. Weeks
    begin on Monday; times are the cluster's own, in UTC.
    """
    flags = {"week": week, "last_week": last_week, "month": month, "last_month": last_month}
    period = _period(flags, start, end)
    asked = {"period": period, "start": start, "end": end, "tenant": tenant}
    files = {"pdf": pdf, "csv": csv}
    with client_of(url) as maat:
        cluster_id = cluster_or_first(maat, cluster)
        if keep:
            made, contents = _kept(maat, cluster_id, asked, files, paper)
        else:
            made, contents = _made(maat, cluster_id, asked, files, paper, as_json=as_json)
    for form, content in contents.items():
        write_file(files[form], content)
    if as_json:
        show(made, True, "")
    elif not contents:
        print_report(made)


def _made(
    maat: Client,
    cluster_id: str,
    asked: dict[str, Any],
    files: dict[str, Path | None],
    paper: str,
    *,
    as_json: bool,
) -> tuple[Any, dict[str, bytes]]:
    """Ask once, so that all that is printed and written has the same figures."""
    forms = [form for form, path in files.items() if path is not None]
    if not forms:
        return maat.report(cluster_id, **asked), {}
    if len(forms) == 1 and not as_json:
        return None, {forms[0]: maat.report_file(cluster_id, forms[0], paper=paper, **asked)}
    with ZipFile(BytesIO(maat.report_files(cluster_id, paper=paper, **asked))) as archive:
        contents = {form: archive.read(f"report.{form}") for form in forms}
        return json.loads(archive.read("report.json")), contents


def _kept(
    maat: Client, cluster_id: str, asked: dict[str, Any], files: dict[str, Path | None], paper: str
) -> tuple[Any, dict[str, bytes]]:
    from maat.client.calls import period_fields

    row = maat.make_report({"cluster": cluster_id, **period_fields(asked)})
    contents = {
        form: maat.kept_report_file(row["id"], form, paper=paper)
        for form, path in files.items()
        if path is not None
    }
    typer.echo(f"kept as {row['id']}", err=True)
    return row["document"], contents


def reports(
    cluster: Annotated[str | None, OF_CLUSTER] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List kept reports, newest first."""
    with client_of(url) as maat:
        found = maat.reports(cluster=cluster_or_first(maat, cluster))
    rows = [
        [
            one["id"],
            one["made_at"],
            one["tenant"] or "all tenants",
            one["schedule"] or ("deleted" if one["schedule_id"] else "-"),
            one["title"],
        ]
        for one in found
    ]
    show(found, as_json, table_of(("id", "made_at", "tenant", "schedule", "title"), rows))


def _period(flags: dict[str, bool], start: str | None, end: str | None) -> str | None:
    given = [name for name, is_given in flags.items() if is_given]
    if len(given) > 1 or (given and (start or end)):
        raise ParameterError(
            "names more than one period",
            field="period",
            value=", ".join(f"--{name.replace('_', '-')}" for name in given),
            remedy="Give one of --week, --last-week, --month, --last-month, or --from with --to.",
        )
    return NAMED[given[0]] if given else None


def write_file(path: Path | None, content: bytes) -> None:
    """Write a file that the caller named. Raises MaatError."""
    if path is None:
        return
    try:
        path.write_bytes(content)
    except OSError as failed:
        raise MaatError(
            f"{path} cannot be written ({failed.strerror}). Name a file in a folder with space."
        ) from failed
    typer.echo(f"wrote {path}", err=True)


def print_report(made: ReportOut) -> None:
    for line in _lines(made):
        say(line)


def _lines(made: ReportOut) -> Iterator[str]:
    yield made["title"]
    yield made["summary"]
    yield ""
    tiles = [
        [one["label"], one["shown"], one["shown_change"], one["shown_before"]]
        for one in made["headlines"]
    ]
    yield drawn(("",), ("value", "change", "before"), tiles)
    for caveat in made["caveats"]:
        yield f"note: {caveat}"
    for figure in made["figures"]:
        yield ""
        yield from _figure(figure)


def _figure(figure: FigureOut) -> Iterator[str]:
    yield figure["question"]
    yield figure["answer"]
    if figure["shown"]:
        words = [column["label"] for column in figure["columns"] if column["is_text"]]
        numbers = [
            column["label"]
            if column["unit"] in (None, "s", "share", "jobs")
            else f"{column['label']} ({column['unit']})"
            for column in figure["columns"]
            if not column["is_text"]
        ]
        yield drawn(words, numbers, figure["shown"])
    for caveat in figure["caveats"]:
        yield f"note: {caveat}"
    yield f"formula: {figure['formula']}"
    yield f"window: {figure['window']}; policy: {', '.join(figure['policy_versions']) or 'none'}"
