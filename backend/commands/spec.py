"""A job that is a command, as the scheduler sees it. Pure.

The catalog does not know it: what it needs comes from its owner, its speed from what it reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from types import MappingProxyType

from maat.scheduling.job import UNKNOWN_WORK, JobDeclaration, JobSpec, MemoryLimits
from maat.vocabulary import Adaptivity

NO_PENALTY: Mapping[str, float] = MappingProxyType({})
_LARGEST_OVER_INITIAL = 8
_RESTART_SECONDS = 30.0
_SAFE_SHARE = 0.9  # of what was too much: maat.agent.memory.SAFE_SHARE


def command_spec(
    job: JobDeclaration,
    *,
    id: str,
    submitted_at: float,
    gpu_types: Iterable[str],
    work: float | None,
    out_of_memory_at: Mapping[str, int] | None = None,
    owner: str = "local",
    tenant: str = "default",
    restart_seconds: float = _RESTART_SECONDS,
    step_penalty: Mapping[str, float] = NO_PENALTY,
) -> JobSpec:
    """Complete a declaration for a cluster of these GPU types.

    Its batch size is the one that it was tuned for; an adaptive job may grow eight times beyond,
    unless it says. A rigid job need not say: one sample per GPU stands for it. Of samples for which
    a GPU type had no room (`out_of_memory_at`), nine tenths are the most. Raises JobError.
    """
    adaptivity = job.adaptivity or Adaptivity.ADAPTIVE
    initial = job.batch_size or job.gpu_count or 1
    grows = adaptivity is Adaptivity.ADAPTIVE and job.batch_size is not None
    largest = job.max_batch_size or (initial * _LARGEST_OVER_INITIAL if grows else initial)
    completed = asdict(job) | {
        "adaptivity": adaptivity,
        "batch_size": initial,
        "max_batch_size": largest,
    }
    return JobSpec(
        **completed,
        id=id,
        submitted_at=submitted_at,
        owner=owner,
        tenant=tenant,
        work=UNKNOWN_WORK if work is None else work,
        initial_batch_size=initial,
        memory={name: _memory(largest, (out_of_memory_at or {}).get(name)) for name in gpu_types},
        restart_seconds=restart_seconds,
        step_penalty=step_penalty,
    )


def _memory(largest: int, too_many: int | None) -> MemoryLimits:
    if too_many is None:
        return MemoryLimits(1, largest, fills_gpu=False)
    return MemoryLimits(1, min(largest, max(int(too_many * _SAFE_SHARE), 1)))
