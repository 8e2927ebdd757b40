"""Classes of applications by sensitivity to GPU variability (PAL section III-A)."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.clustering import plane_clusters
from maat.scheduling.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Utilisation:
    """What an application was measured to use, as shares 0-1.

    `dram`: of DRAM bandwidth. `functional_unit`: of the busiest functional unit.
    """

    dram: float
    functional_unit: float

    def __post_init__(self) -> None:
        for name in ("dram", "functional_unit"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ParameterError(
                    "is not a share from 0 to 1",
                    field=name,
                    value=value,
                    remedy="Give measured utilisation as a share.",
                )


@dataclass(frozen=True)
class ApplicationClasses:
    """Classes by falling sensitivity to variability: A computes most.

    `centroids`, shape (K, 2): DRAM, functional unit. `members`: class by application.
    """

    centroids: FloatArray
    members: Mapping[str, str]

    def nearest(self, application: Utilisation) -> str:
        """Return the class of an application that was not used to form the classes."""
        return string.ascii_uppercase[
            int(np.argmin(((self.centroids - _point(application)) ** 2).sum(axis=1)))
        ]


def classify(
    applications: Mapping[str, Utilisation], *, class_count: int = 3, seed: int = 0
) -> ApplicationClasses:
    """Return classes by K-means over (DRAM, peak functional unit) utilisation.

    Raises:
        ParameterError: There are more classes than distinct applications.
    """
    points = np.array([_point(each) for each in applications.values()]).reshape(-1, 2)
    different = len(np.unique(points, axis=0))
    if not 1 <= class_count <= min(different, len(string.ascii_uppercase)):
        raise ParameterError(
            "is not between 1 and the number of different applications",
            field="class_count",
            value=class_count,
            remedy=f"Give 1 to {different}, or measure more applications.",
        )
    found = plane_clusters(points, class_count, np.random.default_rng(seed))
    order = np.lexsort((found[:, 0], -found[:, 1]))
    classes = ApplicationClasses(found[order], {})
    members = {name: classes.nearest(each) for name, each in applications.items()}
    return ApplicationClasses(classes.centroids, members)


def _point(application: Utilisation) -> FloatArray:
    return np.array([application.dram, application.functional_unit])
