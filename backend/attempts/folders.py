"""Where the files of attempts lie. All names in these paths are ids that the service has given."""

from __future__ import annotations

from pathlib import Path

from backend.clusters.models import Cluster
from backend.settings import Settings


def cluster_folder(settings: Settings, cluster: Cluster) -> Path:
    """Return the folder of a cluster: on the file system that its nodes share, if they do."""
    shared = cluster.executor_parameters.get("shared_dir")
    root = settings.data_path / "training" if shared is None else Path(shared)
    return root / cluster.id


def attempts_folder(cluster: Path) -> Path:
    return cluster / "attempts"


def attempt_folder(cluster: Path, attempt_id: str) -> Path:
    return attempts_folder(cluster) / attempt_id


def checkpoint_folder(cluster: Path, job_id: str) -> Path:
    return cluster / "jobs" / job_id / "checkpoints"
