"""Posts one signed message to a webhook's URL, at the address that was checked."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence

import httpx

from backend.settings import Settings
from backend.webhooks.addresses import PrivateAddress, RefusedAddress, Target, checked_target
from backend.webhooks.signing import signed_headers


class Undelivered(Exception):
    """A message did not arrive. `final`: trying again would not help."""

    def __init__(self, message: str, *, status: int | None = None, final: bool = False) -> None:
        super().__init__(message)
        self.status, self.final = status, final


def post_signed(
    url: str, body: bytes, secrets: Sequence[str], settings: Settings, *, event_id: str
) -> int:
    """Post a message and return the status, from 200 to 299. Raises Undelivered.

    `event_id`: the same in every repetition.
    """
    try:
        target = checked_target(url, to_private=settings.webhooks_to_private_addresses)
    except RefusedAddress as refused:
        is_final = isinstance(refused, PrivateAddress)
        raise Undelivered(str(refused), final=is_final) from None
    headers = signed_headers(secrets, body, event_id=event_id, timestamp=int(time.time()))
    status = post(target, body, headers, seconds=settings.webhook_seconds)
    if not 200 <= status < 300:
        moved = " Redirects are not followed." if 300 <= status < 400 else ""
        raise Undelivered(f"The webhook answered {status}.{moved}", status=status)
    return status


def post(target: Target, body: bytes, headers: dict[str, str], *, seconds: float) -> int:
    """Send a message and return the status; the answer's body is not read. Raises Undelivered."""
    try:
        return asyncio.run(asyncio.wait_for(_posted(target, body, headers, seconds), seconds))
    except TimeoutError:
        raise Undelivered(f"The webhook did not answer within {seconds:g} s.") from None
    except httpx.HTTPError as error:
        raise Undelivered(f"The webhook cannot be reached: {_why(error)}.") from None


async def _posted(target: Target, body: bytes, headers: dict[str, str], seconds: float) -> int:
    """Send to the address that was checked, under the name that the URL has."""
    url = httpx.URL(target.url)
    named = url.netloc.decode("ascii")
    more = {
        "Host": named,
        "Content-Type": "application/json",
        "User-Agent": "Maat",
        **headers,
    }
    # The environment may name a proxy, and a proxy would look the name up again.
    async with (
        httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=seconds) as client,
        client.stream(
            "POST",
            url.copy_with(host=target.address),
            content=body,
            headers=more,
            extensions={"sni_hostname": target.host},
        ) as answer,
    ):
        return answer.status_code


def _why(error: httpx.HTTPError) -> str:
    """Say why in few words, without the address that was looked up."""
    words = re.sub(r"[^A-Za-z]+", " ", type(error).__name__)
    return {"ConnectError": "no connection, or its certificate is not valid"}.get(words, words)
