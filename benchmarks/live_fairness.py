"""`python -m benchmarks.live_fairness`: rho of a live cluster beside rho by the truth.

The same jobs run on a live cluster of simulated jobs; the worker works their rho out from what was
believed of them, the laboratory from their true step times. Writes the tables of docs/fairness.md
between their marks.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlmodel import col, select

from backend.bootstrap_data import ensure_defaults
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, Job, JobFairness, User
from backend.settings import Settings
from benchmarks.page import markdown, write_between
from maat.laboratory.fairness import IsolatedRuns
from maat.scheduling.arrays import FloatArray
from maat.scheduling.cluster import Cluster as EngineCluster
from maat.scheduling.isolation import fair_shares
from maat.scheduling.metrics import finish_time_fairness
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.vocabulary import FairnessRule
from maat.workloads.workloads import TraceJob, Workload
from worker.fairness.work import work_out
from worker.live.step import step_cluster

OUTPUT = Path(__file__).parents[1] / "docs" / "fairness.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
SHAPE = "t4=6x4,rtx=3x8,a100=2x8"  # the demo cluster
POLICIES = (("sia", "whole-node"), ("fifo", "packed-sticky"))
MODELS = {"cifar10": 40, "bert": 30, "deepspeech2": 30, "yolov3": 10, "imagenet": 3}
ROUND_SECONDS, MOST_ROUNDS = 60.0, 3000


@dataclass(frozen=True)
class Played:
    """rho of the same jobs by belief and by truth, shape (J,), and what working it out took."""

    live: FloatArray
    truth: FloatArray
    models: Sequence[str]
    seconds: FloatArray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=80)
    parser.add_argument("--hours", type=float, default=8.0)
    asked = parser.parse_args()
    jobs = drawn_jobs(asked.jobs, hours=asked.hours)
    played = {policy: play(jobs, policy, placer) for policy, placer in POLICIES}
    text = "\n\n".join([summary(played), by_model(played)])
    write_between(OUTPUT, text, begin=BEGIN, end=END)


def drawn_jobs(count: int, *, hours: float, seed: int = 7) -> list[TraceJob]:
    """Draw adaptive jobs that arrive within so many hours."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        (model,) = chance.choices(list(MODELS), list(MODELS.values()))
        found.append(
            TraceJob(
                name=f"job {number}",
                submit_seconds=chance.uniform(0.0, 3600.0 * hours),
                model=model,
                gpu_count=chance.choice([1, 2, 4]),
                batch_size=None,
                work_scale=0.1 if model == "imagenet" else chance.choice([0.5, 1.0]),
            )
        )
    return found


def play(jobs: Sequence[TraceJob], policy: str, placer: str) -> Played:
    with demo_database() as database:
        cluster_id, by_id = submitted(database, jobs, policy, placer)
        live_on(database, cluster_id)
        while work_out(database):
            pass
        with database.session_scope(writes=False) as session:
            rows = session.exec(select(JobFairness).where(col(JobFairness.rho).is_not(None))).all()
    alone = isolated_runs(jobs, policy, placer)
    return Played(
        np.array([row.rho for row in rows]),
        np.array([true_rho(row, by_id[row.job_id], alone) for row in rows]),
        [by_id[row.job_id].model for row in rows],
        np.array([row.compute_seconds for row in rows]),
    )


@contextmanager
def demo_database() -> Iterator[Database]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(_env_file=None, data_dir=Path(folder), database_url="", demo=True)
        database = Database.of(settings)
        ensure_defaults(database, settings)
        yield database
        database.dispose()


def submitted(
    database: Database, jobs: Sequence[TraceJob], policy: str, placer: str
) -> tuple[str, Mapping[str, TraceJob]]:
    """Store the jobs on the demo cluster; returns its id, and the jobs by their ids."""
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.policy, cluster.placer, cluster.round_seconds = policy, placer, ROUND_SECONDS
        owner = session.exec(select(User)).first()
        assert owner is not None
        rows = [
            Job(
                cluster_id=cluster.id,
                name=job.name,
                owner_id=owner.id,
                tenant_id=owner.tenant_id,
                model=job.model,
                adaptivity="adaptive",
                gpu_count=job.gpu_count,
                work_scale=job.work_scale,
                submitted_seconds=job.submit_seconds,
                remaining_work=1.0,
            )
            for job in jobs
        ]
        session.add_all([cluster, *rows])
        session.flush()
        return cluster.id, dict(zip([row.id for row in rows], jobs, strict=True))


def live_on(database: Database, cluster_id: str) -> None:
    """Make rounds until all jobs have ended."""
    left = select(Job.id).where(col(Job.finished_seconds).is_(None)).limit(1)
    for number in range(1, MOST_ROUNDS):
        with database.session_scope() as session:
            cluster = session.get_one(Cluster, cluster_id)
            cluster.speed, cluster.anchor_boot = 1e-9, None
            cluster.anchor_seconds, cluster.anchor_wall = number * ROUND_SECONDS, utc_now()
            session.add(cluster)
        step_cluster(database, cluster_id)
        with database.session_scope(writes=False) as session:
            if session.exec(left).first() is None:
                return


def isolated_runs(jobs: Sequence[TraceJob], policy: str, placer: str) -> IsolatedRuns:
    workload = Workload("drawn", tuple(jobs), "sia")
    cluster = EngineCluster.parse(SHAPE)
    return IsolatedRuns(Scenario(workload, catalog_models(), cluster, policy=policy, placer=placer))


def true_rho(row: JobFairness, job: TraceJob, alone: IsolatedRuns) -> float:
    """Return rho of a live job by the truth: of the same JCT, under the same contention."""
    assert row.contention is not None
    assert row.jct_seconds is not None
    cluster = EngineCluster.parse(SHAPE)
    counts = zip(cluster.type_names, cluster.usable_gpus.tolist(), strict=True)
    gpus = {name: int(count) for name, count in counts}
    shares = fair_shares(gpus, row.contention, FairnessRule.MEAN_OF_RATIOS)
    return finish_time_fairness(row.jct_seconds, alone.by_type(job, shares), gpus)


def summary(played: Mapping[str, Played]) -> str:
    heads = ("policy", "jobs", "rho by", "median", "mean", "worst", "rho > 1")
    rows = []
    for policy, one in played.items():
        for name, rho in (("belief", one.live), ("truth", one.truth)):
            figures = [np.median(rho), rho.mean(), rho.max()]
            unfair = f"{(rho > 1).mean():.0%}"
            rows.append([policy, str(len(rho)), name, *(f"{x:.3f}" for x in figures), unfair])
    return markdown(heads, rows)


def by_model(played: Mapping[str, Played]) -> str:
    heads = ("policy", "model", "jobs", "belief / truth", "10 %", "90 %", "ms per job")
    rows = []
    for policy, one in played.items():
        ratio = one.live / one.truth
        for model in ("all", *MODELS):
            which = np.array([model in ("all", name) for name in one.models])
            if which.any():
                low, middle, high = np.quantile(ratio[which], [0.1, 0.5, 0.9])
                spent = f"{1000 * one.seconds[which].mean():.0f}"
                figures = [f"{x:.2f}" for x in (middle, low, high)]
                rows.append([policy, model, str(int(which.sum())), *figures, spent])
    return markdown(heads, rows)


if __name__ == "__main__":
    begun = time.monotonic()
    main()
    print(f"{time.monotonic() - begun:.0f} s")
