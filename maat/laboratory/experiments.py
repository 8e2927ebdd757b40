"""The two applications of Pollux section 5.4 as experiments: a few runs set against each other.

Auto-scaling: what autoscalers rent, and what fixed numbers of nodes cost. Tuning: a
hyper-parameter search whose trials are elastic, and one whose trials keep their GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from maat.laboratory.rented import Rented, Training, rent, train
from maat.laboratory.shares import OnShare, ignore_share
from maat.laboratory.tuning import Search, TreeParzen, Tuning, search
from maat.scheduling.autoscaling import (
    Autoscaler,
    FixedNodes,
    GoodputAutoscaler,
    ThroughputAutoscaler,
    check_alike,
)
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, ParameterError
from maat.scheduling.parameters import build
from maat.simulation.scenario import Scenario

Outcome_co = TypeVar("Outcome_co", covariant=True)

BY_GOODPUT, BY_THROUGHPUT = "goodput", "throughput"
"""The runs of both autoscalers."""
ELASTIC, STATIC = "elastic", "static"
"""The runs of both searches."""
STATIC_POLICY = "fifo"
SHARING_POLICY = "pollux"
"""Shares out the rented nodes among the jobs of a trace, unless another is named."""
MOST_FIXED_SIZES = 12


class Experiment(Protocol[Outcome_co]):
    """Runs with names, each of which is played by itself, in any order."""

    @property
    def runs(self) -> Sequence[str]: ...
    def title_of(self, run: str) -> str: ...
    def play(self, run: str, *, on_share: OnShare = ignore_share) -> Outcome_co: ...


@dataclass(frozen=True)
class Autoscaling:
    """One training or a workload on rented nodes, under every one of the autoscalers.

    Raises ClusterError if the nodes are not alike.
    """

    trained: Training | Scenario
    autoscalers: tuple[Autoscaler, ...]

    def __post_init__(self) -> None:
        check_alike(self.trained.cluster)

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(autoscaler.name for autoscaler in self.autoscalers)

    @property
    def trained_name(self) -> str:
        """The name of the model, or of the workload."""
        trained = self.trained
        return trained.model.name if isinstance(trained, Training) else trained.workload.name

    def fixed_nodes_of(self, run: str) -> int | None:
        """Return the number of nodes of a run; None if an autoscaler chooses it."""
        autoscaler = self._autoscaler_of(run)
        return autoscaler.nodes if isinstance(autoscaler, FixedNodes) else None

    def title_of(self, run: str) -> str:
        """Return a run in words, such as `by goodput` or `4 nodes`."""
        nodes = self.fixed_nodes_of(run)
        return f"by {run}" if nodes is None else f"{nodes} node{'' if nodes == 1 else 's'}"

    def _autoscaler_of(self, run: str) -> Autoscaler:
        return self.autoscalers[self.runs.index(run)]

    def play(self, run: str, *, on_share: OnShare = ignore_share) -> Rented:
        autoscaler = self._autoscaler_of(run)
        if isinstance(self.trained, Training):
            return train(self.trained, autoscaler, on_share=on_share)
        return rent(self.trained, autoscaler, on_share=on_share)


@dataclass(frozen=True)
class ElasticAgainstStatic:
    """One search twice: elastic trials under a policy; trials of `static_gpus`, first come first.

    Both have the same seed. Raises ParameterError if Optuna is not installed, or if no trial can
    have so many GPUs.
    """

    elastic: Tuning
    static_gpus: int

    def __post_init__(self) -> None:
        TreeParzen.check_installed()
        self.tuning_of(STATIC)

    @property
    def runs(self) -> tuple[str, ...]:
        return (ELASTIC, STATIC)

    @property
    def static_batch_per_gpu(self) -> int:
        """Samples on each GPU of a static trial."""
        return self.elastic.static_batch_on(self.static_gpus)

    def play(self, run: str, *, on_share: OnShare = ignore_share) -> Search:
        return search(self.tuning_of(run), TreeParzen(seed=self.elastic.seed), on_share=on_share)

    def title_of(self, run: str) -> str:
        """Return a run in words, such as `elastic (pollux)`."""
        of = self.elastic.policy if run == ELASTIC else f"{self.static_gpus} GPUs each"
        return f"{run} ({of})"

    def tuning_of(self, run: str) -> Tuning:
        """Return the search of a run."""
        if run == ELASTIC:
            return self.elastic
        return replace(self.elastic, policy=STATIC_POLICY, static_gpus=self.static_gpus)


@dataclass(frozen=True)
class Thresholds:
    """When the autoscalers add nodes, and when the one by goodput gives them back."""

    upper: float = 2 / 3
    lower: float = 1 / 2
    window: int = 1
    give_back_below: float = 0.0


def autoscalers_of(
    cluster: Cluster, thresholds: Thresholds, fixed: Sequence[int] | None = None
) -> tuple[Autoscaler, ...]:
    """Return the autoscaler by goodput, the one by throughput, and the fixed numbers of nodes.

    `fixed` None: 1, 2, 4, ... nodes and all of them. Raises ParameterError.
    """
    limits = {"upper": thresholds.upper, "lower": thresholds.lower}
    averaged = {
        **limits,
        "window": thresholds.window,
        "give_back_below": thresholds.give_back_below,
    }
    most = len(cluster.nodes)
    sizes = usual_sizes(most) if fixed is None else _checked_sizes(fixed, most)
    return (
        build(GoodputAutoscaler, averaged, owner="autoscale"),
        build(ThroughputAutoscaler, limits, owner="autoscale"),
        *(FixedNodes(nodes) for nodes in sizes),
    )


def usual_sizes(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4, ... up to `most`, and `most` itself.

    >>> usual_sizes(12)
    (1, 2, 4, 8, 12)
    """
    powers = (1 << power for power in range(most.bit_length()))
    return tuple(sorted({*powers, most}))[-MOST_FIXED_SIZES:]


def _checked_sizes(fixed: Sequence[int], most: int) -> tuple[int, ...]:
    if len(fixed) > MOST_FIXED_SIZES:
        raise ParameterError(
            "are too many sizes",
            field="fixed_nodes",
            value=len(fixed),
            remedy=f"Give at most {MOST_FIXED_SIZES}.",
        )
    for nodes in fixed:
        if isinstance(nodes, bool) or not isinstance(nodes, int) or not 1 <= nodes <= most:
            raise ParameterError(
                "is no number of nodes that can be rented",
                field="fixed_nodes",
                value=nodes,
                remedy=f"Give whole numbers from 1 to {most}.",
            )
    return tuple(sorted(set(fixed)))


def check_one_given(model: str | None, trace: object) -> None:
    """Raise InputError unless exactly one of model and trace is given."""
    if (model is None) == (trace is None):
        raise InputError(
            "is given beside a trace" if model is not None else "is missing, and so is a trace",
            field="model",
            value=model,
            remedy="Give a model to train it once, or a trace to play a workload.",
        )


def check_policy_is_used(policy: object, trace: object) -> None:
    """Raise ParameterError for a policy of one training, which has all rented nodes."""
    if trace is None and policy != SHARING_POLICY:
        raise ParameterError(
            "shares out nodes among the jobs of a trace, and none is given",
            field="policy",
            value=policy,
            remedy="Leave it out, or give a trace instead of a model.",
        )
