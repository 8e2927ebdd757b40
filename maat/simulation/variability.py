"""Measured differences between GPUs of one type.

Reads them from a folder and draws the scores of a simulated cluster from them.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from maat.csv_input import Row, read_csv
from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.cluster import Cluster, is_gpu_type
from maat.scheduling.errors import VariabilityError
from maat.vocabulary import ScoreDraw

APPLICATIONS = ("resnet", "bert", "pagerank", "sgemm")
# TACC machine -> its GPU type
MACHINES: Mapping[str, str] = {"longhorn": "v100", "frontera": "rtx5000", "ls6": "a100"}
TIME, GPU = "perf", "uuid"


@dataclass(frozen=True)
class VariabilityRules:
    """Rules from models to classes, and from classes to scores.

    `classes`: model -> class. `profiles`: class -> the application measured for it. `draw_seed`:
    seed of the draw; None: the scenario's.
    """

    classes: Mapping[str, str]
    profiles: Mapping[str, str]
    draw: ScoreDraw = ScoreDraw.MEDIANS
    draw_seed: int | None = None


# PAL section IV-B; imagenet, bert and gpt are the same networks in the catalog of models.
PAPER_VARIABILITY = VariabilityRules(
    classes={
        **dict.fromkeys(("vgg19", "resnet50", "DCGAN", "imagenet"), "A"),
        **dict.fromkeys(("BERT", "GPT2", "bert", "gpt"), "B"),
        "PointNet": "C",
    },
    profiles={"A": "resnet", "B": "bert", "C": "pagerank"},
)
ARTIFACT_VARIABILITY = VariabilityRules(
    classes={
        "resnet50": "A",
        "BERT": "B",
        "GPT2": "B",
        "DCGAN": "B",
        "vgg19": "C",
        "PointNet": "D",
    },
    profiles={"A": "resnet", "B": "bert", "C": "bert", "D": "pagerank"},
    draw=ScoreDraw.ROWS,
    draw_seed=42,
)


@dataclass(frozen=True)
class Measurements:
    """One application on the GPUs of one type: R measurements in file order.

    `time`, shape (R,): larger is slower. `gpu`, shape (R,): number of the measured GPU.
    """

    time: FloatArray
    gpu: IntArray

    def rows(self) -> list[float]:
        """Return every measurement relative to the median measurement."""
        relative: list[float] = (self.time / np.median(self.time)).tolist()
        return relative

    def medians(self) -> FloatArray:
        """Return the median of every GPU relative to the median GPU, shape (GPUs,)."""
        by_gpu = np.split(
            self.time[np.argsort(self.gpu, kind="stable")], np.cumsum(np.bincount(self.gpu))[:-1]
        )
        each = np.array([np.median(times) for times in by_gpu])
        relative: FloatArray = each / np.median(each)
        return relative


@dataclass(frozen=True)
class Variability:
    """All measurements: (GPU type, application) -> measurements."""

    measured: Mapping[tuple[str, str], Measurements] = field(default_factory=dict)

    @property
    def gpu_types(self) -> tuple[str, ...]:
        return tuple(sorted({gpu_type for gpu_type, _ in self.measured}))


# ---- reading


def read_variability(folder: Path, *, gpu_types: Collection[str] | None = None) -> Variability:
    """Read the CSV files of a folder, one per application and GPU type.

    The file name says both: `bert-longhorn-agg.csv`, `resnet-a100.csv`. Each file has a column
    `perf`, a time, and a column `uuid`, the measured GPU. `gpu_types`: read only these. Raises
    VariabilityError naming file, row and field.
    """
    paths = sorted(folder.glob("*.csv")) if folder.is_dir() else []
    if not paths:
        raise VariabilityError(
            "is no folder with CSV files of measured GPUs",
            field="variability",
            value=str(folder),
            remedy="Name a folder of files such as resnet-v100.csv.",
        )
    return _variability({path.name: path for path in paths}, str(folder), gpu_types)


def read_variability_texts(
    texts: Mapping[str, str], *, gpu_types: Collection[str] | None = None
) -> Variability:
    """Read the contents of such files, by file name."""
    return _variability(texts, None, gpu_types)


def _variability(
    files: Mapping[str, Path | str], folder: str | None, gpu_types: Collection[str] | None
) -> Variability:
    named: dict[tuple[str, str], str] = {}
    for name in files:
        subject = _subject(name, folder)
        if subject in named:
            raise VariabilityError(
                f"is measured in {named[subject]} too",
                field="file",
                value=name,
                source=folder,
                remedy="Keep one of them.",
            )
        named[subject] = name
    wanted = {
        subject: name
        for subject, name in named.items()
        if gpu_types is None or subject[0] in gpu_types
    }
    return Variability(
        {subject: _read(files[name], name) for subject, name in (wanted or named).items()}
    )


def _subject(name: str, folder: str | None) -> tuple[str, str]:
    """Return GPU type and application of a file, from its name.

    Published ones also say the type first, and that they are aggregated: `frontera-bert-agg.csv`.
    """
    path = Path(name)
    measured = path.stem.removesuffix("-agg")
    for application in APPLICATIONS:
        for rest in (
            measured.removeprefix(f"{application}-"),
            measured.removesuffix(f"-{application}"),
        ):
            gpu_type = MACHINES.get(rest, rest)
            if path.suffix.lower() == ".csv" and rest != measured and is_gpu_type(gpu_type):
                return gpu_type, application
    raise VariabilityError(
        "does not say what was measured on which GPUs",
        field="file",
        value=name,
        source=folder,
        remedy=f"Name it APPLICATION-GPUTYPE.csv; applications are {', '.join(APPLICATIONS)}, "
        "GPU types have lower-case letters and digits, such as v100.",
    )


def _read(source: Path | str, name: str) -> Measurements:
    table = read_csv(
        source, error=VariabilityError, name=str(source) if isinstance(source, Path) else name
    )
    table.require((TIME, GPU))
    numbers: dict[str, int] = {}
    times, gpus = [], []
    for row in table.rows:
        times.append(row.number(TIME, above=0.0, maximum=1e15))
        gpus.append(numbers.setdefault(_gpu(row), len(numbers)))
    if not times:
        raise table.blame(
            "holds no measurements", field="rows", remedy="Add at least one row below the header."
        )
    return Measurements(np.array(times), np.array(gpus, dtype=np.int64))


def _gpu(row: Row) -> str:
    name = row.cells[GPU]
    if not name:
        raise row.blame(
            "is missing", field=GPU, row=row.line, remedy="Name the GPU that was measured."
        )
    return name


# ---- drawing


def draw_scores(
    variability: Variability,
    cluster: Cluster,
    rules: VariabilityRules,
    *,
    needed: Collection[str],
    seed: int,
    sequence: random.Random | None = None,
) -> Mapping[str, tuple[float, ...]]:
    """Return per-GPU scores by class for a cluster, shape (G,) each.

    1.0 is the median, larger is slower. Has the classes whose application was measured on every
    type of the cluster. `sequence`: random sequence for ROWS, which the caller continues. Raises
    VariabilityError if there is no such class, if it lacks one of `needed`, or if fewer GPUs were
    measured than the cluster has.
    """
    covered = [
        name
        for name in sorted(rules.profiles)
        if not _lacking(variability, cluster, rules.profiles[name])
    ]
    for name in sorted(needed):
        if name not in covered:
            raise _not_measured(variability, cluster, rules.profiles[name], variability_class=name)
    if rules.profiles and not covered:
        name = min(rules.profiles)
        raise _not_measured(variability, cluster, rules.profiles[name], variability_class=name)
    chance = seed if rules.draw_seed is None else rules.draw_seed
    profiles = {name: rules.profiles[name] for name in covered}
    if rules.draw is ScoreDraw.ROWS:
        return _draw_rows(
            variability, cluster, profiles, random.Random(chance) if sequence is None else sequence
        )
    return _draw_medians(variability, cluster, profiles, chance)


def _draw_rows(
    variability: Variability, cluster: Cluster, profiles: Mapping[str, str], chance: random.Random
) -> Mapping[str, tuple[float, ...]]:
    """Draw any measurement with replacement, GPU by GPU and class by class.

    With seed 42 this is the published draw to the digit.
    """
    rows = {key: found.rows() for key, found in variability.measured.items()}
    scores: dict[str, list[float]] = {name: [] for name in profiles}
    for kind in cluster.gpu_type_of.tolist():
        for name, application in profiles.items():
            scores[name].append(chance.choice(rows[cluster.type_names[kind], application]))
    return {name: tuple(values) for name, values in scores.items()}


def _draw_medians(
    variability: Variability, cluster: Cluster, profiles: Mapping[str, str], seed: int
) -> Mapping[str, tuple[float, ...]]:
    """Draw medians of measured GPUs without replacement, by type and application.

    Classes of one application share the draw.
    """
    rng = np.random.default_rng(seed)
    drawn = {}
    for application in sorted(set(profiles.values())):
        found = np.ones(cluster.gpu_count)
        for kind, gpu_type in enumerate(cluster.type_names):
            mine = np.flatnonzero(cluster.gpu_type_of == kind)
            medians = variability.measured[gpu_type, application].medians()
            if len(medians) < len(mine):
                raise _too_few(gpu_type, application, measured=len(medians), wanted=len(mine))
            found[mine] = rng.choice(medians, len(mine), replace=False)
        drawn[application] = tuple(found.tolist())
    return {name: drawn[application] for name, application in profiles.items()}


def _lacking(variability: Variability, cluster: Cluster, application: str) -> Sequence[str]:
    return [
        gpu_type
        for gpu_type in cluster.type_names
        if (gpu_type, application) not in variability.measured
    ]


def _not_measured(
    variability: Variability, cluster: Cluster, application: str, *, variability_class: str
) -> VariabilityError:
    lacking = _lacking(variability, cluster, application)[0]
    there = sorted(
        gpu_type for gpu_type, measured in variability.measured if measured == application
    )
    return VariabilityError(
        f"has no measurements of {application} (class {variability_class})",
        field="gpu_type",
        value=lacking,
        remedy=f"Measured are: {', '.join(there) or 'none'}; "
        f"name such a type in the cluster, or add {application}-{lacking}.csv.",
    )


def _too_few(gpu_type: str, application: str, *, measured: int, wanted: int) -> VariabilityError:
    return VariabilityError(
        f"was measured with {application} on {measured} GPUs only",
        field="gpu_type",
        value=f"{wanted} GPUs of {gpu_type}",
        remedy="Simulate a smaller cluster, or draw single measurements (rows) instead of medians.",
    )
