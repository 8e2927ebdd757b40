"""What the library asks of a running service: which client, which cluster, how an answer comes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from maat.scheduling.errors import ParameterError

if TYPE_CHECKING:
    from maat.client import Client


@contextmanager
def client_or_here(client: Client | None) -> Iterator[Client]:
    """Yield the client; None: one of a service on this machine, closed again."""
    if client is not None:
        yield client
        return
    from maat.client import Client

    with Client() as here:
        yield here


def cluster_or_first(maat: Client, named: str | None) -> str:
    """Return the named cluster, or the first. Raises ParameterError if there is none."""
    if named is not None:
        return named
    known = maat.clusters()
    if not known:
        raise ParameterError(
            "is missing: the service has none",
            field="cluster",
            remedy="Create one: maat create-cluster NAME --shape t4=6x4,a100=2x8.",
        )
    return known[0]["id"]
