"""Finds the local user who holds the other end of a TCP connection.

Asks Linux; knows nothing of requests or rights.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_ESTABLISHED = 1
_ANY_COOKIE = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBxI")
_PORTS = struct.Struct("!HH")
_INTERFACE_AND_COOKIE = struct.Struct("=III")
# struct inet_diag_msg: family, state, timer, retransmits; the socket's id; expires, two queues,
# then the user.
_ANSWER = struct.Struct("=BBBB48xIIII")
_WAIT_SECONDS = 0.5

Address = tuple[str, int]


def user_behind(client: Address, server: Address) -> int | None:
    """Return the user id that owns the client's end of an open connection.

    Returns None if that end is closed or this system cannot tell. It asks the kernel one question
    (sock_diag(7)) of about 20 microseconds, which looks up this one connection.
    """
    if not hasattr(socket, "AF_NETLINK"):
        return None
    try:
        return _owner(_ask(_question(client, server)))
    except (OSError, struct.error):
        return None


def system_tells() -> bool:
    """Return whether this system answers such questions.

    Tries it on a connection of our own, whose user is known.
    """
    with contextlib.ExitStack() as stack:
        try:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            client = stack.enter_context(socket.create_connection(listener.getsockname()))
        except OSError:
            return False
        return user_behind(client.getsockname(), client.getpeername()) == os.geteuid()


def _question(client: Address, server: Address) -> bytes:
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    ends = (
        _PORTS.pack(client[1], server[1]) + _packed(family, client[0]) + _packed(family, server[0])
    )
    body = (
        _QUESTION.pack(family, socket.IPPROTO_TCP, 0, _ANY_COOKIE)
        + ends
        + _INTERFACE_AND_COOKIE.pack(0, _ANY_COOKIE, _ANY_COOKIE)
    )
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + body


def _packed(family: int, host: str) -> bytes:
    return socket.inet_pton(family, host).ljust(16, b"\0")


def _ask(question: bytes) -> bytes:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_WAIT_SECONDS)
        kernel.sendto(question, (0, 0))
        return kernel.recv(4096)


def _owner(answer: bytes) -> int | None:
    """Read the owner from the kernel's answer.

    Linux wrongly assigns a closed end to user 0.
    """
    _, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _SOCK_DIAG_BY_FAMILY:
        return None
    _, state, _, _, _, _, _, user = _ANSWER.unpack_from(answer, _HEADER.size)
    return int(user) if state == _ESTABLISHED else None
