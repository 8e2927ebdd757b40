"""Builds the shipped catalog from measured profiles, and documents it as a table.

    python -m maat.models.catalog_builder PROFILES_DIR   writes catalog.json next to this file
    python -m maat.models.catalog_builder --table        prints docs/catalog.md

Facts that profiles lack (what a model is, how long a restart takes) are here, with their source.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maat.models.catalog import FORMAT_VERSION, Catalog, CatalogFit, CatalogModel, shipped_catalog
from maat.models.catalog_fit import fit_measurements, measurements_of, noise_scale_curve
from maat.models.measurements import MeasuredModel, StepTable
from maat.models.profiles import read_profiles
from maat.scheduling.errors import MaatError, ProfileError

CATALOG_FILE = Path(__file__).with_name("catalog.json")
SOURCE = (
    "Step times and gradient statistics measured for the Sia (SOSP '23) and Pollux (OSDI '21) "
    "artifacts; "
    "model descriptions from Sia table 2 and Pollux table 1."
)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts about a model besides its measurements.

    `largest_per_gpu`: a limit below the largest measured batch.
    """

    title: str
    task: str
    dataset: str
    optimizer: str
    learning_rate_rule: str
    restart_seconds: float
    slowdown: float
    provenance: str
    largest_per_gpu: int | None = None


# Restart seconds and slowdown: the published Sia simulator's checkpoint-restore delays, and its
# calibration against the physical cluster.
_PUBLISHED = "Sia table 2; restart seconds and slowdown: published Sia simulator"
FACTS: Mapping[str, ModelFacts] = {
    "cifar10": ModelFacts(
        "ResNet18", "image classification", "CIFAR-10", "SGD", "AdaScale", 50.0, 1.8, _PUBLISHED
    ),
    "bert": ModelFacts(
        "BERT (fine-tuning)",
        "question answering",
        "SQuAD",
        "AdamW",
        "square root",
        120.0,
        1.2,
        _PUBLISHED,
    ),
    "deepspeech2": ModelFacts(
        "DeepSpeech2", "speech recognition", "CMU-ARCTIC", "SGD", "AdaScale", 25.0, 1.2, _PUBLISHED
    ),
    "yolov3": ModelFacts(
        "YOLOv3", "object detection", "PASCAL-VOC", "SGD", "AdaScale", 80.0, 1.2, _PUBLISHED
    ),
    "imagenet": ModelFacts(
        "ResNet50", "image classification", "ImageNet-1k", "SGD", "AdaScale", 250.0, 1.2, _PUBLISHED
    ),
    "ncf": ModelFacts(
        "NeuMF",
        "recommendation",
        "MovieLens",
        "Adam",
        "square root",
        15.0,
        1.5,
        "Pollux table 1; restart seconds and slowdown: published Sia simulator",
    ),
    "gpt": ModelFacts(
        "GPT 2.8B (pipeline-parallel fine-tuning)",
        "language modelling",
        "SQuAD",
        "AdamW",
        "square root",
        30.0,
        1.0,
        "Sia table 2 and section 5.3: gradient statistics borrowed from BERT, "
        "48 micro-batches per replica; "
        "restart seconds and slowdown: published Sia simulator",
        # 48 micro-batches of one sample each (Sia section 5.3), although two were profiled
        largest_per_gpu=48,
    ),
}

