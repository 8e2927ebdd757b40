"""Gives columns to other libraries through Arrow's C stream interface, without Arrow.

https://arrow.apache.org/docs/format/CStreamInterface.html. Knows no table.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Kind = type[int] | type[float] | type[str] | type[bool]
"""What a column holds: 64-bit integers, 64-bit floats, UTF-8 or booleans; each may have None."""

_FORMATS: Mapping[Kind, bytes] = {int: b"l", float: b"g", str: b"u", bool: b"b"}
_NULLABLE = 2  # ARROW_FLAG_NULLABLE
_NAME = b"arrow_array_stream"


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
_GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_LastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_Stream._fields_ = [
    ("get_schema", ctypes.c_void_p),
    ("get_next", ctypes.c_void_p),
    ("get_last_error", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

# What other libraries still read, by the number in a structure's private_data. They may copy a
# structure elsewhere and release it there, so neither its address nor our own references say when
# its memory may go: only its release does.
_kept: dict[int, Any] = {}
_numbers = itertools.count(1)


def stream_capsule(columns: Mapping[str, tuple[Kind, Sequence[Any]]]) -> object:
    """Return a PyCapsule "arrow_array_stream" of one batch with these columns.

    `columns`: kind and values by name; all of one length; None is null.
    """
    stream = _Stream()
    stream.get_schema, stream.get_next = _pointer(_get_schema), _pointer(_get_next)
    stream.get_last_error, stream.release = _pointer(_get_last_error), _pointer(_release_stream)
    stream.private_data = _keep({"columns": columns, "given": False})
    address = ctypes.addressof(stream)
    _streams[address] = stream
    return _new_capsule(address, _NAME, _pointer(_destroy_capsule))


_streams: dict[int, _Stream] = {}  # the memory of capsules, until they are destroyed


def _keep(what: object) -> int:
    number = next(_numbers)
    _kept[number] = what
    return number


def _export_schema(
    to: _Schema, *, name: str, form: bytes, children: Sequence[tuple[str, bytes]] = ()
) -> None:
    parts = [_Schema() for _ in children]
    for part, (child_name, child_form) in zip(parts, children, strict=True):
        _export_schema(part, name=child_name, form=child_form)
    pointers = (ctypes.POINTER(_Schema) * len(parts))(*(ctypes.pointer(part) for part in parts))
    encoded = name.encode()
    to.format, to.name, to.metadata = form, encoded, None
    to.flags, to.n_children, to.dictionary = _NULLABLE, len(parts), None
    to.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(_Schema)))
    to.private_data = _keep((parts, pointers, encoded, form))
    to.release = _pointer(_release_schema)


def _export_array(
    to: _Array, *, length: int, nulls: int, buffers: Sequence[bytes | None], parts: Sequence[_Array]
) -> None:
    """Fill a structure with buffers and, for a batch, the arrays of its columns."""
    held = [
        None if each is None else ctypes.create_string_buffer(each, len(each) or 1)
        for each in buffers
    ]
    addresses = (ctypes.c_void_p * len(held))(
        *(None if each is None else ctypes.addressof(each) for each in held)
    )
    pointers = (ctypes.POINTER(_Array) * len(parts))(*(ctypes.pointer(part) for part in parts))
    to.length, to.null_count, to.offset = length, nulls, 0
    to.n_buffers, to.n_children, to.dictionary = len(held), len(parts), None
    to.buffers = ctypes.cast(addresses, ctypes.POINTER(ctypes.c_void_p))
    to.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(_Array)))
    to.private_data = _keep((held, addresses, pointers, parts))
    to.release = _pointer(_release_array)


def _column(kind: Kind, values: Sequence[Any]) -> _Array:
    there = [value is not None for value in values]
    nulls = len(there) - sum(there)
    found = _Array()
    _export_array(
        found,
        length=len(values),
        nulls=nulls,
        buffers=[_bits(there) if nulls else None, *_data(kind, values)],
        parts=(),
    )
    return found


def _data(kind: Kind, values: Sequence[Any]) -> list[bytes]:
    """Return the buffers of the values, without that of the nulls."""
    if kind is bool:
        return [_bits([bool(value) for value in values])]
    if kind is str:
        texts = [b"" if value is None else str(value).encode() for value in values]
        ends = np.cumsum([0, *(len(text) for text in texts)])
        return [ends.astype(np.int32).tobytes(), b"".join(texts)]
    numbers = [0 if value is None else value for value in values]
    return [np.array(numbers, dtype=np.int64 if kind is int else np.float64).tobytes()]


def _bits(values: Sequence[bool]) -> bytes:
    return np.packbits(np.array(values, dtype=np.bool_), bitorder="little").tobytes()


# ---- what the other library calls


def _schema_of_stream(stream: int, out: int) -> int:
    columns = _kept[_Stream.from_address(stream).private_data]["columns"]
    children = [(name, _FORMATS[kind]) for name, (kind, _) in columns.items()]
    _export_schema(_Schema.from_address(out), name="", form=b"+s", children=children)
    return 0


def _next_of_stream(stream: int, out: int) -> int:
    """Give the batch, then a released array, which says that there is no more."""
    state, to = _kept[_Stream.from_address(stream).private_data], _Array.from_address(out)
    if state["given"]:
        to.release = None
        return 0
    state["given"] = True
    parts = [_column(kind, values) for kind, values in state["columns"].values()]
    length = parts[0].length if parts else 0
    _export_array(to, length=length, nulls=0, buffers=[None], parts=parts)
    return 0


def _release_parts(structure: Any) -> None:
    """Release what the other library has not taken out of a schema or array, then itself."""
    for i in range(structure.n_children):
        part = structure.children[i].contents
        if part.release:
            _Release(part.release)(ctypes.addressof(part))
    _kept.pop(structure.private_data, None)
    structure.release = None


def _end_stream(address: int) -> None:
    stream = _Stream.from_address(address)
    _kept.pop(stream.private_data, None)
    stream.release = None


def _end_capsule(capsule: int) -> None:
    address = _pointer_of_capsule(capsule, _NAME)
    stream = _Stream.from_address(address)
    if stream.release:
        _end_stream(address)
    del _streams[address]


def _for_ever(thunk: Any) -> Any:
    """Keep a callback for ever: tables may be released while the interpreter ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thunk))
    return thunk


def _pointer(thunk: Any) -> int | None:
    return ctypes.cast(thunk, ctypes.c_void_p).value


_get_schema = _for_ever(_GetNext(_schema_of_stream))
_get_next = _for_ever(_GetNext(_next_of_stream))
_get_last_error = _for_ever(_LastError(lambda _: None))
_release_schema = _for_ever(_Release(lambda at: _release_parts(_Schema.from_address(at))))
_release_array = _for_ever(_Release(lambda at: _release_parts(_Array.from_address(at))))
_release_stream = _for_ever(_Release(_end_stream))
_destroy_capsule = _for_ever(ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_end_capsule))

_new_capsule: Callable[[int, bytes, int | None], object] = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))
# By its address: a capsule that is being destroyed must not be referenced.
_pointer_of_capsule: Callable[[int, bytes], int] = ctypes.PYFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p
)(("PyCapsule_GetPointer", ctypes.pythonapi))
