"""Runs attempts as jobs of a Slurm cluster, by its commands and their JSON.

Slurm is told names, counts and folders only. What to run, the token and the secrets lie in the
attempt's folder, which all nodes must see; there each rank writes how it ended, and that is
believed rather than Slurm's exit code. `job.json` there says that the job was submitted,
`exit.json` how it ended, `stop` and `kill` that Maat wanted its end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from backend.attempts.folders import attempt_folder, attempts_folder
from maat.api.clusters import SlurmParameters
from maat.launch.attempt_dir import AttemptDir, Limits
from maat.slurm.json_values import UnreadableAnswer
from worker.engines.in_folders import (
    SPOILT,
    check,
    ended_as_written,
    folder_of,
    is_attempt,
    spec_of,
    unreadable,
)
from worker.engines.protocol import (
    Capabilities,
    EngineNode,
    Order,
    Phase,
    Refused,
    Seen,
    Unreachable,
)
from worker.engines.slurm_answers import (
    ENDED_BY_SLURM,
    SlurmJob,
    SlurmNode,
    jobs_of,
    nodes_of,
)
from worker.engines.slurm_batch import (
    JOBS_PER_SHARED_GPU,
    batch_arguments,
    batch_script,
    job_name,
)
from worker.engines.slurm_commands import SlurmCommands
from worker.engines.slurm_ends import (
    all_told,
    codes_of,
    first_failed,
    has_settled,
    is_dead,
    outlives,
    why_no_rank,
    write_exit,
)

_LOCK_SECONDS = 30.0
_SIGNALLED = "Its processes were signalled in Slurm, not by Maat."
_OUTLIVES = "Slurm says that it is over, and a process of it shows life: it was told to end."
_WAKES = "Slurm wakes its nodes, which were off to save power."
_NO_LIFE = "A process of it shows no life any more, and Slurm still has it as running."


class SlurmEngine:
    """The engine of one Slurm cluster, or of one partition of it.

    `root`: the folder of attempts, on a file system that this worker and all nodes share.
    """

    def __init__(self, root: Path, parameters: SlurmParameters) -> None:
        self._root, self._parameters = root.resolve(), parameters
        self._slurm = SlurmCommands(parameters.conf)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            names_gpus=False, shares=True, uneven=True, several_nodes=True, finds_nodes=True
        )

    def directory(self, attempt_id: str) -> Path:
        """Return where an attempt's folder is."""
        return attempt_folder(self._root, attempt_id)

    def nodes(self) -> Sequence[EngineNode]:
        return [each.node for each in self._nodes()]

    def launch(self, order: Order) -> str:
        attempt = folder_of(order, self.directory(order.attempt_id))
        known = _submitted(attempt)
        if known is not None:
            return known
        nodes = {each.node.name: each for each in self._nodes()}
        check(order, {name: each.node for name, each in nodes.items()})
        if order.shared:
            _check_shared(order, nodes)
        try:
            with _locked(attempt):
                return _submitted(attempt) or self._submit(attempt, order, nodes)
        except OSError as error:
            raise Unreachable(f"{order.attempt_id} could not be started: {error}") from error

    def look(self, attempt_ids: Sequence[str]) -> Mapping[str, Seen]:
        attempts = {each: self._attempt(each) for each in attempt_ids if is_attempt(each)}
        has_ended = {each: attempt.has("exit.json") for each, attempt in attempts.items()}
        jobs = self._jobs() if not all(has_ended.values()) else {}
        return {
            each: self._seen(attempts[each], jobs.get(each))
            if each in attempts
            else Seen(Phase.ABSENT)
            for each in attempt_ids
        }

    def stop(self, attempt_id: str) -> None:
        if self._ask(attempt_id, "stop"):
            self._slurm.cancel_pending(job_name(attempt_id))
            self._slurm.terminate(job_name(attempt_id))

    def kill(self, attempt_id: str) -> None:
        if self._ask(attempt_id, "kill"):
            self._slurm.cancel(job_name(attempt_id))

    def strays(self, known: Collection[str]) -> Sequence[str]:
        found = [
            job.attempt_id
            for job in self._jobs().values()
            if job.attempt_id not in known and job.phase is not Phase.ENDED
        ]
        for attempt_id in found:
            self._ask(attempt_id, "kill")
            self._slurm.cancel(job_name(attempt_id))
        return sorted(found)

    def forget(self, attempt_id: str) -> None:
        if not is_attempt(attempt_id) or not self.directory(attempt_id).is_dir():
            return
        attempt = self._attempt(attempt_id)
        if not attempt.has("exit.json"):
            phase = self.look([attempt_id])[attempt_id].phase
            if phase in {Phase.QUEUED, Phase.RUNNING}:
                return
        if not attempt.has("exit.json"):
            write_exit(attempt, codes=attempt.exit_codes(), lost="Slurm does not know it.")
        attempt.clean()

    def _attempt(self, attempt_id: str) -> AttemptDir:
        return AttemptDir(str(self.directory(attempt_id)))

    def _nodes(self) -> list[SlurmNode]:
        try:
            return nodes_of(self._slurm.nodes(), partition=self._parameters.partition)
        except UnreadableAnswer as error:
            raise Unreachable(str(error)) from error

    def _jobs(self) -> dict[str, SlurmJob]:
        """Return the jobs of this folder by attempt: another Maat may use the same Slurm."""
        try:
            return jobs_of(self._slurm.squeue(), folder=str(attempts_folder(self._root)))
        except UnreadableAnswer as error:
            raise Unreachable(str(error)) from error

    def _submit(self, attempt: AttemptDir, order: Order, nodes: Mapping[str, SlurmNode]) -> str:
        """Submit the job of a locked folder, unless a worker that died has done so."""
        job = self._jobs().get(order.attempt_id)
        if job is None:
            order.checkpoint_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            cpus = self._parameters.cpus_per_gpu or 1
            spec = spec_of(
                order,
                cuda_devices=None,
                threads=cpus * order.gpus_per_replica,
                limits=Limits(),
            )
            attempt.keep_room(len(spec.places()))
            attempt.write_text("token", order.token)
            attempt.write("secrets.json", order.secrets)
            attempt.write("spec.json", spec.as_json())
            arguments = batch_arguments(order, self._parameters, nodes)
            script = batch_script(self._parameters, commands=self._slurm.folder)
            job_id = self._slurm.sbatch(arguments, script)
        else:
            job_id = job.id
        attempt.write("job.json", {"id": job_id, "at": time.time()})
        return str(job_id)

    def _ask(self, attempt_id: str, what: str) -> bool:
        """Write down that Maat wants the end of an attempt; return whether it may be alive.

        Its ranks look there before they begin.
        """
        if not is_attempt(attempt_id) or not self.directory(attempt_id).is_dir():
            return False
        attempt = self._attempt(attempt_id)
        if attempt.has("exit.json"):
            return False
        attempt.write(what, {"at": time.time()})
        return True

    def _seen(self, attempt: AttemptDir, job: SlurmJob | None) -> Seen:
        try:
            if attempt.has("exit.json"):
                return ended_as_written(_submitted(attempt) or "", attempt.read("exit.json") or {})
            if job is not None and job.phase is Phase.ENDED and has_settled(attempt, job):
                if outlives(attempt, job):
                    return self._ends(attempt, job)
                return self._ended(attempt, job)
            if job is not None and job.state == "RUNNING" and is_dead(attempt):
                return Seen(Phase.ABSENT, engine_id=str(job.id), reason=_NO_LIFE)
            if job is not None:
                phase = Phase.RUNNING if job.phase is Phase.ENDED else job.phase
                return Seen(
                    phase,
                    engine_id=str(job.id),
                    gpus_by_node=job.gpus_by_node,
                    exits=codes_of(attempt),
                    reason=_WAKES if job.wakes else f"Slurm has it as {job.state}: {job.why}.",
                    wakes=job.wakes,
                )
            return self._forgotten(attempt)
        except SPOILT as error:
            return unreadable(attempt, error)

    def _ends(self, attempt: AttemptDir, job: SlurmJob) -> Seen:
        """Let ranks that Slurm has lost sight of save and end: until then they hold their GPUs."""
        asked = attempt.read("stop")
        if asked is None:
            attempt.write("stop", {"at": time.time()})
        elif time.time() - asked["at"] > attempt.spec().stop_seconds and not attempt.has("kill"):
            attempt.write("kill", {"at": time.time()})
        return Seen(Phase.RUNNING, engine_id=str(job.id), exits=codes_of(attempt), reason=_OUTLIVES)

    def _forgotten(self, attempt: AttemptDir) -> Seen:
        """Return what is seen of an attempt that Slurm does not know, or does not know any more."""
        codes = codes_of(attempt)
        if not codes or len(codes) < len(attempt.spec().places()):
            return Seen(Phase.ABSENT)
        write_exit(attempt, codes=codes, first_failed=first_failed(attempt))
        return self._seen(attempt, None)

    def _ended(self, attempt: AttemptDir, job: SlurmJob) -> Seen:
        """Write down how an attempt ended, once, and return it."""
        codes, reason = codes_of(attempt), ""
        lost = ENDED_BY_SLURM.get(job.state)
        asked = attempt.has("stop") or attempt.has("kill")
        if job.state == "NODE_FAIL":
            lost = self._which_node(attempt)
        elif asked:
            lost = None
        elif lost is None and all_told(attempt):
            lost = _SIGNALLED
        elif lost is None and not codes:
            codes, reason = {0: job.exit_code or 1}, why_no_rank(attempt)
        if not attempt.has("job.json"):
            attempt.write("job.json", {"id": job.id, "at": time.time()})
        failed = None if asked or lost else first_failed(attempt)
        write_exit(
            attempt,
            codes=codes,
            first_failed=failed,
            lost=lost,
            reason=reason,
            cancelled=lost in (ENDED_BY_SLURM["CANCELLED"], _SIGNALLED),
        )
        return self._seen(attempt, None)

    def _which_node(self, attempt: AttemptDir) -> str:
        nodes = attempt.spec().gpus_by_node
        down = [each for each in self.nodes() if each.name in nodes and not each.up]
        told = " ".join(f"Node {each.name} was lost. {each.reason}" for each in down)
        return told or f"One of its nodes was lost: {', '.join(nodes)}."


