"""The simulator's store of rounds keeps the contract of round stores."""

from __future__ import annotations

import pytest
from contracts.round_store import RoundStoreContract

from maat.scheduling.cluster import Cluster
from maat.scheduling.protocols import RoundStore
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.record import Recorder
from maat.simulation.scenario import Scenario
from maat.workloads.workloads import Workload


class TestRecorder(RoundStoreContract):
    @pytest.fixture
    def store(self) -> RoundStore:
        scenario = Scenario(Workload("none", (), "sia"), {}, Cluster.parse("t4=1x4"))
        executor = SimulatedExecutor(scenario.cluster, JumpingClock(), scenario.conditions.fidelity)
        return Recorder(scenario, executor, on_progress=None)
