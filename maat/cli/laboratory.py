"""`maat laboratory`: the CPU time that tenants use for simulations, and what is left of it."""

from __future__ import annotations

from maat.api.laboratory import LaboratoryUseOut
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of

_COLUMNS = ("tenant", "CPU hours in 24 h", "left", "free at", "of one run", "by kind")


def laboratory(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show the CPU hours that simulations and other work took in 24 hours, and what is left."""
    with client_of(url) as maat:
        found = maat.laboratory_use()
    show(found, as_json, table_of(_COLUMNS, [_row(use) for use in found]))


def _row(use: LaboratoryUseOut) -> list[str]:
    kinds = ", ".join(f"{one['kind']} {one['cpu_seconds'] / 3600:.2f}" for one in use["by_kind"])
    return [
        use["tenant"],
        f"{use['used_cpu_seconds'] / 3600:.2f}",
        _hours(use["left_cpu_seconds"]),
        str(use["free_at"] or "now"),
        _hours(use["run_cpu_seconds"]),
        kinds,
    ]


def _hours(seconds: float | None) -> str:
    return "no limit" if seconds is None else f"{seconds / 3600:.2f}"
