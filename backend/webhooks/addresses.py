"""Which addresses a webhook may have. A guard against requests to the service's own network.

A name is looked up once, and the message is sent to the address that was checked: a name that
answers differently the next time leads nowhere else.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

PORTS = {"http": 80, "https": 443}
_MAPPED = ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")  # IPv6 that leads to an IPv4 address
# Set apart by IANA; `ipaddress` takes parts of them for public, and a cloud tells secrets there.
_SET_APART = ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10")

_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")

LookUp = Callable[[str, int], Sequence[str]]


class RefusedAddress(Exception):
    """The address is none that messages may go to; the text says why and what to do."""


class PrivateAddress(RefusedAddress):
    """The address is not public. Trying again leads nowhere."""


@dataclass(frozen=True)
class Target:
    """Where a message goes: the URL, and the address that was checked."""

    url: str
    host: str
    port: int
    scheme: str
    address: str


def checked_url(url: str) -> SplitResult:
    """Return the parts of a webhook's URL. Raises RefusedAddress."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise RefusedAddress(
            "The URL cannot be read. Give one such as https://host/path."
        ) from None
    if any(letter <= " " or letter == "\x7f" for letter in url):
        raise RefusedAddress("The URL holds a space or a control character. Leave it out.")
    if parts.scheme not in PORTS or not parts.hostname:
        raise RefusedAddress("The URL has no host, or is not http or https.")
    if parts.username is not None or parts.password is not None:
        raise RefusedAddress(
            "The URL holds a user or password. Leave them out: messages are signed."
        )
    if parts.fragment:
        raise RefusedAddress(
            "The URL has a fragment (#...), which no server receives. Leave it out."
        )
    if not _is_name(parts.hostname):
        raise RefusedAddress(
            "The host is no name: between its dots it has 1 to 63 letters, digits or hyphens."
        )
    if _is_strange_number(parts.hostname):
        raise RefusedAddress(
            "The host is a number. Write an address as four numbers from 0 to 255, or a name."
        )
    if port == 0:
        raise RefusedAddress("The port 0 does not exist.")
    return parts


def checked_target(url: str, *, to_private: bool, look_up: LookUp | None = None) -> Target:
    """Look the host up and return the first address, if all are allowed. Raises RefusedAddress.

    `to_private`: whether addresses of this machine and of private networks are allowed.
    """
    parts = checked_url(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        found = list((look_up or _look_up)(host, port))
    except OSError as error:
        raise RefusedAddress(f"The host is not known: {error.strerror or 'no answer'}.") from None
    if not found:
        raise RefusedAddress("The host has no address.")
    if not to_private:
        for address in found:
            if not is_public(address):
                raise PrivateAddress(
                    "The host is on this machine or in a private network. An operator can allow "
                    "that with MAAT_WEBHOOKS_TO_PRIVATE_ADDRESSES."
                )
    return Target(url, host, port, parts.scheme, found[0])


def without_path(url: str) -> str:
    """Return a URL without what may be secret in it."""
    parts = checked_url(url)
    return f"{parts.scheme}://{parts.hostname}/…"


def is_public(address: str) -> bool:
    """Return whether an address belongs to the public internet."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        elif any(ip in ipaddress.ip_network(network) for network in _MAPPED):
            return False
    if any(ip in ipaddress.ip_network(network) for network in _SET_APART):
        return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


def is_literal_private(url: str) -> bool:
    """Return whether the URL's host is written as an address that is not public, or as localhost.

    It looks nothing up: names are checked when a message is sent.
    """
    host = _plain(checked_url(url).hostname or "")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return not is_public(host)


def _is_name(host: str) -> bool:
    """Return whether the host can be looked up: the system reads names by this encoding."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _is_strange_number(host: str) -> bool:
    """Return whether the host ends in a number without being an address as it is usually written.

    Systems read `127.1`, `0x7f.1` and `2130706433` as addresses.
    """
    last = _plain(host).rpartition(".")[2]
    if ":" in host or not _NUMBER.fullmatch(last):
        return False
    try:
        ipaddress.IPv4Address(_plain(host))
    except ValueError:
        return True
    return False


def _plain(host: str) -> str:
    """Return the host as it is looked up: full-width digits and a last dot make no difference."""
    return unicodedata.normalize("NFKC", host).casefold().rstrip(".")


def _look_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]
