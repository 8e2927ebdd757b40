"""Calls about forecasts: of jobs, of what changes would do, and what promises were worth."""

from __future__ import annotations

from maat.api.fields import Page
from maat.api.forecasts import CalibrationOut, ForecastBody, ForecastOut, JobForecastOut
from maat.client.calls.core import Call, Fields, as_json, given_of, keyed_by, path_of


def job_forecast(job_id: str) -> Call[JobForecastOut]:
    """When a job starts and ends."""
    return Call("GET", path_of("jobs", job_id, "forecast"))


def ask_forecast(
    body: ForecastBody | Fields, *, idempotency_key: str | None = None
) -> Call[ForecastOut]:
    """Ask what would happen; follow the operation."""
    return Call("POST", path_of("forecasts"), body=as_json(body), headers=keyed_by(idempotency_key))


def forecast(forecast_id: str) -> Call[ForecastOut]:
    return Call("GET", path_of("forecasts", forecast_id))


def forecasts(*, limit: int | None = None, cursor: str | None = None) -> Call[Page[ForecastOut]]:
    return Call("GET", path_of("forecasts"), given_of(limit=limit, cursor=cursor))


def calibration(*, cluster: str | None = None, kind: str | None = None) -> Call[CalibrationOut]:
    """What promises were worth."""
    return Call("GET", path_of("calibration"), given_of(cluster=cluster, kind=kind))
