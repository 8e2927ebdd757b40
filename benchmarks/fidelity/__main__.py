"""`python -m benchmarks.fidelity`: Maat on public traces and published figures.

Writes docs/fidelity.md. Measures no speed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fidelity.page import page
from benchmarks.fidelity.runs import QUICK_TRACE, play_all, wanted
from benchmarks.fidelity.searches import section

OUTPUT = Path(__file__).parents[2] / "docs" / "fidelity.md"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_TRACE} only, printed instead of written"
    )
    parser.add_argument("--processes", type=int, default=2, help="simulations at a time")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the Markdown file to write")
    parser.add_argument(
        "--outcomes",
        type=Path,
        help="a file of outcomes: runs found there are not simulated again, others are added",
    )
    options = parser.parse_args(arguments)
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # a fit on a pool of threads takes twenty times the CPU of one on a single thread
    data = os.environ.get("MAAT_DATA")
    if not data:
        parser.error(
            "MAAT_DATA is not set: give the folder that holds sia-artifact/profiles and "
            "sia-artifact/workloads"
        )
    outcomes = play_all(
        wanted(quick=options.quick),
        Path(data, "sia-artifact"),
        processes=options.processes,
        kept=options.outcomes,
    )

    text = page(outcomes)
    if options.quick:
        print(text)
    else:
        searches = section(Path(data, "sia-artifact"), processes=options.processes)
        options.output.write_text(f"{text}\n{searches}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
