"""Writes figures as Prometheus reads them. Names and labels are here, and nowhere else.

No tenant, user or job is named: they are many, and none of an operator's alarms needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from backend.metrics.process import ProcessFigures
from backend.metrics.snapshot import ClusterFigures, Snapshot

_GPU_STATES = ("held", "free", "drained")


class SnapshotCollector(Collector):
    """The figures of one scrape."""

    def __init__(
        self, snapshot: Snapshot, process: ProcessFigures, messages: Mapping[str, int] | None
    ) -> None:
        self._snapshot, self._process, self._messages = snapshot, process, messages

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("maat", "The version that answers.", {"version": version("maat")})
        yield from _of_clusters(self._snapshot)
        yield from _of_work(self._snapshot)
        yield from _of_workers(self._snapshot)
        yield from _of_broker(self._messages)
        yield from _of_process(self._snapshot, self._process)


def _of_clusters(snapshot: Snapshot) -> Iterator[Metric]:
    families = _ClusterFamilies()
    for cluster in snapshot.clusters:
        families.add(cluster)
    yield from families.all()


class _ClusterFamilies:
    """The families whose first label is the cluster."""

    def __init__(self) -> None:
        self._made: list[GaugeMetricFamily] = []
        self.paused = self._family("maat_cluster_paused", "1 while no rounds are to be made.")
        self.faulty = self._family("maat_cluster_faulty", "1 while its engine does not answer.")
        self.number = self._family("maat_round_number", "Number of the last round.")
        self.age = self._family("maat_round_age_seconds", "Wall seconds since the last round.")
        self.interval = self._family(
            "maat_round_interval_seconds", "Wall seconds from one round to the next, as set."
        )
        self.seconds = self._family(
            "maat_round_seconds",
            "Seconds that parts of the last round took: policy (with its solver), solver, placer.",
            "part",
        )
        self.lease = self._family(
            "maat_round_lease_seconds",
            "Seconds for which a worker still holds the right to make rounds; below 0: none does.",
        )
        self.jobs = self._family("maat_jobs", "Jobs by state.", "state")
        self.gpus = self._family("maat_gpus", "GPUs by type and state.", "gpu_type", "state")
        self.waiting = self._family("maat_jobs_waiting", "Jobs that wait for GPUs.")
        self.longest = self._family(
            "maat_queue_wait_longest_seconds", "Cluster seconds that the oldest of them waits."
        )
        self.total = self._family(
            "maat_queue_wait_total_seconds", "Cluster seconds that all of them wait, added up."
        )
        self.restarts = self._family(
            "maat_active_job_restarts", "Restarts of unfinished jobs, added up."
        )
        self.attempts = self._family("maat_attempts", "Attempts that have not ended.", "state")
        self.outbox = self._family(
            "maat_changes_to_apply", "Rounds whose changes the executor has not applied yet."
        )

    def _family(self, name: str, words: str, *labels: str) -> GaugeMetricFamily:
        family = GaugeMetricFamily(name, words, labels=("cluster", *labels))
        self._made.append(family)
        return family

    def all(self) -> list[GaugeMetricFamily]:
        return self._made

    def add(self, cluster: ClusterFigures) -> None:
        of, name = (cluster.name,), cluster.name
        self.paused.add_metric(of, cluster.paused)
        self.faulty.add_metric(of, cluster.faulty)
        self.interval.add_metric(of, cluster.round_wall_seconds)
        if cluster.lease_seconds is not None:
            self.lease.add_metric(of, cluster.lease_seconds)
        for state, count in cluster.jobs.items():
            self.jobs.add_metric((name, state), count)
        for state, count in cluster.attempts.items():
            self.attempts.add_metric((name, state), count)
        self.waiting.add_metric(of, cluster.active.waiting)
        self.longest.add_metric(of, cluster.active.longest_wait_seconds)
        self.total.add_metric(of, cluster.active.total_wait_seconds)
        self.restarts.add_metric(of, cluster.active.restarts)
        self.outbox.add_metric(of, cluster.changes_to_apply)
        self._add_round(cluster)
        self._add_gpus(cluster)

    def _add_round(self, cluster: ClusterFigures) -> None:
        last, of = cluster.last, (cluster.name,)
        self.number.add_metric(of, 0 if last is None else last.number)
        if last is None:
            return
        self.age.add_metric(of, last.age_seconds)
        parts = {
            "policy": last.policy_seconds,
            "solver": last.solve_seconds,
            "placer": last.place_seconds,
        }
        for part, seconds in parts.items():
            if seconds is not None:
                self.seconds.add_metric((cluster.name, part), seconds)

    def _add_gpus(self, cluster: ClusterFigures) -> None:
        used = {} if cluster.last is None else cluster.last.used_by_type
        for gpu_type, count in cluster.gpus.items():
            held, drained = used.get(gpu_type, 0), cluster.drained.get(gpu_type, 0)
            counts = (held, max(count - held - drained, 0), drained)
            for state, value in zip(_GPU_STATES, counts, strict=True):
                self.gpus.add_metric((cluster.name, gpu_type, state), value)


def _of_work(snapshot: Snapshot) -> Iterator[Metric]:
    count = GaugeMetricFamily(
        "maat_work",
        "Simulations, sweeps, reports and other work that has not ended.",
        labels=("kind", "state"),
    )
    oldest = GaugeMetricFamily(
        "maat_work_oldest_seconds",
        "Seconds since the oldest of them was asked for.",
        labels=("kind", "state"),
    )
    for one in snapshot.work:
        count.add_metric((one.kind, one.state), one.count)
        oldest.add_metric((one.kind, one.state), one.oldest_seconds)
    yield from (count, oldest)


def _of_workers(snapshot: Snapshot) -> Iterator[Metric]:
    age = GaugeMetricFamily(
        "maat_worker_heartbeat_age_seconds",
        "Seconds since a worker last said that it listens to this queue.",
        labels=("worker", "queue"),
    )
    for worker in snapshot.workers:
        for queue in worker.queues:
            seconds = (snapshot.at - worker.at).total_seconds()
            age.add_metric((worker.name, queue), seconds)
    yield age


def _of_broker(messages: Mapping[str, int] | None) -> Iterator[Metric]:
    up = GaugeMetricFamily("maat_broker_up", "1 while the broker of messages answers.")
    up.add_metric((), messages is not None)
    waiting = GaugeMetricFamily(
        "maat_queue_messages", "Messages that no worker has taken yet.", labels=("queue",)
    )
    for queue, count in (messages or {}).items():
        waiting.add_metric((queue,), count)
    yield from (up, waiting)


def _of_process(snapshot: Snapshot, process: ProcessFigures) -> Iterator[Metric]:
    size = GaugeMetricFamily("maat_database_bytes", "Size of the database.")
    size.add_metric((), snapshot.database_bytes)
    pool = GaugeMetricFamily(
        "maat_database_connections", "Connections of this process.", labels=("state",)
    )
    for state, count in process.connections().items():
        pool.add_metric((state,), count)
    streams = GaugeMetricFamily("maat_event_streams", "Event streams that are open here.")
    streams.add_metric((), process.streams)
    lag = GaugeMetricFamily(
        "maat_event_stream_lag", "Job events by which the slowest open stream is behind."
    )
    lag.add_metric((), process.lag(snapshot.last_job_event))
    yield from (size, pool, streams, lag)
