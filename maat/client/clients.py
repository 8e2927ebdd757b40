"""The two clients: `Client` sends each call at once, `AsyncClient` awaits it.

`calls` defines the calls, methods.py makes them methods.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

import httpx

from maat.api.clusters import NodeOut
from maat.api.job_answers import JobOut
from maat.api.operations import OperationOut
from maat.client.calls import Call, JobFilters
from maat.client.errors import ApiError, Unreachable
from maat.client.event_stream import EventLines, Told, stream_of
from maat.client.following import followed
from maat.client.methods import Methods

Answer = TypeVar("Answer")

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_SECONDS = 30.0
KEPT_SECONDS = 3.0
"""A client lets go of an idle connection before the service does (uvicorn: after 5 s).

A call on a connection that is being closed would be lost.
"""


def _limits() -> httpx.Limits:
    return httpx.Limits(
        max_connections=100, max_keepalive_connections=20, keepalive_expiry=KEPT_SECONDS
    )


def _headers(token: str | None, headers: Mapping[str, str] | None) -> httpx.Headers:
    """Return the headers of every request: what a browser sent may hold any byte."""
    authorization = {"Authorization": f"Bearer {token}"} if token else {}
    given = {"Accept": "application/json", **(headers or {}), **authorization}
    return httpx.Headers(given, encoding="latin-1")


def _request(call: Call[Any]) -> dict[str, Any]:
    request: dict[str, Any] = {
        "method": call.method,
        "url": call.path,
        "params": call.query,
        "headers": call.headers,
    }
    return request if call.body is None else {**request, "json": call.body}


def _answer(response: httpx.Response) -> Any:
    if response.is_error or response.is_redirect:
        raise ApiError.of(response)
    if not response.content:
        return None
    is_json = response.headers.get("Content-Type", "").startswith("application/json")
    is_file = "Content-Disposition" in response.headers
    return response.json() if is_json and not is_file else response.content


def _no_answer(url: httpx.URL, error: Exception) -> Unreachable:
    return Unreachable(f"No answer from {url}: {error}. Is Maat running there?")


class Client(Methods):
    """Sends calls to a Maat service and waits for each answer.

    Raises ApiError if the service refuses, Unreachable if it does not answer. Every call of
    `maat.client.calls` is a method too, or goes by `send`.

    >>> import maat
    >>> here = maat.Client("http://127.0.0.1:8000", token="maat_...")
    >>> here.close()

    With `client`, one of a running service:

    >>> job = client.submit_job({"name": "mine", "model": "ncf", "max_gpus": 8})
    >>> client.job(job["id"])["name"], [each["name"] for each in client.every_job(q="mine")]
    ('mine', ['mine'])
    >>> sorted({node["gpu_type"] for node in client.every_node(client.clusters()[0]["id"])})
    ['a100', 'rtx', 't4']
    >>> asked = client.ask_forecast({"changes": {"policy": "fifo"}})
    >>> client.follow(asked["operation_id"])["state"]
    'succeeded'
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.url = url
        self._http = httpx.Client(
            base_url=url,
            headers=_headers(token, headers),
            transport=transport,
            timeout=timeout_seconds,
            limits=_limits(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; `with` does."""
        self._http.close()

    def send(self, call: Call[Answer]) -> Answer:
        """Send any call of `maat.client.calls`.

        >>> from maat.client import calls
        >>> client.send(calls.health())["status"]
        'ok'
        """
        try:
            response = self._http.request(**_request(call))
        except httpx.TransportError as error:
            raise _no_answer(self._http.base_url, error) from error
        return cast(Answer, _answer(response))

    def stream(self, call: Call[bytes]) -> Iterator[bytes]:
        """Yield the parts of a file as they come: it may be larger than memory.

        >>> from maat.client import calls
        >>> b"".join(client.stream(calls.audit_file("csv")))[:3]
        b'id,'
        """
        try:
            with self._http.stream(**_request(call)) as response:
                if not response.is_success:
                    response.read()
                    raise ApiError.of(response)
                yield from response.iter_bytes()
        except httpx.TransportError as error:
            raise _no_answer(self._http.base_url, error) from error

    def events(self, *topics: str, after: str | None = None) -> Iterator[Told]:
        """Yield what happens, as it happens, until the service ends the stream.

        `topics`: some of rounds, jobs, operations and health; default: the first three. `after`:
        the place of an event, to go on after it. An event holds ids to fetch.

        >>> happening = client.events("rounds", "jobs")
        >>> # for event in happening: ...
        """
        try:
            with self._http.stream(**_request(stream_of(topics, after))) as response:
                if not response.is_success:
                    response.read()
                    raise ApiError.of(response)
                yield from EventLines().all_of(response.iter_lines())
        except httpx.TransportError as error:
            raise _no_answer(self._http.base_url, error) from error

    def every_job(self, **filters: Unpack[JobFilters]) -> Iterator[JobOut]:
        """Yield all matching jobs, page after page."""
        while True:
            page = self.jobs(**filters)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            filters["cursor"] = page["next_cursor"]

    def every_node(self, cluster: str) -> list[NodeOut]:
        """Return all nodes of a cluster, page after page."""
        page = self.nodes(cluster)
        nodes = list(page["items"])
        while page["next_cursor"] is not None:
            page = self.nodes(cluster, cursor=page["next_cursor"])
            nodes += page["items"]
        return nodes

    def follow(
        self, operation_id: str, *, tell: Callable[[OperationOut], object] = lambda _: None
    ) -> OperationOut:
        """Return an operation once it has ended; Ctrl+C cancels it.

        `tell`: called with it now and then while it lasts. Raises Unreachable if the service stays
        away.
        """
        return followed(self, operation_id, tell=tell)

    def cancel_sweep(self, sweep_id: str) -> OperationOut:
        """Cancel what has not ended; finished points stay.

        >>> body = {"name": "rounds", "cluster": "t4=2x4", "trace": {"kind": "generated"}}
        >>> vary = [{"name": "round_seconds", "values": [60, 120]}]
        >>> swept = client.start_sweep(body | {"vary": vary})
        >>> client.cancel_sweep(swept["id"])["state"]
        'cancelled'
        """
        return self.cancel_operation(self.sweep(sweep_id)["operation_id"])


class AsyncClient(Methods):
    """The same, awaited.

    Send calls without a method of their own with `send(calls.…)`.
    """

    is_awaited = True

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.url = url
        self._http = httpx.AsyncClient(
            base_url=url,
            headers=_headers(token, headers),
            transport=transport,
            timeout=timeout_seconds,
            limits=_limits(),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def send(self, call: Call[Answer]) -> Answer:
        """Send any call of `maat.client.calls`."""
        try:
            response = await self._http.request(**_request(call))
        except httpx.TransportError as error:
            raise _no_answer(self._http.base_url, error) from error
        return cast(Answer, _answer(response))

    async def stream(self, call: Call[bytes]) -> AsyncIterator[bytes]:
        """Yield the parts of a file as they come: it may be larger than memory."""
        try:
            async with self._http.stream(**_request(call)) as response:
                if not response.is_success:
                    await response.aread()
                    raise ApiError.of(response)
                async for part in response.aiter_bytes():
                    yield part
        except httpx.TransportError as error:
            raise _no_answer(self._http.base_url, error) from error

    async def events(self, *topics: str, after: str | None = None) -> AsyncIterator[Told]:
        """Yield what happens, as it happens, until the service ends the stream."""
        lines = EventLines()
        try:
            async with self._http.stream(**_request(stream_of(topics, after))) as response:
                if not response.is_success:
                    await response.aread()
                    raise ApiError.of(response)
                async for line in response.aiter_lines():
                    told = lines.add(line)
                    if told is not None:
                        yield told
        except httpx.TransportError as error:
            raise _no_answer(self._http.base_url, error) from error

    async def every_job(self, **filters: Unpack[JobFilters]) -> AsyncIterator[JobOut]:
        """Yield all matching jobs, page after page."""
        while True:
            page = await self.jobs(**filters)
            for job in page["items"]:
                yield job
            if page["next_cursor"] is None:
                return
            filters["cursor"] = page["next_cursor"]

    async def every_node(self, cluster: str) -> list[NodeOut]:
        """Return all nodes of a cluster, page after page."""
        page = await self.nodes(cluster)
        nodes = list(page["items"])
        while page["next_cursor"] is not None:
            page = await self.nodes(cluster, cursor=page["next_cursor"])
            nodes += page["items"]
        return nodes

    async def cancel_sweep(self, sweep_id: str) -> OperationOut:
        """Cancel what has not ended; finished points stay."""
        return await self.cancel_operation((await self.sweep(sweep_id))["operation_id"])
