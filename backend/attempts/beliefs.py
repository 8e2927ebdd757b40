"""What is believed of a job, as the API shows it. Commits nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from sqlmodel import Session, col, select

from backend.answers import answer_of
from backend.attempts.gradients import believed_gradient, latest_gradients
from backend.attempts.job_restarts import restart_of
from backend.attempts.locality import measured_of, penalties_of
from backend.attempts.models import AttemptRow, JobFit, JobMemory, StepSample
from backend.attempts.profiles import why_given_up
from backend.clocktime import cluster_seconds, shown_at
from backend.clusters.models import Cluster, Node
from backend.commands.models import JobCommand
from backend.jobs.models import Job
from backend.moments import moment_of
from maat.api.beliefs import (
    BeliefOut,
    CurveOut,
    FitOut,
    GradientOut,
    MemoryOut,
    MissedPointOut,
    ParametersOut,
    PenaltyOut,
    PointOut,
    ProfileOut,
    RestartPartOut,
)
from maat.scheduling.choice import NOTABLE
from maat.scheduling.efficiency import noise_scale
from maat.scheduling.throughput import ThroughputParameters, step_seconds
from maat.vocabulary import AttemptKind

_POINTS = 25  # of a curve
_MOST_CURVES = 8  # of a type: the smallest numbers of replicas


def show_belief(session: Session, job: Job) -> BeliefOut:
    cluster = session.get_one(Cluster, job.cluster_id)
    now = cluster_seconds(cluster, moment_of(session))
    attempts = session.exec(
        select(AttemptRow).where(AttemptRow.job_id == job.id).order_by(col(AttemptRow.number))
    ).all()
    fits = session.exec(
        select(JobFit).where(JobFit.job_id == job.id).order_by(col(JobFit.gpu_type))
    ).all()
    samples = session.exec(select(StepSample).where(StepSample.job_id == job.id)).all()
    memory = session.exec(
        select(JobMemory).where(JobMemory.job_id == job.id).order_by(col(JobMemory.gpu_type))
    ).all()
    seconds, parts = restart_of(session, cluster, job)
    return BeliefOut(
        types=[_fit(fit, samples, cluster) for fit in fits],
        gradient=_gradient(session, job, cluster, now),
        played=not cluster.runs_commands,
        restart_seconds=seconds,
        restart=[answer_of(RestartPartOut, part) for part in parts],
        locality=_locality(session, job, cluster),
        profiles=_profiles(attempts, now),
        memory=[answer_of(MemoryOut, row) for row in memory],
        profiles_ended=why_given_up([fit.gpu_type for fit in fits], attempts),
    )


def _locality(session: Session, job: Job, cluster: Cluster) -> list[PenaltyOut]:
    command = session.get(JobCommand, job.id)
    if command is None:
        return []
    nodes = select(Node.gpu_type).where(Node.cluster_id == cluster.id).distinct()
    types = session.exec(nodes.order_by(Node.gpu_type)).all()
    usable = [one for one in types if job.gpu_types is None or one in job.gpu_types]
    found = penalties_of(usable, command.locality_penalty, measured_of(session, job))
    return [answer_of(PenaltyOut, one) for one in found]


def _fit(fit: JobFit, samples: Sequence[StepSample], cluster: Cluster) -> FitOut:
    mine = [row for row in samples if row.gpu_type == fit.gpu_type]
    return answer_of(
        FitOut,
        fit,
        sample_count=len(fit.samples),
        step_count=sum(row.count for row in mine),
        fitted_at=shown_at(cluster, fit.fitted_seconds),
        parameters=answer_of(ParametersOut, ThroughputParameters(*fit.parameters)),
        curves=_curves(fit),
        missed=_missed(fit),
    )


def _missed(fit: JobFit) -> list[MissedPointOut]:
    """Return the measured points that the model is off from by more than NOTABLE, worst first."""
    nodes, replicas, batch, measured = np.array([each[:4] for each in fit.samples]).T
    modelled = step_seconds(
        np.array(fit.parameters), batch, node_count=nodes, replica_count=replicas
    )
    off = np.abs(modelled / measured - 1.0)
    return [
        MissedPointOut(
            node_count=int(nodes[i]),
            replica_count=int(replicas[i]),
            per_gpu_batch_size=int(batch[i]),
            measured_seconds=float(measured[i]),
            modelled_seconds=float(modelled[i]),
        )
        for i in np.argsort(-off, kind="stable").tolist()
        if off[i] > NOTABLE
    ]


def _curves(fit: JobFit) -> list[CurveOut]:
    """Return the model over the measured range, for every measured number of replicas."""
    shapes = sorted({(int(each[0]), int(each[1])) for each in fit.samples})[:_MOST_CURVES]
    batches = [each[2] for each in fit.samples]
    largest = 2 * max(batches)
    sizes = np.unique(np.geomspace(max(min(batches) / 2, 1), largest, _POINTS).round())
    curves = []
    for nodes, replicas in shapes:
        seconds = step_seconds(
            np.array(fit.parameters),
            sizes,
            node_count=np.array(nodes),
            replica_count=np.array(replicas),
        )
        points = [
            PointOut(per_gpu_batch_size=int(size), step_seconds=float(each))
            for size, each in zip(sizes, seconds, strict=True)
        ]
        curves.append(CurveOut(node_count=nodes, replica_count=replicas, points=points))
    return curves


def _gradient(session: Session, job: Job, cluster: Cluster, now: float) -> GradientOut | None:
    rows = latest_gradients(session, col(Job.id) == job.id).get(job.id, ())
    believed = believed_gradient(rows, now)
    if believed is None:
        return None
    phi = noise_scale(believed.square, believed.variance, float(rows[0].batch_size))
    return GradientOut(
        noise_scale=float(phi),
        steps=rows[0].steps,
        at=shown_at(cluster, rows[0].at_seconds),
    )


def _profiles(attempts: Sequence[AttemptRow], now: float) -> list[ProfileOut]:
    profiles = [one for one in attempts if one.kind == AttemptKind.PROFILE]
    by_type = groupby(
        sorted(profiles, key=lambda one: (one.gpu_type, one.number)), lambda one: one.gpu_type
    )
    return [_profile(kind, list(found), now) for kind, found in by_type]


def _profile(gpu_type: str, attempts: Sequence[AttemptRow], now: float) -> ProfileOut:
    held = sum(one.gpu_seconds(now) for one in attempts)
    stepping = sum((one.stepping_seconds or 0.0) * one.gpu_count for one in attempts)
    newest = attempts[-1]
    return ProfileOut(
        gpu_type=gpu_type,
        attempts=len(attempts),
        state=newest.state,
        outcome=newest.outcome,
        reason=newest.reason,
        stepping_gpu_seconds=stepping,
        startup_gpu_seconds=max(held - stepping, 0.0),
    )
