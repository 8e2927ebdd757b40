"""Requests of experiments as they are stored: a row is read into this model."""

from __future__ import annotations

from typing import Any

from pydantic import RootModel

from backend.simulations.stored import tell_of_trace
from maat.api.experiments import AnyExperimentBody, AutoscalingBody, ExperimentBody


class StoredExperiment(RootModel[AnyExperimentBody]):
    """An experiment as requested; an uploaded trace is stored as its text."""

    @property
    def body(self) -> ExperimentBody:
        return self.root

    def as_answered(self) -> dict[str, Any]:
        """Return the request as JSON. The text of a trace is replaced by its length."""
        shown = self.root.model_dump(mode="json", exclude={"trace": {"text"}})
        if isinstance(self.root, AutoscalingBody) and self.root.trace is not None:
            tell_of_trace(self.root.trace, shown["trace"])
        return shown
