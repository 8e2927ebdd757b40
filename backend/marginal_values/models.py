"""Tables of what one more GPU was worth: sums per day, and how far rounds are summed."""

from __future__ import annotations

import datetime as dt

import sqlalchemy as sa
from sqlmodel import Field, SQLModel


class MarginalValueDay(SQLModel, table=True):
    """Sums over the rounds of one day, of one GPU type, under one policy and placer.

    `day`: UTC day of cluster time. `seconds`: cluster time that the rounds stand for;
    `priced_seconds`: those of rounds with a price, `positive_seconds`: with one above zero.
    `value_seconds`: the integral of the price, in units of the policy's objective. `used_seconds`,
    `capacity_seconds`: GPU-seconds. Rounds are pruned; these rows stay.
    """

    __tablename__ = "marginal_value_days"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    day: dt.date = Field(primary_key=True, sa_type=sa.Date)
    gpu_type: str = Field(primary_key=True, max_length=64)
    policy: str = Field(primary_key=True, max_length=100)
    policy_version: str = Field(primary_key=True, max_length=40)
    placer: str = Field(primary_key=True, max_length=100)
    first_seconds: float
    last_seconds: float
    rounds: int = 0
    seconds: float = 0.0
    priced_seconds: float = 0.0
    positive_seconds: float = 0.0
    value_seconds: float = 0.0
    used_seconds: float = 0.0
    capacity_seconds: float = 0.0


class SummedRounds(SQLModel, table=True):
    """Up to which round of a cluster the sums count; the round after it is not over yet."""

    __tablename__ = "summed_rounds"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    through: int = 0
