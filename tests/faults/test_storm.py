"""Storms: processes of a real `maat up` and of its jobs are killed at random moments under load."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from storm import Storm
from storm_checker import figures, wrongs

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


@pytest.mark.parametrize("storm", [{"seed": 1, "steps": 60}], indirect=True)
def test_twelve_kills_lose_no_job_and_double_nothing(storm: Storm) -> None:
    storm.blow(12, load=5, seconds_between=0.4)
    storm.calm()
    nothing_is_wrong(storm)


@pytest.mark.long
@pytest.mark.parametrize("storm", [{"seed": 200, "steps": 240, "profiles": True}], indirect=True)
def test_two_hundred_kills_lose_no_job_and_double_nothing(storm: Storm) -> None:
    if "torch" in sys.modules or _has_torch():
        for _ in range(2):
            script = storm.folder / "adaptive.py"
            script.write_text(ADAPTIVE.read_text().replace("job.epochs(3)", "job.epochs(300)"))
            batch = {"adaptivity": "adaptive", "batch_size": 64, "max_batch_size": 512}
            storm.submit_script([sys.executable, str(script)], **batch)
    storm.blow(200, load=12, seconds_between=1.2)
    storm.calm()
    nothing_is_wrong(storm)


def _has_torch() -> bool:
    import importlib.util

    return importlib.util.find_spec("torch") is not None
