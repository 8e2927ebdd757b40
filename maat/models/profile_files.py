"""The files of profiles: by model and name, from folders or from texts. It knows no columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from maat.csv_input import CsvInput, Row, read_csv
from maat.scheduling.errors import ProfileError

MAX_ROWS_PER_FILE = 200_000
_KIND = re.compile(r"(?P<kind>placements|scalability|validation)-(?P<of>.*)\.csv")
_FILE = re.compile(
    r"(?P<model>[^/]+?)[/-](?P<file>(?:placements|scalability|validation)-[^/]*\.csv)"
)


@dataclass(frozen=True, slots=True)
class ProfileFolder:
    """The CSV files of one model, by their names. `shown`: how errors name the folder."""

    name: str
    shown: str
    files: Mapping[str, Path | str]

    @classmethod
    def at(cls, folder: Path) -> ProfileFolder:
        """Return the CSV files of a folder."""
        files = {path.name: path for path in sorted(folder.glob("*.csv"))}
        return cls(folder.name, str(folder), files)

    def parts_of(self, kind: str) -> list[str]:
        """Return what the names of a kind of files say: GPU types, or batch sizes."""
        named = (_KIND.fullmatch(file) for file in self.files)
        return [match["of"] for match in named if match and match["kind"] == kind]

    def path_of(self, file: str) -> str:
        return f"{self.shown}/{file}"

    def table(self, file: str) -> CsvInput:
        """Open a file. Raises ProfileError, also if it is missing."""
        if file not in self.files:
            raise ProfileError(
                "is missing",
                field="file",
                source=self.path_of(file),
                remedy="A GPU type has placements-TYPE.csv and scalability-TYPE.csv: add it.",
            )
        return read_csv(self.files[file], error=ProfileError, name=self.path_of(file))


def folders_in_texts(texts: Mapping[str, str]) -> list[ProfileFolder]:
    """Return the files of each model among texts, by names such as `bert/placements-aws.csv`.

    Raises ProfileError for a name that does not say model and kind, or for two of one file.
    """
    by_model: dict[str, dict[str, str]] = {}
    named: dict[tuple[str, str], str] = {}
    for name, text in sorted(texts.items()):
        model, file = _place_of(name)
        if (model, file) in named:
            raise ProfileError(
                f"is the same file as {named[model, file]}",
                field="file",
                value=name,
                remedy="Keep one of them.",
            )
        named[model, file] = name
        by_model.setdefault(model, {})[file] = text
    return [ProfileFolder(model, model, files) for model, files in by_model.items()]


def texts_of_model(texts: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return the texts of one model's folder; a table of throughputs is of all its models.

    Raises ProfileError for a name that does not say model and kind.
    """
    if len(texts) == 1:
        return dict(texts)
    return {name: text for name, text in texts.items() if _place_of(name)[0] == folder}


def _place_of(name: str) -> tuple[str, str]:
    """Return model and file of the name of a profile's text. Raises ProfileError."""
    parts = name.split("/")
    match = _FILE.fullmatch("/".join(parts[-2:])) or _FILE.fullmatch(parts[-1])
    if match is None:
        raise ProfileError(
            "is no file of a model's profile",
            field="file",
            value=name,
            remedy="Name it MODEL/placements-TYPE.csv, MODEL/scalability-TYPE.csv or "
            "MODEL/validation-BATCH.csv; or leave it out.",
        )
    return match["model"], match["file"]


def read_rows(table: CsvInput, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a profile file; at least one, at most MAX_ROWS_PER_FILE."""
    table.require(columns)
    count = 0
    for count, row in enumerate(table.rows, start=1):
        if count > MAX_ROWS_PER_FILE:
            raise table.blame(
                f"has more than {MAX_ROWS_PER_FILE} rows",
                field="rows",
                row=row.line,
                remedy="Average repeated measurements.",
            )
        yield row
    if not count:
        raise table.blame(
            "has no rows", field="rows", remedy="Add measurements, or remove the file."
        )
