"""Every policy that Maat has: one file and one line here for each."""

from collections.abc import Mapping

from maat.scheduling.protocols import Placer, Policy
from maat.scheduling.registry import Entry, Needs, Registry

POLICIES: Registry[Policy] = Registry(
    "policy",
    Entry(
        "sia",
        "Sia",
        "Chooses GPU type, count and batch size for the most goodput, fairly, as an integer programme.",
        "maat.scheduling.policies.sia:Sia",
        "whole-node",
    ),
    Entry(
        "fifo",
        "FIFO",
        "First come, first served; every job gets the GPUs it asked for and keeps them to its end.",
        "maat.scheduling.policies.fifo:Fifo",
    ),
    Entry(
        "srtf",
        "SRTF",
        "Shortest remaining time first; preempts at rounds; every job gets the GPUs it asked for.",
        "maat.scheduling.policies.srtf:Srtf",
    ),
    Entry(
        "sjf",
        "SJF",
        "Shortest job first; every job gets the GPUs it asked for and keeps them to its end.",
        "maat.scheduling.policies.sjf:Sjf",
    ),
    Entry(
        "las",
        "LAS",
        "Least attained service first; preempts at rounds; every job gets the GPUs it asked for.",
        "maat.scheduling.policies.las:Las",
    ),
    Entry(
        "shockwave",
        "Shockwave",
        "Plans a window of rounds for social welfare and finish-time fairness, predicting jobs that adapt.",
        "maat.scheduling.policies.shockwave.policy:Shockwave",
    ),
    Entry(
        "tiresias",
        "Tiresias",
        "Least attained service first, in queues by thresholds; preempts at rounds; every job gets the GPUs it asked for.",
        "maat.scheduling.policies.tiresias:Tiresias",
        "most-free",
    ),
    Entry(
        "optimus",
        "Optimus",
        "A GPU for everybody, then one by one to the job whose remaining time it shortens most, at its own batch size.",
        "maat.scheduling.policies.optimus:Optimus",
        "most-free",
    ),
    Entry(
        "gavel",
        "Gavel",
        "Shares of time on each GPU type that are best for a chosen objective, carried out round by round.",
        "maat.scheduling.policies.shares.gavel:Gavel",
        "lowest-numbered",
    ),
    Entry(
        "themis",
        "Themis",
        "Auctions free GPUs among the jobs that are treated worst; winners hold them for a lease.",
        "maat.scheduling.policies.shares.themis:Themis",
        "shared",
    ),
    Entry(
        "gandiva",
        "Gandiva",
        "Equal slices of time in turn; where GPUs lack, jobs of one size share them in pairs chosen by chance.",
        "maat.scheduling.policies.gandiva:Gandiva",
        "together",
    ),
    Entry(
        "sjf-ffs",
        "SJF-FFS",
        "Shortest job first, no preemption; where idle GPUs lack, beside the first running jobs that leave memory.",
        "maat.scheduling.policies.sharing.sjf_ffs:SjfFfs",
        "shared",
        Needs.SHARED_GPUS,
    ),
    Entry(
        "sjf-bsbf",
        "SJF-BSBF",
        "Shortest job first, no preemption; where idle GPUs lack, beside the running jobs with which sharing beats waiting, best pair first.",
        "maat.scheduling.policies.sharing.sjf_bsbf:SjfBsbf",
        "shared",
        Needs.SHARED_GPUS,
    ),
    Entry(
        "pollux",
        "Pollux",
        "Chooses GPUs by node and batch size for fair goodput by a genetic search; blind to types.",
        "maat.scheduling.policies.pollux.policy:Pollux",
        "as-decided",
    ),
)


def suiting_placer(policy: str) -> str:
    """The placer that a policy's line names, else packed-sticky: its counts are no configurations. Raises UnknownNameError."""
    return POLICIES.entry(policy).placer or "packed-sticky"


def parameters_beside(placer: Entry[Placer], policy: str) -> Mapping[str, object]:
    """What the placer has a policy be where nobody says otherwise. Raises UnknownNameError."""
    known = {parameter.name for parameter in POLICIES.entry(policy).parameters}
    return {name: value for name, value in placer.of_policy.items() if name in known}
