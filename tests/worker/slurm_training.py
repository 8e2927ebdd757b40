"""A cluster whose commands run in a real Slurm; rounds and looks are made when a test says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from slurm_cluster import SlurmCluster
from sqlmodel import select
from training_samples import TrainingCluster

from backend.clusters.service import create_cluster
from backend.database import Database
from backend.models import Node
from backend.settings import Settings
from maat.api.clusters import ClusterBody, SlurmParameters
from worker.engines.slurm import SlurmEngine

WAITS = "trap 'echo saved; exit 143' TERM; echo ready; sleep 600 & while :; do wait; done"
UNTIL_DONE = f"[ -e done ] && exit 0; {WAITS}"


@dataclass
class SlurmTraining(TrainingCluster):
    """See above. `changes`: of the executor's parameters."""

    slurm: SlurmCluster = field(default_factory=lambda: SlurmCluster(Path("/")))
    changes: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shared = self.folder / "shared"
        shared.mkdir()
        given = self.slurm.parameters(shared).model_dump() | self.changes
        self.parameters = SlurmParameters.model_validate(given)
        body = ClusterBody.model_validate(
            {
                "name": "site",
                "executor": "slurm",
                "executor_parameters": self.parameters,
                "policy": "fifo",
                "round_seconds": 1.0,
            }
        )
        with self.database.session_scope() as session:
            self.cluster_id = create_cluster(session, body).id
        self.look()

    @classmethod
    def on(cls, slurm: SlurmCluster, folder: Path, **changes: object) -> SlurmTraining:
        """Make one with a database of its own, in the folder."""
        from backend.migrations import upgrade

        slurm.settle()
        database = Database(f"sqlite:///{folder / 'maat.db'}")
        upgrade(database)
        settings = Settings(_env_file=None, data_dir=folder / "data", allow_commands=True)
        return cls(database, settings, folder, slurm=slurm, changes=changes)

    @property
    def engine(self) -> SlurmEngine:  # type: ignore[override]
        return SlurmEngine(self.folder / "shared" / self.cluster_id, self.parameters)

    def script(self, text: str, **fields: object) -> str:
        """Submit a shell script."""
        return self.submit("/bin/sh", "-c", text, **fields)  # type: ignore[arg-type]

    def runs(self, job_id: str, *, attempt: int = 1) -> None:
        """Look until the ranks of this attempt have said that they are ready."""
        self.look_until(
            lambda: (
                len(self.attempts(job_id)) == attempt
                and self.attempt_state(job_id) == "running"
                and all("ready" in text for text in self.logs(job_id))
            )
        )

    def logs(self, job_id: str) -> list[str]:
        newest = self.attempts(job_id)[-1]
        folder = self.engine.directory(newest.id)
        files = [folder / f"rank-{rank}.log" for rank in range(newest.gpu_count)]
        return [file.read_text() if file.exists() else "" for file in files]

    def faults(self) -> dict[str, str | None]:
        with self.database.session_scope(writes=False) as session:
            found = session.exec(
                select(Node.name, Node.fault).where(Node.cluster_id == self.cluster_id)
            ).all()
            return dict(found)

    def close(self) -> None:
        """End everything that runs, whatever a test did to Slurm."""
        self.slurm.settle()
        self.database.dispose()
