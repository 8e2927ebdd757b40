"""A Redis for tests: the one that runs (its last database, emptied), else a private one where the Debian package is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis

DEFAULT_URL = "redis://127.0.0.1:6379/15"
START_SECONDS = 10.0


class NoRedis(Exception):
    """There is none, and none can be started."""


@contextmanager
def redis_server() -> Iterator[str]:
    """The URL of an empty database. Raises NoRedis."""
    url = os.environ.get("MAAT_TEST_REDIS", DEFAULT_URL)
    if _answers(url):
        redis.Redis.from_url(url).flushdb()
        yield url
        return
    program = shutil.which("redis-server")
    if program is None:
        raise NoRedis("no Redis answers and none is installed: install the Debian package redis-server")
    with _private_server(program) as private_url:
        yield private_url


@contextmanager
def _private_server(program: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""], stdout=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}/0"
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(url):
            if time.monotonic() > deadline:
                raise NoRedis("the installed Redis does not start")
            time.sleep(0.05)
        yield url
    finally:
        server.terminate()
        server.wait()


def _answers(url: str) -> bool:
    try:
        return bool(redis.Redis.from_url(url, socket_connect_timeout=1).ping())
    except redis.RedisError:
        return False
