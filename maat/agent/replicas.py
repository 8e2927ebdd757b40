"""The replicas of a job: how they find each other, and what they agree on before each step."""

from __future__ import annotations

import os
import socket
import time
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from maat.agent.environment import Environment
from maat.agent.files import write_whole

START_SECONDS = 300.0
"""How long replicas wait for each other. Importing torch alone can take half a minute."""

SAVE_SECONDS = 900.0
_MASTER = "master"
_SAVED = "maat/saved"
_LOOK_SECONDS = 0.05


class Wish(NamedTuple):
    """What a replica says before a step. The replicas do what the highest of each number says.

    Attributes:
        stop: Save and end.
        abandon: End, and save nothing: another attempt goes on with the job.
        number, total, per_gpu, accumulation: The newest batch plan; only rank 0 hears of plans.
        every: Measure the gradient's noise at each step that this divides.
        pause: Say no wishes before so many of the steps that follow: each exchange takes time.
    """

    stop: int = 0
    abandon: int = 0
    number: int = 0
    total: int = 0
    per_gpu: int = 0
    accumulation: int = 0
    every: int = 1
    pause: int = 0


class Replicas:
    """This process and its peers. One replica alone needs no process group."""

    def __init__(self, environment: Environment, device: torch.device) -> None:
        self.rank, self.count = environment.rank, environment.world_size
        self.device = device
        self._store: Any = None
        self._control: Any = None
        self._said: tuple[Any, torch.Tensor] | None = None
        self._agreed = Wish()
        self._paused = 0  # steps before which nothing is said
        if self.count > 1:
            self._join(environment)

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def agree(self, wish: Wish) -> Wish:
        """Say a wish, unless all pause, and return the newest that all have heard.

        The exchange goes on while the step is computed, and is heard before the next. So all
        replicas stop after the same step, though one alone was told to.
        """
        if self.count == 1:
            return wish
        if self._said is not None:
            self._hear()
            self._paused = self._agreed.pause
        if self._paused:
            self._paused -= 1
        else:
            self._say(wish)
        return self._agreed

    def agree_at_once(self, wish: Wish) -> Wish:
        """Say a wish, and return what all say now."""
        if self.count == 1:
            return wish
        self._hear()
        self._say(wish)
        self._hear()
        return self._agreed

    def end_pause(self) -> None:
        """Say the next wish. All replicas call this before the same step."""
        self._hear()
        self._paused = 0

    def from_first(self, key: str, value: str | None) -> str:
        """Return what rank 0 passes here; the others pass None."""
        if self.count == 1:
            return value or ""
        if value is not None:
            self._store.set(f"maat/{key}", value)
            return value
        text: str = self._store.get(f"maat/{key}").decode()
        return text

    def of_all(self, value: float) -> list[float]:
        """Return what each rank passes here, in the order of ranks. Waits for all."""
        found = [torch.zeros(1, dtype=torch.float64) for _ in range(self.count)]
        dist.all_gather(found, torch.tensor([value], dtype=torch.float64), group=self._control)
        return [float(each) for each in found]

    def mean(self, values: torch.Tensor) -> Any:
        """Start to average a tensor over the replicas, in place; return what to wait for."""
        return dist.all_reduce(values.div_(self.count), async_op=True)

    def meet(self) -> None:
        """Wait until all replicas are here."""
        if self.count > 1:
            dist.barrier(group=self._control)

    def leave(self) -> None:
        """End what the replicas share, before a long write: a network's fault cannot end it then.

        NCCL's watchdog kills ranks that wait while another writes.
        """
        if self.count == 1 or not dist.is_initialized():
            return
        self._hear()
        dist.barrier(group=self._control)
        self.close()

    def close(self) -> None:
        """End what the replicas shared, once all have done all steps."""
        if dist.is_initialized():
            dist.destroy_process_group()

    def say_saved(self) -> None:
        """Let the other ranks end."""
        if self.count > 1:
            self._store.set(_SAVED, "")

    def wait_until_saved(self) -> None:
        """Wait for rank 0 to have written: its end counts as well."""
        try:
            self._store.wait([_SAVED], timedelta(seconds=SAVE_SECONDS))
        except RuntimeError:  # the store has ended with rank 0
            return

    def _say(self, wish: Wish) -> None:
        numbers = torch.tensor(wish, dtype=torch.int64)
        work = dist.all_reduce(numbers, dist.ReduceOp.MAX, group=self._control, async_op=True)
        self._said = (work, numbers)

    def _hear(self) -> None:
        if self._said is None:
            return
        work, numbers = self._said
        self._said = None
        work.wait()
        self._agreed = Wish(*numbers.tolist())

    def _join(self, environment: Environment) -> None:
        limit = timedelta(seconds=START_SECONDS)
        if environment.is_one_machine:  # a container's own name is often not an address
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        if self.is_first:
            listening = socket.create_server(
                ("127.0.0.1" if environment.is_one_machine else "", 0), backlog=self.count + 16
            )
            host = "127.0.0.1" if environment.is_one_machine else socket.getfqdn()
            port = listening.getsockname()[1]
            self._store = dist.TCPStore(
                host,
                port,
                self.count,
                is_master=True,
                timeout=limit,
                wait_for_workers=False,
                master_listen_fd=listening.detach(),
            )
            write_whole(environment.file(_MASTER), f"{host}:{port}")
        else:
            host, port = _master(environment)
            self._store = dist.TCPStore(
                host, port, self.count, is_master=False, timeout=limit, wait_for_workers=False
            )
        # Libraries look for these, though they find the process group made.
        os.environ.update(MASTER_ADDR=host, MASTER_PORT=str(port))
        dist.init_process_group(
            "nccl" if self.device.type == "cuda" else "gloo",
            store=self._store,
            rank=self.rank,
            world_size=self.count,
            timeout=limit,
        )
        self._control = dist.new_group(backend="gloo")


def _master(environment: Environment) -> tuple[str, int]:
    path = environment.file(_MASTER)
    deadline = time.monotonic() + START_SECONDS
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Rank 0 did not say in {path} where it listens.")
        time.sleep(_LOOK_SECONDS)
    host, _, port = path.read_text().rpartition(":")
    return host, int(port)
