"""Runs the loop that ASKED names as an attempt's script; rank 0 writes the weights into OUT."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import maat.agent

sys.path.append(str(Path(__file__).parent))  # an attempt of a test looks for no modules there

from loops import ROWS, Script


def main() -> None:
    job = maat.agent.start()
    script = Script(None, job)
    ROWS[json.loads(os.environ["ASKED"])["row"]][0](script)
    if job.is_first:
        Path(os.environ["OUT"]).write_text(json.dumps(script.weights().tolist()))


if __name__ == "__main__":
    main()
