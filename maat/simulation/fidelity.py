"""Fidelities: presets of named switches for every point where the paper and a published simulator disagree. No switch has two homes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from maat.scheduling.errors import UnknownNameError
from maat.scheduling.fitting import ACROSS_OVER_WITHIN
from maat.simulation.variability import ARTIFACT_VARIABILITY, PAPER_VARIABILITY, VariabilityRules


class ProfilingMode(StrEnum):
    """What is revealed of a job before it has run (Sia section 5.7): step times at every configuration; on one GPU of every type; nothing.

    REQUEST_ORACLE: step times at the batch size that it asks for on any number of GPUs, filled node by node, and how many optimiser steps of
    that batch size it has left (Pollux section 5.2, Optimus+Oracle).
    REQUESTED: its true pace, calibration included, at the GPU count and batch size that it asks for, on every type; free of charge.
    """

    ORACLE = "oracle"
    REQUESTED = "requested"
    BOOTSTRAP = "bootstrap"
    NO_PROFILE = "no-profile"
    REQUEST_ORACLE = "request-oracle"


class GpuTimeRule(StrEnum):
    """What GPU-hours count: seconds for which GPUs were held, or whole rounds."""

    SECONDS = "seconds"
    WHOLE_ROUNDS = "whole-rounds"


@dataclass(frozen=True)
class Fidelity:
    """The switches. Section numbers are those of the modelling notes that the presets follow.

    `profiling_by_policy`: what is revealed to one policy where that is not `profiling`. `flat_restart_seconds`: what a restart takes whatever
    the model; None: the model's own. `largest_per_gpu`: (model, type) -> the most samples that a GPU holds, in truth and in plans.
    `rigid_models`: jobs of these keep the GPU count and the batch size of the trace under every policy. `calibrated`: whether training is
    slower than the measured step times say, by the models' calibration. `fullest_node_first`: a job's nodes count from the one of which it
    holds most, not in the cluster's order; step times were measured by order. `steps_from_epoch_end`: whoever is told the steps that a job has
    left is told those after the present epoch, at least 1; else all of them. `across_over_within`: what a job that never ran on several nodes
    is believed to lose across them, over what it loses within one (Pollux section 4.1: 0). `young_move_freely`: a lone job, the yardstick of rho,
    pays for no move while it is younger than one restart (Sia eq. 3: it does).
    """

    name: str
    summary: str
    profiling: ProfilingMode = ProfilingMode.BOOTSTRAP
    profiling_by_policy: Mapping[str, ProfilingMode] = field(
        default_factory=dict
    )  # what baselines are told that others must learn
    profiling_seconds_per_type: float = 20.0
    whole_second_epochs: bool = False  # 4.3: time to an epoch's end is rounded to a second
    free_moves_of_same_shape: bool = False  # 4.4: other nodes, same shape: no restart
    project_by_constant: bool = False  # 4.7: Sia eq. 1 with a constant ratio per model
    plan_within_trace_batch: bool = (
        False  # 4.5: the policy plans up to the trace's batch size, the job runs up to the model's
    )
    gpu_time: GpuTimeRule = GpuTimeRule.SECONDS  # 4.11
    policy_restart_seconds: Mapping[str, float] = field(
        default_factory=dict
    )  # 4.7: what the policy reckons where it differs from the truth
    policy_largest_per_gpu: Mapping[tuple[str, str], int] = field(
        default_factory=dict
    )  # 4.5: hand-set (model, type) -> batch
    policy_parameters: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict
    )  # 4.5-4.8: by policy, unless the caller sets them
    placer_parameters: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict
    )  # by placer, unless the caller sets them
    round_seconds: float | None = (
        None  # between rounds, whatever the policy, unless the caller says
    )
    completion_at_round_end: bool = (
        False  # a job is done when the round after its last iteration begins
    )
    variability: VariabilityRules = PAPER_VARIABILITY
    most_gpus_per_job: int = 64
    flat_restart_seconds: float | None = None
    largest_per_gpu: Mapping[tuple[str, str], int] = field(default_factory=dict)
    rigid_models: frozenset[str] = frozenset()
    calibrated: bool = True
    fullest_node_first: bool = False
    steps_from_epoch_end: bool = False
    across_over_within: float = 0.0
    young_move_freely: bool = False

    def as_known_to(self, policy: str) -> Fidelity:
        """Return the fidelity with the profiling that this policy gets.

        A policy that knows only the pace of the request scores no other batch sizes, so the cap on
        them (4.5) does not apply to it.
        """
        known = self.revealing(self.profiling_by_policy.get(policy, self.profiling))
        if known.profiling is ProfilingMode.REQUESTED:
            return replace(known, plan_within_trace_batch=False)
        return known

    def revealing(self, mode: ProfilingMode) -> Fidelity:
        """With this profiling, whatever the policy."""
        return replace(self, profiling=mode, profiling_by_policy={})


FIDELITIES: Mapping[str, Fidelity] = {
    "paper": Fidelity(
        "paper",
        "Follows the Sia paper: jobs are profiled on one GPU of every type first, and the profiling is charged.",
    ),
    "sia-artifact": Fidelity(
        "sia-artifact",
        "Follows the published Sia simulator in every rule in which it differs from the paper.",
        profiling=ProfilingMode.NO_PROFILE,
        profiling_by_policy={"gavel": ProfilingMode.REQUESTED, "themis": ProfilingMode.REQUESTED},
        whole_second_epochs=True,
        free_moves_of_same_shape=True,
        project_by_constant=True,
        plan_within_trace_batch=True,
        across_over_within=ACROSS_OVER_WITHIN,
        young_move_freely=True,
        policy_parameters={
            "sia": {
                "young_move_freely": True,
                "row_unit": "replica",
                "only_placeable": False,
                "scale_up_base": "largest",
                "utility_decimals": 2,
                "beyond_largest_batch": True,
                "random_ties": True,
            },
            "gavel": {
                "objective": "max-sum-throughput",
                "isolated_rule": "whole-job",
                "reset_seconds": None,
                "break_ties_by_owed": False,
                "unfit_throughput": 0.1,
            },
        },
        placer_parameters={"whole-node": {"evict": "everybody", "spread": True}},
        gpu_time=GpuTimeRule.WHOLE_ROUNDS,
        policy_restart_seconds={"cifar10": 30.0, "yolov3": 45.0},
        policy_largest_per_gpu={("deepspeech2", "rtx"): 57},
    ),
    "pollux-artifact": Fidelity(
        "pollux-artifact",
        "Follows the published Pollux simulator: flat 30 s restarts, no calibration, NCF bound to its request.",
        profiling=ProfilingMode.NO_PROFILE,
        profiling_by_policy={"optimus": ProfilingMode.REQUEST_ORACLE},
        whole_second_epochs=True,
        flat_restart_seconds=30.0,
        largest_per_gpu={("yolov3", "t4"): 8},
        rigid_models=frozenset({"ncf"}),
        across_over_within=ACROSS_OVER_WITHIN,
        calibrated=False,
        fullest_node_first=True,
        steps_from_epoch_end=True,
    ),
    "pal-artifact": Fidelity(
        "pal-artifact",
        "Follows the published simulator of PAL: nothing is profiled, restarts are free, jobs begin and end with rounds of 360 s.",
        profiling=ProfilingMode.NO_PROFILE,
        gpu_time=GpuTimeRule.WHOLE_ROUNDS,
        policy_parameters={
            **{
                policy: {"head_of_line": "block"}
                for policy in ("gandiva", "sjf", "srtf", "tiresias")
            },
            "las": {"head_of_line": "block", "service": "seconds"},
        },
        placer_parameters={
            "pal": {"binning": "two"},
            "pm-first": {"binning": "two"},
            "random": {"chance": "run"},
            "random-sticky": {"chance": "run"},
        },
        round_seconds=360.0,
        flat_restart_seconds=0.0,
        completion_at_round_end=True,
        variability=ARTIFACT_VARIABILITY,
    ),
    "shockwave-artifact": Fidelity(
        "shockwave-artifact",
        "Follows the published Shockwave simulator: speeds at every batch size are known, moves without a pause are free.",
        profiling=ProfilingMode.ORACLE,
        free_moves_of_same_shape=True,
        policy_parameters={"shockwave": {"rho_from": "origin"}},
        gpu_time=GpuTimeRule.WHOLE_ROUNDS,
    ),
}


def fidelity(name: str, *, profiling: ProfilingMode | str | None = None) -> Fidelity:
    """The preset of that name, with another profiling mode where one is given. Raises UnknownNameError listing the presets that exist."""
    if name not in FIDELITIES:
        raise UnknownNameError(
            "is no fidelity that Maat has",
            field="fidelity",
            value=name,
            remedy=f"Use one of: {', '.join(FIDELITIES)}.",
        )
    preset = FIDELITIES[name]
    return preset if profiling is None else preset.revealing(ProfilingMode(profiling))
