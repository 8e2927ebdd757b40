"""Builds the shipped synthetic interference table from two measured tables.

Run `python -m maat.simulation.interference_builder GAVEL PAL`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from maat.simulation.interference import (
    GAVEL_STANDS_FOR,
    PAL_STANDS_FOR,
    Interference,
    read_gavel,
    read_table,
)

STATEMENT = (
    "Synthetic: nobody measured these six models in company. Each stands for a measured one of "
    "like kind (stands_for); pairs of those are solo over shared speed on one V100 (Gavel). yolov3 "
    "stands for vgg19 (PAL's co-location measurements, one GPU, two where bert takes part); beside "
    "models that PAL did not measure it takes ResNet-50's figures from Gavel. Two decimals, the "
    "same for every GPU type and count."
)
LARGE_IMAGE_MODEL = "imagenet"  # gives yolov3 its figures where vgg19 was not measured


def synthetic_pairs(gavel: Interference, pal: Interference) -> dict[str, dict[str, float]]:
    """Return victim -> partner -> slowdown of the catalog's data-parallel models.

    Two decimals.
    """
    others = sorted(GAVEL_STANDS_FOR.values())
    models = sorted({*others, *PAL_STANDS_FOR.values()})
    return {
        victim: {partner: round(_slowdown(victim, partner, gavel, pal), 2) for partner in models}
        for victim in models
    }


def _slowdown(victim: str, partner: str, gavel: Interference, pal: Interference) -> float:
    if (victim, partner) in gavel.pairs:
        return gavel.pairs[victim, partner][1]
    if (victim, partner) in pal.pairs:
        by_count = pal.pairs[victim, partner]
        return by_count[min(by_count)]
    known = set(GAVEL_STANDS_FOR.values())
    stand_in = (
        victim if victim in known else LARGE_IMAGE_MODEL,
        partner if partner in known else LARGE_IMAGE_MODEL,
    )
    return gavel.pairs[stand_in][1]


def main() -> None:
    gavel, pal = (Path(argument) for argument in sys.argv[1:3])
    table = {
        "statement": STATEMENT,
        "stands_for": {
            model: measured for measured, model in {**GAVEL_STANDS_FOR, "vgg19": "yolov3"}.items()
        },
        "pairs": synthetic_pairs(read_gavel(gavel), read_table(pal)),
    }
    Path(__file__).with_name("interference.json").write_text(
        json.dumps(table, indent=2) + "\n", "utf-8"
    )


if __name__ == "__main__":
    main()
