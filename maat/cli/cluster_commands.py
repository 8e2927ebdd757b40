"""The commands of clusters, their nodes and reservations, for the list of all commands."""

from __future__ import annotations

from maat.cli.lazy_commands import Command

MEASURE_NOUN = {
    "measure": (
        "Measurements made here: what commands cost each other on a GPU, and across nodes.",
        (
            Command(
                "pairs",
                "Run two commands alone and together, and write what they lose by sharing.",
                "maat.cli.measure:measure_pairs",
            ),
            Command(
                "locality",
                "Run a command on one node and on several, and write what its steps take.",
                "maat.cli.measure_locality:measure_locality",
            ),
        ),
    ),
}
CLUSTER_COMMANDS = (
    Command("clusters", "List clusters with their policy.", "maat.cli.clusters:clusters"),
    Command(
        "create-cluster",
        "Create a cluster. Its time begins now.",
        "maat.cli.clusters:create_cluster",
    ),
    Command(
        "change-cluster",
        "Change a cluster; with --dry-run, only say what the next round would do then.",
        "maat.cli.change_cluster:change_cluster",
    ),
    Command(
        "pause-cluster",
        "Stop a cluster's time: no rounds and no progress until it is resumed.",
        "maat.cli.clusters:pause_cluster",
    ),
    Command(
        "resume-cluster",
        "Let the time of a paused cluster go on.",
        "maat.cli.clusters:resume_cluster",
    ),
    Command(
        "nodes",
        "List the nodes of a cluster: GPUs, which are out of service, and who holds them.",
        "maat.cli.nodes:nodes",
    ),
    Command(
        "add-nodes", "Add nodes to a cluster, after those that it has.", "maat.cli.nodes:add_nodes"
    ),
    Command(
        "drain",
        "Take a node, or some of its GPUs, out of service: the next round moves its jobs.",
        "maat.cli.nodes:drain",
    ),
    Command("undrain", "Return all GPUs of a node to service.", "maat.cli.nodes:undrain"),
    Command(
        "resize-node",
        "Say how many GPUs the last node of a cluster has. Those that go must be drained and idle.",
        "maat.cli.nodes:resize_node",
    ),
    Command(
        "remove-node",
        "Remove the last node of a cluster, which must be drained and idle.",
        "maat.cli.nodes:remove_node",
    ),
    Command(
        "slowdowns",
        "List what jobs that shared a GPU cost each other, by their models.",
        "maat.cli.slowdowns:slowdowns",
    ),
    Command(
        "gpu-scores",
        "List how slow GPUs are believed to be, by jobs that ran on several, and who reported it.",
        "maat.cli.evidence:gpu_scores",
    ),
    Command(
        "evidence",
        "List of how many jobs of each model there are reports, and who reported.",
        "maat.cli.evidence:evidence",
    ),
    Command(
        "forget",
        "Forget what jobs reported of a cluster: of its GPUs, of pairs, or of their models.",
        "maat.cli.evidence:forget",
    ),
    Command(
        "forget-belief",
        "Forget what was measured of a job; it is measured again as it trains.",
        "maat.cli.evidence:forget_belief",
    ),
    Command(
        "reserve",
        "Reserve GPUs of a running cluster for a tenant or a job.",
        "maat.cli.reservations:reserve",
    ),
    Command(
        "reservations", "List the reservations of a cluster.", "maat.cli.reservations:reservations"
    ),
    Command(
        "unreserve",
        "Remove a reservation: from the next round, any job may get its GPUs.",
        "maat.cli.reservations:unreserve",
    ),
)
