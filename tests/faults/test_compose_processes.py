"""Every process that docker-compose.yml starts, started here: its command, settings and health.

Only addresses, folders and the names of nodes are this machine's.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
import yaml
from worker_processes import PATIENCE_SECONDS, group_lives, wait_until

from backend.queue import QUEUES
from benchmarks.service.real_server import free_port
from maat.client import Client

ROOT = Path(__file__).resolve().parents[2]
GRACE_SECONDS = 10.0  # of docker compose, where a service names none
PASSWORD = "letters0and1digits"
DOT_ENV = {"POSTGRES_PASSWORD": PASSWORD, "REDIS_PASSWORD": PASSWORD, "MAAT_DEMO": "true"}

pytestmark = [pytest.mark.needs_postgres, pytest.mark.needs_redis]


class Compose:
    """The services of the file as processes."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
        self.folder, self.database_url = folder, database_url
        self.api_port, self.redis_port = free_port(), free_port()
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def environment(self, name: str) -> dict[str, str]:
        given = dict(DOT_ENV) if self.services[name].get("env_file") == ".env" else {}
        given |= {
            key: self._here(str(value), name)
            for key, value in self.services[name].get("environment", {}).items()
        }
        if "MAAT_DATABASE_URL" in given:
            given |= {
                "MAAT_DATABASE_URL": self.database_url,
                "MAAT_DATA_DIR": str(self.folder / "maat"),
                "MAAT_LEAST_FREE_BYTES": "0",
            }
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        given |= {"PATH": path, "HOSTNAME": os.uname().nodename}
        if name == "postgres":
            url = sa.make_url(self.database_url)
            given |= {"PGHOST": str(url.host), "PGPORT": str(url.port)}
        return {**os.environ, **given}

    def command(self, name: str) -> list[str]:
        given = self.services[name].get("command") or self._of_image()
        return [self._here(word, name) for word in given]

    def _of_image(self) -> list[str]:
        (line,) = re.findall(r"^CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        found: list[str] = yaml.safe_load(line)
        return found

    def _here(self, text: str, name: str) -> str:
        text = re.sub(
            r"\$\{(\w+)(?::[-?]([^}]*))?\}", lambda m: DOT_ENV.get(m[1], m[2] or ""), text
        )
        places = {
            "redis:6379": f"127.0.0.1:{self.redis_port}",
            "8000": str(self.api_port),
            "/var/lib/maat": str(self.folder / "maat"),
            "celery@": f"{name}@",
            "$$": "$",
        }
        for there, here in places.items():
            text = text.replace(there, here)
        return text

    def start(self, name: str, *more: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.started[name] = subprocess.Popen(
                [*self.command(name), *more],
                cwd=ROOT,
                env=self.environment(name),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def is_healthy(self, name: str, **environment: str) -> bool:
        kind, *words = self.services[name]["healthcheck"]["test"]
        words = [self._here(word, name) for word in words]
        if name == "redis":
            words = [word.replace("redis-cli", f"redis-cli -p {self.redis_port}") for word in words]
        return self.exec(name, words[0] if kind == "CMD-SHELL" else words, **environment) == 0

    def exec(self, name: str, words: str | list[str], **environment: str) -> int:
        """Run a command beside a service, as `docker compose exec` does; return how it ended."""
        done = subprocess.run(
            words,
            shell=isinstance(words, str),
            cwd=ROOT,
            env=self.environment(name) | environment,
            capture_output=True,
            check=False,
        )
        return done.returncode

    def await_health(self, *names: str) -> None:
        for name in names:
            log = self.folder / f"{name}.log"
            wait_until(lambda name=name: self.is_healthy(name), f"{name} is healthy", log=log)

    def stop(self) -> None:
        """Stop all of them as `docker compose down` does: who takes too long is killed."""
        for process in reversed(self.started.values()):
            if process.poll() is None:
                process.terminate()
        for process in self.started.values():
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            finally:
                if group_lives(process.pid):
                    os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def compose(tmp_path: Path, postgres_database_maker: Callable[[], str]) -> Iterator[Compose]:
    made = Compose(tmp_path, postgres_database_maker())
    yield made
    made.stop()


def test_all_processes_start_are_healthy_and_run_a_job(compose: Compose) -> None:
    stay = [name for name in compose.services if name not in {"postgres", "redis", "migrate"}]
    assert {"api", "worker", "simulator", "forecaster", "beat"} <= set(stay)
    assert not any(compose.is_healthy(name) for name in ("redis", *stay))
    compose.start("redis", "--port", str(compose.redis_port), "--bind", "127.0.0.1")
    compose.await_health("postgres", "redis")
    assert not compose.is_healthy("redis", REDISCLI_AUTH="another password")
    compose.start("migrate")
    assert compose.started["migrate"].wait(PATIENCE_SECONDS) == 0
    said = (compose.folder / "migrate.log").read_text()
    assert re.search(r"password +\S{20,}", said)
    (token,) = re.findall(r"^ +(maat_\S+)$", said, re.MULTILINE)
    for name in stay:
        compose.start(name)
    url = f"http://127.0.0.1:{compose.api_port}"
    wait_until(lambda: _misses(url) == [], "the deployment is ready")  # a check is a process
    compose.await_health(*stay)
    assert httpx.get(f"{url}/api/v1/jobs", trust_env=False).status_code == 401
    with Client(url, token=token) as maat:
        job = maat.submit_job({"name": "first", "model": "cifar10"})
        wait_until(lambda: maat.job(job["id"])["state"] == "running", "the job runs")
        text = httpx.get(
            f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}, trust_env=False
        ).text
    for queue in QUEUES:
        assert f'maat_worker_heartbeat_age_seconds{{queue="{queue}"' in text
    assert "maat_broker_up 1.0" in text
    assert (compose.folder / "maat" / "secret.key").stat().st_mode & 0o077 == 0
    kept = str(compose.folder / "one.backup")
    assert compose.exec("api", ["maat", "db", "backup", kept]) == 0
    assert compose.exec("api", ["maat", "db", "check", kept]) == 0
    compose.started.pop("redis").kill()
    wait_until(lambda: "broker" in _misses(url), "the broker is missed")


def _misses(url: str) -> list[Any]:
    try:
        answer = httpx.get(f"{url}/readyz", trust_env=False, timeout=30.0).json()
    except httpx.TransportError:
        return ["api"]
    return [error["field"] for error in answer.get("errors", [])]
