"""A delivery of a report that has failed, as the worker leaves it."""

from __future__ import annotations

from fastapi import FastAPI

from backend.database import Database
from backend.reports.models import ReportDelivery


def fail_delivery(app: FastAPI, delivery_id: str) -> None:
    database: Database = app.state.database
    with database.session_scope() as session:
        row = session.get(ReportDelivery, delivery_id)
        assert row is not None
        row.state = "failed"
        session.add(row)
