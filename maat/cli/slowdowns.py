"""`maat slowdowns`: what jobs on one GPU of a cluster were measured to cost each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maat.api.evidence import model_words, reporters_words
from maat.cli.measure import put_rows
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.library.live import cluster_or_first


def slowdowns(
    cluster: Annotated[
        str | None, typer.Option(help="Cluster id or name; default: the first.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Also add them to this CSV, for --interference.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List what jobs that shared a GPU cost each other, by their models."""
    with client_of(url) as maat:
        found = maat.slowdowns(cluster_or_first(maat, cluster))
    rows = [
        [
            model_words(one["victim"], one["victim_tenant"]),
            str(one["victim_batch"]),
            model_words(one["partner"], one["partner_tenant"]),
            str(one["partner_batch"]),
            one["gpu_type"],
            str(one["gpu_count"]),
            f"{one['slowdown']:.2f} ± {one['spread']:.2f}",
            str(one["reports"]),
            "yes" if one["is_used"] else "not yet",
            reporters_words(one["reported_by"]),
        ]
        for one in found
    ]
    if output is not None:
        used = [one for one in found if one["is_used"]]
        put_rows(
            output,
            [
                [
                    one["victim"],
                    one["partner"],
                    str(one["gpu_count"]),
                    f"{max(one['slowdown'], 1.0):.4f}",
                ]
                for one in used
            ],
        )
    columns = (
        "victim",
        "batch",
        "beside",
        "its batch",
        "GPU type",
        "GPUs",
        "slowdown",
        "reports",
        "used",
        "reported by",
    )
    show(found, as_json, table_of(columns, rows) if rows else "No pair was measured yet.")
