"""The registry of policies: one file and one line here for each.

Others come from installed distributions, or are admitted by the operator
(docs/own-policies.md).
"""

from collections.abc import Collection, Mapping

from maat.scheduling.protocols import Placer, Policy
from maat.scheduling.registry import Entry, Needs, Others, Registry


def _installed(taken: Collection[str]) -> Others[Policy]:
    from maat.scheduling.own.installed import installed_policies  # it knows this registry's users

    entries, refused = installed_policies(taken)
    return Others(
        {entry.name: entry for entry in entries}, {each.name: str(each) for each in refused}
    )


POLICIES: Registry[Policy] = Registry(
    "policy",
    Entry(
        "sia",
        "Sia",
        "Chooses GPU type, count and batch size for fair goodput by an integer programme.",
        "maat.scheduling.policies.sia:Sia",
        "whole-node",
        objective="the sum over jobs of weight x (lambda - (r G)^p), where G is the goodput "
        "relative to the job's least and r discounts restarts (Sia eq. 4).",
    ),
    Entry(
        "fifo",
        "FIFO",
        "First come, first served; each job gets the GPUs that it requests and keeps them.",
        "maat.scheduling.policies.fifo:Fifo",
    ),
    Entry(
        "srtf",
        "SRTF",
        "Shortest remaining time first; preempts at rounds; each job gets the GPUs it requests.",
        "maat.scheduling.policies.srtf:Srtf",
    ),
    Entry(
        "sjf",
        "SJF",
        "Shortest job first; each job gets the GPUs that it requests and keeps them.",
        "maat.scheduling.policies.sjf:Sjf",
    ),
    Entry(
        "las",
        "LAS",
        "Least attained service first; preempts at rounds; each job gets the GPUs it requests.",
        "maat.scheduling.policies.las:Las",
    ),
    Entry(
        "shockwave",
        "Shockwave",
        "Plans a window of rounds for social welfare and finish-time fairness; predicts how jobs "
        "adapt.",
        "maat.scheduling.policies.shockwave.policy:Shockwave",
    ),
    Entry(
        "tiresias",
        "Tiresias",
        "Least attained service first, in queues by thresholds; preempts at rounds; each job gets "
        "the GPUs that it requests.",
        "maat.scheduling.policies.tiresias:Tiresias",
        "most-free",
    ),
    Entry(
        "optimus",
        "Optimus",
        "One GPU per job, then GPU by GPU to the job that saves most time by it; jobs keep their "
        "batch size.",
        "maat.scheduling.policies.optimus:Optimus",
        "most-free",
    ),
    Entry(
        "allox",
        "AlloX",
        "Matches waiting jobs to free GPUs for the least total completion time; each job gets the "
        "GPUs that it requests and keeps them.",
        "maat.scheduling.policies.allox:AlloX",
    ),
    Entry(
        "gavel",
        "Gavel",
        "Computes the best share of time of each job on each GPU type for an objective, and runs "
        "the shares round by round.",
        "maat.scheduling.policies.shares.gavel:Gavel",
        "lowest-numbered",
        objective="the chosen objective over shares of time, such as the least normalised "
        "throughput of all jobs.",
        knob_needs={"space_sharing": Needs.SHARED_GPUS},
    ),
    Entry(
        "themis",
        "Themis",
        "Auctions free GPUs among the worst-off jobs; winners hold them for a lease.",
        "maat.scheduling.policies.shares.themis:Themis",
        "shared",
        objective="the sum of the logarithms of what bidders of an auction gain in finish-time "
        "fairness.",
    ),
    Entry(
        "gandiva",
        "Gandiva",
        "Equal slices of time in turn; if GPUs are scarce, random pairs of jobs of one size share "
        "them.",
        "maat.scheduling.policies.gandiva:Gandiva",
        "together",
        Needs.SHARED_GPUS,
    ),
    Entry(
        "sjf-ffs",
        "SJF-FFS",
        "Shortest job first, no preemption; if idle GPUs are too few, a job shares those of the "
        "first running jobs that leave memory.",
        "maat.scheduling.policies.sharing.sjf_ffs:SjfFfs",
        "shared",
        Needs.SHARED_GPUS,
    ),
    Entry(
        "sjf-bsbf",
        "SJF-BSBF",
        "Shortest job first, no preemption; if idle GPUs are too few, a job shares GPUs of "
        "running jobs if that beats waiting, best pair first.",
        "maat.scheduling.policies.sharing.sjf_bsbf:SjfBsbf",
        "shared",
        Needs.SHARED_GPUS,
    ),
    Entry(
        "pollux",
        "Pollux",
        "Chooses GPUs by node and batch size for fair goodput, by a genetic search; ignores "
        "GPU types.",
        "maat.scheduling.policies.pollux.policy:Pollux",
        "as-decided",
    ),
    others=_installed,
)


def admitted(name: str) -> str:
    """Return the name of a policy; one of the form `module:Class` is imported and admitted first.

    Importing runs the code: only for names that the operator has given, never for
    those of a request. Raises InputError for what is no policy.
    """
    if ":" in name and not POLICIES.has(name):
        from maat.scheduling.own.loading import read_entry

        POLICIES.admit(read_entry(name))
    return name


def suiting_placer(policy: str) -> str:
    """Return the policy's placer, by default packed-sticky.

    The default suits policies with counts other than Sia's configurations. Raises UnknownNameError.
    """
    return POLICIES.entry(policy).placer or "packed-sticky"


def parameters_beside(placer: Entry[Placer], policy: str) -> Mapping[str, object]:
    """Return the parameters that a placer sets in a policy by default.

    They hold unless the user sets them. Raises UnknownNameError.
    """
    known = {parameter.name for parameter in POLICIES.entry(policy).parameters}
    return {name: value for name, value in placer.of_policy.items() if name in known}
