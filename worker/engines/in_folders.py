"""What engines share that keep all they know of an attempt in its folder: checks, spec, the end."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from maat.launch.attempt_dir import AttemptDir, Limits, Spec
from worker.engines.protocol import EngineNode, Order, Phase, Refused, Seen

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_attempt(attempt_id: str) -> bool:
    """Return whether this can be the name of an attempt, and of a folder."""
    return _NAME.fullmatch(attempt_id) is not None


def folder_of(order: Order, here: Path) -> AttemptDir:
    """Return the order's folder. Raises Refused if it is not `here`."""
    if not is_attempt(order.attempt_id):
        raise Refused(f"An attempt cannot be called {order.attempt_id!r}.")
    if order.directory.resolve() != here:
        raise Refused(f"The folder of {order.attempt_id} is {here}, not {order.directory}.")
    return AttemptDir(str(here))


def check(order: Order, nodes: Mapping[str, EngineNode]) -> None:
    """Raise Refused for an order that cannot be carried out on these nodes as it stands."""
    if not order.argv:
        raise Refused("The command is empty.")
    if not order.cwd.is_absolute():
        raise Refused(f"The folder to run in must be absolute, and {order.cwd} is not.")
    if not (math.isfinite(order.stop_seconds) and order.stop_seconds >= 0):
        raise Refused(f"stop_seconds must be a number from 0 on, not {order.stop_seconds}.")
    _check_strings(order)
    if order.gpus_per_replica < 1:
        raise Refused(f"gpus_per_replica must be 1 or more, not {order.gpus_per_replica}.")
    if not order.gpus_by_node:
        raise Refused("The order names no node.")
    for name, gpus in order.gpus_by_node.items():
        _check_gpus(name, gpus, nodes, gpus_per_replica=order.gpus_per_replica)


def why_down(node: EngineNode) -> str:
    return f"Node {node.name} is down: {node.reason}"


def spec_of(
    order: Order,
    *,
    cuda_devices: Mapping[str, tuple[str, ...]] | None,
    threads: int,
    limits: Limits,
) -> Spec:
    """Return what the order's ranks are told."""
    return Spec(
        attempt_id=order.attempt_id,
        job_id=order.job_id,
        number=order.number,
        argv=order.argv,
        cwd=str(order.cwd),
        env=dict(order.env),
        secret_names=tuple(order.secrets),
        gpu_type=order.gpu_type,
        gpus_by_node=dict(order.gpus_by_node),
        gpus_per_replica=order.gpus_per_replica,
        cuda_devices=cuda_devices,
        threads=threads,
        stop_seconds=order.stop_seconds,
        limits=limits,
        plan=order.plan,
        checkpoint_directory=str(order.checkpoint_directory),
        profile=order.profile,
    )


def ended_as_written(engine_id: str, ended: Mapping[str, Any]) -> Seen:
    """Return the end that exit.json tells. Raises what a spoilt file deserves."""
    return Seen(
        Phase.ENDED,
        engine_id=engine_id,
        exits={int(rank): code for rank, code in ended["codes"].items()},
        first_failed=ended["first_failed"],
        reason=ended["lost"] or ended.get("reason") or "",
        by_engine=ended["lost"] is not None,
        cancelled=ended.get("cancelled") is True,
        full_folder=ended.get("full") or "",
    )


def unreadable(attempt: AttemptDir, error: Exception) -> Seen:
    """Return what is seen of a folder that the job has spoilt: it can write there too."""
    return Seen(Phase.UNKNOWN, reason=f"{attempt.path} cannot be read: {error!r}")


SPOILT = (OSError, LookupError, TypeError, ValueError, AttributeError)
"""What reading a spoilt folder raises."""


def _check_gpus(
    name: str, gpus: Sequence[int], nodes: Mapping[str, EngineNode], *, gpus_per_replica: int
) -> None:
    node = nodes.get(name)
    if node is None:
        raise Refused(f"There is no node {name!r}; the nodes are {', '.join(nodes)}.")
    if not node.up:
        raise Refused(why_down(node))
    if not gpus or len(set(gpus)) < len(gpus) or len(gpus) % gpus_per_replica:
        raise Refused(
            f"Node {name!r} must give different GPUs, {gpus_per_replica} for each replica, "
            f"not {list(gpus)}."
        )
    absent = [gpu for gpu in gpus if gpu not in range(node.gpu_count)]
    if absent:
        raise Refused(f"Node {name!r} has no GPU {absent[0]}: its {node.gpu_count} count from 0.")


def _check_strings(order: Order) -> None:
    """Raise Refused for what no process can be given."""
    variables = {**order.env, **order.secrets}
    for name in variables:
        if not name or "=" in name:
            raise Refused(f"An environment variable cannot be called {name!r}.")
    for text in (*order.argv, str(order.cwd), *variables, *variables.values()):
        try:
            impossible = b"\0" in os.fsencode(text)
        except UnicodeEncodeError:
            impossible = True
        if impossible:
            raise Refused("The command, its folder and environment must be text without NUL.")
