"""A job of the storm, by the standard library alone: it steps, saves, reports, and stops when told.

Every rank appends what it does to OUT, a line of JSON each: so what ran is known without Maat. It
keeps to the fence as maat.agent does.
"""

import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any, NoReturn

STEP_SECONDS, SAVED_EVERY, PROFILE_STEPS = 0.05, 20, 20
BATCH = 64
STOPPED = 143


class Rank:
    """One rank of an attempt."""

    def __init__(self) -> None:
        self.folder = Path(os.environ["MAAT_ATTEMPT_DIR"])
        (self.folder / "agent").touch()  # as the agent does at its start
        self.spec = json.loads((self.folder / "spec.json").read_text())
        self.number, self.rank = int(os.environ["MAAT_NUMBER"]), int(os.environ["RANK"])
        gpus = [f"{n}/{i}" for n, held in self.spec["gpus_by_node"].items() for i in held]
        self.gpu, self.world_size = gpus[self.rank], len(gpus)
        self.checkpoints = Path(os.environ["MAAT_CHECKPOINT_DIR"])
        self.is_profile = self.spec.get("profile") is not None
        self.last = int(os.environ["STEPS"])
        self.out = os.open(os.environ["OUT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.step, self.saved, self.is_told, self.is_stale = 0, 0, False, False
        signal.signal(signal.SIGTERM, self.hear)

    def hear(self, *_: object) -> None:
        self.is_told = True

    def say(self, what: str, **facts: object) -> None:
        line = {
            "what": what,
            "job": self.spec["job_id"],
            "attempt": self.spec["attempt_id"],
            "number": self.number,
            "rank": self.rank,
            "gpu": self.gpu,
            "profile": self.is_profile,
            "at": time.monotonic(),
            **facts,
        }
        os.write(self.out, json.dumps(line).encode() + b"\n")

    def check_fence(self) -> None:
        if int((self.checkpoints / "fence").read_text()) > self.number:
            self.end("fenced")

    def end(self, why: str, code: int = STOPPED) -> NoReturn:
        self.say("ends", why=why, code=code)
        sys.exit(code)

    def restore(self) -> None:
        if not self.is_profile:
            state = self.checkpoints / "state"
            self.step = self.saved = int(state.read_text()) if state.exists() else 0
        self.say("begins", step=self.step)

    def save(self) -> None:
        if self.is_profile or self.saved == self.step:
            return
        self.check_fence()
        self.say("saving", step=self.step)
        temporary = self.checkpoints / f".state.{self.number}.{os.getpid()}"
        with temporary.open("w") as file:
            file.write(str(self.step))
            file.flush()
            os.fsync(file.fileno())
        self.check_fence()
        temporary.rename(self.checkpoints / "state")
        self.saved = self.step
        self.say("saved", step=self.step)

    def train(self) -> None:
        """Be rank 0: take the steps that are left."""
        self.restore()
        last = PROFILE_STEPS if self.is_profile else self.last
        while self.step < last:
            if self.is_stale:
                self.end("stale")
            if self.is_told:
                self.save()
                self.end("told")
            time.sleep(STEP_SECONDS)
            self.step += 1
            self.say("steps", step=self.step)
            if self.step % SAVED_EVERY == 0:
                self.save()
        self.save()
        (self.folder / "done").touch()

    def follow(self) -> None:
        """Be another rank: live until rank 0 is done."""
        self.say("begins")
        while not (self.folder / "done").exists():
            if self.is_told:
                self.end("told")
            time.sleep(STEP_SECONDS)
            self.say("steps")


class Reporter(threading.Thread):
    """Reports as maat.agent does: each number until it is taken."""

    def __init__(self, rank: Rank) -> None:
        super().__init__(daemon=True)
        self.of, self.sequence, self.told_steps = rank, 0, rank.step
        self.incarnation, self.began = uuid.uuid4().hex, time.monotonic()
        self.plan, self.ending = rank.spec.get("plan"), threading.Event()

    def run(self) -> None:
        self.send("hello")
        while not self.ending.wait(1.0):
            self.send("report")

    def send(self, kind: str, *, finished: bool = False) -> None:
        of, now = self.of, self.of.step
        self.sequence += 1
        body = self.body(kind, now, finished=finished)
        server, attempt = os.environ["MAAT_SERVER"], os.environ["MAAT_ATTEMPT"]
        token = (of.folder / "token").read_text()
        request = urllib.request.Request(
            f"{server}/api/v1/attempts/{attempt}/reports",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=5.0) as response:
                answer = json.loads(response.read())
        except urllib.error.HTTPError as error:
            of.is_stale = of.is_stale or (error.code == 409 and b"stale-attempt" in error.read())
            if error.code == 422:
                print(error.read().decode(), flush=True)
        except (OSError, ValueError):
            return
        else:
            self.told_steps, self.plan = now, answer["plan"] or self.plan
            of.is_told = of.is_told or answer["stop"]

    def body(self, kind: str, now: int, *, finished: bool) -> dict[str, Any]:
        of, spec = self.of, self.of.spec
        steps = now - self.told_steps
        plan = self.plan or {"number": 0}
        per_gpu = plan.get("per_gpu_batch_size", max(BATCH // of.world_size, 1))
        passes = plan.get("accumulation_steps", 0)
        seconds = (0.02 + 5e-4 * per_gpu) * (passes + 1) + (0.01 if of.world_size > 1 else 0.0)
        timed = {
            "per_gpu_batch_size": per_gpu,
            "accumulation_steps": passes,
            "node_count": len(spec["gpus_by_node"]),
            "replica_count": of.world_size,
            "steps": max(steps, 1),
            "step_seconds": {"mean": seconds, "m2": 0.0},
            "sync_seconds": 0.01 if of.world_size > 1 else 0.0,
        }
        return {
            "sequence": self.sequence,
            "kind": kind,
            "incarnation": self.incarnation,
            "world_size": of.world_size,
            "gpu_type": spec["gpu_type"],
            "progress": {
                "effective_samples": float(now * BATCH),
                "steps": now,
                "total_effective_samples": float(of.last * BATCH),
            },
            "passes": [timed] if steps > 0 else [],
            "gradient": {"square": 0.01, "variance": 1.0, "steps": 50, "at_batch_size": BATCH},
            "checkpoint": {"step": of.saved} if of.saved else None,
            "plan_number": plan["number"],
            "finished": finished,
            "stepping_seconds": time.monotonic() - self.began if of.is_profile else None,
        }


def main() -> None:
    rank = Rank()
    if rank.rank > 0:
        rank.follow()
    elif os.environ.get("REPORTS") == "1":
        reporter = Reporter(rank)
        reporter.start()
        try:
            rank.train()
        finally:
            reporter.ending.set()
            reporter.join()
            reporter.send("bye", finished=rank.step >= rank.last and not rank.is_profile)
    else:
        rank.train()
    rank.end("done", 0)


if __name__ == "__main__":
    main()
