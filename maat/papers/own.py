"""Measurements and traces of one's own that stand in for the published ones of their kind.

They come from files, or from uploads of a service. What is read from them is in `bench`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from maat.file_digest import files_digest
from maat.library.files import path_of
from maat.scheduling.errors import InputError
from maat.simulation.interference import GAVEL_TYPE, is_gavel
from maat.vocabulary import MeasurementKind

WORDS: Mapping[MeasurementKind, str] = {
    MeasurementKind.PROFILES: "profiles",
    MeasurementKind.TRACE: "trace",
    MeasurementKind.VARIABILITY: "measured GPUs",
    MeasurementKind.INTERFERENCE: "measured pairs",
}
"""What each kind that items take is called in a report. Steps across nodes are none: no item has
published ones."""


@dataclass(frozen=True)
class OwnMeasurements:
    """Files of one kind: `texts` by name, folders included.

    `name`: as reports show it; `digest`: of the files, by which results are kept; `origin`: who
    measured it, where it is from, its licence; `gpu_type`: one that a table of pairs distinguishes.
    """

    kind: MeasurementKind
    name: str
    digest: str
    texts: Mapping[str, str] = field(compare=False, repr=False)
    origin: Sequence[str] = field(default=(), compare=False)
    gpu_type: str | None = None

    def __post_init__(self) -> None:
        """Name the GPU type that a table of several is read for where none was chosen."""
        is_of_pairs = self.kind is MeasurementKind.INTERFERENCE and self.gpu_type is None
        if is_of_pairs and any(map(is_gavel, self.texts.values())):
            object.__setattr__(self, "gpu_type", GAVEL_TYPE)

    @property
    def title(self) -> str:
        """`profiles lab-2026`, with the GPU type of a table of several."""
        of_type = "" if self.gpu_type is None else f"#{self.gpu_type}"
        return f"{WORDS[self.kind]} {self.name}{of_type}"

    @property
    def sentence(self) -> str:
        """Say what stands in, and whence it is."""
        whence = "; ".join([*self.origin, f"sha256 {self.digest[:16]}"])
        return f"Not of published data: of the {self.title} ({whence})."

    @property
    def text(self) -> str:
        """The text of what is one file."""
        (text,) = self.texts.values()
        return text

    @property
    def content(self) -> str:
        """What keys of results have of it."""
        return f"{self.digest}#{self.gpu_type or ''}"


def why_of(own: Sequence[OwnMeasurements]) -> str:
    """Say why figures differ from the published ones: an item's own sentence is of these."""
    titles = " and the ".join(each.title for each in own)
    return (
        f"These are figures of the {titles}, which stand in for published data: the published "
        "values beside them are of other measurements, and no test of Maat."
    )


def read_own(
    *,
    profiles: str | Path | None = None,
    trace: str | Path | None = None,
    variability: str | Path | None = None,
    interference: str | Path | None = None,
) -> tuple[OwnMeasurements, ...]:
    """Return the measurements in these files and folders. Raises InputError for what is none."""
    given: Mapping[MeasurementKind, str | Path | None] = {
        MeasurementKind.PROFILES: profiles,
        MeasurementKind.TRACE: trace,
        MeasurementKind.VARIABILITY: variability,
        MeasurementKind.INTERFERENCE: interference,
    }
    return tuple(_read(kind, path) for kind, path in given.items() if path is not None)


def _read(kind: MeasurementKind, given: str | Path) -> OwnMeasurements:
    name, gpu_type = str(path_of(given, field=kind.value)), None
    if kind is MeasurementKind.INTERFERENCE:
        name, _, chosen = name.partition("#")
        gpu_type = chosen or None
    path = path_of(name, field=kind.value)
    texts = _texts(kind, path)
    return OwnMeasurements(kind, name, files_digest(texts), texts, gpu_type=gpu_type)


def _texts(kind: MeasurementKind, path: Path) -> dict[str, str]:
    """Return the CSV files of a folder, or one file."""
    pattern = "*/*.csv" if kind is MeasurementKind.PROFILES else "*.csv"
    is_folder = kind in (MeasurementKind.PROFILES, MeasurementKind.VARIABILITY) and path.is_dir()
    files = sorted(path.glob(pattern)) if is_folder else [path]
    try:
        special = next((file for file in files if file.exists() and not file.is_file()), None)
        if special is not None:
            raise OSError(f"{special} is no regular file")
        texts = {
            str(file.relative_to(path) if is_folder else file.name): file.read_text("utf-8-sig")
            for file in files
        }
    except (OSError, UnicodeDecodeError) as unreadable:
        raise InputError(
            f"cannot be read ({unreadable})",
            field=kind.value,
            value=str(path),
            remedy=_REMEDIES[kind],
        ) from None
    if not texts:
        raise InputError(
            "has no CSV files", field=kind.value, value=str(path), remedy=_REMEDIES[kind]
        )
    return texts


_REMEDIES: Mapping[MeasurementKind, str] = {
    MeasurementKind.PROFILES: "Name a folder with a folder for each model, or a JSON table of "
    "throughputs.",
    MeasurementKind.TRACE: "Name the file of a trace (docs/traces.md).",
    MeasurementKind.VARIABILITY: "Name a folder of files such as resnet-v100.csv.",
    MeasurementKind.INTERFERENCE: "Name a CSV or JSON table of pairs.",
}
