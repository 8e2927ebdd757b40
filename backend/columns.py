"""Column types that mean the same on SQLite and on PostgreSQL, and the codec of compressed JSON."""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import ReturnTypeFromArgs
from sqlalchemy.types import TypeDecorator
from sqlmodel import SQLModel

# Named constraints: a later migration can drop one by name on both databases.
SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

JsonValue = dict[str, Any] | list[Any] | str | int | float | bool | None


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC. SQLite forgets time zones: what it returns is UTC by construction."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone: every stored moment is UTC")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class JsonText(str):
    """JSON made beforehand, for a column of JSON: making it takes longer than writing it, and SQLite lets one write at a time."""

    __slots__ = ()


def to_json(value: object) -> str:
    """How the engines make JSON of a column's value."""
    return value if isinstance(value, JsonText) else json.dumps(value)


def json_text(value: object) -> JsonText:
    """Raises ValueError on NaN or infinity: neither is JSON."""
    return JsonText(_encode(value))


class CompressedJson(TypeDecorator[JsonValue | bytes]):
    """JSON kept as zlib bytes: for what is large and read one at a time. Takes what `pack_json` made beforehand as well."""

    impl = sa.LargeBinary
    cache_ok = True

    def process_bind_param(self, value: JsonValue | bytes, dialect: Dialect) -> bytes | None:
        return value if value is None or isinstance(value, bytes) else pack_json(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> JsonValue:
        return None if value is None else unpack_json(value)


def pack_json(value: JsonValue) -> bytes:
    """Raises ValueError on NaN or infinity: neither is JSON."""
    return zlib.compress(_encode(value).encode(), level=6)


def unpack_json(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))


class Beside(ReturnTypeFromArgs[Any]):
    """The same value, which rows are not to be looked up or read in order by, since an index of something else leads to fewer of them.

    PostgreSQL knows by its statistics. SQLite keeps none, takes any index for as good as any other, and is told by a plus sign.
    """

    inherit_cache = True


@compiles(Beside)
def _plainly(element: Beside, compiler: Any, **given: Any) -> str:
    return str(compiler.process(element.clauses, **given))


@compiles(Beside, "sqlite")
def _beside_every_index(element: Beside, compiler: Any, **given: Any) -> str:
    return f"+{_plainly(element, compiler, **given)}"


Json = sa.JSON(none_as_null=True)
BigId = sa.BigInteger().with_variant(sa.Integer, "sqlite")
