"""Stores and deletes measurements. Commits nothing.

It refuses unreadable files, naming file, row and column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.accounts.names import names_of
from backend.answers import answer_of
from backend.clocktime import utc_now
from backend.columns import pack_json
from backend.measurements.archives import texts_of_archive
from backend.measurements.contents import Texts, covered
from backend.measurements.models import Measurement, MeasurementFiles
from backend.measurements.notes import measurement_notes
from backend.measurements.repository import get_measurement, is_used, named, profiled_models
from backend.problems import Conflict, FieldError, Forbidden, Invalid, input_field_error
from maat.api.measurements import ACCEPTED, MAX_BYTES, MAX_LINES, MeasurementBody, MeasurementOut
from maat.file_digest import files_digest, text_digest
from maat.scheduling.errors import InputError
from maat.vocabulary import MeasurementKind

_OF_ONE_FILE = {
    MeasurementKind.INTERFERENCE: "A table of interference",
    MeasurementKind.LOCALITY: "A table of locality",
    MeasurementKind.TRACE: "A trace",
}


@dataclass(frozen=True)
class PreparedMeasurement:
    """Readable files: their row, and their texts as they are stored."""

    row: Measurement
    texts: bytes


def prepare_measurement(
    session: Session, principal: Principal, body: MeasurementBody
) -> PreparedMeasurement:
    """Read every file; the database is only read.

    Raises Invalid naming file, row and column of what cannot be read.
    """
    texts = _checked_files(body)
    row = Measurement(
        kind=body.kind.value,
        name=body.name,
        owner_id=principal.user_id,
        tenant_id=principal.tenant_id,
        digest=files_digest(texts),
        files=[
            {"name": name, "bytes": len(text.encode()), "sha256": text_digest(text)}
            for name, text in texts.items()
        ],
        covers=_covers(body, texts, profiled_models(session, principal.tenant_id)),
        source=body.source,
        url=body.url,
        licence=body.licence,
    )
    return PreparedMeasurement(row, pack_json({**texts}))


def store_measurement(session: Session, prepared: PreparedMeasurement) -> Measurement:
    """Store it. Raises Conflict if the name is taken."""
    row = prepared.row
    if named(session, row.tenant_id, MeasurementKind(row.kind), row.name) is not None:
        message = f"There are already measurements of {row.kind} named {row.name!r}."
        remedy = "Choose another name, or delete those first."
        raise Conflict(
            f"{message} {remedy}", errors=[FieldError("/name", "taken", message, remedy, row.name)]
        )
    session.add(row)
    session.flush()
    session.add(MeasurementFiles(measurement_id=row.id, texts=prepared.texts))
    session.flush()
    return row


def delete_measurement(session: Session, principal: Principal, measurement_id: str) -> None:
    """Delete it, so that requests can no longer name it.

    Its files stay while operations use it. Raises NotFound, and Forbidden for a user who neither
    owns it nor acts for its tenant.
    """
    measurement = get_measurement(session, principal, measurement_id, lock=True)
    if not principal.may_change(owner_id=measurement.owner_id, tenant_id=measurement.tenant_id):
        raise Forbidden(
            "They belong to another user. Their owner, or a manager of the tenant, may delete them."
        )
    if is_used(session, measurement.id):
        measurement.deleted_at = utc_now()
        session.add(measurement)
        return
    session.delete(session.get_one(MeasurementFiles, measurement.id))
    session.flush()
    session.delete(measurement)


def show_measurements(session: Session, rows: Sequence[Measurement]) -> list[MeasurementOut]:
    owners, tenants = names_of(session, rows)
    return [
        answer_of(
            MeasurementOut,
            row,
            owner=owners[row.owner_id],
            tenant=tenants[row.tenant_id],
            bytes=sum(file["bytes"] for file in row.files),
            notes=measurement_notes(session, row),
        )
        for row in rows
    ]


def _checked_files(body: MeasurementBody) -> dict[str, str]:
    """Return the files by name.

    Raises Invalid for no files, too many, two of one name, or too much content.
    """
    if bool(body.files) == (body.archive is not None):
        raise _refused(
            "/files",
            "missing" if body.archive is None else "given_twice",
            "Measurements come either as files or as a zip.",
            "Send `files`, or a zip as `archive`, not both.",
            len(body.files),
        )
    texts = {} if body.archive is None else texts_of_archive(body.archive)
    for index, file in enumerate(body.files):
        if file.name in texts:
            raise _refused(
                f"/files/{index}/name",
                "twice",
                "Two files have this name.",
                "Send every file once.",
                file.name,
            )
        texts[file.name] = file.text
    if body.kind in _OF_ONE_FILE and len(texts) > 1:
        raise _refused(
            "/files",
            "too_many",
            f"{_OF_ONE_FILE[body.kind]} is one file.",
            "Send one file.",
            len(texts),
        )
    size, lines = (
        sum(len(text.encode()) for text in texts.values()),
        sum(text.count("\n") for text in texts.values()),
    )
    if size > MAX_BYTES:
        raise _refused(
            "/files",
            "too_large",
            "The files are too large together.",
            f"Send at most {MAX_BYTES} bytes.",
            size,
        )
    if lines > MAX_LINES:
        raise _refused(
            "/files",
            "too_large",
            "The files have too many lines together.",
            f"Send at most {MAX_LINES} lines.",
            lines,
        )
    return texts


def _covers(body: MeasurementBody, texts: Texts, profiled: set[str]) -> dict[str, list[str]]:
    """Return what the files cover. Raises Invalid pointing at the unreadable file."""
    try:
        return covered(body.kind, texts, profiled=profiled)
    except InputError as error:
        accepted = f"{error} Accepted: {ACCEPTED[body.kind]}"
        if body.archive is not None:
            raise Invalid(accepted, errors=[input_field_error(error, "/archive")]) from None
        index = next(
            (i for i, file in enumerate(body.files) if file.name in (error.source, error.value)), 0
        )
        where = (
            "name" if error.field == "file" and error.value == body.files[index].name else "text"
        )
        found = input_field_error(error, f"/files/{index}/{where}")
        raise Invalid(accepted, errors=[found]) from None


def _refused(pointer: str, code: str, message: str, remedy: str, value: object) -> Invalid:
    return Invalid(
        f"{message} {remedy}", errors=[FieldError(pointer, code, message, remedy, value)]
    )
