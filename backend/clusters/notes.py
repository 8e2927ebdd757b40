"""What a live cluster cannot do as it is set: told with it, since it is no error of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backend.clusters.models import Cluster
from maat.models.catalog import shipped_catalog
from maat.models.gpu_types import GPU_TYPES
from maat.models.known_types import check_known_types
from maat.scheduling.lacking import what_is_lacking
from maat.scheduling.parts import Parts


def cluster_notes(cluster: Cluster, gpus_by_type: Mapping[str, int]) -> list[str]:
    """Return a sentence for each thing that the cluster lacks, and for GPUs that stay idle."""
    return [*notes_on_parts(cluster, cluster.parts), *_idle_types(cluster, gpus_by_type)]


def notes_on_parts(cluster: Cluster, parts: Parts) -> Iterator[str]:
    """Yield what this policy and placer need and the cluster lacks.

    GPUs that run commands get their scores from measured step times, those that are simulated are
    alike.
    """
    return what_is_lacking(
        parts,
        jobs_per_gpu=cluster.jobs_per_gpu,
        has_scores=cluster.runs_commands,
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
