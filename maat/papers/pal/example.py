"""PAL sections III and IV: classes, the order of placement, and the set-up (tables I to III)."""

from __future__ import annotations

from maat.figures.bars import grouped_bars
from maat.figures.data import Estimate
from maat.papers.bench import Bench
from maat.papers.items import Item, Outcomes, Row, Runs, Shown, nothing_shown
from maat.papers.pal.runs import SIMULATED, TESTBED, scenario
from maat.scheduling.cluster import Cluster
from maat.simulation.iteration_models import shipped_models
from maat.simulation.variability import PAPER_VARIABILITY
from maat.workloads.reading import read_workload

SYNERGY = "v100=64x4"

# ---- figure 4: six jobs in the scheduler's order on 16 GPUs; the demand of five fills them

QUEUE = """job_id,num_gpus,submit_time,duration,model
0,4,0,20000,bert
1,2,0,20000,PointNet
2,4,0,20000,resnet50
3,2,0,20000,bert
4,4,0,20000,vgg19
5,4,0,20000,resnet50
"""
FITTING = 5
JCT = "JCT, h"


def _queue_runs(bench: Bench) -> Runs:
    text = QUEUE.replace("bert", "BERT")
    workload = read_workload(text, known_models=shipped_models(), name="queue")
    return {
        (name,): scenario(bench, workload, name, cluster="v100=4x4", penalty=1.0)
        for name in ("PM-First", "Tiresias")
    }


def _queue_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    rows = []
    for (placer,), run in outcomes.items():
        jobs = run.jobs
        for place, model in enumerate(jobs["model"]):
            of = (placer, f"job {place + 1} ({PAPER_VARIABILITY.classes[str(model)]})")
            waited = float((jobs["start_seconds"][place] or 0) > 0)
            rows.append(
                Row(of, "waits for a later round (1: yes)", [waited], float(place >= FITTING))
            )
            rows.append(Row(of, JCT, [float(jobs["jct_seconds"][place] or 0) / 3600]))
    names = list(dict.fromkeys(row.of[1] for row in rows))
    bars = {
        placer: [
            Estimate(row.mean) for row in rows if row.of[0] == placer and row.measure == "JCT, h"
        ]
        for placer in dict.fromkeys(row.of[0] for row in rows)
    }
    return Shown(
        ("placer", "job"),
        rows,
        why=(
            "The queue is ours, the paper's is a sketch; as there, the five jobs that the cluster "
            "holds run whatever their class, class A takes its GPUs first among them, and the "
            "sixth waits although it is of class A."
        ),
        figure=grouped_bars(
            names, bars, x="Job, in the scheduler's order (class)", y="JCT (hours)"
        ),
    )


# ---- tables I to III

_EXPERIMENTS = {
    "Sia-Cluster": (TESTBED, 64),
    "Sia-Philly": (SIMULATED, 64),
    "Synergy": (SYNERGY, 256),
}
_CLASSES = {"PointNet": 3, "vgg19": 1, "DCGAN": 1, "BERT": 2, "resnet50": 1, "GPT2": 2}
_PROFILED = {"resnet": 2, "bert": 2, "pagerank": 2}


def _set_up_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    measured = bench.variability().measured
    rows = [
        *(
            Row(("I", name), "GPUs", [float(Cluster.parse(cluster).gpu_count)], float(gpus))
            for name, (cluster, gpus) in _EXPERIMENTS.items()
        ),
        *(
            Row(
                ("II", model),
                "class (A 1, B 2, C 3)",
                [float("ABC".index(PAPER_VARIABILITY.classes[model]) + 1)],
                float(number),
            )
            for model, number in _CLASSES.items()
        ),
        *(
            Row(
                ("III", application),
                "clusters measured",
                [float(sum((kind, application) in measured for kind in ("v100", "rtx5000")))],
                float(clusters),
            )
            for application, clusters in _PROFILED.items()
        ),
    ]
    return Shown(
        ("table", "of"),
        rows,
        why="The set-up is the paper's; its published code has DCGAN in class B and vgg19 in C.",
    )


ITEMS = (
    Item(
        "fig-3",
        "Applications in the plane of DRAM and functional-unit utilisation",
        nothing_shown,
        hardware=(
            "The utilisations are not published: Nsight Compute measures them on a real GPU. "
            "`classify` makes classes of what is measured (maat/scheduling/application_classes.py)."
        ),
    ),
    Item(
        "fig-4",
        "Jobs of a queue placed by class, without passing the scheduler's order",
        _queue_shown,
        runs=_queue_runs,
        needs=("pal variability",),
        cpu_minutes=(0.0, 0.0),
        whole_runs=2,
    ),
    Item(
        "table-1",
        "Experiments, models with their classes, and profiled applications",
        _set_up_shown,
        also=("table-2", "table-3"),
        needs=("pal variability",),
        cpu_minutes=(0.0, 0.0),
    ),
)
