"""`maat measurements`, `maat upload`, `maat delete-measurement`: for simulations."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
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
            help="The files, their folder, or a zip of them: a table of interference (CSV or "
            "JSON) or of locality (CSV); CSV files of measured GPUs; a folder for each model, or a "
            "JSON table of throughputs, for profiles; a trace.",
        ),
    ],
    kind: Annotated[MeasurementKind, typer.Option(help="What was measured.")],
    name: Annotated[
        str | None,
        typer.Option(help="Name for use in simulations; default: that of the file or folder."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Who measured it, and where it was published.")
    ] = None,
    source_url: Annotated[str | None, typer.Option(help="Where it was taken from.")] = None,
    licence: Annotated[str | None, typer.Option(help="Under which licence it may be used.")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Upload measured GPUs, interference, profiles of models, or a trace for simulations."""
    given = {"source": source, "url": source_url, "licence": licence}
    body: dict[str, Any] = {
        "kind": kind.value,
        "name": files[0].stem if name is None else name,
        **_contents(files),
        **{field: value for field, value in given.items() if value is not None},
    }
    with client_of(url) as maat:
        made = maat.upload_measurement(body)
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


def _contents(given: Sequence[Path]) -> dict[str, Any]:
    """Return the files as the API takes them: a zip as it is, all else as texts.

    Raises ParameterError if a file is not text or cannot be read, or a zip is not alone.
    """
    zips = [path for path in given if path.suffix.lower() == ".zip"]
    if zips and len(given) > 1:
        raise ParameterError(
            "is a zip, which is uploaded alone",
            field="files",
            value=str(zips[0]),
            remedy="Give one zip, or unpack it.",
        )
    if zips:
        return {"archive": base64.b64encode(zips[0].read_bytes()).decode()}
    named = [each for path in given for each in _files_at(path)]
    return {"files": [{"name": name, "text": _text_of(path)} for name, path in named]}


def _files_at(given: Path) -> list[tuple[str, Path]]:
    """Return the CSV files in a folder by their names with folders, or a file by its own."""
    if not given.is_dir():
        return [(given.name, given)]
    inside = [(path.relative_to(given), path) for path in sorted(given.rglob("*.csv"))]
    is_model = any(name.stem.startswith("placements-") for name, _ in inside if len(name.parts) < 2)
    return [
        ((Path(given.name) / name if is_model else name).as_posix(), path) for name, path in inside
    ]


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