def _submitted(attempt: AttemptDir) -> str | None:
    """Return Slurm's id of an attempt that was submitted, or its own if it is over; else None."""
    job = attempt.read("job.json")
    if job is not None and "id" in job:
        return str(job["id"])
    return os.path.basename(attempt.path) if attempt.has("exit.json") else None


@contextmanager
def _locked(attempt: AttemptDir) -> Iterator[None]:
    """Make the folder and hold its lock, so that of several workers one submits the job."""
    os.makedirs(attempt.path, mode=0o700, exist_ok=True)
    until = time.monotonic() + _LOCK_SECONDS
    while (lock := attempt.take_lock()) is None:
        if time.monotonic() > until:
            raise Unreachable(f"Another worker holds {attempt.file('lock')}.")
        time.sleep(0.02)
    try:
        yield
    finally:
        os.close(lock)


def _check_shared(order: Order, nodes: Mapping[str, SlurmNode]) -> None:
    """Raise Refused unless each node can give half a GPU."""
    for name, gpus in order.gpus_by_node.items():
        shards = nodes[name].shards_per_gpu
        if len(gpus) != 1 or shards < JOBS_PER_SHARED_GPU:
            raise Refused(
                f"Two jobs can share one GPU of a node that has at least {JOBS_PER_SHARED_GPU} "
                f"shards per GPU in Slurm; {name} has {shards}, and {len(gpus)} GPUs are asked."
            )
