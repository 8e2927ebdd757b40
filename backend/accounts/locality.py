"""Whether a request was made on this machine, by the user who runs Maat: the one decision, for the REST API and the pages alike.

Such a visitor needs no token (the implicit administrator). A proxy on this machine makes every visitor's connection a local one, so whatever tells
that one stands between makes the request somebody else's: a header that only proxies add, HTTP/1.0 (what nginx speaks unless told otherwise), or a
connection of another user of the machine. A proxy that is run by the same user, adds no header and passes `Host: localhost` on cannot be told from a
browser: an operator who puts Maat behind one turns the implicit administrator off.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable
from functools import lru_cache

from fastapi import Request

from backend.accounts.peers import Address, system_tells, user_behind

UserBehind = Callable[[Address, Address], int | None]

# Marks of proxies without the "x-" that nearly all of them begin with.
FORWARDING_HEADERS = frozenset(
    {
        "via",
        "forwarded",
        "forwarded-for",
        "client-ip",
        "true-client-ip",
        "remote-addr",
        "cf-connecting-ip",
        "cf-connecting-ipv6",
        "cf-ray",
        "cdn-loop",
        "fastly-client-ip",
        "fly-client-ip",
        "do-connecting-ip",
        "proxy-connection",
        "proxy-authorization",
    }
)
# What browsers and programs send themselves; any other header that begins so counts as a proxy's.
DIRECT_HEADERS = frozenset({"x-request-id", "x-requested-with"})
_OLDEST_DIRECT_HTTP = "1.1"


def is_local(request: Request) -> bool:
    """Whether the user who runs Maat made this request, on this machine, for this machine's own name."""
    return _comes_from_here(request) and _names_this_machine(request) and _is_ours(request)


def is_rebound(request: Request) -> bool:
    """Whether a request of this machine, without a token, asks for a name that is not this machine's: another site's page sent it."""
    if "authorization" in request.headers:
        return False
    return _comes_from_here(request) and not _names_this_machine(request)


def tells_of_a_proxy(request: Request) -> bool:
    """Whether a request bears a mark that proxies leave."""
    if request.scope.get("http_version", _OLDEST_DIRECT_HTTP) < _OLDEST_DIRECT_HTTP:
        return True
    return any(_is_of_a_proxy(name.replace("_", "-")) for name in request.headers)


def _is_of_a_proxy(header: str) -> bool:
    return header in FORWARDING_HEADERS or (
        header.startswith("x-") and header not in DIRECT_HEADERS
    )


def _comes_from_here(request: Request) -> bool:
    return (
        request.client is not None
        and _is_loopback(request.client.host)
        and not tells_of_a_proxy(request)
    )


def _names_this_machine(request: Request) -> bool:
    """Whether it asks for a loopback name: says so once, in so many words."""
    named = request.headers.getlist("host")
    return len(named) == 1 and named[0] != "" and _is_loopback(request.url.hostname or "")


def _is_ours(request: Request) -> bool:
    """Whether the connection belongs to the user who runs Maat, or to root. True where the system cannot tell."""
    user_behind_of: UserBehind | None = request.app.state.user_behind
    server = request.scope.get("server")
    if user_behind_of is None or request.client is None or server is None:
        return True
    return (
        user_behind_of((request.client.host, request.client.port), (server[0], server[1]))
        in trusted_users()
    )


def asking_the_system() -> UserBehind | None:
    """What tells the user behind a connection; None on a system that does not."""
    return user_behind if _system_tells() else None


@lru_cache(maxsize=1)
def _system_tells() -> bool:
    return system_tells()


@lru_cache(maxsize=1)
def trusted_users() -> frozenset[int]:
    """Who counts as the user who runs Maat: also root, and, where root runs it by sudo, who called sudo."""
    caller = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return frozenset({0, os.geteuid(), *([int(caller)] if caller.isdecimal() else [])})


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
