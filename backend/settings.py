"""Every setting of the service and the worker, from MAAT_* variables and `.env`.

The only home of their names and defaults. As a program it says which cannot be read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from backend.validation_errors import field_error

_POSTGRES_PREFIXES = ("postgresql://", "postgres://")


class Settings(BaseSettings):
    """What a deployment may choose. Units are in the names."""

    model_config = SettingsConfigDict(
        env_prefix="MAAT_", env_file=".env", extra="ignore", frozen=True
    )

    data_dir: Path = Path("var")
    database_url: str = ""
    broker_url: str = ""
    implicit_admin: bool = True
    allow_commands: bool = False
    secret_key: SecretStr = SecretStr("")
    public_url: str = "http://127.0.0.1:8000"
    demo: bool = False
    demo_jobs: bool = False
    max_upload_bytes: int = Field(12 * 1024 * 1024, ge=1024)
    worker_stale_seconds: float = Field(30.0, gt=0)
    lock_wait_seconds: float = Field(20.0, gt=0)
    request_threads: int = Field(8, ge=1, le=200)
    request_wait_seconds: float = Field(5.0, gt=0)
    request_head_seconds: float = Field(10.0, gt=0)
    request_body_seconds: float = Field(60.0, gt=0)
    idempotency_keep_hours: float = Field(24.0, ge=24.0)
    keep_logs_days: float = Field(30.0, ge=0)
    event_poll_seconds: float = Field(1.0, gt=0)
    event_heartbeat_seconds: float = Field(15.0, gt=0)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("database_url")
    @classmethod
    def _of_a_known_kind(cls, value: str) -> str:
        known = ("sqlite:", *_POSTGRES_PREFIXES, "postgresql+")
        try:
            readable = not value or bool(value.startswith(known) and make_url(value))
        except ArgumentError:
            readable = False
        if not readable:
            raise ValueError(
                "This is not the address of a database: "
                "it has the form postgresql://user:password@host:port/name"
            )
        return value

    @cached_property
    def data_path(self) -> Path:
        """The absolute data folder, valid in every working directory."""
        return self.data_dir.expanduser().absolute()

    @cached_property
    def sqlalchemy_url(self) -> str:
        """The database URL: by default SQLite in the data folder.

        PostgreSQL always uses psycopg.
        """
        if not self.database_url:
            return f"sqlite:///{self.data_path / 'maat.db'}"
        for prefix in _POSTGRES_PREFIXES:
            if self.database_url.startswith(prefix):
                return "postgresql+psycopg://" + self.database_url.removeprefix(prefix)
        return self.database_url

    @cached_property
    def celery_broker_url(self) -> str:
        """The broker URL; by default the filesystem broker, in `broker_path`."""
        return self.broker_url or "filesystem://"

    @property
    def database_connections(self) -> int:
        """One connection per thread: a request that has a thread has a connection."""
        return self.request_threads + self.door_threads + self.stream_threads

    @property
    def door_threads(self) -> int:
        """Threads that look up who asks: short work that never waits for long requests."""
        return 2

    @property
    def stream_threads(self) -> int:
        """Threads that look for news of event streams."""
        return 2

    @property
    def broker_path(self) -> Path:
        return self.data_path / "broker"


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The settings of this process, which ends with exit code 2 if they cannot be read."""
    try:
        return Settings()
    except ValidationError as error:
        print(*_refusals(error), sep="\n", file=sys.stderr)
        sys.exit(2)


def _refusals(error: ValidationError) -> Iterator[str]:
    for found in map(field_error, error.errors()):
        name = found.pointer.strip("/").upper()
        # An address may hold a password.
        given = "" if name.endswith("_URL") else f" (got {found.value!r})"
        message = found.message.rstrip(".")
        yield f"maat: MAAT_{name.removeprefix('MAAT_')}: {message}{given}. {found.remedy}"


if __name__ == "__main__":
    get_settings()
