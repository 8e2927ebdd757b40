"""Own policies of installed distributions: their entry points of the group `maat.policies`.

One that cannot be used is left out, with why: the others, and Maat's own, are there all the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from maat.scheduling.errors import InputError
from maat.scheduling.own.loading import OwnEntry, read_entry

GROUP = "maat.policies"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MOST_CHARACTERS = 60


@dataclass(frozen=True)
class RefusedPolicy:
    """An own policy that cannot be used, and why, with a remedy."""

    name: str
    distribution: str
    why: str

    def __str__(self) -> str:
        return f"the policy {self.name} of {self.distribution} is left out: {self.why}"


def installed_policies(
    taken: Collection[str],
) -> tuple[tuple[OwnEntry, ...], tuple[RefusedPolicy, ...]]:
    """Return the own policies of this environment by name, and those that cannot be used.

    `taken`: the names of Maat's own. Imports every module that an entry point names.
    """
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    times = Counter(point.name for point in points)
    entries: list[OwnEntry] = []
    refused: list[RefusedPolicy] = []
    for point in points:
        by = _distribution(point)
        try:
            _check_name(point.name, taken, times[point.name])
            entries.append(read_entry(point.value, name=point.name, distribution=by))
        except InputError as why:
            refused.append(RefusedPolicy(point.name, by, str(why)))
    return tuple(entries), tuple(refused)


def _distribution(point: EntryPoint) -> str:
    return "an unknown distribution" if point.dist is None else str(point.dist.name)


def _check_name(name: str, taken: Collection[str], times: int) -> None:
    if name in taken:
        problem, remedy = "is the name of a policy that Maat has", "Give yours another name."
    elif times > 1:
        problem, remedy = (
            "is the name of policies of several distributions",
            "Uninstall all of them but one.",
        )
    elif not _NAME.fullmatch(name) or len(name) > _MOST_CHARACTERS:
        problem, remedy = (
            "is no name of a policy",
            f"Use at most {_MOST_CHARACTERS} small letters and digits, with hyphens between.",
        )
    else:
        return
    raise InputError(problem, field="name", value=name, remedy=remedy)
