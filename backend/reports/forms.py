"""The forms of a report as files: their bytes, names and media types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import BytesIO
from typing import Any, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from backend.reports.csv_form import csv_of
from backend.reports.models import Report
from backend.reports.pdf.kept import Kept
from backend.reports.service import canonical
from maat.api.fields import rfc3339
from maat.api.periods import days_named
from maat.api.reports import Paper, ReportForm, ReportOut

MEDIA_TYPES = {
    ReportForm.PDF: "application/pdf",
    ReportForm.CSV: "text/csv; charset=utf-8",
    ReportForm.JSON: "application/json",
}


@dataclass(frozen=True)
class ReportFile:
    name: str
    media_type: str
    content: bytes


def file_of(
    report: ReportOut, form: ReportForm, *, paper: Paper = Paper.A4, kept: Kept | None = None
) -> ReportFile:
    """Write a report in a form. A kept report always gives the same bytes."""
    if form is ReportForm.PDF:
        from backend.reports.pdf.document import pdf_of  # a library that only this form needs

        content = pdf_of(report, paper=paper, kept=kept)
    elif form is ReportForm.CSV:
        content = csv_of(report)
    else:
        content = canonical(report)
    return ReportFile(f"{name_of(report)}.{form.value}", MEDIA_TYPES[form], content)


def archive_of(report: ReportOut, *, paper: Paper = Paper.A4) -> ReportFile:
    """Write a report in every form, in one ZIP archive: all of the same figures."""
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for form in ReportForm:
            archive.writestr(
                ZipInfo(f"report.{form.value}"), file_of(report, form, paper=paper).content
            )
    return ReportFile(f"{name_of(report)}.zip", "application/zip", packed.getvalue())


def file_of_kept(row: Report, form: ReportForm, paper: Paper) -> ReportFile:
    document = cast(ReportOut, cast(Any, row.document))
    kept = Kept(row.id, rfc3339(row.made_at), row.checksum)
    return file_of(document, form, paper=paper, kept=kept)


def name_of(report: ReportOut) -> str:
    """Return a file's name: letters, digits and hyphens only, so that it is safe everywhere."""
    whose = [report["cluster"], *([report["tenant"]] if report["tenant"] else [])]
    words = "-".join(re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-")[:60] for word in whose)
    return f"maat-report-{words or 'cluster'}-{days_named(report['period'])}"
