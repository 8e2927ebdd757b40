"""What several changes of accounts refuse in the same words."""

from __future__ import annotations

from backend.problems import FieldError, Invalid


def invalid(pointer: str, code: str, message: str, remedy: str, value: object = None) -> Invalid:
    return Invalid(
        f"{message} {remedy}", errors=[FieldError(pointer, code, message, remedy, value)]
    )


def unknown_tenant(name: str) -> Invalid:
    """The same whether there is none or it may not be seen."""
    return invalid(
        "/tenant", "unknown_tenant", "There is no tenant of this name.", "See GET /tenants.", name
    )
