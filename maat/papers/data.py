"""Where the published data lie in a folder: measurements and traces of the papers.

Takes the layout of docs/reproduce.md and a checkout of the published artifacts as it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from maat.papers.own import OwnMeasurements
from maat.scheduling.errors import InputError, MaatError
from maat.vocabulary import MeasurementKind

SETTING = "MAAT_DATA"
"""The variable that names the folder where no argument does."""

# name -> where it may lie, in our layout or in a checkout; {} is filled by `Data.path`
PLACES: Mapping[str, tuple[str, ...]] = {
    "sia profiles": ("sia-artifact/profiles", "sia-simulator/traces"),
    "sia trace {}": (
        "sia-artifact/workloads/{}.csv",
        "sia-simulator/workloads/{}.csv",
    ),
    "pollux trace {}": ("pollux/{}.csv", "simulator/{}.csv", "benchmark/{}.csv"),
    "pal trace {}": (
        "pal/traces/{}.csv",
        "workload-traces/philly/{}.csv",
        "blox_exp/workload/{}.csv",
    ),
    "pal variability": ("pal/variability", "aggregated_data"),
    "pal pairs": ("pal/colocation", "blox_exp/colocate_info"),
    "gavel throughputs": (
        "gavel/simulation_throughputs.json",
        "simulation_throughputs.json",
        "scheduler/simulation_throughputs.json",
    ),
    "shockwave throughputs": ("shockwave/tacc_throughputs.json", "scheduler/tacc_throughputs.json"),
    "shockwave trace {}": ("shockwave/{}.trace", "scheduler/traces/shockwave/{}.trace"),
    "bsbf jobs {}": ("bsbf/{}.csv",),
}

KINDS: Mapping[str, MeasurementKind] = {
    "sia profiles": MeasurementKind.PROFILES,
    "sia trace {}": MeasurementKind.TRACE,
    "pollux trace {}": MeasurementKind.TRACE,
    "pal trace {}": MeasurementKind.TRACE,
    "bsbf jobs {}": MeasurementKind.TRACE,
    "pal variability": MeasurementKind.VARIABILITY,
    "pal pairs": MeasurementKind.INTERFERENCE,
    "gavel throughputs": MeasurementKind.INTERFERENCE,
}
"""Name -> the kind of measurements that can stand in for it."""


def place_of(named: str) -> tuple[str, str | None]:
    """Return the name in PLACES and the part that fills its {}, of `sia trace {}/philly/w-1`."""
    name = next(known for known in PLACES if named == known or named.startswith(f"{known}/"))
    return name, named.removeprefix(name).removeprefix("/") or None


class MissingData(MaatError):
    """Published data that the folder does not have."""

    def __init__(self, name: str, folder: Path | None, places: tuple[str, ...]) -> None:
        super().__init__(
            f"{name}: not there. "
            + (
                "No folder is given; docs/reproduce.md says which, and how."
                if folder is None
                else f"Looked in {folder} for {' and '.join(places)}."
            )
        )
        self.name = name


def given_data(folder: Path | None, own: Sequence[OwnMeasurements] = ()) -> Data:
    """Return the published data in a folder; None: in that of MAAT_DATA, if it is set.

    `own`: what stands in for some of them. Raises InputError.
    """
    named = os.environ.get(SETTING) or None
    return Data(Path(named) if folder is None and named is not None else folder, tuple(own))


@dataclass(frozen=True, slots=True)
class Data:
    """The published data in a folder; None: none at all.

    `own`: measurements that stand in for them, one of a kind.
    """

    folder: Path | None = None
    own: tuple[OwnMeasurements, ...] = ()

    def __post_init__(self) -> None:
        """Raise InputError for a folder that is not there, or has nothing of the papers."""
        if self.folder is None:
            return
        if not self.folder.is_dir():
            raise InputError(
                "is no folder",
                field="data",
                value=str(self.folder),
                remedy="Name the folder of the published data, or leave it out.",
            )
        tops = sorted(
            {place.split("/")[0].split("{")[0] for each in PLACES.values() for place in each}
        )
        if not any(top and (self.folder / top).exists() for top in tops):
            raise InputError(
                "has nothing of the papers",
                field="data",
                value=str(self.folder),
                remedy="docs/reproduce.md says what it may hold, or leave it out.",
            )

    def own_of(self, kind: MeasurementKind) -> OwnMeasurements | None:
        """Return the measurements of a kind that stand in for the published ones, if any."""
        return next((each for each in self.own if each.kind is kind), None)

    @property
    def words(self) -> str | None:
        """Say which folder it is and what stands in, with digests; None: without any of both."""
        folder = None if self.folder is None else str(self.folder.resolve())
        parts = [part for part in (folder, *(f"{e.title} {e.content}" for e in self.own)) if part]
        return "; ".join(parts) or None

    def path(self, name: str, part: str | None = None) -> Path:
        """Return where something published of PLACES lies; `part` fills its {}.

        Raises MissingData, which names where it was looked for.
        """
        places = tuple(place.format(part) for place in PLACES[name])
        if self.folder is not None:
            for place in places:
                if (self.folder / place).exists():
                    return self.folder / place
        raise MissingData(name.format(part), self.folder, places)

    def has(self, name: str, part: str | None = None) -> bool:
        """Return whether it is there, or measurements of its kind stand in for it."""
        if name in KINDS and self.own_of(KINDS[name]) is not None:
            return True
        try:
            self.path(name, part)
        except MissingData:
            return False
        return True
