"""Decides whether the user who runs Maat made a request on this machine.

The REST API and the pages share this decision. Such a visitor needs no token (the implicit
administrator). A proxy on this machine makes every visitor's connection local, so any sign of a
proxy makes the request remote: a header that only proxies add, HTTP/1.0 (nginx's default), or a
connection of another user of the machine. A proxy that the same user runs, that adds no header and
passes `Host: localhost` on, cannot be distinguished from a browser: an operator who puts Maat
behind one must turn the implicit administrator off.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable
from functools import lru_cache

from fastapi import Request

from backend.accounts.peers import Address, system_tells, user_behind

UserBehind = Callable[[Address, Address], int | None]

# Headers of proxies without the "x-" prefix that nearly all of them have.
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
# Headers that browsers and programs send themselves; any other "x-" header counts as a proxy's.
DIRECT_HEADERS = frozenset({"x-request-id", "x-requested-with", "x-csrf-token"})
_OLDEST_DIRECT_HTTP = "1.1"


def is_local(request: Request) -> bool:
    """Return whether the user who runs Maat made this request locally.

    The request must also name this machine as its host.
    """
    return _comes_from_here(request) and _names_this_machine(request) and _is_ours(request)


def is_rebound(request: Request) -> bool:
    """Return whether another site's page sent this request by DNS rebinding.

    That is a local request without a token for a name that is not this machine's.
    """
    if "authorization" in request.headers:
        return False
    return _comes_from_here(request) and not _names_this_machine(request)


def has_proxy_marks(request: Request) -> bool:
    """Return whether a request has a mark that proxies leave."""
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
        and is_loopback(request.client.host)
        and not has_proxy_marks(request)
    )


def _names_this_machine(request: Request) -> bool:
    """Return whether the request has exactly one Host header, a loopback address."""
    named = request.headers.getlist("host")
    return len(named) == 1 and named[0] != "" and is_loopback(request.url.hostname or "")


def _is_ours(request: Request) -> bool:
    """Return whether the connection belongs to the user who runs Maat, or to root.

    True if the system cannot tell.
    """
    user_behind_of: UserBehind | None = request.app.state.user_behind
    server = request.scope.get("server")
    if user_behind_of is None or request.client is None or server is None:
        return True
    return (
        user_behind_of((request.client.host, request.client.port), (server[0], server[1]))
        in trusted_users()
    )


def asking_the_system() -> UserBehind | None:
    """Return the function that finds the user behind a connection.

    Returns None if the system cannot tell.
    """
    return user_behind if _system_tells() else None


@lru_cache(maxsize=1)
def _system_tells() -> bool:
    return system_tells()


@lru_cache(maxsize=1)
def trusted_users() -> frozenset[int]:
    """Return the user ids that count as the user who runs Maat.

    They include root and, if root runs it by sudo, the caller of sudo.
    """
    caller = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return frozenset({0, os.geteuid(), *([int(caller)] if caller.isdecimal() else [])})


def is_loopback(host: str) -> bool:
    """Return whether this name or address is of the machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
