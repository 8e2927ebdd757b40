"""How a call can fail.

The service describes a problem (`ApiError`), or it does not answer (`Unreachable`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One error in one field of a request: where, what, and what to do."""

    pointer: str
    field: str
    message: str
    code: str = ""
    remedy: str = ""
    value: object = None
    row: int | None = None

    @property
    def sentence(self) -> str:
        """The message and the remedy, as shown beside the field."""
        return f"{self.message} {self.remedy}".strip()

    @property
    def place(self) -> str:
        """Where the field is in the request: `changes.drain_nodes.0`; of a table, also the row."""
        place = self.pointer.strip("/").replace("/", ".") or self.field
        return place if self.row is None else f"{place}, row {self.row}"

    @property
    def full_sentence(self) -> str:
        """The sentence after `place`, with the refused value where the message does not name it.

        An object is not shown: nobody has typed it as it stands there.
        """
        message, value = self.message.removeprefix(f"{self.field} "), self.value
        begins = value[:1] if isinstance(value, str) else ""
        if value is None or begins == "{" or str(value) in message:
            return f"{message} {self.remedy}".strip()
        got = value if begins == "[" else repr(value)
        return f"{message.rstrip('.')} (got {got}). {self.remedy}".strip()

    @classmethod
    def parse(cls, item: dict[str, Any]) -> FieldProblem:
        pointer = str(item.get("pointer") or "")
        field = str(item.get("field") or pointer.rsplit("/", 1)[-1])
        text = {name: str(item.get(name) or "") for name in ("message", "code", "remedy")}
        return cls(
            pointer=pointer, field=field, value=item.get("value"), row=item.get("row"), **text
        )


class ApiError(Exception):
    """The service refused or failed, and said why (application/problem+json)."""

    def __init__(
        self,
        *,
        status: int,
        title: str,
        detail: str = "",
        remedy: str = "",
        type: str = "about:blank",
        request_id: str = "",
        retryable: bool = False,
        errors: tuple[FieldProblem, ...] = (),
    ) -> None:
        super().__init__(": ".join(part for part in (title, detail) if part))
        self.status = status
        self.title = title
        self.detail = detail
        self.remedy = remedy
        self.type = type
        self.request_id = request_id
        self.retryable = retryable
        self.errors = errors

    @property
    def by_field(self) -> dict[str, str]:
        """Field name -> sentence; several problems of one field are joined."""
        sentences: dict[str, list[str]] = {}
        for error in self.errors:
            sentences.setdefault(error.field, []).append(error.sentence)
        return {field: " ".join(lines) for field, lines in sentences.items()}

    @property
    def summary(self) -> str:
        """What went wrong, without what the errors of fields say by themselves."""
        is_told = any(
            error.message in self.detail or (error.remedy and error.remedy in self.detail)
            for error in self.errors
        )
        return f"{self.title}:" if is_told else str(self)

    @property
    def next_step(self) -> str:
        """What to do next, where neither the detail nor an error of a field says it already."""
        return "" if self.errors or self.remedy in self.detail else self.remedy

    @classmethod
    def of(cls, response: httpx.Response) -> ApiError:
        """Read the problem in a response.

        A body that is not a problem document gives an error with the status only.
        """
        body = _object(response)
        listed = body.get("errors")
        return cls(
            status=response.status_code,
            title=str(body.get("title") or response.reason_phrase or "Error"),
            detail=str(body.get("detail") or ""),
            remedy=str(body.get("remedy") or ""),
            type=str(body.get("type") or "about:blank"),
            request_id=str(body.get("request_id") or response.headers.get("x-request-id", "")),
            retryable=bool(body.get("retryable", response.status_code in {429, 502, 503, 504})),
            errors=tuple(FieldProblem.parse(item) for item in listed if isinstance(item, dict))
            if isinstance(listed, list)
            else (),
        )


class Unreachable(Exception):
    """The service gave no answer.

    It is not running, has another address, or the network failed.
    """


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
