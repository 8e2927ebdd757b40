"""What a message of a webhook says of a notice, and which webhooks hear of it.

A message names what happened and the ids to fetch; it holds no log lines and no secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from backend.clocktime import shown_at
from backend.clusters.models import Cluster, Node
from backend.models import Job, JobEvent, Report, Tenant, User, Webhook, WebhookNotice
from maat.api.fields import rfc3339
from maat.scheduling.events import EventKind
from maat.vocabulary import JobState, WebhookEvent
from worker.jobs.causes import Cause

_OF_STATE: Mapping[str, WebhookEvent] = {
    JobState.SUBMITTED: WebhookEvent.JOB_SUBMITTED,
    JobState.STARTING: WebhookEvent.JOB_STARTED,
    JobState.PREEMPTED: WebhookEvent.JOB_PREEMPTED,
    JobState.PAUSED: WebhookEvent.JOB_PAUSED,
    JobState.SUCCEEDED: WebhookEvent.JOB_SUCCEEDED,
    JobState.FAILED: WebhookEvent.JOB_FAILED,
    JobState.CANCELLED: WebhookEvent.JOB_CANCELLED,
}
_OF_KIND: Mapping[str, WebhookEvent] = {
    EventKind.DEADLINE: WebhookEvent.JOB_DEADLINE,
    EventKind.CHECKPOINT: WebhookEvent.JOB_CHECKPOINT,
    EventKind.FLAG: WebhookEvent.JOB_FLAGGED,
}
_NOT_SENT = frozenset({"last_lines"})  # of a log: it may hold anything


@dataclass(frozen=True)
class Told:
    """What happened, for all webhooks that hear of it.

    `tenant_id`: whose it is; None: `is_shared` says whether every tenant may hear of it.
    """

    event: WebhookEvent
    cluster_id: str
    tenant_id: str | None
    is_shared: bool
    content: Mapping[str, Any]

    def is_heard_by(self, webhook: Webhook) -> bool:
        """Return whether a webhook hears of it: by its events, its cluster and its tenant."""
        if self.event not in webhook.events or webhook.cluster_id not in (None, self.cluster_id):
            return False
        return self.is_shared or webhook.tenant_id in (None, self.tenant_id)


def told_of(session: Session, notice: WebhookNotice, *, public_url: str) -> Told | None:
    """Return what a notice tells; None if it is nothing for webhooks, or its row is gone."""
    tell = {
        "job_events": _of_job,
        "reports": _of_report,
        "clusters": _of_cluster,
        "nodes": _of_node,
    }[notice.source]
    return tell(session, notice, public_url.rstrip("/"))


def _of_job(session: Session, notice: WebhookNotice, url: str) -> Told | None:
    event = session.get(JobEvent, int(notice.source_id))
    kind = None if event is None else _kind_of(event)
    if event is None or kind is None:
        return None
    job = session.get_one(Job, event.job_id)
    cluster = session.get_one(Cluster, job.cluster_id)
    data = {name: value for name, value in event.data.items() if name not in _NOT_SENT}
    content = {
        "happened_at": shown_at(cluster, event.cluster_seconds),
        "cluster": _named(cluster),
        "job": {
            "id": job.id,
            "name": job.name,
            "external_id": job.external_id,
            "array_id": job.array_id,
            "model": job.model,
            "labels": job.labels,
            "priority": job.priority,
            "owner": session.get_one(User, job.owner_id).name,
            "tenant": session.get_one(Tenant, job.tenant_id).name,
            "url": f"{url}/jobs/{job.id}",
        },
        "event": {
            "id": event.id,
            "kind": event.kind,
            "state": event.state,
            "round_number": event.round_number,
            "data": data,
        },
    }
    return Told(kind, job.cluster_id, job.tenant_id, False, content)


def _kind_of(event: JobEvent) -> WebhookEvent | None:
    if event.state == JobState.PAUSED and event.data.get("cause") == Cause.FOLLOWS:
        return None  # nobody paused it
    known = _OF_KIND if event.state is None else _OF_STATE
    return known.get(event.kind if event.state is None else event.state)


def _of_report(session: Session, notice: WebhookNotice, url: str) -> Told | None:
    report = session.get(Report, notice.source_id)
    if report is None:
        return None
    cluster = session.get_one(Cluster, report.cluster_id)
    content = {
        "happened_at": rfc3339(report.made_at),
        "cluster": _named(cluster),
        "report": {
            "id": report.id,
            "title": report.title,
            "checksum": report.checksum,
            "from": rfc3339(report.period_start),
            "to": rfc3339(report.period_end),
            "schedule_id": report.schedule_id,
            "url": f"{url}/api/v1/reports/{report.id}",
        },
    }
    return Told(WebhookEvent.REPORT_READY, cluster.id, report.tenant_id, False, content)


def _of_cluster(session: Session, notice: WebhookNotice, url: str) -> Told | None:
    cluster = session.get(Cluster, notice.source_id)
    if cluster is None:
        return None
    away = notice.note is not None
    event = WebhookEvent.CLUSTER_FAULT if away else WebhookEvent.CLUSTER_RECOVERED
    content = {
        "happened_at": rfc3339(notice.at),
        "cluster": {**_named(cluster), "url": f"{url}/?cluster={cluster.id}"},
        "fault": notice.note,
    }
    return Told(event, cluster.id, None, True, content)


def _of_node(session: Session, notice: WebhookNotice, url: str) -> Told | None:
    node = session.get(Node, notice.source_id)
    if node is None:
        return None
    cluster = session.get_one(Cluster, node.cluster_id)
    gone = notice.note is not None
    event = WebhookEvent.NODE_FAULT if gone else WebhookEvent.NODE_RECOVERED
    content = {
        "happened_at": rfc3339(notice.at),
        "cluster": {**_named(cluster), "url": f"{url}/?cluster={cluster.id}"},
        "node": {"name": node.name, "gpu_type": node.gpu_type, "gpu_count": node.gpu_count},
        "fault": notice.note,
    }
    return Told(event, cluster.id, None, True, content)


def _named(cluster: Cluster) -> dict[str, str]:
    return {"id": cluster.id, "name": cluster.name}
