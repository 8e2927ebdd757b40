"""`maat top`: a cluster and its queue, as they change."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Annotated

import typer

from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show
from maat.library.live import cluster_or_first


def top(
    cluster: Annotated[
        str | None, typer.Option(help="Cluster id or name; default: the first.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Print it as it is now, and end; so does a pipe.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show who runs where, who waits and why, and the next round, as they change.

    q or Ctrl+C ends it.
    """
    from maat.cli.live.changes import Changes
    from maat.cli.live.cluster_picture import picture_of
    from maat.cli.live.cluster_view import read_cluster
    from maat.cli.live.screen import Watched, show_changes
    from maat.cli.tables import plain_text

    with client_of(url) as maat, client_of(url) as listening:
        cluster_id = maat.cluster(cluster_or_first(maat, cluster))["id"]
        read = partial(read_cluster, maat, cluster_id)
        if once or as_json or not sys.stdout.isatty():
            view = read()
            show(view.as_json(), as_json, plain_text(picture_of(view, view.read_at)))
            return
        changes = Changes(listening, ("rounds", "jobs"), cluster_id)
        show_changes(
            Watched(changes, read),
            lambda view, away, lines: picture_of(view, time.monotonic(), away=away, lines=lines),
        )
