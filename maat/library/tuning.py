"""`maat.tune`: a hyper-parameter search with elastic and with static trials."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from maat.laboratory.experiments import ElasticAgainstStatic
from maat.laboratory.tuning import HYPER_PARAMETERS, SCORES, Search, Tuning
from maat.library.experiment_plots import TunedPlots
from maat.library.inputs import Profiles, read_cluster, read_models, seed_of
from maat.library.playing import play_all
from maat.library.tables import Table
from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import POLICIES, admitted, suiting_placer
from maat.simulation.fidelity import fidelity as named_fidelity
from maat.simulation.world_models import named_model

SEARCH_CLUSTER = "a100=2x8"


def tune(
    model: str = "cifar10",
    *,
    cluster: str | Cluster = SEARCH_CLUSTER,
    profiles: str | Path | Profiles | None = None,
    fidelity: str = "pollux-artifact",
    trials: int = 100,
    at_a_time: int = 4,
    static_gpus: int = 4,
    static_batch_per_gpu: int | None = None,
    work_scale: float = 1.0,
    policy: str = "pollux",
    seed: int = 0,
    progress: bool = True,
) -> Tuned:
    """Search hyper-parameters of one model on elastic and on static GPUs; compare the times.

    Every trial that ends starts the next one (Pollux section 5.4.2). The scores are a declared
    formula; the times are simulated. Needs Optuna, which `maat[hpo]` brings. Raises InputError,
    which names the argument, its value and a remedy.

    Args:
        model: Its name; every trial trains it.
        cluster: GPU types and nodes: `type=NODESxGPUS,...`.
        profiles: Folder of measured profiles, or `maat.profiles(folder)`; None: the catalog.
        fidelity: Preset of the rules where paper and published code differ.
        trials: How many there are.
        at_a_time: How many run at a time.
        static_gpus: GPUs of every trial of the static search.
        static_batch_per_gpu: Samples of a static trial's batch on each of them; None: 128, or as
            many as the model trains with.
        work_scale: How long a trial trains, in standard trainings of the model.
        policy: Name of the policy of the elastic search; the static one is first come first served.
        seed: Of all random choices.
        progress: Whether to show a progress bar, on a terminal or in a notebook.

    >>> import maat
    >>> found = maat.tune("cifar10", trials=6, at_a_time=2)
    >>> found.searches["search"], found.searches["trials"]
    (['elastic', 'static'], [6, 6])
    >>> elastic, static = found.searches["makespan_hours"]
    >>> elastic < static
    True
    """
    nodes = read_cluster(cluster, None)
    elastic = Tuning(
        named_model(model, None if profiles is None else read_models(profiles, nodes)),
        nodes,
        named_fidelity(fidelity),
        policy=POLICIES.entry(admitted(policy.strip())).name,
        trials=trials,
        at_a_time=at_a_time,
        static_batch_per_gpu=static_batch_per_gpu,
        work_scale=work_scale,
        seed=seed_of(seed),
    )
    plan = ElasticAgainstStatic(elastic, static_gpus)
    return Tuned(plan, play_all("tune", plan, quiet=not progress))


@dataclass(frozen=True, eq=False, repr=False)
class Tuned:
    """Both searches: a table of them, and of their trials.

    In a notebook it shows the searches.

    >>> import maat
    >>> found = maat.tune(trials=3, at_a_time=3)
    >>> found
    cifar10 on a100=2x8: 3 trials, 3 at a time
    >>> found.searches["policy"], sorted(found.to_dict())
    (['pollux', 'fifo'], ['elastic', 'scores', 'static'])
    >>> found.trials.columns[:5], len(found.trials)
    (('search', 'trial', 'start_seconds', 'end_seconds', 'score'), 6)
    >>> found.plot.trials_over_time().layout.yaxis.title.text
    'Trials that have ended'
    """

    plan: ElasticAgainstStatic
    found: Mapping[str, Search]

    @cached_property
    def searches(self) -> Table:
        """One row per search: the mean score of its best trials, five at most, and its times."""
        return Table(
            {
                "search": str,
                "policy": str,
                "placer": str,
                "trials": int,
                "top_score": float,
                "avg_jct_minutes": float,
                "makespan_hours": float,
            },
            [
                (
                    name,
                    one.policy,
                    suiting_placer(one.policy),
                    len(one.records),
                    one.top_score(),
                    one.average_jct_seconds / 60,
                    one.makespan_seconds / 3600,
                )
                for name, one in self.found.items()
            ],
        )

    @cached_property
    def trials(self) -> Table:
        """One row per trial, as they ended: when it was submitted and ended, score and settings."""
        return Table(
            {
                "search": str,
                "trial": str,
                "start_seconds": float,
                "end_seconds": float,
                "score": float,
                **dict.fromkeys(HYPER_PARAMETERS, float),
            },
            [
                (
                    name,
                    trial.name,
                    trial.submit,
                    trial.finish,
                    trial.score,
                    *(trial.settings[parameter] for parameter in HYPER_PARAMETERS),
                )
                for name, one in self.found.items()
                for trial in one.records
            ],
        )

    @property
    def plot(self) -> TunedPlots:
        """The figures: `found.plot.trials_over_time()`, `found.plot.best_score_over_time()`."""
        return TunedPlots(self)

    def to_dict(self) -> dict[str, Any]:
        """Return what `maat tune --json` prints: how scores are made, and each search."""
        return {
            "scores": SCORES,
            **{
                name: {
                    "policy": one.policy,
                    "placer": suiting_placer(one.policy),
                    "trials": len(one.records),
                    "top_score": one.top_score(),
                    "avg_jct_seconds": one.average_jct_seconds,
                    "makespan_seconds": one.makespan_seconds,
                }
                for name, one in self.found.items()
            },
        }

    def __repr__(self) -> str:
        asked = self.plan.elastic
        where = f"{asked.model.name} on {asked.cluster.describe()}"
        return f"{where}: {asked.trials} trials, {asked.at_a_time} at a time"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.searches.as_html()}<p>Scores: {SCORES}.</p>"
