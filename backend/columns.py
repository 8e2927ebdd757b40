"""Column types with one meaning on SQLite and PostgreSQL, and compressed JSON."""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from pydantic import BaseModel, ValidationError
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

Model = TypeVar("Model", bound=BaseModel)

JsonValue = dict[str, Any] | list[Any] | str | int | float | bool | None


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC. SQLite stores no time zone, so its values are read as UTC."""

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
    """JSON text encoded beforehand, for a JSON column.

    Encoding takes longer than writing, and SQLite allows one writer at a time.
    """

    __slots__ = ()


def to_json(value: object) -> str:
    """Encode a column's value; used by both engines."""
    return value if isinstance(value, JsonText) else json.dumps(value)


def json_text(value: object) -> JsonText:
    """Encode a value. Raises ValueError on NaN or infinity: neither is JSON."""
    return JsonText(_encode(value))


class CompressedJson(TypeDecorator[JsonValue | bytes]):
    """JSON stored as zlib bytes: for large values that are read one at a time.

    Also accepts bytes from `pack_json`.
    """

    impl = sa.LargeBinary
    cache_ok = True

    def process_bind_param(self, value: JsonValue | bytes, dialect: Dialect) -> bytes | None:
        return value if value is None or isinstance(value, bytes) else pack_json(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> JsonValue:
        return None if value is None else unpack_json(value)


class Unreadable:
    """Stands for a stored model that this version refuses: a newer version may have written it."""


class CompressedModel(TypeDecorator[Model | Unreadable | bytes], Generic[Model]):
    """A pydantic model as compressed JSON, validated once: when its row is read.

    The model's own validators bring older rows to the present shape. What they refuse is read as
    Unreadable, so that other rows can still be shown. Also accepts bytes from `pack_json`.
    """

    impl = sa.LargeBinary
    cache_ok = True

    def __init__(self, model: type[Model]) -> None:
        super().__init__()
        self.model = model

    def process_bind_param(
        self, value: Model | Unreadable | bytes | None, dialect: Dialect
    ) -> bytes | None:
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, Unreadable):
            raise ValueError("what could not be read is not written again")
        return pack_json(value.model_dump(mode="json"))

    def process_result_value(
        self, value: bytes | None, dialect: Dialect
    ) -> Model | Unreadable | None:
        if value is None:
            return None
        try:
            return self.model.model_validate(unpack_json(value))
        except ValidationError:
            return Unreadable()


def pack_json(value: JsonValue) -> bytes:
    """Encode and compress. Raises ValueError on NaN or infinity: neither is JSON."""
    return zlib.compress(_encode(value).encode(), level=6)


def unpack_json(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))


class WithoutIndex(ReturnTypeFromArgs[Any]):
    """A value whose index the database must not use to find or order rows.

    Another index leads to fewer rows. PostgreSQL knows this from its statistics; SQLite keeps none
    and treats all indexes as equal, so a plus sign excludes the index.
    """

    inherit_cache = True


@compiles(WithoutIndex)
def _unchanged(element: WithoutIndex, compiler: Any, **given: Any) -> str:
    return str(compiler.process(element.clauses, **given))


@compiles(WithoutIndex, "sqlite")
def _unindexed(element: WithoutIndex, compiler: Any, **given: Any) -> str:
    return f"+{_unchanged(element, compiler, **given)}"


Json = sa.JSON(none_as_null=True)
BigId = sa.BigInteger().with_variant(sa.Integer, "sqlite")
BigCount = BigId
"""What a request may count beyond LARGEST_INTEGER, up to LARGEST_COUNT (maat/vocabulary.py)."""
