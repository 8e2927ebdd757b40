"""Fidelities: presets of named switches for the modelling rules of a simulation.

There is a switch for every point where the paper and a published simulator disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from maat.scheduling.belief import MemoisingFitter
from maat.scheduling.errors import UnknownNameError
from maat.scheduling.fitting import ACROSS_OVER_WITHIN, FitSearch
from maat.simulation.variability import ARTIFACT_VARIABILITY, PAPER_VARIABILITY, VariabilityRules
from maat.vocabulary import ProfilingMode


class GpuTimeRule(StrEnum):
    """What GPU-hours count: seconds for which GPUs are held, or whole rounds."""

    SECONDS = "seconds"
    WHOLE_ROUNDS = "whole-rounds"


@dataclass(frozen=True)
class Fidelity:
    """The switches. Section numbers are those of the modelling notes.

    `profiling_by_policy`: the profiling of a policy whose profiling differs from `profiling`.
    `flat_restart_seconds`: cost of a restart for every model; None: the model's own.
    `largest_per_gpu`: (model, type) -> the most samples that a GPU holds, in truth and in plans.
    `rigid_models`: jobs of these models keep the trace's GPU count and batch size under every
    policy. `calibrated`: whether training is slower than the measured step times, by the models'
    calibration. `fullest_node_first`: count a job's nodes from the one with most of its GPUs, not
    in the cluster's order; step times were measured by order. `steps_from_epoch_end`: a policy that
    knows the remaining steps of a job knows those after the present epoch, at least 1; else all of
    them. `across_over_within`: the believed loss across nodes of a job that never ran on several,
    over its loss within one node (Pollux section 4.1: 0). `fit_search`: how fits look for the
    minimum of their loss; the published code ends before it. `young_move_freely`: a lone job, the
    yardstick of rho, pays for no move while it is younger than one restart (Sia eq. 3: it pays).
    `rounds_batch_up`: what is believed of a plan may count more samples than the largest batch,
    since each GPU has whole samples (258 of at most 256 on three GPUs); no job runs such a plan.
    """

    name: str
    summary: str
    profiling: ProfilingMode = ProfilingMode.BOOTSTRAP
    profiling_by_policy: Mapping[str, ProfilingMode] = field(
        default_factory=dict
    )  # baselines that know what others must learn
    profiling_seconds_per_type: float = 20.0
    whole_second_epochs: bool = False  # 4.3: time to an epoch's end is rounded to a second
    free_moves_of_same_shape: bool = False  # 4.4: other nodes, same shape: no restart
    project_by_constant: bool = False  # 4.7: Sia eq. 1 with a constant ratio per model
    # 4.5: the policy plans up to the trace's batch size, the job runs up to the model's
    plan_within_trace_batch: bool = False
    gpu_time: GpuTimeRule = GpuTimeRule.SECONDS  # 4.11
    policy_restart_seconds: Mapping[str, float] = field(
        default_factory=dict
    )  # 4.7: the policy's estimate, if it differs from the truth
    policy_largest_per_gpu: Mapping[tuple[str, str], int] = field(
        default_factory=dict
    )  # 4.5: hand-set (model, type) -> batch
    policy_parameters: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict
    )  # 4.5-4.8: by policy, unless the scenario sets them
    placer_parameters: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict
    )  # by placer, unless the scenario sets them
    # seconds between rounds for every policy, unless the scenario sets them
    round_seconds: float | None = None
    completion_at_round_end: bool = False  # a job ends when the round after its last step begins
    variability: VariabilityRules = PAPER_VARIABILITY
    most_gpus_per_job: int = 64
    flat_restart_seconds: float | None = None
    largest_per_gpu: Mapping[tuple[str, str], int] = field(default_factory=dict)
    rigid_models: frozenset[str] = frozenset()
    calibrated: bool = True
    fullest_node_first: bool = False
    steps_from_epoch_end: bool = False
    across_over_within: float = 0.0
    fit_search: FitSearch = FitSearch.MINIMUM
    young_move_freely: bool = False
    rounds_batch_up: bool = False

    def as_known_to(self, policy: str) -> Fidelity:
        """Return the fidelity with the profiling that this policy gets.

        A policy that knows only the pace of the request scores no other batch sizes, so the cap on
        them (4.5) does not apply to it.
        """
        known = self.revealing(self.profiling_by_policy.get(policy, self.profiling))
        if known.profiling is ProfilingMode.REQUESTED:
            return replace(known, plan_within_trace_batch=False)
        return known

    def fitter(self) -> MemoisingFitter:
        """Return a fitter that follows these rules."""
        return MemoisingFitter(across_over_within=self.across_over_within, search=self.fit_search)

    def revealing(self, mode: ProfilingMode) -> Fidelity:
        """Return the fidelity with this profiling for every policy."""
        return replace(self, profiling=mode, profiling_by_policy={})


FIDELITIES: Mapping[str, Fidelity] = {
    "paper": Fidelity(
        "paper",
        "Follows the Sia paper: jobs are profiled on one GPU of every type first, "
        "and the profiling is charged.",
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
        fit_search=FitSearch.PUBLISHED,
        young_move_freely=True,
        rounds_batch_up=True,
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
        "Follows the published Pollux simulator: flat 30 s restarts, no calibration, "
        "NCF bound to its request.",
        profiling=ProfilingMode.NO_PROFILE,
        profiling_by_policy={"optimus": ProfilingMode.REQUEST_ORACLE},
        whole_second_epochs=True,
        flat_restart_seconds=30.0,
        largest_per_gpu={("yolov3", "t4"): 8},
        rigid_models=frozenset({"ncf"}),
        across_over_within=ACROSS_OVER_WITHIN,
        fit_search=FitSearch.PUBLISHED,
        rounds_batch_up=True,
        calibrated=False,
        fullest_node_first=True,
        steps_from_epoch_end=True,
    ),
    "pal-artifact": Fidelity(
        "pal-artifact",
        "Follows the published simulator of PAL: nothing is profiled, restarts are free, "
        "jobs begin and end with rounds of 360 s.",
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
        "Follows the published Shockwave simulator: speeds at every batch size are known, "
        "moves without a pause are free.",
        profiling=ProfilingMode.ORACLE,
        free_moves_of_same_shape=True,
        policy_parameters={"shockwave": {"rho_from": "origin"}},
        gpu_time=GpuTimeRule.WHOLE_ROUNDS,
    ),
}


def fidelity(name: str, *, profiling: ProfilingMode | str | None = None) -> Fidelity:
    """Return the preset of that name, with another profiling mode if one is given.

    Raises UnknownNameError listing the presets.
    """
    if name not in FIDELITIES:
        raise UnknownNameError(
            "is no fidelity that Maat has",
            field="fidelity",
            value=name,
            remedy=f"Use one of: {', '.join(FIDELITIES)}.",
        )
    preset = FIDELITIES[name]
    return preset if profiling is None else preset.revealing(ProfilingMode(profiling))
