"""The `maat` command. Its parts come with the extra `maat[cli]`."""

from __future__ import annotations

import os
import sys

from maat.garbage import collect_less_often


def main() -> None:
    """Run the command line. Exit code 2: what was asked for cannot be done as asked."""
    # Matrices here are small: a thread pool costs more than it gives, and simulations run side by
    # side. This must happen before numpy is imported.
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    collect_less_often()
    try:
        from maat.cli.app import run
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich", "click"}:
            raise
        sys.exit("The command line is an extra. Install it with: pip install 'maat[cli]'")
    run()


if __name__ == "__main__":
    main()
