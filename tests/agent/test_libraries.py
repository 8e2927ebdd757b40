"""Jobs in the loops of Hugging Face and Lightning: resumed, split into passes, on replicas."""

from __future__ import annotations

import importlib.util
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

from libraries import BATCH, EPOCHS, SIZE, TRAIN, Asked, trained
from training_runs import Run

from maat.agent.environment import BatchPlan, Environment
from maat.agent.job import Job
from maat.agent.replicas import Replicas
from maat.agent.steps import Inbox

STEPS = EPOCHS * SIZE // BATCH
pytestmark = [
    pytest.mark.needs_torch,
    pytest.mark.parametrize(
        "library",
        [
            pytest.param(
                name,
                marks=pytest.mark.skipif(
                    importlib.util.find_spec(name) is None,
                    reason=f"{name} is not installed: maat[agent-test]",
                ),
            )
            for name in TRAIN
        ],
    ),
]


@pytest.fixture(autouse=True)
def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def _job(inbox: Inbox | None = None, **fields: Any) -> Job:
    around, device = Environment(**fields), torch.device("cpu")
    return Job(around, device, Replicas(around, device), inbox or Inbox())


def _train(library: str, job: Job, folder: Path, **asked: Any) -> list[Any]:
    net = trained(library, job, Asked(folder, **asked))
    return [each.clone() for each in net.state_dict().values()]


def _apart(one: list[Any], other: list[Any]) -> float:
    return max((a - b).abs().max().item() for a, b in zip(one, other, strict=True))


def _numbers(folder: Path) -> dict[str, Any]:
    newest = max(folder.glob("step-*"))
    found: dict[str, Any] = json.loads((newest / "agent.json").read_text())
    return found


def test_a_job_that_is_stopped_goes_the_way_of_one_that_is_not(
    tmp_path: Path, library: str
) -> None:
    unmoved = _train(library, _job(checkpoint_directory=tmp_path / "unmoved"), tmp_path)
    assert _numbers(tmp_path / "unmoved")["step"] == STEPS
    kept = tmp_path / "kept"
    inbox = Inbox()

    def told(step: int) -> None:
        inbox.stop = inbox.stop or step == 8

    with pytest.raises(SystemExit) as ended:
        _train(library, _job(inbox, checkpoint_directory=kept), tmp_path, told=told)
    assert ended.value.code == 143
    assert 8 <= _numbers(kept)["step"] <= 10
    # The rest in two passes a step: the same gradients.
    plan = BatchPlan(1, BATCH, BATCH // 2, 1)
    job = _job(checkpoint_directory=kept, plan=plan)
    moved = _train(library, job, tmp_path)
    assert _apart(moved, unmoved) < 1e-6
    assert _numbers(kept)["step"] == STEPS
    report = job._ledger.take()
    assert report["finished"]
    assert report["progress"]["total_effective_samples"] == EPOCHS * SIZE
    assert report["progress"]["effective_samples"] == EPOCHS * SIZE
    assert {each["accumulation_steps"] for each in report["passes"]} == {1}
    assert report["restore_seconds"] > 0


def test_a_larger_batch_is_as_many_epochs_and_an_older_attempt_saves_nothing(
    tmp_path: Path, library: str
) -> None:
    (tmp_path / "fence").write_text("4")
    job = _job(number=3, checkpoint_directory=tmp_path, plan=BatchPlan(1, 4 * BATCH, 4 * BATCH, 0))
    with pytest.raises(SystemExit) as ended:
        _train(library, job, tmp_path)
    assert ended.value.code == 143
    assert not list(tmp_path.glob("step-*"))
    assert job._ledger.take()["progress"]["epoch"] >= 1


@pytest.mark.long
def test_a_job_on_1_2_and_1_replicas_goes_the_way_of_one_that_never_moves(
    new_run: Callable[..., Run], tmp_path: Path, library: str
) -> None:
    unmoved = _train(library, _job(), tmp_path)
    run = new_run(script=Path(__file__).with_name("libraries.py"), asked={"library": library})
    assert run.attempt(1, stop_at=4) == {"0": 143}, run.logs()
    assert run.attempt(2, stop_at=9) == {"0": 143, "1": 143}, run.logs()
    assert 9 <= _numbers(run.checkpoints)["step"] <= 12
    assert run.attempt(1) == {"0": 0}, run.logs()
    moved = [torch.tensor(each) for each in json.loads((run.folder / "out.jsonl").read_text())]
    assert _apart(moved, unmoved) < 1e-5
    assert run.report()["finished"]


def test_a_stop_without_room_for_a_checkpoint_says_so_and_training_outlives_one_that_fails(
    tmp_path: Path, library: str
) -> None:
    folder, most = tmp_path / "kept", resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    inbox, heard = Inbox(), set[str]()

    def told(step: int) -> None:
        if step == 8:  # in the second epoch: one checkpoint is there
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (2000, most)
            )  # less than a file of it, more than what is printed
        if step == 16:  # in the third: what ends the second could not be saved
            heard.add(job._ledger.look().get("trouble") or "")
            inbox.stop = True

    job = _job(inbox, checkpoint_directory=folder)
    try:
        with pytest.raises(SystemExit) as ended:
            _train(library, job, tmp_path, told=told)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert ended.value.code == 74
    assert all(words.startswith("No checkpoint could be written") for words in heard)
    assert heard
    (kept,) = folder.glob("step-*")
    assert (kept / "DONE").exists()
    assert not [each for each in folder.iterdir() if each.name.startswith((".step", ".lightning"))]
    _train(library, _job(checkpoint_directory=folder), tmp_path)
    assert _numbers(folder)["step"] == STEPS
