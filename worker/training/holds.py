"""Which GPUs attempts hold where the engine chooses them: counts first, indices once it names them.

Pure: GPU indices by node, by attempt. No GPU is in two attempts' hands, whatever an engine says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

GpusByNode: TypeAlias = Mapping[str, Sequence[int]]


def free_gpus(
    wanted: GpusByNode, held: Mapping[str, set[int]], sizes: Mapping[str, int]
) -> dict[str, list[int]] | None:
    """Return as many GPUs on each node as are wanted, the wanted ones if they are free.

    `held`: indices that nobody else may take. `sizes`: GPUs of each node. None if there are too
    few.
    """
    found = {}
    for node, indices in wanted.items():
        free = [index for index in range(sizes[node]) if index not in held.get(node, ())]
        chosen = sorted(free, key=lambda index: (index not in indices, index))[: len(indices)]
        if len(chosen) < len(indices):
            return None
        found[node] = sorted(chosen)
    return found


def as_named(
    held: Mapping[str, GpusByNode], named: Mapping[str, GpusByNode]
) -> dict[str, dict[str, list[int]]]:
    """Return what each attempt holds once the engine has named the GPUs of some.

    `held`: what attempts hold; no GPU twice. An attempt whose GPU was named for another one, and
    for which none was named yet, gets another of the GPUs in `held`. If the engine names one GPU
    for two attempts, the one that holds it keeps it, and the other gets it in a later call, once
    the first has ended.
    """
    found: dict[str, dict[str, list[int]]] = {attempt: {} for attempt in held}
    for node in dict.fromkeys(node for gpus in held.values() for node in gpus):
        on_node = {attempt: set(gpus[node]) for attempt, gpus in held.items() if node in gpus}
        claims = {
            attempt: set(named[attempt][node])
            for attempt, indices in on_node.items()
            if node in named.get(attempt, {}) and len(set(named[attempt][node])) == len(indices)
        }
        for attempt, indices in _settled(on_node, claims).items():
            found[attempt][node] = sorted(indices)
    return found


def _settled(held: Mapping[str, set[int]], claims: Mapping[str, set[int]]) -> dict[str, set[int]]:
    """Settle the claims on one node, those first that change nothing."""
    settled: dict[str, set[int]] = {}
    taken: set[int] = set()
    for attempt in sorted(claims, key=lambda each: (claims[each] != held[each], each)):
        if not claims[attempt] & taken:
            settled[attempt] = claims[attempt]
            taken |= claims[attempt]
    others = {attempt: held[attempt] - taken for attempt in held if attempt not in settled}
    left = set().union(*held.values(), *claims.values()) - taken
    for indices in others.values():
        left -= indices
    for attempt, kept in others.items():
        more = sorted(left)[: len(held[attempt]) - len(kept)]
        left -= set(more)
        settled[attempt] = kept | set(more)
    return settled
