"""Fidelities: presets of named switches for every point where the paper and a published simulator disagree. No switch has two homes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from maat.scheduling.errors import UnknownNameError


class ProfilingMode(StrEnum):
    """What is revealed of a job's step times before it has run (Sia section 5.7).

    `requested`: the true pace, calibration included, at the GPU count and batch size that the job asks for, on every type; free of charge.
    """

    ORACLE = "oracle"
    REQUESTED = "requested"
    BOOTSTRAP = "bootstrap"
    NO_PROFILE = "no-profile"


class GpuTimeRule(StrEnum):
    """What GPU-hours count: seconds for which GPUs were held, or whole rounds."""

    SECONDS = "seconds"
    WHOLE_ROUNDS = "whole-rounds"


@dataclass(frozen=True)
class Fidelity:
    """The switches. Section numbers are those of the modelling notes that the presets follow."""

    name: str
    summary: str
    profiling: ProfilingMode = ProfilingMode.BOOTSTRAP
    profiling_by_policy: Mapping[str, ProfilingMode] = field(default_factory=dict)  # 4.10: policies that are told something else
    profiling_seconds_per_type: float = 20.0
    whole_second_epochs: bool = False  # 4.3: time to an epoch's end is rounded to a second
    free_moves_of_same_shape: bool = False  # 4.4: other nodes, same shape: no restart
    project_by_constant: bool = False  # 4.7: Sia eq. 1 with a constant ratio per model
    plan_within_trace_batch: bool = False  # 4.5: the policy plans up to the trace's batch size, the job runs up to the model's
    gpu_time: GpuTimeRule = GpuTimeRule.SECONDS  # 4.11
    policy_restart_seconds: Mapping[str, float] = field(
        default_factory=dict
    )  # 4.7: what the policy reckons where it differs from the truth
    policy_largest_per_gpu: Mapping[tuple[str, str], int] = field(default_factory=dict)  # 4.5: hand-set (model, type) -> batch
    policy_parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # 4.6, 4.7: by policy, unless the caller sets them
    most_gpus_per_job: int = 64

    def for_policy(self, policy: str) -> Fidelity:
        """With the profiling that this policy goes by."""
        return self.profiled(self.profiling_by_policy.get(policy, self.profiling))

    def profiled(self, mode: ProfilingMode) -> Fidelity:
        """With this profiling, whatever the policy."""
        return replace(self, profiling=mode, profiling_by_policy={})


FIDELITIES: Mapping[str, Fidelity] = {
    "paper": Fidelity("paper", "Follows the Sia paper: jobs are profiled on one GPU of every type first, and the profiling is charged."),
    "sia-artifact": Fidelity(
        "sia-artifact",
        "Follows the published Sia simulator in every rule in which it differs from the paper.",
        profiling=ProfilingMode.NO_PROFILE,
        profiling_by_policy={"gavel": ProfilingMode.REQUESTED, "themis": ProfilingMode.REQUESTED},
        whole_second_epochs=True,
        free_moves_of_same_shape=True,
        project_by_constant=True,
        plan_within_trace_batch=True,
        policy_parameters={
            "sia": {"scale_up_base": "largest", "utility_decimals": 2, "random_ties": True},
            "gavel": {
                "objective": "max-sum-throughput",
                "isolated_rule": "whole-job",
                "reset_seconds": None,
                "break_ties_by_owed": False,
                "unfit_throughput": 0.1,
            },
        },
        gpu_time=GpuTimeRule.WHOLE_ROUNDS,
        policy_restart_seconds={"cifar10": 30.0, "yolov3": 45.0},
        policy_largest_per_gpu={("deepspeech2", "rtx"): 57},
    ),
}


def fidelity(name: str) -> Fidelity:
    """The preset of that name. Raises UnknownNameError listing those that exist."""
    if name not in FIDELITIES:
        raise UnknownNameError("is no fidelity that Maat has", field="fidelity", value=name, remedy=f"Use one of: {', '.join(FIDELITIES)}.")
    return FIDELITIES[name]
