"""The pace of jobs that ran: of their work, and not of the GPU types that they were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from maat.forecasting.history import PastLife, Stretch, Tempo
from maat.forecasting.paces import Course, tempos_of
from maat.forecasting.truths import PARTS, unseen_job
from maat.scheduling.belief import GradientStatistics, MemoisingFitter
from maat.scheduling.cluster import Cluster
from maat.scheduling.fitting import Sample
from maat.scheduling.job import JobSpec, MemoryLimits
from maat.vocabulary import Adaptivity

FITTER = MemoisingFitter()
CLUSTER = Cluster.parse("t4=1x4,a100=1x4")
WORK = 10_000.0
LIFE = PastLife(
    {
        kind: tuple(Sample(1, 1, batch, batch / rate, 0.0) for batch in (10, 20, 40))
        for kind, rate in (("t4", 10.0), ("a100", 50.0))
    }
)
"""Ten samples a second on a t4, 50 on an a100."""


def spec(**changes: object) -> JobSpec:
    values: dict[str, object] = {
        "model": "m",
        "submitted_at": 0.0,
        "work": WORK,
        "initial_batch_size": 10,
        "max_batch_size": 10,
        "batch_size": 10,
        "gpu_count": 1,
        "adaptivity": Adaptivity.RIGID,
        "memory": {kind: MemoryLimits(1, 40) for kind in ("t4", "a100")},
        **changes,
    }
    return JobSpec(id="a", **values)  # type: ignore[arg-type]


def tempo(
    stretches: Sequence[Stretch], *, of: JobSpec | None = None, life: PastLife = LIFE
) -> Tempo:
    course = Course(unseen_job(spec() if of is None else of), life, WORK, stretches)
    return tempos_of([course], CLUSTER, fitter=FITTER)[0]


def on(kind: str, seconds: float, begin: float, end: float, **more: int) -> Stretch:
    return Stretch(
        kind, 1, 1, seconds, begin, end, more.get("samples", end - begin), more.get("batch")
    )


def test_a_job_on_a_slow_type_has_the_pace_of_its_work_not_that_of_its_type() -> None:
    slow, fast = on("t4", 2000.0, 0.0, WORK), on("a100", 400.0, 0.0, WORK)

    assert tempo([slow]).pace == pytest.approx(2.0, rel=0.01)
    assert tempo([fast]).pace == pytest.approx(2.0, rel=0.01)


def test_stretches_count_by_the_seconds_that_were_believed_of_them() -> None:
    """A short one that went badly says little."""
    mixed = [on("t4", 50.0, 0.0, 100.0), on("a100", 198.0, 100.0, WORK)]

    assert tempo(mixed).pace == pytest.approx((50 + 198) / (10 + 198), rel=0.01)


def test_the_change_of_a_pace_is_that_of_the_parts_of_the_work() -> None:
    found = tempo([on("t4", 500.0, 0.0, 5000.0), on("a100", 300.0, 5000.0, WORK)])

    assert found.pace == pytest.approx(800 / 600, rel=0.01)
    halves = found.halves_at(PARTS // 2)
    assert halves is not None
    assert halves.after / halves.before == pytest.approx(3.0, rel=0.01)
    assert found.halves_at(0) is None


def test_the_pace_of_samples_is_that_of_steps_however_many_the_work_took() -> None:
    """Half of the work took three times the samples that it was to take; the rest, as many."""
    early = on("t4", 3000.0, 0.0, 5000.0, samples=15_000)
    late = on("t4", 1000.0, 5000.0, WORK, samples=5000)

    found = tempo([early, late])

    assert found.pace == pytest.approx(4.0, rel=0.01)
    assert found.pace_of_samples == pytest.approx(2.0, rel=0.01)
    halves = found.halves_at(PARTS // 2)
    assert halves is not None
    assert (halves.before, halves.after) == pytest.approx((2.0, 2.0), rel=0.01)


def test_a_stretch_without_work_or_on_a_type_of_which_nothing_is_known_counts_for_nothing() -> None:
    lost, gone = on("t4", 700.0, 500.0, 500.0), on("h100", 700.0, 500.0, 900.0)

    assert tempo([on("t4", 50.0, 0.0, 500.0), lost, gone]).pace == pytest.approx(1.0, rel=0.01)
    assert tempo([lost]).pace is None
    assert tempo([]).pace is None
    assert tempo([on("t4", 50.0, 0.0, 500.0)], life=PastLife({})).pace is None


def test_noise_that_is_known_to_be_a_jobs_own_is_no_part_of_its_pace() -> None:
    """With a batch of four times the initial one, work took (3 + 4) / (3 + 1) samples, not 1.3."""
    of = spec(batch_size=40, max_batch_size=40)
    believed, own = (((0.0, GradientStatistics(1.0, noise)),) for noise in (9.0, 3.0))
    life = PastLife(LIFE.samples, (believed,))
    ran = [on("t4", 1750.0, 0.0, WORK, samples=17_500, batch=40)]
    course = Course(unseen_job(of), life, WORK, ran)

    without, known = tempos_of([course, replace(course, curve=own)], CLUSTER, fitter=FITTER)

    assert without.pace == pytest.approx(1.75 / 1.3, rel=0.02)
    assert known.pace == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize(("batch", "step_seconds"), [(10, 2.0), (40, 6.0)])
def test_the_batch_is_the_one_that_agrees_with_what_was_processed(
    batch: int, step_seconds: float
) -> None:
    """Of a second a pass, and a tenth a sample: the best batch is 40 in two passes."""
    samples = tuple(Sample(1, 1, size, 1.0 + size / 10, 0.0) for size in (10, 20, 40))
    life = PastLife({"t4": samples}, (((0.0, GradientStatistics(1.0, 1e6)),),))
    adaptive = spec(adaptivity=Adaptivity.ADAPTIVE, gpu_count=None, max_batch_size=40)

    ran = on("t4", 3.0 * step_seconds * WORK / batch, 0.0, WORK, batch=batch)

    assert tempo([ran], of=adaptive, life=life).pace == pytest.approx(3.0, rel=0.05)
