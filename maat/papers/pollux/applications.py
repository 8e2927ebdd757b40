"""Pollux section 5.4: cloud auto-scaling (figure 9) and hyper-parameter search (table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from maat.figures.data import Series
from maat.figures.experiments import efficiency_over_time, nodes_over_time
from maat.figures.panels import side_by_side
from maat.laboratory import experiments
from maat.laboratory.tuning import SCORES, Tuning
from maat.papers.bench import Bench
from maat.papers.items import Computation, Item, Label, Outcomes, Row, Run, Runs, Shown
from maat.papers.pollux.readings import (
    LITERAL,
    NODES,
    SINGLE,
    Reading,
    fields_of,
    grid,
    least_hours,
    trained,
)
from maat.papers.pollux.runs import GPU, USES
from maat.scheduling.autoscaling import FastBatch
from maat.scheduling.cluster import Cluster
from maat.simulation.fidelity import fidelity
from maat.simulation.world_models import named_model

# ---- figure 9

OURS, THEIRS = "by goodput (Pollux)", "by throughput (Or et al.)"
COST, TIME = 0.75, 1.06  # section 5.4.1: 25 % cheaper, 6 % longer
COST_OF, TIME_OF = "cost / that by throughput", "completion time / that by throughput"
NEAR = 0.05  # of both is near


def _model(bench: Bench) -> str:
    return bench.pick("imagenet", quick="imagenet", tiny="cifar10")


def _readings(bench: Bench) -> list[Reading]:
    """Return the readings to play: all; quick: one thing at a time; tiny: the literal one."""
    singles = list(SINGLE.values())
    return bench.pick([*singles, *grid()], quick=singles, tiny=singles[:2])


def _played(bench: Bench, reading: Reading, *, by_goodput: bool) -> Computation:
    read = reading.by_goodput() if by_goodput else reading.by_throughput()
    model = _model(bench)
    arguments = {"profile": bench.profile_texts(model), "model": model, "reading": fields_of(read)}
    return Computation(trained, {**arguments, "by_goodput": by_goodput}, version=2)


def _scaling_runs(bench: Bench) -> Runs:
    truth = bench.sia_models()[_model(bench)].truth  # says what stands in for it
    truth.largest_per_gpu(GPU, 1)  # profiles that lack the type are refused before a run
    return {
        (who, str(index)): _played(bench, reading, by_goodput=who == OURS)
        for index, reading in enumerate(_readings(bench))
        for who in (OURS, THEIRS)
    }


def _ratios(outcomes: Outcomes, index: int) -> tuple[float, float]:
    """Return cost and time by goodput over those by throughput."""
    ours, theirs = (outcomes[who, str(index)] for who in (OURS, THEIRS))
    cost, time = (ours[key] / theirs[key] for key in ("node_hours", "hours"))
    return cost, time


def _is_near(ratio: tuple[float, float]) -> bool:
    cost, time = ratio
    return abs(cost - COST) <= NEAR and abs(time - TIME) <= NEAR


def _scaling_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    readings = _readings(bench)
    ratios = {r: _ratios(outcomes, i) for i, r in enumerate(readings)}
    rows = []
    for words, reading in SINGLE.items():
        if reading in ratios:
            cost, time = ratios[reading]
            rows.append(Row((words,), COST_OF, [cost], COST))
            rows.append(Row((words,), TIME_OF, [time], TIME))
    literal = {who: outcomes[who, str(readings.index(SINGLE[LITERAL]))] for who in (OURS, THEIRS)}
    for who, run in literal.items():
        rows.append(Row((f"{LITERAL}, {who}",), "node-hours", [run["node_hours"]]))
        rows.append(Row((f"{LITERAL}, {who}",), "hours", [run["hours"]]))
        rows.append(
            Row((f"{LITERAL}, {who}",), "mean statistical efficiency, %", [100 * run["efficiency"]])
        )
    base = literal[THEIRS]
    wanted = COST * base["node_hours"]
    model = _model(bench)
    least = least_hours(bench.profile_texts(model), model, {"wanted": wanted})["wanted"]
    slower = least / base["hours"]
    rows.append(Row(("any schedule that costs 25 % less, at least",), TIME_OF, [slower], TIME))
    rows += _grid_rows(ratios)
    return Shown(
        ("reading",),
        rows,
        why=_scaling_why(slower, ratios),
        figure=side_by_side(
            nodes_over_time({who: _until_end(run, "nodes") for who, run in literal.items()}),
            efficiency_over_time(
                {who: _until_end(run, "efficiencies") for who, run in literal.items()}
            ),
        ),
    )


def _until_end(run: Mapping[str, Any], key: str) -> Series:
    """Return a series of a training up to its end."""
    points = run[key]
    return Series(
        [time for time, _ in points] + [run["hours"]], [v for _, v in points] + [points[-1][1]]
    )


def _grid_rows(ratios: Mapping[Reading, tuple[float, float]]) -> list[Row]:
    """Return a row for most nodes and batch by throughput, over the other readings, if played."""
    rows = []
    for nodes, batch in product(NODES, FastBatch):
        of = [
            ratios[reading]
            for reading in grid()
            if (reading.nodes, reading.fast_batch) == (nodes, batch) and reading in ratios
        ]
        if len(of) * len(NODES) * len(FastBatch) == len(grid()):
            held = "what GPUs hold" if batch is FastBatch.HELD else "the largest"
            words = (f"{len(of)} readings: at most {nodes} nodes, batch by throughput: {held}",)
            rows.append(Row(words, COST_OF, [cost for cost, _ in of], COST))
            rows.append(Row(words, TIME_OF, [time for _, time in of], TIME))
            rows.append(Row(words, "near both", [sum(map(_is_near, of))]))
    return rows


def _scaling_why(slower: float, ratios: Mapping[Reading, tuple[float, float]]) -> str:
    near = sum(map(_is_near, ratios.values()))
    both = "cannot" if slower > TIME else "can"
    return (
        "With these step times and gradients any schedule of up to 16 nodes that costs 25 % less "
        f"than the rule by throughput takes at least {slower:.2f} times its time (restarts free, "
        f"the future known), so that both of the paper's figures {both} hold against that rule as "
        f"its text has it: {near} of the {len(ratios)} readings played come within {NEAR:g} of "
        "both."
    )


# ---- table 3

ELASTIC, STATIC = "Pollux", "Baseline"
_TABLE_3 = {ELASTIC: (95.4, 25.0, 10.0), STATIC: (95.5, 34.0, 14.0)}
CLUSTER, STATIC_GPUS = "a100=2x8", 4  # section 5.4.2
WORK_SCALE = 4.0  # trials then take as long as the paper's 25 min
MEASURES = ("score of the best 5, %", "average JCT, min", "makespan, h")


def searched(trials: int, seed: int, *, elastic: bool) -> Mapping[str, float]:
    """Search once; return the score of the best five, average JCT in minutes, makespan in hours."""
    tuning = Tuning(
        named_model("cifar10"),
        Cluster.parse(CLUSTER),
        fidelity("pollux-artifact"),
        trials=trials,
        work_scale=WORK_SCALE,
        seed=seed,
    )
    both = experiments.ElasticAgainstStatic(tuning, STATIC_GPUS)
    found = both.play(experiments.ELASTIC if elastic else experiments.STATIC)
    figures = (found.top_score(), found.average_jct_seconds / 60, found.makespan_seconds / 3600)
    return dict(zip(MEASURES, figures, strict=True))


def _search_runs(bench: Bench) -> Runs:
    trials = bench.pick(100, quick=100, tiny=8)
    runs: dict[Label, Run] = {}
    for seed in bench.pick(range(5), quick=range(2), tiny=range(1)):
        for who in (ELASTIC, STATIC):
            arguments = {"trials": trials, "seed": seed, "elastic": who == ELASTIC}
            runs[who, str(seed)] = Computation(searched, arguments)
    return runs


def _search_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    def each(who: str, measure: str) -> Sequence[float]:
        return [found[measure] for label, found in outcomes.items() if label[0] == who]

    rows = [
        Row((who,), measure, each(who, measure), value)
        for who, published in _TABLE_3.items()
        for measure, value in zip(MEASURES, published, strict=True)
    ]
    for index, measure in enumerate(MEASURES[1:], start=1):
        ratios = [a / b for a, b in zip(each(ELASTIC, measure), each(STATIC, measure), strict=True)]
        published = round(_TABLE_3[ELASTIC][index] / _TABLE_3[STATIC][index], 2)
        measure = f"{measure.partition(',')[0]} / Baseline's"
        rows.append(Row((ELASTIC,), measure, ratios, published))
    return Shown(
        ("policy",),
        rows,
        why=(
            f"Scores are {SCORES}. Times are simulated with the catalog's ResNet18, trained "
            f"{WORK_SCALE:g} times as long as its standard training so that an elastic trial takes "
            "about the paper's time, since it is faster than the paper's."
        ),
    )


ITEMS = (
    Item(
        "fig-9",
        "Nodes and statistical efficiency over time of ImageNet under two autoscalers",
        _scaling_shown,
        runs=_scaling_runs,
        uses=USES[:1],
        cpu_minutes=(0.2, 0.9),
        whole_runs=272,
    ),
    Item(
        "table-3",
        "Hyper-parameter search with elastic and with static GPUs (declared scores)",
        _search_shown,
        runs=_search_runs,
        cpu_minutes=(0.4, 1.2),
        whole_runs=10,
    ),
)
