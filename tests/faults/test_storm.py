"""Storms: processes of a real `maat up` and of its jobs are killed at random moments under load."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from storm import Storm
from storm_checker import done_again, double_writers, figures, held_twice, wrongs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts real attempts")

ADAPTIVE = Path(__file__).resolve().parent.parent / "agent" / "examples" / "adaptive.py"


@pytest.fixture
def storm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storm]:
    started = Storm(tmp_path, **request.param)
    yield started
    started.close()


def nothing_is_wrong(storm: Storm) -> None:
    found = wrongs(storm)
    print(figures(storm), {promised: len(broken) for promised, broken in found.items()})
    assert found == {promised: [] for promised in found}


# After a killed rank its job pauses for 10 s, after a killed supervisor not at all.
TWELVE = ("rank", "rank", "supervisor", "worker", "rank", "api", "beat", *["supervisor"] * 5)


@pytest.mark.long
@pytest.mark.parametrize("storm", [{"seed": 1, "steps": 40}], indirect=True)
def test_a_dozen_kills_lose_no_job_and_double_nothing(storm: Storm) -> None:
    storm.blow_in_order(TWELVE, jobs=5, seconds_between=0.2)
    storm.calm()
    nothing_is_wrong(storm)


@pytest.mark.long
@pytest.mark.parametrize("storm", [{"seed": 200, "steps": 240, "profiles": True}], indirect=True)
def test_two_hundred_kills_lose_no_job_and_double_nothing(storm: Storm) -> None:
    if importlib.util.find_spec("torch") is not None:
        for _ in range(2):
            script = storm.folder / "adaptive.py"
            script.write_text(ADAPTIVE.read_text().replace("job.epochs(3)", "job.epochs(300)"))
            batch = {"adaptivity": "adaptive", "batch_size": 64, "max_batch_size": 512}
            storm.submit_script([sys.executable, str(script)], **batch)
    storm.blow(200, load=12, seconds_between=1.2)
    storm.calm()
    nothing_is_wrong(storm)


def lines(*said: tuple[int, str, int], gpus: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return what ranks might have written, a second apart: number, what, step."""
    return [
        {
            "at": float(at),
            "job": "job",
            "attempt": f"att_{number}",
            "number": number,
            "what": what,
            "step": step,
            "rank": 0,
            "profile": False,
            "gpu": gpus[at] if gpus else f"node/{number}",
        }
        for at, (number, what, step) in enumerate(said)
    ]


FIRST = ((1, "begins", 0), (1, "steps", 1), (1, "saving", 1), (1, "saved", 1), (1, "steps", 2))


def test_the_checker_sees_what_would_be_wrong() -> None:
    well = lines(*FIRST, (2, "begins", 1), (2, "steps", 2))
    assert not [*held_twice(well), *double_writers(well), *done_again(well)]
    both = lines(*FIRST, (2, "begins", 1), (1, "saving", 2))
    assert list(double_writers(both)) == ["job: attempt 1 saving after 2 had begun"]
    shared = lines((1, "begins", 0), (2, "begins", 0), (1, "steps", 1), gpus=("node/0",) * 3)
    assert list(held_twice(shared)) == ["node/0: att_2 began 1.000 s too early"]
    again = lines(*FIRST, (2, "begins", 0), (2, "steps", 1))
    assert list(done_again(again)) == ["job: attempt 2 began at step 0, not {1}"]
    unsaid = lines(*FIRST[:3], (2, "begins", 1), (2, "steps", 3))
    assert list(done_again(unsaid)) == ["job: step 3 came after 1"]
