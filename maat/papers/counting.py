"""How many runs items have, without drawing or reading the jobs that they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maat.papers.bench import Bench, Size
from maat.papers.data import Data
from maat.papers.items import Item
from maat.simulation.iteration_models import shipped_models
from maat.simulation.variability import Variability
from maat.simulation.world_models import Model
from maat.vocabulary import MeasurementKind
from maat.workloads.workloads import TraceJob, Workload

_JOB = TraceJob(name="job", submit_seconds=0.0, model="bert", gpu_count=1)
_JOBS = Workload("jobs", (_JOB,), "counting")


class CountingBench(Bench):
    """A bench whose traces have one job: which runs there are does not depend on the jobs."""

    def sia_models(self) -> Mapping[str, Model]:
        return shipped_models()

    def profile_texts(self, model: str) -> Mapping[str, str] | None:
        return None

    def own_trace(self, models: Mapping[str, Model]) -> Workload | None:
        return None if self.data.own_of(MeasurementKind.TRACE) is None else _JOBS

    def sia_trace(self, *_of: Any) -> Workload:
        return _JOBS

    def sia_scaled(self, *_of: Any, **_size: Any) -> Workload:
        return _JOBS

    def pollux_trace(self, *_of: Any, **_load: Any) -> Workload:
        return _JOBS

    def pal_trace(self, *_of: Any) -> Workload:
        return _JOBS

    def whole_generated(self, *_of: Any, **_size: Any) -> Workload:
        return _JOBS

    def variability(self, *gpu_types: str) -> Variability:
        return Variability()


def counted_runs(item: Item, data: Data) -> int:
    """Return how many runs an item has that is not quick.

    Raises MaatError if it lacks something.
    """
    return len(item.runs(CountingBench(data, Size.WHOLE)))
