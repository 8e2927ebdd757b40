"""`maat quotas`, `maat quota`, `maat unquota` and `maat weight`: what tenants may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.numbers import whole_option
from maat.cli.service import (
    DEFAULT_URL,
    AsJson,
    Url,
    client_of,
    show,
    table_of,
)
from maat.library.live import cluster_or_first
from maat.library.numbers import number_reader
from maat.scheduling.errors import ParameterError
from maat.vocabulary import LEAST_WEIGHT, MAX_GPUS, MOST_WEIGHT

if TYPE_CHECKING:
    from maat.api.quotas import QuotaOut, QuotaPage
    from maat.client import Client

Cluster = Annotated[str | None, typer.Option(help="Cluster id or name; default: the first.")]
OfTenant = Annotated[str, typer.Argument(help="The tenant's name or id.")]
GpuType = Annotated[str, typer.Option("--gpu-type", help="GPU type.")]


def quotas(cluster: Cluster = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List quotas: what each tenant is guaranteed, may hold at most, and holds now."""
    with client_of(url) as maat:
        found = _all_quotas(maat, cluster_or_first(maat, cluster))
    show(found, as_json, _report(found))


def quota(
    tenant: OfTenant,
    gpu_type: GpuType,
    guaranteed: Annotated[
        int | None,
        whole_option(
            "--guaranteed",
            least=0,
            most=MAX_GPUS,
            help="GPUs that it has whenever it wants them; default: as it was, or 0.",
        ),
    ] = None,
    ceiling: Annotated[
        int | None,
        whole_option(
            "--ceiling",
            least=0,
            most=MAX_GPUS,
            help="The most that its jobs may hold; default: as it was, or no ceiling.",
        ),
    ] = None,
    no_ceiling: Annotated[bool, typer.Option("--no-ceiling", help="Remove the ceiling.")] = False,
    accept_preemption: Annotated[
        bool,
        typer.Option(
            "--accept-preemption",
            help="Let running jobs lose GPUs if the ceiling is below what they hold.",
        ),
    ] = False,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Guarantee a tenant GPUs of a type, and bound how many it may hold."""
    if ceiling is not None and no_ceiling:
        raise ParameterError(
            "says the opposite of --ceiling",
            field="--no-ceiling",
            remedy="Give one of the two.",
        )
    if guaranteed is None and ceiling is None and not no_ceiling:
        raise ParameterError(
            "is missing, and so is --ceiling",
            field="--guaranteed",
            remedy="Say what to change: --guaranteed, --ceiling or --no-ceiling.",
        )
    with client_of(url) as maat:
        where = cluster_or_first(maat, cluster)
        before = _quota_of(maat, where, tenant, gpu_type)
        kept = {} if before is None else {n: before[n] for n in ("guaranteed", "ceiling")}
        given = {"guaranteed": guaranteed, "ceiling": ceiling}
        body: Any = kept | {name: value for name, value in given.items() if value is not None}
        body |= {"ceiling": None} if no_ceiling else {}
        body |= {"accept_preemption": True} if accept_preemption else {}
        version = None if before is None else before["version"]
        made = maat.set_quota(where, tenant, gpu_type, body, version=version)
    show(made, as_json, _sentence(made))


def unquota(
    tenant: OfTenant,
    gpu_type: GpuType,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Remove a quota: nothing of the type is then guaranteed or bounded."""
    with client_of(url) as maat:
        where = cluster_or_first(maat, cluster)
        known = maat.quota(where, tenant, gpu_type)
        maat.remove_quota(where, tenant, gpu_type, version=known["version"])
    show(
        {"removed": known},
        as_json,
        f"The quota of {known['tenant']} on {gpu_type} is removed",
    )


def weight(
    tenant: OfTenant,
    weight: Annotated[
        float,
        typer.Argument(
            parser=number_reader("weight", least=LEAST_WEIGHT, most=MOST_WEIGHT),
            metavar="WEIGHT",
            help=f"{LEAST_WEIGHT:g} to {MOST_WEIGHT:g}: of two tenants with 2 and 1, one gets two "
            "thirds of what both want.",
        ),
    ],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Weigh a tenant: its share of what several tenants want, in all clusters."""
    with client_of(url) as maat:
        version = maat.tenant(tenant)["version"]
        changed = maat.change_tenant(tenant, {"weight": weight}, version=version)
    show(changed, as_json, f"{changed['name']} has the weight {changed['weight']:g}")


def _all_quotas(maat: Client, cluster: str) -> QuotaPage:
    """Return all quotas as one page."""
    found = maat.quotas(cluster)
    while found["next_cursor"] is not None:
        more = maat.quotas(cluster, cursor=found["next_cursor"])
        found = {**more, "items": [*found["items"], *more["items"]]}
    return found


def _quota_of(maat: Client, cluster: str, tenant: str, gpu_type: str) -> QuotaOut | None:
    from maat.client import ApiError

    try:
        return maat.quota(cluster, tenant, gpu_type)
    except ApiError as error:
        if error.status != 404:
            raise
        return None  # no quota; if there is no such tenant or cluster, setting one says so


def _report(found: QuotaPage) -> str:
    columns = (
        "tenant",
        "weight",
        "gpu_type",
        "in use",
        "guaranteed",
        "ceiling",
        "borrowed",
        "lent",
    )
    rows = [
        [
            one["tenant"],
            f"{one['weight']:g}",
            one["gpu_type"],
            str(one["in_use"]),
            str(one["guaranteed"]),
            "-" if one["ceiling"] is None else str(one["ceiling"]),
            str(one["borrowed"]),
            str(one["lent"]),
        ]
        for one in found["items"]
    ]
    none = "No quota: every tenant may hold all GPUs."
    of_types = [
        f"{one['gpu_type']}: {one['in_use']} of {one['gpus']} GPUs in use"
        + ("" if one["guaranteed"] is None else f", {one['guaranteed']} guaranteed")
        for one in found["gpu_types"]
    ]
    return "\n".join([table_of(columns, rows) if rows else none, "", *of_types])


def _sentence(made: QuotaOut) -> str:
    bound = "no ceiling" if made["ceiling"] is None else f"a ceiling of {made['ceiling']}"
    return (
        f"{made['tenant']} is guaranteed {made['guaranteed']} {made['gpu_type']}, with {bound}; "
        f"it holds {made['in_use']}"
    )