# Sia section 4.2. Memory of the V100 is inferred: its largest batches lie between those of 24 GiB
# and 40 GiB.
GPU_TYPES: Mapping[str, Mapping[str, object]] = {
    "t4": {
        "title": "NVIDIA T4",
        "memory_gib": 16.0,
        "gpus_per_node": 4,
        "provenance": "Sia section 4.2: AWS g4dn.12xlarge",
    },
    "rtx": {
        "title": "NVIDIA RTX 2080 Ti",
        "memory_gib": 11.0,
        "gpus_per_node": 8,
        "provenance": "Sia section 4.2: 50 Gb/s Ethernet",
    },
    "a100": {
        "title": "NVIDIA A100",
        "memory_gib": 40.0,
        "gpus_per_node": 8,
        "provenance": "Sia section 4.2: DGX-A100, 1.6 Tb/s InfiniBand",
    },
    "quad": {
        "title": "NVIDIA Quadro RTX 6000",
        "memory_gib": 24.0,
        "gpus_per_node": 4,
        "provenance": "Sia section 4.2: 200 Gb/s InfiniBand",
    },
    "v100": {
        "title": "NVIDIA V100",
        "memory_gib": 32.0,
        "gpus_per_node": 8,
        "provenance": "the artifact's azure profiles, in no paper; memory inferred from the "
        "largest batches, which lie between those of 24 and 40 GiB",
    },
}


def build_catalog(profiles: Path) -> str:
    """Return the catalog's JSON from a profiles folder.

    Raises ProfileError for profiles of models or GPU types without facts here.
    """
    measured = read_profiles(profiles)
    for name in measured:
        if name not in FACTS:
            raise ProfileError(
                "is a model without facts",
                field="model",
                value=name,
                remedy="Add it to FACTS in catalog_builder.py.",
            )
    models = {
        name: _model(measured[name], facts) for name, facts in FACTS.items() if name in measured
    }
    data = {"format": FORMAT_VERSION, "source": SOURCE, "gpu_types": GPU_TYPES, "models": models}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _model(measured: MeasuredModel, facts: ModelFacts) -> dict[str, Any]:
    epochs = measured.epochs
    return {
        "title": facts.title,
        "task": facts.task,
        "dataset": facts.dataset,
        "optimizer": facts.optimizer,
        "learning_rate_rule": facts.learning_rate_rule,
        "initial_batch_size": epochs.initial_batch_size,
        "max_batch_size": epochs.max_batch_size,
        "epochs": epochs.epoch_count,
        "work": epochs.total_progress * epochs.initial_batch_size,
        "restart_seconds": facts.restart_seconds,
        "slowdown": facts.slowdown,
        "noise_scale_curve": [
            [_rounded(share), _rounded(phi)] for share, phi in noise_scale_curve(epochs)
        ],
        "fits": {
            name: _fit(measured.steps[name], facts) for name in GPU_TYPES if name in measured.steps
        },
        "provenance": facts.provenance,
    }


def _fit(table: StepTable, facts: ModelFacts) -> dict[str, Any]:
    measured = measurements_of(table)
    fit = fit_measurements(measured)
    largest = table.largest_per_gpu_batch
    return {
        "throughput_parameters": [_rounded(p) for p in fit.parameters],
        "smallest_per_gpu_batch_size": table.smallest_per_gpu_batch,
        "largest_per_gpu_batch_size": largest
        if facts.largest_per_gpu is None
        else min(largest, facts.largest_per_gpu),
        "gpus_per_replica": table.gpus_per_replica,
        "reference_samples_per_second": _rounded(table.one_replica_reference),
        "points": len(measured),
        "largest_measured_gpus": int(measured.gpu_count.max()),
        "fit_error": {"median": _rounded(fit.median_error), "p95": _rounded(fit.p95_error)},
        "provenance": _provenance(fit.within_measured, fit.across_measured),
    }


def _provenance(within_measured: bool, across_measured: bool) -> str:
    if not across_measured:
        return (
            "fitted to measurements; synchronisation across nodes derived: 1.1 x that within a node"
        )
    if not within_measured:
        return (
            "fitted to measurements; synchronisation within a node derived: as across nodes, "
            "since one replica fills a node"
        )
    return "fitted to measurements"


def _rounded(value: float) -> float:
    """Round to seven significant digits, far below any fit error."""
    return float(f"{value:.7g}")


# --- the documentation ---


def table(catalog: Catalog) -> str:
    """Return docs/catalog.md: every row of the catalog with its fit error and source."""
    return "\n".join(
        (
            _introduction(catalog),
            _gpu_type_table(catalog),
            _model_table(catalog),
            _fit_table(catalog),
        )
    )


