"""Checks what a new cluster's executor is told, and that it can write where it must."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backend.clusters.models import FOUND_GPUS
from backend.problems import FieldError, Invalid
from maat.api.clusters import ClusterBody
from maat.launch.nvidia import has_nvidia_smi
from maat.vocabulary import ExecutorKind

_POINTER = "/executor_parameters"


def checked_executor(body: ClusterBody) -> dict[str, Any]:
    """Return the parameters to store. Raises Invalid naming the field."""
    given = body.executor_parameters
    errors = list(_errors(body))
    if errors:
        raise Invalid(" ".join(error.message for error in errors), errors=errors)
    if given is not None:
        return given.model_dump(exclude_none=True)
    return FOUND_GPUS if _takes_found_gpus(body) else {}


def _takes_found_gpus(body: ClusterBody) -> bool:
    return body.executor is ExecutorKind.LOCAL and body.nodes is None and body.shape is None


def _errors(body: ClusterBody) -> Iterator[FieldError]:
    given = body.executor_parameters
    if body.executor is not ExecutorKind.SLURM:
        if _takes_found_gpus(body) and not has_nvidia_smi():
            message = "This machine has no nvidia-smi, by which the executor local finds its GPUs."
            remedy = "For slots without GPUs write for example shape: cpu=1x4."
            yield FieldError("/shape", "missing", message, remedy, None)
        return
    for name in ("nodes", "shape"):
        if getattr(body, name) is not None:
            message = "The nodes of a cluster with the executor slurm come from Slurm."
            yield FieldError(f"/{name}", "not_here", message, "Leave it out.", None)
    if given is None:
        message = "The executor slurm needs parameters."
        remedy = 'Give at least {"shared_dir": "/a/folder/that/all/nodes/see"}.'
        yield FieldError(_POINTER, "missing", message, remedy, None)
        return
    fault = _fault_of_folder(Path(given.shared_dir))
    if fault:
        remedy = (
            "Name a folder on a file system that the service, its workers and all nodes mount at "
            "the same place, and that their user may write."
        )
        yield FieldError(f"{_POINTER}/shared_dir", "unusable", fault, remedy, given.shared_dir)
    if given.conf is not None and not Path(given.conf).is_file():
        message = f"There is no file {given.conf} here."
        remedy = "Name a slurm.conf, or leave it out: then the system's own is used."
        yield FieldError(f"{_POINTER}/conf", "unusable", message, remedy, given.conf)


def _fault_of_folder(folder: Path) -> str:
    """Return why attempts cannot be kept in a folder; nothing if they can."""
    if not folder.is_dir():
        return f"There is no folder {folder} here."
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"The folder {folder} cannot be written: {error.strerror}."
