"""The cluster map as data: the GPUs of every node, and which job holds them.

assets/cluster_map.js draws it as elements of the page instead of a Plotly figure, so that every
square can be reached by key and the map wraps to the width of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2s
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias, TypedDict
from zlib import crc32

from frontend.others import is_other, told_job
from maat.api.clusters import GpuOut
from maat.colours import gpu_colour, gpu_order
from maat.figures.theme import mix, palette, readable_on

SHADES = 5
_node_of = itemgetter("node")
_drawn_of = itemgetter(
    "node", "gpu_type", "drained", "held", "job_id", "job_name", "tenant", "shared_with"
)
Faults: TypeAlias = Mapping[str, str]
"""By the name of a node that cannot be used, why."""


class Stretch(TypedDict):
    """Adjacent GPUs of one node that the same jobs hold, or that are free, or out of service.

    `name`: of all jobs that share them; `job`: the first, None if the visitor may not see it.
    """

    first: int
    count: int
    kind: str  # job, free, drained
    name: str
    job: str | None
    tenant: str | None
    shade: int


class NodeDrawing(TypedDict):
    """A node: a group of squares on the map, a row of the list of nodes.

    `drained`: GPUs that were drained; `out`: GPUs out of service, all of them with a `fault`.
    """

    name: str
    gpu_type: str
    colour: str
    gpu_count: int
    held: int
    drained: int
    out: int
    fault: str
    stretches: list[Stretch]


class Known(TypedDict):
    """What a browser has drawn already: the colour scheme, and a digest of every node."""

    scheme: str
    digests: list[str]


def node_drawings(cells: Sequence[GpuOut], faults: Faults | None = None) -> list[NodeDrawing]:
    """The nodes in the order of their GPUs' numbers. `cells`: the GPUs of a cluster's state."""
    return [_node(name, gpus, fault) for name, gpus, fault in _nodes(cells, faults)]


def map_changes(
    cells: Sequence[GpuOut], known: Known | None, *, scheme: str, faults: Faults | None = None
) -> dict[str, object] | None:
    """What a browser that has drawn `known` lacks of the map; None where that is nothing.

    `nodes` holds the changed nodes by their place among all `count`, `digests` their digests, and
    `looks` the colours.
    """
    nodes = _nodes(cells, faults)
    digests = [_digest(gpus, fault) for _, gpus, fault in nodes]
    before = known["digests"] if known else []
    changed = [
        place
        for place, digest in enumerate(digests)
        if place >= len(before) or before[place] != digest
    ]
    if known and not changed and len(before) == len(nodes) and known["scheme"] == scheme:
        return None
    return {
        "count": len(nodes),
        "nodes": {place: _node(*nodes[place]) for place in changed},
        "digests": {place: digests[place] for place in changed},
        "scheme": scheme,
        "looks": looks(cells, scheme=scheme),
    }


def _nodes(cells: Sequence[GpuOut], faults: Faults | None) -> list[tuple[str, list[GpuOut], str]]:
    """Return the name of every node, its GPUs, and why it cannot be used."""
    return [
        (name, list(gpus), (faults or {}).get(name, ""))
        for name, gpus in groupby(cells, key=_node_of)
    ]


def message(
    title: str, remedy: str, *, failed: bool = False, way: tuple[str, str] | None = None
) -> dict[str, object]:
    """What stands where there is no map: what is the case, and what to do.

    `way`: words and address of a button.
    """
    return {"title": title, "remedy": remedy, "failed": failed, "way": way}


def looks(cells: Sequence[GpuOut], *, scheme: str) -> dict[str, object]:
    """GPU types in their order, each with its colour and its shades: fill and ink."""
    colours = palette(scheme)
    depth = "#ffffff" if colours.name == "dark" else "#000000"
    types = []
    for name in gpu_order(str(cell["gpu_type"]) for cell in cells):
        base = gpu_colour(name)
        shades = [
            base,
            *(mix(base, colours.card, part) for part in (0.32, 0.56)),
            *(mix(base, depth, part) for part in (0.24, 0.42)),
        ]
        types.append(
            {
                "name": name,
                "colour": base,
                "shades": [{"fill": fill, "ink": readable_on(fill)} for fill in shades],
            }
        )
    return {"types": types}


def _node(name: str, gpus: Sequence[GpuOut], fault: str) -> NodeDrawing:
    gpu_type = str(gpus[0]["gpu_type"])
    return {
        "name": name,
        "gpu_type": gpu_type,
        "colour": gpu_colour(gpu_type),
        "gpu_count": len(gpus),
        "held": sum(bool(gpu["held"]) for gpu in gpus),
        "drained": (drained := sum(bool(gpu["drained"]) for gpu in gpus)),
        "out": len(gpus) if fault else drained,
        "fault": fault,
        "stretches": _stretches(gpus, fault),
    }


def _stretches(gpus: Sequence[GpuOut], fault: str) -> list[Stretch]:
    """Return the stretches of a node.

    The shade of a job follows from its id; the next shade is taken if the job at its left has the
    same. assets/cluster_shades.js compares with the rows above and below.
    """
    found: list[Stretch] = []
    for (kind, name, job), side_by_side in groupby(
        enumerate(gpus), key=lambda item: _holder(item[1], fault)
    ):
        places = [place for place, _ in side_by_side]
        shade = crc32((job or name).encode()) % SHADES if kind == "job" else 0
        if found and found[-1]["kind"] == kind and found[-1]["shade"] == shade:
            shade = (shade + 1) % SHADES
        tenant = gpus[places[0]].get("tenant")
        found.append(
            {
                "first": places[0],
                "count": len(places),
                "kind": kind,
                "name": name,
                "job": job,
                "tenant": tenant,
                "shade": shade,
            }
        )
    return found


def _holder(gpu: GpuOut, fault: str) -> tuple[str, str, str | None]:
    """What a GPU is to the map: kind, name of its holder, id of the job where it may be shown."""
    if not gpu["held"] and fault:
        return "drained", f"out of service: {fault.rstrip('.')}", None
    if not gpu["held"]:
        return ("drained", "out of service", None) if gpu["drained"] else ("free", "free", None)
    job = str(gpu["job_id"])
    names = [_job_words(job, gpu["job_name"])]
    names += [_job_words(other["job_id"], other["job_name"]) for other in gpu["shared_with"]]
    return "job", " and ".join(names), None if is_other(job) else job


def _job_words(job: str, name: str | None) -> str:
    return told_job(job) if is_other(job) else name or job


def _digest(gpus: Sequence[GpuOut], fault: str) -> str:
    """Return a digest of all that the drawing of a node follows from, but for GPUs' numbers."""
    told = [fault, *map(_drawn_of, gpus)]
    return blake2s(repr(told).encode(), digest_size=6).hexdigest()
