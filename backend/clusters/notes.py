"""What a live cluster cannot do as it is set: told with it, since it is no error of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backend.clusters.models import Cluster
from backend.measurements.contents import catalog_pairs
from maat.models.catalog import shipped_catalog
from maat.models.gpu_types import GPU_TYPES
from maat.models.known_types import check_known_types
from maat.scheduling.gpu_places import shares_gpus
from maat.scheduling.interference import SharingJob, Slowdowns
from maat.scheduling.lacking import what_has_no_effect, what_is_lacking
from maat.scheduling.parts import Parts

_MOST_NAMED = 4


def cluster_notes(
    cluster: Cluster, gpus_by_type: Mapping[str, int], slowdowns: Slowdowns | None
) -> list[str]:
    """Return a sentence for each thing that the cluster lacks, and for GPUs that stay idle.

    `slowdowns`: what it declares that jobs on one GPU lose.
    """
    if (lack := cluster.parts.lack) is not None:
        return [lack, *_idle_types(cluster, gpus_by_type)]
    return [
        *notes_on_parts(cluster, cluster.parts),
        *_unknown_pairs(cluster, slowdowns),
        *_idle_types(cluster, gpus_by_type),
    ]


def notes_on_parts(cluster: Cluster, parts: Parts) -> Iterator[str]:
    """Yield what this policy and placer need and the cluster lacks, and what they do not use.

    GPUs that run commands get their scores from measured step times, those that are simulated are
    alike.
    """
    yield from what_is_lacking(
        parts,
        jobs_per_gpu=cluster.jobs_per_gpu,
        has_scores=cluster.runs_commands,
    )
    yield from what_has_no_effect(
        parts,
        jobs_per_gpu=cluster.jobs_per_gpu,
        has_interference=cluster.interference is not None,
    )


def _unknown_pairs(cluster: Cluster, slowdowns: Slowdowns | None) -> Iterator[str]:
    """Pairs of the catalog's models of which nothing is declared; commands may be anything."""
    if cluster.runs_commands or slowdowns is None or not shares_gpus(cluster.parts.built()[0]):
        return
    pairs = catalog_pairs()
    lacking = [
        f"{victim} beside {partner}"
        for victim, partner in pairs
        if slowdowns.of_jobs(SharingJob(victim, 1), SharingJob(partner, 1), 1) is None
    ]
    if lacking:
        more = len(lacking) - _MOST_NAMED
        shown = ", ".join(lacking[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        yield (
            f"Its interference lacks {len(lacking)} of the {len(pairs)} pairs of the catalog's "
            f"models: {shown}. A policy that asks what sharing costs joins no such jobs: upload a "
            "table with these pairs, or declare one slowdown, such as 1.25."
        )


def _idle_types(cluster: Cluster, gpus_by_type: Mapping[str, int]) -> Iterator[str]:
    """GPU types that no model of the catalog runs on; commands run on any."""
    if cluster.runs_commands:
        return
    for name, gpus in gpus_by_type.items():
        if name not in shipped_catalog().gpu_types:
            stay = "1 GPU stays" if gpus == 1 else f"{gpus} GPUs stay"
            yield f"No model of the catalog runs on {name}: its {stay} idle."


def check_types(gpu_types: Mapping[str, object]) -> None:
    """Refuse a GPU type that neither the catalog nor Maat knows. Raises ClusterError.

    For simulated clusters: their jobs are of the catalog's models.
    """
    catalog = shipped_catalog().gpu_types
    by = "the catalog does not know: no job could run on it"
    check_known_types(gpu_types, {*GPU_TYPES, *catalog}, offered=catalog, by=by)
