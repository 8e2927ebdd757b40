"""Who reported what is believed, in words."""

from __future__ import annotations

from frontend.components.names import isolated
from maat.api.evidence import ReportersOut, reporters_words


def who(reporters: ReportersOut) -> str:
    names = [isolated(name) for name in reporters["tenants"]]
    return reporters_words({**reporters, "tenants": names})
