"""`maat kept-report` and `maat delete-report`: reports that were kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from maat.cli.report import CsvFile, JsonFile, PaperOfPdf, PdfFile, print_report, write_file
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show

if TYPE_CHECKING:
    from maat.api.reports import ReportOut

ReportId = Annotated[str, typer.Argument(help="The report's id, from `maat reports`.")]


def kept_report(
    report: ReportId,
    pdf: PdfFile = None,
    csv: CsvFile = None,
    json_file: JsonFile = None,
    paper: PaperOfPdf = "a4",
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Print a kept report, or write it to files. They are the same bytes each time."""
    files: dict[str, Path | None] = {"pdf": pdf, "csv": csv, "json": json_file}
    wanted = {form: path for form, path in files.items() if path is not None}
    with client_of(url) as maat:
        kept = maat.kept_report(report)
        contents = {form: maat.kept_report_file(report, form, paper=paper) for form in wanted}
    for form, path in wanted.items():
        write_file(path, contents[form])
    if as_json:
        show(kept["document"], True, "")
    elif not wanted:
        print_report(cast("ReportOut", kept["document"]))


def delete_report(
    report: ReportId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before.")] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Delete a kept report, for everybody. It asks before."""
    with client_of(url) as maat:
        title = maat.kept_report(report)["title"]
        if not yes:
            typer.confirm(f"delete {report}, {title}?", abort=True, err=True)
        maat.delete_report(report)
    show({"removed": report}, as_json, f"{report} is deleted")
