"""The folder of published data that the service's operator gives. No client names a path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session

from backend.measurements.uses import uses_of
from backend.papers.models import Reproduction
from backend.papers.own import own_of
from backend.settings import Settings
from maat.papers.data import SETTING, Data
from maat.papers.own import OwnMeasurements
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


def published_data(settings: Settings, own: Sequence[OwnMeasurements] = ()) -> PublishedData:
    """Return the data as they are now; none, with a problem, while the folder cannot be used.

    `own`: uploads that stand in for some of them.
    """
    try:
        return PublishedData(Data(settings.papers_path, tuple(own)))
    except InputError as error:
        return PublishedData(Data(None, tuple(own)), _UNUSABLE.format(error.problem))


def data_of(session: Session, settings: Settings, reproduction: Reproduction) -> PublishedData:
    """Return the data of a reproduction, with the uploads that stand in for some of them."""
    uses = uses_of(session, reproduction.operation_id)
    return published_data(settings, own_of(session, uses))