def _introduction(catalog: Catalog) -> str:
    return f"""# The catalog of models

Written by `python -m maat.models.catalog_builder --table`; do not edit. {catalog.source}

A job of a catalog model needs no profiles folder: its true step times come from seven fitted
parameters (Pollux eq. 8-11), its statistical efficiency from a curve of the gradient noise scale
over training. The fit error is |predicted / measured - 1| of step times over **all** measured
points, odd placements included: half of them are below the median, 95 % below p95. Large ones are
mostly the measurements' own scatter: YOLOv3 on A100, for one, was measured slower at 6 samples per
GPU than at 8, and ResNet50 on V100 slower on three nodes than on two by up to a factor of six, and
on one by up to two, which no seven parameters express. Where a policy's figures must be exact,
simulate with `--profiles`, which interpolates the measurements themselves.
"""


def _gpu_type_table(catalog: Catalog) -> str:
    rows = [
        (f"`{gpu.name}`", gpu.title, f"{gpu.memory_gib:g}", str(gpu.gpus_per_node), gpu.provenance)
        for gpu in catalog.gpu_types.values()
    ]
    return "## GPU types\n\n" + _markdown(
        ("GPU type", "device", "memory GiB", "GPUs per node", "provenance"), rows
    )


def _model_table(catalog: Catalog) -> str:
    header = (
        *("model", "what", "optimizer, rule", "batch size", "epochs", "work, effective samples"),
        *("noise scale phi, start to end", "restart s", "slowdown", "provenance"),
    )
    return "## Models\n\n" + _markdown(
        header, [_model_row(model) for model in catalog.models.values()]
    )


def _model_row(model: CatalogModel) -> tuple[str, ...]:
    return (
        f"`{model.name}`",
        f"{model.title}: {model.task}, {model.dataset}",
        f"{model.optimizer}, {model.learning_rate_rule}",
        f"{model.initial_batch_size} to {model.max_batch_size}",
        str(model.epochs),
        f"{model.work:,.0f}",
        f"{model.noise_scale_curve[0][1]:,.0f} to {model.noise_scale_curve[-1][1]:,.0f}",
        f"{model.restart_seconds:g}",
        f"{model.slowdown:g}",
        model.provenance,
    )


def _fit_table(catalog: Catalog) -> str:
    header = (
        *("model", "GPU type", "points", "up to GPUs", "error median", "error p95"),
        *("per-GPU batch", "GPUs per replica", "one replica, samples/s", "provenance"),
    )
    rows = [
        _fit_row(model, fit) for model in catalog.models.values() for fit in model.fits.values()
    ]
    return "## Fits\n\n" + _markdown(header, rows)


def _fit_row(model: CatalogModel, fit: CatalogFit) -> tuple[str, ...]:
    error = (
        ("", "")
        if fit.fit_error is None
        else (f"{fit.fit_error.median:.1%}", f"{fit.fit_error.p95:.1%}")
    )
    return (
        f"`{model.name}`",
        f"`{fit.gpu_type}`",
        str(fit.points),
        str(fit.largest_measured_gpus),
        *error,
        f"{fit.smallest_per_gpu_batch_size} to {fit.largest_per_gpu_batch_size}",
        str(fit.gpus_per_replica),
        f"{fit.reference_samples_per_second:,.1f}",
        fit.provenance,
    )


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m maat.models.catalog_builder", description="Build Maat's catalog of models."
    )
    parser.add_argument(
        "profiles",
        type=Path,
        nargs="?",
        help="folder with one folder of measured profiles per model",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=CATALOG_FILE,
        help="file to write (default: the shipped catalog)",
    )
    parser.add_argument(
        "--table", action="store_true", help="print the shipped catalog as Markdown instead"
    )
    options = parser.parse_args(arguments)
    if options.table:
        sys.stdout.write(table(shipped_catalog()))
        return 0
    if options.profiles is None:
        parser.error("give a profiles folder, or --table")
    try:
        text = build_catalog(options.profiles)
    except MaatError as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
