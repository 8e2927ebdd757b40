"""The `maat` command. Its parts come with the extra `maat[cli]`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

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


def watched_main() -> None:
    """Run the command line; what runs policies of others is watched, as these may end it."""
    if _may_run_own_policies(sys.argv[1:]):
        from maat.watched import watched

        sys.exit(watched(main, what="simulated"))
    main()


def _may_run_own_policies(arguments: Sequence[str]) -> bool:
    """Return whether a policy may be `module:Class`, or the entry point of a distribution."""
    if arguments[:1] not in (["simulate"], ["compare"], ["sweep"]):
        return False
    return any(":" in each for each in arguments) or bool(entry_points(group="maat.policies"))


if __name__ == "__main__":
    watched_main()
