"""The client's types against the service's own description: a field that one side has and the other lacks is told by name."""

from __future__ import annotations

from typing import Any, is_typeddict

import pytest
from fastapi import FastAPI

from maat.client import laboratory, resources
from maat.client.laboratory import (
    DrawnRun,
    Fidelity,
    Figures,
    Measurement,
    MeasurementBody,
    RunBody,
    Simulation,
    SimulationBody,
    SimulationRun,
    Sweep,
    SweepBody,
    SweepHead,
    UsedMeasurement,
)

SAME: dict[str, type] = {
    "SimulationBody": SimulationBody,
    "RunBody": RunBody,
    "SweepBody": SweepBody,
    "MeasurementBody": MeasurementBody,
    "SimulationOut": Simulation,
    "RunOut": SimulationRun,
    "SweepOut": SweepHead,
    "SweepDetail": Sweep,
    "MeasurementOut": Measurement,
    "UsedOut": UsedMeasurement,
    "FiguresOut": Figures,
    "DrawnRun": DrawnRun,
    "FidelityOut": Fidelity,
    "FailuresBody": laboratory.FailuresBody,
    "TraceReservationBody": laboratory.TraceReservationBody,
    "ReservationBody": resources.ReservationBody,
}


@pytest.mark.parametrize("name", SAME)
def test_a_type_of_the_client_has_the_fields_that_the_service_describes(
    app: FastAPI, name: str
) -> None:
    described: dict[str, Any] = app.openapi()["components"]["schemas"][name]["properties"]
    assert is_typeddict(SAME[name])
    assert set(SAME[name].__annotations__) == set(described)
