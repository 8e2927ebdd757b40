"""Words for measurements: what each kind is called, and which files hold it."""

from __future__ import annotations

KINDS = {
    "variability": "Unequal GPUs",
    "interference": "Interference",
    "locality": "Steps across nodes",
    "profiles": "Profiles",
    "trace": "Trace",
}
ACCEPTED = {
    "variability": (
        "One CSV for each application and GPU type, named after both, such as resnet-v100.csv; "
        "applications are resnet, bert, pagerank, sgemm. Columns: uuid, the GPU, and perf, a time. "
        "PAL's files are taken as they were published."
    ),
    "interference": (
        "One CSV with the columns victim, partner, gpu_count, slowdown; or PAL's norm_speed.csv; "
        "or Gavel's simulation_throughputs.json."
    ),
    "locality": (
        "One CSV that maat measure locality wrote: what steps of models take on one node and on "
        "several."
    ),
    "profiles": (
        "A zip with a folder for each model: placements-TYPE.csv and scalability-TYPE.csv (step "
        "times), validation-BATCH.csv (gradients by epoch). Or these files, named "
        "MODEL-placements-TYPE.csv and so on. Or a JSON table of throughputs, Gavel's or "
        "Shockwave's."
    ),
    "trace": "One file, in any format that Simulate takes.",
}
