"""A machine's GPUs as nodes: an nvidia-smi of the tests' own says which there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from maat.launch.nvidia import Gpu, NoGpus, find_gpus, gpus_of, kind_of
from worker.engines.local import LocalEngine
from worker.engines.machine_gpus import MachineGpus
from worker.engines.protocol import Order, Phase, Refused, Unreachable

H100 = "GPU-a, NVIDIA H100 80GB HBM3, 81559, Disabled"
T4S = ["GPU-b, Tesla T4, 15360, [N/A]", "GPU-c, Tesla T4, 15360, [N/A]"]


class Smi:
    """An nvidia-smi on the PATH."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / "nvidia-smi"

    def prints(self, *lines: str) -> None:
        self._write("cat <<'.'\n" + "\n".join(lines) + "\n.")

    def fails(self, words: str) -> None:
        self._write(f"echo '{words}' >&2; exit 15")

    def _write(self, script: str) -> None:
        self._program.write_text(f"#!/bin/sh\n{script}\n")
        self._program.chmod(0o755)


@pytest.fixture
def smi(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Smi:
    folder = tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return Smi(folder)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Callable[[], MachineGpus]]:
    """Return a function that reads the machine again, a minute later."""
    clock = Clock()

    def later() -> MachineGpus:
        clock.now += 60
        return MachineGpus(tmp_path, now=clock)

    return later


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-80gb-hbm3"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("Tesla T4", "t4"),
        ("NVIDIA", "nvidia"),
    ],
)
def test_a_product_has_a_short_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_gpus_are_read_as_nvidia_smi_prints_them(smi: Smi) -> None:
    smi.prints(H100, *T4S, "GPU-d, NVIDIA A30, 24576, Enabled")
    assert find_gpus() == [
        Gpu("GPU-a", "h100-80gb-hbm3", 79.6),
        Gpu("GPU-b", "t4", 15.0),
        Gpu("GPU-c", "t4", 15.0),
    ]


@pytest.mark.parametrize("text", ["", "No devices were found", "GPU-d, A30, 24576, Enabled"])
def test_an_answer_without_gpus_is_told(text: str) -> None:
    with pytest.raises(NoGpus, match="lists no GPU that can be used"):
        gpus_of(text)


def test_each_type_is_a_node(smi: Smi, machine: Callable[[], MachineGpus]) -> None:
    smi.prints(H100, *T4S)
    found = machine()
    nodes = [(node.name, node.gpu_type, node.gpu_count, node.memory_gib) for node in found.nodes()]
    assert nodes == [("h100-80gb-hbm3-0", "h100-80gb-hbm3", 1, 79.6), ("t4-0", "t4", 2, 15.0)]
    assert found.devices("t4-0", (1,)) == ("GPU-c",)


def test_a_lost_gpu_takes_its_node_out_and_the_others_keep_their_numbers(
    smi: Smi, machine: Callable[[], MachineGpus]
) -> None:
    smi.prints(H100, *T4S)
    assert all(node.up for node in machine().nodes())
    smi.prints(H100, T4S[1])
    found = machine()
    h100, t4 = found.nodes()
    assert (h100.up, t4.up, t4.gpu_count, t4.down_gpus) == (True, False, 2, {0})
    assert t4.reason == "nvidia-smi no longer lists GPU 0 (GPU-b)."
    assert found.devices("t4-0", (1,)) == ("GPU-c",)
    smi.prints(*reversed(T4S), H100, "GPU-e, Tesla T4, 15360, [N/A]")
    found = machine()
    assert [(node.name, node.up) for node in found.nodes()] == [
        ("h100-80gb-hbm3-0", True),
        ("t4-0", True),
        ("t4-1", True),
    ]
    assert found.devices("t4-0", (0, 1)) == ("GPU-b", "GPU-c")


def test_nodes_stay_while_nvidia_smi_fails(smi: Smi, machine: Callable[[], MachineGpus]) -> None:
    smi.fails("Failed to initialize NVML")
    with pytest.raises(Unreachable, match="ended with 15: Failed to initialize NVML"):
        machine().nodes()
    smi.prints(H100)
    machine().nodes()
    smi.fails("Failed to initialize NVML")
    assert [node.up for node in machine().nodes()] == [True]


def test_an_nvidia_smi_that_fails_is_not_asked_again_at_once(smi: Smi, tmp_path: Path) -> None:
    smi.prints(H100)
    clock = Clock()
    MachineGpus(tmp_path, now=clock).nodes()
    asked: list[float] = []

    def fails() -> list[Gpu]:
        asked.append(clock.now)
        raise NoGpus("It does not answer.")

    clock.now += 60
    for _ in range(3):
        assert [node.up for node in MachineGpus(tmp_path, find=fails, now=clock).nodes()] == [True]
        clock.now += 1
    assert asked == [1060.0]


def test_a_process_sees_the_gpus_of_its_attempt_alone(smi: Smi, tmp_path: Path) -> None:
    smi.prints(H100, *T4S)
    engine = LocalEngine(tmp_path, None)
    assert engine.capabilities.finds_nodes
    directory = engine.directory("att_1")
    order = Order(
        attempt_id="att_1",
        job_id="job_1",
        number=1,
        directory=directory,
        checkpoint_directory=tmp_path / "checkpoints",
        argv=("/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES"),
        cwd=Path("/"),
        gpu_type="t4",
        gpus_by_node={"t4-0": (1,)},
        stop_seconds=1.0,
    )
    other = replace(order, attempt_id="att_2", directory=engine.directory("att_2"))
    try:
        engine.launch(order)
        deadline = time.monotonic() + 60
        while engine.look(["att_1"])["att_1"].phase is not Phase.ENDED:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert (directory / "rank-0.log").read_text() == "GPU-c\n"
        with pytest.raises(Refused, match="There is no node 'a'; the nodes are h100-80gb-hbm3-0,"):
            engine.launch(replace(other, gpus_by_node={"a": (0,)}))
    finally:
        engine.strays(known=())
