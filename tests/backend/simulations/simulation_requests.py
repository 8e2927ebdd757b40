"""A request for a simulation, and what the tests of simulations share."""

from __future__ import annotations

from typing import Any

SIMULATIONS, OPERATIONS = "/api/v1/simulations", "/api/v1/operations"
GENERATED = {"kind": "generated", "family": "philly", "jobs": 5, "hours": 1, "seed": 1}
CSV = (
    "name,time,application,num_replicas,batch_size\ncifar-0,0,cifar10,2,512\nbert-1,60,bert,1,24\n"
)


def body(**fields: Any) -> dict[str, Any]:
    runs = [
        {"policy": "sia", "policy_parameters": {"p": -1.0}},
        {"policy": "fifo", "placer": "packed-sticky", "seed": 3},
    ]
    return {
        "name": "compare",
        "traces": [GENERATED],
        "cluster": "t4=6x4,a100=2x8",
        "runs": runs,
    } | fields
