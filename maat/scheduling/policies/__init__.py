"""Every policy that Maat has: one file and one line here for each."""

from maat.scheduling.policies.fifo import Fifo
from maat.scheduling.policies.gavel import Gavel
from maat.scheduling.policies.sia import Sia
from maat.scheduling.policies.srtf import Srtf
from maat.scheduling.policies.themis import Themis
from maat.scheduling.registry import Entry, Registry
from maat.scheduling.rounds import Policy

POLICIES: Registry[Policy] = Registry(
    "policy",
    Entry("sia", "Sia", "Chooses GPU type, count and batch size for the most goodput, fairly, as an integer programme.", Sia, "whole-node"),
    Entry("fifo", "FIFO", "First come, first served; every job gets the GPUs it asked for and keeps them to its end.", Fifo),
    Entry("srtf", "SRTF", "Shortest remaining time first; preempts at rounds; every job gets the GPUs it asked for.", Srtf),
    Entry(
        "gavel",
        "Gavel",
        "Shares of time on each GPU type that are best for a chosen objective, carried out round by round.",
        Gavel,
        "lowest-numbered",
    ),
    Entry("themis", "Themis", "Auctions free GPUs among the jobs that are treated worst; winners hold them for a lease.", Themis),
)


def suiting_placer(policy: str) -> str:
    """The placer that a policy's line names, else packed: its counts are no configurations. Raises UnknownNameError."""
    return POLICIES.entry(policy).placer or "packed"
