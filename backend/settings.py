"""Every setting of the service and the worker, from MAAT_* variables and `.env`.

The only home of their names and defaults. As a program it says which cannot be read.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import cached_property, lru_cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from backend.validation_errors import field_error
from maat.vocabulary import Role

A_YEAR_OF_SECONDS, A_CENTURY_OF_DAYS = 366 * 86_400, 36_525
_POSTGRES_PREFIXES = ("postgresql://", "postgres://")


class Settings(BaseSettings):
    """What a deployment may choose. Units are in the names."""

    model_config = SettingsConfigDict(
        env_prefix="MAAT_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    data_dir: Path = Path("var")
    data: Path | None = None  # published data of the papers: what `maat reproduce` takes too
    database_url: str = ""
    broker_url: str = ""
    implicit_admin: bool = True
    allow_commands: bool = False
    own_policies: Annotated[tuple[str, ...], NoDecode] = ()
    own_policy_seconds: float = Field(30.0, gt=0, le=3600.0)
    secret_key: SecretStr = SecretStr("")
    public_url: str = "http://127.0.0.1:8000"
    trusted_proxies: str = ""
    demo: bool = False
    demo_jobs: bool = False
    max_upload_bytes: int = Field(12 * 1024 * 1024, ge=1024)
    least_free_bytes: int = Field(256 * 1024 * 1024, ge=0)
    worker_stale_seconds: float = Field(30.0, gt=0, le=A_YEAR_OF_SECONDS)
    lock_wait_seconds: float = Field(20.0, gt=0, le=A_YEAR_OF_SECONDS)
    request_threads: int = Field(8, ge=1, le=200)
    request_wait_seconds: float = Field(5.0, gt=0, le=A_YEAR_OF_SECONDS)
    request_head_seconds: float = Field(10.0, gt=0, le=A_YEAR_OF_SECONDS)
    request_body_seconds: float = Field(60.0, gt=0, le=A_YEAR_OF_SECONDS)
    idempotency_keep_hours: float = Field(24.0, ge=24.0, le=A_CENTURY_OF_DAYS * 24)
    agent_seconds: float = Field(60.0, gt=0, le=A_YEAR_OF_SECONDS)
    keep_logs_days: float = Field(30.0, ge=0, le=A_CENTURY_OF_DAYS)
    keep_reproductions_days: float = Field(400.0, ge=1, le=A_CENTURY_OF_DAYS)
    keep_reports_days: float = Field(1100.0, ge=1, le=A_CENTURY_OF_DAYS)
    keep_allocations_days: float = Field(400.0, ge=2, le=A_CENTURY_OF_DAYS)
    keep_events_days: float = Field(400.0, ge=2, le=A_CENTURY_OF_DAYS)
    keep_audit_days: float = Field(1100.0, ge=1, le=A_CENTURY_OF_DAYS)
    keep_deliveries_days: float = Field(30.0, ge=2, le=A_CENTURY_OF_DAYS)
    reports_folder: str = ""
    webhooks_to_private_addresses: bool = False
    webhook_seconds: float = Field(10.0, gt=0, le=60)
    metrics_seconds: float = Field(5.0, ge=0, le=A_YEAR_OF_SECONDS)
    event_poll_seconds: float = Field(0.25, gt=0, le=A_YEAR_OF_SECONDS)
    event_heartbeat_seconds: float = Field(5.0, gt=0, le=A_YEAR_OF_SECONDS)
    event_recheck_seconds: float = Field(5.0, gt=0, le=A_YEAR_OF_SECONDS)
    reads_per_minute: int = Field(6000, ge=0)
    changes_per_minute: int = Field(1200, ge=0)
    simulations_per_hour: int = Field(600, ge=0)
    laboratory_cpu_hours: float = Field(240.0, ge=0, le=1e6)
    run_cpu_hours: float = Field(12.0, ge=0, le=1e6)
    whole_paper_runs: int = Field(100, ge=0)
    session_idle_hours: float = Field(12.0, gt=0, le=A_CENTURY_OF_DAYS * 24)
    session_days: float = Field(7.0, gt=0, le=A_CENTURY_OF_DAYS)
    sign_in_tries: int = Field(10, ge=1)
    sign_in_window_seconds: float = Field(900.0, gt=0, le=A_YEAR_OF_SECONDS)
    oidc_issuer: str = ""
    oidc_client_id: str = Field("", validate_default=True)
    oidc_client_secret: SecretStr = SecretStr("")
    oidc_client_secret_file: Path | None = None
    oidc_scopes: str = "openid profile email"
    oidc_label: str = "Single sign-on"
    oidc_name_claim: str = "preferred_username"
    oidc_tenant_claim: str = ""
    oidc_tenants: Annotated[dict[str, str], NoDecode] = {}
    oidc_default_tenant: str = ""
    oidc_role_claim: str = ""
    oidc_roles: Annotated[dict[str, Role], NoDecode] = {}
    log_format: Literal["text", "json"] = "text"
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

    @field_validator("own_policies", mode="before")
    @classmethod
    def _modules(cls, value: object) -> object:
        """What a text names is imported: nothing else than `module:Class` may stand there."""
        if not isinstance(value, str):
            return value
        names = tuple(filter(None, (part.strip() for part in value.split(","))))
        if not all(re.fullmatch(r"[\w.]+:\w+", name) for name in names):
            raise ValueError(
                "These are not policies separated by commas, each as module:Class, "
                "such as fair.queue:LongestFirst"
            )
        return names

    @field_validator("trusted_proxies")
    @classmethod
    def _addresses(cls, value: str) -> str:
        """A name would be trusted under any address, and `*` trusts everybody."""
        for one in filter(None, (part.strip() for part in value.split(","))):
            try:
                ip_network(one)
            except ValueError:
                raise ValueError(
                    "These are not addresses or networks separated by commas, "
                    "such as 127.0.0.1, 10.1.0.0/16"
                ) from None
        return value

    @field_validator("oidc_issuer")
    @classmethod
    def _told_by_nobody_else(cls, value: str) -> str:
        parts = urlsplit(value)
        is_here = parts.hostname in ("127.0.0.1", "localhost", "::1")
        if value and (parts.hostname is None or not (parts.scheme == "https" or is_here)):
            raise ValueError("This is not the https address of an OpenID Connect provider")
        return value

    @field_validator("oidc_client_id")
    @classmethod
    def _with_an_issuer(cls, value: str, known: ValidationInfo) -> str:
        """One without the other would silently mean no single sign-on."""
        issuer = known.data.get("oidc_issuer")
        if issuer is not None and bool(value) != bool(issuer):
            missing = "MAAT_OIDC_ISSUER" if value else "The name of Maat at MAAT_OIDC_ISSUER"
            raise ValueError(f"{missing} is missing: give both, or neither")
        return value

    @field_validator("data")
    @classmethod
    def _a_folder(cls, value: Path | None) -> Path | None:
        if value is not None and not value.expanduser().is_dir():
            raise ValueError("There is no such folder: name one that Maat can read")
        return value

    @field_validator("oidc_client_secret_file")
    @classmethod
    def _there(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError("There is no such file: name one that Maat can read")
        return value

    @field_validator("oidc_tenants", "oidc_roles", mode="before")
    @classmethod
    def _json_object(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            found = json.loads(value)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ValueError('This is no JSON object: it has the form {"theirs": "ours"}')
        return found

    @cached_property
    def data_path(self) -> Path:
        """The absolute data folder, valid in every working directory."""
        return self.data_dir.expanduser().absolute()

    @property
    def papers_path(self) -> Path | None:
        """The absolute folder of the papers' published data; None: there is none."""
        return None if self.data is None else self.data.expanduser().absolute()

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
    def has_oidc(self) -> bool:
        """Whether people can sign in at an OpenID Connect provider."""
        return bool(self.oidc_issuer and self.oidc_client_id)

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

    @cached_property
    def reports_path(self) -> Path | None:
        """The absolute folder of reports by schedule; None: no report goes to a folder."""
        given = self.reports_folder.strip()
        return Path(given).expanduser().absolute() if given else None

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
        name, _, key = found.pointer.strip("/").partition("/")
        name = name.upper()
        # An address may hold a password.
        is_hidden = name.endswith("_URL") or "SECRET" in name
        given = "" if is_hidden else f" (got {found.value!r})"
        message = f"{key}: {found.message}".removeprefix(": ").rstrip(".")
        yield f"maat: MAAT_{name.removeprefix('MAAT_')}: {message}{given}. {found.remedy}"


if __name__ == "__main__":
    get_settings()
