"""What is said of the cluster: what decides on it, who holds how much, why it has no node."""

from __future__ import annotations

from collections.abc import Mapping

from frontend.formatting import count, gpus, number, plural
from maat.api.clusters import ClusterOut, ClusterStateOut
from maat.colours import gpu_order
from maat.vocabulary import ExecutorKind

NO_NODE = "No node yet"
_ADD_NODES = "Jobs get GPUs as soon as it has some."
_WAITS_FOR_SLURM = (
    "Slurm's nodes appear within seconds. If none does, see whether the worker runs, and whether "
    "scontrol show node lists GPUs there; the worker's log says what it was answered."
)
_WAITS_FOR_GPUS = (
    "This machine's GPUs appear within seconds. If none does, see whether the worker runs, and "
    "what nvidia-smi -L says on its machine. GPUs in MIG mode are left out."
)


def verdict_of(state: ClusterStateOut, reserved: Mapping[str, int]) -> str:
    """Say how many GPUs are held, where most are free together, and what is out of order.

    `reserved`: how many are reserved at present, by type.
    """
    if not state["gpus"]:
        return ""
    held = sum(cell["held"] for cell in state["gpus"])
    told = f"{count(held)} of {plural(len(state['gpus']), 'GPU')} held"
    free, together = sum(state["free_by_type"].values()), state["largest_free_on_one_node"]
    if free:
        best = max(gpu_order(together), key=lambda name: together[name])
        told += f", {count(free)} free: at most {gpus(together[best], best)} together"
    out = len(state["faults"])
    kept = ", ".join(gpus(reserved[name], name) for name in gpu_order(reserved))
    parts = [
        told,
        f"Reserved: {kept}" if kept else "",
        f"{plural(out, 'node')} out of order" if out else "",
    ]
    return " ".join(f"{part}." for part in parts if part)


def note_of(cluster: ClusterOut) -> str:
    """What decides on the cluster, how often, and how fast its clock runs or what runs its jobs."""
    unit = "second" if cluster["speed"] == 1 else "seconds"
    pace = f"{number(cluster['speed'])} cluster {unit} per second"
    if cluster["executor"] != ExecutorKind.SIMULATED:
        pace = f"commands run on {_where(cluster)}"
    if cluster["fault"]:
        pace = f"{pace}; its engine does not answer: {cluster['fault']}"
    return (
        f"{cluster['policy']} with {cluster['placer']}, "
        f"a round every {number(cluster['round_seconds'])} s, "
        f"{'paused' if cluster['paused'] else pace}"
    )


def _where(cluster: ClusterOut) -> str:
    """What a cluster that runs commands runs them on."""
    given = cluster["executor_parameters"]
    if cluster["executor"] == ExecutorKind.LOCAL:
        found = given.get("gpus") == "found"
        return "the GPUs of this machine" if found else "slots of this machine, which are no GPUs"
    partition = given.get("partition")
    return f"partition {partition} of Slurm" if partition else "Slurm"


def without_nodes(cluster: ClusterOut | None) -> str:
    """Why a cluster may have no node, and what to do. `cluster`: None if it could not be loaded."""
    if cluster is None:
        return _ADD_NODES
    if cluster["executor"] == ExecutorKind.SLURM:
        return _WAITS_FOR_SLURM
    found = cluster["executor_parameters"].get("gpus") == "found"
    return _WAITS_FOR_GPUS if found else _ADD_NODES
