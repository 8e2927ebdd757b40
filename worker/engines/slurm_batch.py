"""What Slurm is told: the arguments of sbatch and its script, as text. Pure."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping

from maat.api.clusters import SlurmParameters
from worker.engines.protocol import Order
from worker.engines.slurm_answers import MARK, SlurmNode

JOBS_PER_SHARED_GPU = 2


def job_name(attempt_id: str) -> str:
    return f"{MARK}{attempt_id}"


def batch_script(parameters: SlurmParameters, *, commands: str) -> str:
    """Return the script of every job. It holds nothing that a user has written.

    `commands`: the folder of Slurm's commands.
    """
    python = shlex.quote(parameters.python or sys.executable)
    return f"""#!/bin/sh
export PATH={shlex.quote(commands)}:/usr/local/bin:/usr/bin:/bin
het=
[ -z "$SLURM_HET_SIZE" ] || het=--het-group=0-$((SLURM_HET_SIZE - 1))
[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"
exec srun $het --export=ALL --mpi=none --kill-on-bad-exit=1 --wait=0 \\
  {python} -P -m maat.launch.rank .
"""


def batch_arguments(
    order: Order, parameters: SlurmParameters, nodes: Mapping[str, SlurmNode]
) -> list[str]:
    """Return the arguments of sbatch: nodes that give the same are one component of the job."""
    folder = os.path.realpath(order.directory)
    arguments = ["--parsable"]
    for number, (resource, names) in enumerate(_components(order, nodes).items()):
        gpus = len(order.gpus_by_node[names[0]])
        arguments += [] if number == 0 else [":"]
        arguments += [
            f"--job-name={job_name(order.attempt_id)}",
            f"--chdir={folder}",
            f"--output={folder}/slurm.log",
            "--open-mode=append",
            "--no-requeue",
            f"--nodelist={','.join(names)}",
            f"--nodes={len(names)}",
            f"--ntasks-per-node={gpus // order.gpus_per_replica}",
            f"--gres={resource}",
            *_limits(order, parameters, gpus),
        ]
    return arguments


def _components(order: Order, nodes: Mapping[str, SlurmNode]) -> dict[str, list[str]]:
    """Return the nodes of an order by what each of them gives, as Slurm writes it."""
    found: dict[str, list[str]] = {}
    for name, gpus in order.gpus_by_node.items():
        node = nodes[name]
        kind = "gpu" if node.slurm_type is None else f"gpu:{node.slurm_type}"
        count = node.shards_per_gpu // JOBS_PER_SHARED_GPU
        resource = f"shard:{count}" if order.shared else f"{kind}:{len(gpus)}"
        found.setdefault(resource, []).append(name)
    return found


def _limits(order: Order, parameters: SlurmParameters, gpus: int) -> Iterator[str]:
    for name in ("partition", "account", "qos"):
        value = getattr(parameters, name)
        if value is not None:
            yield f"--{name}={value}"
    if parameters.cpus_per_gpu is not None:
        yield f"--cpus-per-task={parameters.cpus_per_gpu * order.gpus_per_replica}"
    if parameters.memory_gib_per_gpu is not None:
        yield f"--mem={int(parameters.memory_gib_per_gpu * gpus * 1024)}M"
