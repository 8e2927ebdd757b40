"""Jobs that train.py does, attempt after attempt, through maat.launch."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maat.launch import control
from maat.launch.attempt_dir import AttemptDir, Limits, Spec

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 120.0


@dataclass
class Run:
    """A job, with what is asked of train.py, and its attempts."""

    folder: Path
    asked: dict[str, Any] = field(default_factory=dict)
    server: str | None = None
    script: Path = Path(__file__).with_name("train.py")
    attempts: list[AttemptDir] = field(default_factory=list)

    def attempt(
        self,
        ranks: int,
        *,
        plan: dict[str, int] | None = None,
        profile: dict[str, Any] | None = None,
        **asked: Any,
    ) -> dict[str, int]:
        """Run an attempt to its end; return the exit code of each rank."""
        number = len(self.attempts) + 1
        directory = AttemptDir(str(self.folder / f"att_{number}"))
        self.attempts.append(directory)
        reports = {} if self.server is None else {"MAAT_SERVER": self.server}
        spec = Spec(
            attempt_id=f"att_{number}",
            job_id="job_1",
            number=number,
            argv=(sys.executable, str(self.script)),
            cwd=str(self.folder),
            env={
                "ASKED": json.dumps({**self.asked, **asked}),
                "OUT": str(self.folder / "out.jsonl"),
                "PYTHONPATH": str(ROOT),
                "PYTHONSAFEPATH": "1",  # a script's neighbours are no modules
                "HF_HUB_OFFLINE": "1",
                **reports,
            },
            secret_names=(),
            gpu_type="t4",
            gpus_by_node={"node-0": tuple(range(ranks))},
            gpus_per_replica=1,
            cuda_devices={"node-0": ()},
            threads=1,
            stop_seconds=30.0,
            limits=Limits(),
            plan=plan,
            checkpoint_directory=str(self.checkpoints),
            profile=profile,
        )
        assert control.start(directory, spec, token="token-of-the-attempt", secrets={})
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not directory.has("exit.json"):
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.05)
        ended = directory.read("exit.json")
        assert ended is not None
        codes: dict[str, int] = ended["codes"]
        return codes

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Return what rank 0 wrote of each step."""
        return [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]

    def report(self) -> dict[str, Any]:
        """Return report.json of the last attempt."""
        found = self.attempts[-1].read("report.json")
        assert found is not None, self.logs()
        return found

    def logs(self) -> str:
        return "\n".join(
            path.read_text() for each in self.attempts for path in Path(each.path).glob("*.log")
        )

    def kill(self) -> None:
        for each in self.attempts:
            control.kill(each)
