"""`maat audit`: what was changed, by whom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.moments import From, To
from maat.cli.numbers import whole_option
from maat.cli.output import say
from maat.cli.service import DEFAULT_URL, MAX_LISTED, AsJson, Url, client_of, show, table_of
from maat.scheduling.errors import MaatError, ParameterError
from maat.vocabulary import TargetKind

if TYPE_CHECKING:
    from maat.api.audit import AuditRecordOut

COLUMNS = ("at", "actor", "action", "target", "tenant", "change", "request")
FORMS = {".csv": "csv", ".json": "json"}


def audit(
    actor: Annotated[str | None, typer.Option(help="Of this user: name or id.")] = None,
    action: Annotated[str | None, typer.Option(help="Such as `change user`.")] = None,
    target: Annotated[str | None, typer.Option(help="Of the row with this id.")] = None,
    kind: Annotated[TargetKind | None, typer.Option(help="Of rows of this kind.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Of this tenant.")] = None,
    start: From = None,
    end: To = None,
    limit: Annotated[
        int, whole_option("--limit", help="How many to list.", least=1, most=MAX_LISTED)
    ] = 50,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Write all that match to this file: .csv or .json."),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List what was changed, by whom, newest first; or write it to a file."""
    given: dict[str, Any] = {
        "actor": actor,
        "action": action,
        "target": target,
        "target_kind": None if kind is None else kind.value,
        "tenant": tenant,
        "start": start,
        "end": end,
    }
    form = None if file is None else _form_of(file)
    with client_of(url) as maat:
        if file is not None and form is not None:
            _write(file, maat.audit_file(form, **given))
            say(f"written to {file}")
            return
        found = maat.audit(limit=limit, **given)
    rows = [_row(one) for one in found["items"]]
    show(found["items"], as_json, table_of(COLUMNS, rows))
    if found["next_cursor"] is not None:
        typer.echo(f"maat: there are more than {limit}: see --limit, --to and --file", err=True)


def _row(one: AuditRecordOut) -> list[str]:
    from maat.client.audit_words import change_words

    return [
        one["at"],
        one["actor"],
        one["action"],
        one["target_id"] or "-",
        one["tenant"] or "-",
        change_words(one),
        one["request_id"] or "-",
    ]


def _form_of(file: Path) -> str:
    form = FORMS.get(file.suffix.lower())
    if form is None:
        raise ParameterError(
            "is neither a .csv nor a .json file",
            field="file",
            value=str(file),
            remedy="Give a name that ends with .csv or .json.",
        )
    return form


def _write(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as failed:
        raise MaatError(
            f"{file} cannot be written ({failed.strerror}). Name a file in a folder that exists."
        ) from failed
