"""`maat measurements`, `maat upload-measurement`, `maat delete-measurement`: for simulations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.compression import problem_and_remedy
from maat.scheduling.errors import ParameterError
from maat.vocabulary import MeasurementKind


def measurements(
    kind: Annotated[
        MeasurementKind | None, typer.Option(help="Only measurements of this kind.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List uploaded measurements, newest first."""
    with client_of(url) as maat:
        found = maat.measurements(kind=None if kind is None else kind.value)
    columns = ("id", "kind", "name", "covers", "bytes", "digest", "owner", "created_at")
    shown: list[Mapping[str, Any]] = [
        {**one, "covers": ", ".join(one["covers"]), "digest": one["digest"][:12]} for one in found
    ]
    show(
        found,
        as_json,
        table_of(columns, [[str(one[column]) for column in columns] for one in shown]),
    )


def upload_measurement(
    files: Annotated[
        list[Path],
        typer.Argument(
            exists=True,
            help="A table of interference (CSV or JSON); "
            "or CSV files of measured GPUs, or their folder.",
        ),
    ],
    kind: Annotated[MeasurementKind, typer.Option(help="What was measured.")],
    name: Annotated[
        str | None,
        typer.Option(help="Name for use in simulations; default: that of the file or folder."),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Upload measurements of GPU variability or interference for simulations."""
    paths = [
        path
        for given in files
        for path in (sorted(given.glob("*.csv")) if given.is_dir() else [given])
    ]
    contents: Any = [{"name": path.name, "text": _text_of(path)} for path in paths]
    with client_of(url) as maat:
        made = maat.upload_measurement(
            {"kind": kind.value, "name": files[0].stem if name is None else name, "files": contents}
        )
    covers = "; ".join(
        f"{gpu_type}: {', '.join(measured)}" for gpu_type, measured in made["covers"].items()
    )
    done = f"{made['id']} {made['name']!r} holds measurements of {covers}"
    show(made, as_json, "\n".join([done, *made["notes"]]))


def delete_measurement(
    measurement_id: Annotated[str, typer.Argument(help="The measurement's id.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Delete uploaded measurements. Simulations that use them keep them."""
    with client_of(url) as maat:
        maat.delete_measurement(measurement_id)
    show({"removed": measurement_id}, as_json, f"{measurement_id} is deleted")


def _text_of(path: Path) -> str:
    """Read a file. Raises ParameterError if it is not text or cannot be read."""
    try:
        read = path.read_bytes()
        if packed := problem_and_remedy(read):
            raise ParameterError(packed[0], field="files", value=str(path), remedy=packed[1])
        return read.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        remedy = "Give readable CSV or JSON files in UTF-8."
        raise ParameterError(
            "is not readable text", field="files", value=str(path), remedy=remedy
        ) from wrong
