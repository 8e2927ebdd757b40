"""Hyper-parameter search as a workload (Pollux section 5.4.2).

A few trials run at a time; the scores of the last ones choose the next. The score of a trial is a
declared formula, not a measurement; its duration is simulated under a scheduling policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

import numpy as np

from maat.laboratory.reactive import ReactiveExecutor
from maat.laboratory.rented import LatestOnly
from maat.laboratory.shares import OnShare, Stalled, ending_stalled, ignore_share
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ParameterError, TraceError
from maat.scheduling.job import JobId
from maat.scheduling.loop import RoundLoop
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import Fidelity
from maat.simulation.submission import Submission
from maat.simulation.world_models import Model
from maat.vocabulary import BEST_SCORES, Adaptivity
from maat.workloads.workloads import TraceJob

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import Trial

Settings = Mapping[str, float]

USUAL_STATIC_BATCH = 128
"""Samples on each GPU of a static trial, unless the model trains with fewer."""


@dataclass(frozen=True)
class Tuning:
    """A search: `trials` of one model, `at_a_time` of them together, under a policy.

    `static_gpus`: GPUs of one node for every trial; None: the policy and the job's agent choose.
    `static_batch_per_gpu`: samples on each of them; None: 128, as the paper has, or as many as the
    model trains with. `work_scale`: length of a trial of a network of
    width 1, in standard trainings of the model.
    """

    model: Model
    cluster: Cluster
    fidelity: Fidelity
    policy: str = "pollux"
    trials: int = 100
    at_a_time: int = 4
    static_gpus: int | None = None
    static_batch_per_gpu: int | None = None
    work_scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.work_scale < math.inf:
            raise ParameterError(
                "must be a number above 0",
                field="work_scale",
                value=self.work_scale,
                remedy="Give for example 4.",
            )
        for name in ("trials", "at_a_time"):
            if getattr(self, name) < 1:
                raise ParameterError(
                    "must be at least 1",
                    field=name,
                    value=getattr(self, name),
                    remedy="Give a whole number from 1 up.",
                )
        self._check_model()
        self._check_static_gpus()
        self._check_static_batch()

    def static_batch_on(self, gpus: int) -> int:
        """Return the samples on each of so many GPUs of a static trial."""
        if self.static_batch_per_gpu is not None:
            return self.static_batch_per_gpu
        return max(1, min(USUAL_STATIC_BATCH, self.model.truth.max_batch_size // gpus))

    def _check_model(self) -> None:
        """Raise TraceError if the model cannot run on this cluster."""
        if not any(self.model.runs_on(name) for name in self.cluster.type_names):
            raise TraceError(
                f"cannot run on {self.cluster.describe()}",
                field="model",
                value=self.model.name,
                remedy=f"Measured are: {', '.join(self.model.memory)}.",
            )

    def _check_static_gpus(self) -> None:
        """Raise ParameterError for a static trial of more GPUs than any usable type has."""
        types = zip(self.cluster.type_names, self.cluster.usable_gpus, strict=True)
        most = max(int(gpus) for name, gpus in types if self.model.runs_on(name))
        if self.static_gpus is not None and not 1 <= self.static_gpus <= most:
            raise ParameterError(
                f"are no GPUs that one trial can have on {self.cluster.describe()}",
                field="static_gpus",
                value=self.static_gpus,
                remedy=f"Give a whole number from 1 to {most}.",
            )

    def _check_static_batch(self) -> None:
        """Raise ParameterError for a static trial whose batch is larger than the model trains with.

        Elastic trials stop there too: beyond it the comparison would be with a training that
        nobody measured.
        """
        largest = self.model.truth.max_batch_size
        gpus = self.static_gpus
        if gpus is None:
            return
        on_each = self.static_batch_on(gpus)
        if on_each >= 1 and gpus * on_each <= largest:
            return
        raise ParameterError(
            f"on each of {gpus} GPUs is no batch that {self.model.name} trains with",
            field="static_batch_per_gpu",
            value=on_each,
            remedy=f"Its batches have at most {largest} samples: give a whole number from 1 to "
            f"{largest // gpus}, or other static GPUs.",
        )


@dataclass(frozen=True)
class TrialRecord:
    """One trial: its settings, submission, end and score."""

    name: JobId
    settings: Settings
    submit: float
    finish: float
    score: float


@dataclass(frozen=True)
class Search:
    """The result of a search. Times in seconds."""

    policy: str
    records: tuple[TrialRecord, ...]

    @property
    def makespan_seconds(self) -> float:
        return max((record.finish for record in self.records), default=0.0)

    @property
    def average_jct_seconds(self) -> float:
        return (
            float(np.mean([record.finish - record.submit for record in self.records]))
            if self.records
            else 0.0
        )

    def top_score(self, many: int = BEST_SCORES) -> float:
        """Return the mean of the best scores; of all, if there are fewer."""
        best = sorted((record.score for record in self.records), reverse=True)[:many]
        return float(np.mean(best)) if best else 0.0


def search(tuning: Tuning, sampler: Sampler, *, on_share: OnShare = ignore_share) -> Search:
    """Run a search to its last trial.

    Raises ParameterError if the policy leaves trials unfinished.
    """
    model, clock = tuning.model.under(tuning.fidelity), JumpingClock()
    inner = SimulatedExecutor(tuning.cluster, clock, tuning.fidelity.as_known_to(tuning.policy))
    source = Trials(
        tuning,
        model,
        sampler,
        finish_of=lambda job_id: inner.finished[job_id].finished_at or 0.0,
        on_share=ending_stalled(on_share),
    )
    policy = POLICIES.build(tuning.policy)
    loop = RoundLoop(
        policy=policy,
        placer=PLACERS.build(suiting_placer(tuning.policy)),
        executor=ReactiveExecutor(inner, source),
        store=LatestOnly(),
        clock=clock,
        seed=tuning.seed,
    )
    with suppress(Stalled):
        loop.run()
    if len(source.records) < tuning.trials:
        raise ParameterError(
            f"finished only {len(source.records)} of {tuning.trials} trials "
            f"on {tuning.cluster.describe()}",
            field="policy",
            value=tuning.policy,
            remedy="Use another policy, a cluster that fits every trial, or other GPUs or samples "
            "for each static trial.",
        )
    return Search(tuning.policy, tuple(source.records))


# ---- trials


class Sampler(Protocol):
    """Chooses the settings of the next trial from the scores of earlier ones."""

    def ask(self, name: JobId) -> Settings: ...
    def tell(self, name: JobId, score: float) -> None: ...


class TreeParzen:
    """The tree-structured Parzen estimator of Optuna.

    Raises ParameterError if Optuna is not installed.
    """

    def __init__(self, *, seed: int) -> None:
        self.check_installed()
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        self._study: Study = optuna.create_study(direction="maximize", sampler=sampler)
        self._open: dict[JobId, Trial] = {}

    @staticmethod
    def check_installed() -> None:
        """Raise ParameterError if Optuna is not installed."""
        if find_spec("optuna") is None:
            raise ParameterError(
                "needs the library optuna, which is not installed",
                field="sampler",
                value="tpe",
                remedy="Install maat[hpo].",
            )

    def ask(self, name: JobId) -> Settings:
        """Return the settings of a trial of that name."""
        trial = self._open[name] = self._study.ask()
        return {
            "learning_rate": trial.suggest_float("learning_rate", 1e-3, 1.0, log=True),
            "annealing": trial.suggest_float("annealing", 0.05, 0.5),
            "momentum": trial.suggest_float("momentum", 0.5, 0.99),
            "weight_decay": trial.suggest_float("weight_decay", 1e-6, 1e-2, log=True),
            "width": trial.suggest_float("width", 0.5, 2.0),
        }

    def tell(self, name: JobId, score: float) -> None:
        """Report the score of the trial of that name."""
        self._study.tell(self._open.pop(name), score)


HYPER_PARAMETERS = ("learning_rate", "annealing", "momentum", "weight_decay", "width")
"""What a trial chooses, by name."""

BEST: Settings = {
    "learning_rate": 0.1,
    "annealing": 0.2,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "width": 1.5,
}


SCORES = (
    "declared, not measured: 95.5 less a multiple of the square of each setting's distance "
    "from the best one, plus noise"
)


def score_of(settings: Settings, noise: float) -> float:
    """Return a declared score: 95.5 % at the best settings, minus squared distances.

    `noise` in per cent.
    """
    decades = (
        math.log10(settings["learning_rate"] / BEST["learning_rate"]),
        math.log10(settings["weight_decay"] / BEST["weight_decay"]),
    )
    lost = 2.0 * decades[0] ** 2 + 0.4 * decades[1] ** 2
    lost += (
        20.0 * (settings["momentum"] - BEST["momentum"]) ** 2
        + 8.0 * (settings["annealing"] - BEST["annealing"]) ** 2
    )
    lost += 0.8 * (settings["width"] - BEST["width"]) ** 2
    return 95.5 - lost + noise


@dataclass
class Trials:
    """The JobSource of a search: keeps `at_a_time` trials running.

    A network's width is its relative cost.
    """

    tuning: Tuning
    model: Model
    sampler: Sampler
    finish_of: Callable[[JobId], float]
    on_share: OnShare = ignore_share
    records: list[TrialRecord] = field(default_factory=list)
    _going: dict[JobId, tuple[Settings, float]] = field(default_factory=dict)
    _submitted: int = 0

    @property
    def exhausted(self) -> bool:
        return self._submitted == self.tuning.trials

    def submissions(self, now: float, ended: Sequence[JobId]) -> Sequence[Submission]:
        for job_id in ended:
            self._end(job_id)
        self.on_share(len(self.records) / self.tuning.trials)
        wanted = min(self.tuning.at_a_time - len(self._going), self.tuning.trials - self._submitted)
        return [self._next(now) for _ in range(wanted)]

    def _next(self, now: float) -> Submission:
        name = f"trial-{self._submitted}"
        self._submitted += 1
        settings = self.sampler.ask(name)
        self._going[name] = (settings, now)
        static, model = self.tuning.static_gpus, self.model
        batch = None if static is None else static * self.tuning.static_batch_on(static)
        scale = settings["width"] * self.tuning.work_scale
        job = TraceJob(
            name=name,
            submit_seconds=now,
            model=model.name,
            gpu_count=1 if static is None else static,
            batch_size=batch,
            work_scale=scale,
        )
        adaptivity = Adaptivity.ADAPTIVE if static is None else Adaptivity.RIGID
        spec = model.job_spec(job, self.tuning.fidelity, adaptivity=adaptivity)
        return Submission(spec, model.truth, model.restart_seconds, work_scale=scale)

    def _end(self, job_id: JobId) -> None:
        settings, submitted = self._going.pop(job_id)
        noise = np.random.default_rng((self.tuning.seed, int(job_id.rpartition("-")[2]))).normal(
            0.0, 0.1
        )
        score = score_of(settings, float(noise))
        self.sampler.tell(job_id, score)
        self.records.append(TrialRecord(job_id, settings, submitted, self.finish_of(job_id), score))
