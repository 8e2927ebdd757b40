"""The folder of published data that the service's operator gives. No client names a path."""

from __future__ import annotations

from dataclasses import dataclass

from backend.settings import Settings
from maat.papers.data import SETTING, Data
from maat.scheduling.errors import InputError

_UNUSABLE = f"The folder that {SETTING} names cannot be used: it {{}}."


@dataclass(frozen=True)
class PublishedData:
    """The published data, and `problem`: why the folder of the settings cannot be used."""

    data: Data
    problem: str | None = None

    def without_path(self, text: str) -> str:
        """Return a sentence for readers, who learn no path of the service's machine."""
        folder = self.data.folder
        return text if folder is None else text.replace(str(folder), SETTING)


def published_data(settings: Settings) -> PublishedData:
    """Return the data as they are now; none, with a problem, while the folder cannot be used."""
    try:
        return PublishedData(Data(settings.papers_path))
    except InputError as error:
        return PublishedData(Data(), _UNUSABLE.format(error.problem))
