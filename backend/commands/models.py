"""Tables of commands: what a job runs, and its secrets."""

from __future__ import annotations

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from backend.columns import Json


class JobCommand(SQLModel, table=True):
    """What a job runs.

    `stop_seconds`: time that its processes have to save and end. `max_retries`: failures in a row,
    without a new checkpoint in between, after which it has failed. `total_samples`: effective
    samples of the whole training; None until the owner or the script says. `profile`: whether it is
    profiled before it trains. `utilisation`: shares of the GPU that it was measured to use.
    `locality_penalty`: a step across nodes over one within a node, as declared; None: as measured.
    """

    __tablename__ = "job_commands"

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    argv: list[str] = Field(sa_type=Json)
    cwd: str = Field(max_length=4096)
    env: dict[str, str] = Field(default_factory=dict, sa_type=Json)
    stop_seconds: float
    max_retries: int
    total_samples: float | None = None
    profile: bool = True
    utilisation: dict[str, float] | None = Field(default=None, sa_type=Json)
    locality_penalty: float | None = None


class JobSecret(SQLModel, table=True):
    """An environment variable that nobody can read back; encrypted by backend/commands/secrets."""

    __tablename__ = "job_secrets"

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    name: str = Field(primary_key=True, max_length=200)
    value: bytes = Field(sa_type=sa.LargeBinary)
