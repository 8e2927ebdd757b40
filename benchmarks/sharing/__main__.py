"""Runs `python -m benchmarks.sharing`."""

import sys

from benchmarks.sharing.tables import main

sys.exit(main())
