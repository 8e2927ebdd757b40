"""The commands of `maat import`, without their code."""

from __future__ import annotations

from maat.cli.lazy_commands import Command

IMPORT_NOUNS = {
    "import": (
        "Imports: other systems' jobs as a trace, and their nodes as a cluster.",
        (
            Command(
                "trace",
                "Read Slurm's, Philly's, Helios's or any CSV's jobs as a trace.",
                "maat.cli.import_trace:import_trace",
            ),
            Command(
                "cluster",
                "Create a cluster of the nodes that scontrol, sinfo, slurm.conf or YAML name.",
                "maat.cli.import_cluster:import_cluster",
            ),
        ),
    ),
}
