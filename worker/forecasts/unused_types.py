"""Says of GPU types that are asked for why no job would use them."""

from __future__ import annotations

from collections.abc import Iterable

from backend.jobs.admission import least_count
from maat.forecasting.present import Present
from maat.scheduling.job import JobSpec


def unused_type_notes(present: Present, gpu_types: Iterable[str]) -> list[str]:
    """Return a sentence for each of these types that no job of the state can use.

    `present`: with the nodes that are asked for. Without a job there is nothing to say.
    """
    specs = [*(one.job.spec for one in present.jobs), *(one.spec for one in present.waiting)]
    found = (_note(specs, kind, _count(present, kind)) for kind in dict.fromkeys(gpu_types))
    return [note for note in found if note]


def _count(present: Present, kind: str) -> int:
    return sum(node.gpu_count for node in present.cluster.nodes if node.gpu_type == kind)


def _note(specs: list[JobSpec], kind: str, count: int) -> str:
    """Return why none of the jobs can use GPUs of this type; nothing if one can."""
    allowing = [spec for spec in specs if spec.gpu_types is None or kind in spec.gpu_types]
    known = [spec for spec in allowing if spec.may_use(kind)]
    if not specs or any(least_count(spec, kind, count) is not None for spec in known):
        return ""
    models = {spec.model for spec in allowing} - {spec.model for spec in known}
    causes = (
        (len(specs) - len(allowing), "job does not allow it", "jobs do not allow it"),
        (len(models), "model has no profile on it", "models have no profile on it"),
        (len(known), f"job needs more than {count} GPUs", f"jobs need more than {count} GPUs"),
    )
    told = [f"{number} {one if number == 1 else many}" for number, one, many in causes if number]
    return f"No job here can use {kind}: {', '.join(told)}."
