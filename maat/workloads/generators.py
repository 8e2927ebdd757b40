"""Generators of seeded workloads like those of the Sia paper (section 4.1).

A family defines how jobs arrive and what they are. Shares of models and requests are counts in the
published traces of that family: they are job sizes by GPU time (small 0-1 h, medium 1-10 h, large
10-100 h, XL above) mapped to models (Sia table 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.errors import ParameterError, UnknownNameError
from maat.vocabulary import MAX_HOURS
from maat.workloads.reading import MAX_JOBS
from maat.workloads.sharing import SHARING_HOURS, SHARING_JOBS, SharingShape, sharing_workload
from maat.workloads.synergy import SYNERGY_HOURS, SYNERGY_JOBS, synergy_workload
from maat.workloads.workloads import TraceJob, Workload

MAX_SEED = 2**63 - 1
JOBS_PER_HOUR = 20.0  # Sia section 4.1: the average of all three families
_HOUR = 3600.0
_DAY_HOURS = 24.0


class SizeClass(StrEnum):
    """Job sizes by total GPU time (Sia section 4.1).

    XXL is the hybrid-parallel class of section 5.3.
    """

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"
    EXTRA_LARGE = "xl"
    XXL = "xxl"


SIZE_CLASS_OF: Mapping[str, SizeClass] = {
    "cifar10": SizeClass.SMALL,
    "ncf": SizeClass.SMALL,
    "bert": SizeClass.MEDIUM,
    "deepspeech2": SizeClass.MEDIUM,
    "yolov3": SizeClass.LARGE,
    "imagenet": SizeClass.EXTRA_LARGE,
    "gpt": SizeClass.XXL,
}


@dataclass(frozen=True, slots=True)
class Request:
    """An owner's request: GPUs and total batch size. `weight`: relative frequency.

    Tuned to 50-80 % of ideal scaling (Pollux section 5.1).
    """

    gpu_count: int
    batch_size: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bursts of submission scripts.

    This `share` of submissions sends one job and, on average, `mean_further_jobs` more of the same
    kind.
    """

    share: float
    mean_further_jobs: float
    mean_gap_seconds: float


@dataclass(frozen=True, slots=True)
class Family:
    """How jobs of a family arrive, and what they are.

    `hourly`: relative arrival rate of each hour, repeated after its last. `daily_swing`: amplitude
    of the 24-hour wave on top, as a share of the mean; it peaks at `peak_hour`. `unevenness`:
    variance of a random factor (mean 1) per hour.
    """

    title: str
    summary: str
    hours: float
    models: Mapping[str, float]
    requests: Mapping[str, tuple[Request, ...]]
    hourly: tuple[float, ...] = (1.0,)
    daily_swing: float = 0.0
    peak_hour: float = 0.0
    unevenness: float = 0.0
    bursts: Bursts | None = None


_YOLOV3 = (Request(4, 64),)
# both published 8-hour families together
_IMAGENET = (Request(10, 1600, 7), Request(12, 3200, 3), Request(14, 3200, 8))
_NCF = (Request(1, 32768),)  # Pollux traces
# chosen: 4 and 8 replicas on A100, up to table 2's largest batch
_GPT = (Request(8, 192), Request(16, 384))

FAMILIES: Mapping[str, Family] = {
    "philly": Family(
        title="Philly-like",
        summary="Microsoft Philly's busiest eight hours: mostly small jobs.",
        hours=8.0,
        # 480 jobs of the published philly traces 1-3; hourly: their mean jobs in each hour.
        models={"cifar10": 376, "bert": 29, "deepspeech2": 44, "yolov3": 24, "imagenet": 7},
        requests={
            "cifar10": (
                Request(6, 2048, 99),
                Request(8, 2048, 96),
                Request(12, 4096, 97),
                Request(16, 4096, 84),
            ),
            "bert": (
                Request(6, 384, 7),
                Request(8, 384, 5),
                Request(12, 384, 11),
                Request(16, 384, 6),
            ),
            "deepspeech2": (Request(6, 320, 13), Request(8, 320, 11), Request(12, 640, 20)),
            "yolov3": _YOLOV3,
            "imagenet": _IMAGENET,
            "ncf": _NCF,
            "gpt": _GPT,
        },
        hourly=(17.7, 17.0, 8.0, 20.7, 25.3, 34.7, 19.3, 17.3),
    ),
    "helios": Family(
        title="Helios-like",
        summary="SenseTime Helios (Saturn): a sharper peak, more extra-large jobs.",
        hours=8.0,
        # 480 jobs of the published saturn traces 1-3; hourly: their mean jobs in each hour.
        models={"cifar10": 397, "bert": 21, "deepspeech2": 28, "yolov3": 23, "imagenet": 11},
        requests={
            "cifar10": (
                Request(4, 2048, 46),
                Request(6, 2048, 90),
                Request(8, 2048, 34),
                Request(8, 4096, 33),
                Request(10, 4096, 61),
                Request(12, 4096, 84),
                Request(16, 4096, 49),
            ),
            "bert": (
                Request(6, 384, 5),
                Request(8, 384, 3),
                Request(12, 384, 8),
                Request(16, 384, 5),
            ),
            "deepspeech2": (Request(6, 320, 11), Request(8, 320, 12), Request(12, 640, 5)),
            "yolov3": _YOLOV3,
            "imagenet": _IMAGENET,
            "ncf": _NCF,
            "gpt": _GPT,
        },
        hourly=(20.7, 12.3, 33.3, 39.7, 21.0, 16.7, 9.3, 7.0),
    ),
    "newtrace": Family(
        title="newTrace-like",
        summary="A production system over two days: day and night, and bursts from submission "
        "scripts.",
        hours=48.0,
        # 960 jobs of the published newtrace trace 1; wave: its first harmonic. Unevenness and
        # bursts give that trace's index of dispersion of hourly counts (5.5) and its share of gaps
        # below 30 s (28 %); they reach the paper's 5 to 100 jobs/h.
        models={"cifar10": 484, "bert": 208, "deepspeech2": 226, "yolov3": 36, "imagenet": 6},
        requests={
            "cifar10": (
                Request(4, 2048, 45),
                Request(6, 2048, 100),
                Request(8, 2048, 64),
                Request(8, 4096, 38),
                Request(10, 4096, 47),
                Request(12, 4096, 117),
                Request(16, 4096, 73),
            ),
            "bert": (
                Request(6, 384, 48),
                Request(8, 384, 56),
                Request(12, 384, 51),
                Request(16, 384, 53),
            ),
            "deepspeech2": (Request(6, 320, 69), Request(8, 320, 82), Request(12, 640, 75)),
            "yolov3": _YOLOV3,
            "imagenet": (Request(10, 1600, 1), Request(12, 3200, 4), Request(14, 3200, 1)),
            "ncf": _NCF,
            "gpt": _GPT,
        },
        daily_swing=0.32,
        peak_hour=8.5,
        unevenness=1 / 8,
        bursts=Bursts(share=0.06, mean_further_jobs=4.0, mean_gap_seconds=20.0),
    ),
}


@dataclass(frozen=True, slots=True)
class PaperFamily:
    """Workloads of one paper's evaluation, with lengths of their own.

    `keeps_jobs`: whether another rate of arrivals is another time instead of another number of
    jobs. `draw`: from jobs, hours and seed.
    """

    title: str
    jobs: int
    hours: float
    draw: Callable[[int, float, int], Workload]
    keeps_jobs: bool = False


PAPER_FAMILIES: Mapping[str, PaperFamily] = {
    "sharing": PaperFamily(
        "SJF-BSBF's",
        SHARING_JOBS,
        SHARING_HOURS,
        lambda jobs, hours, seed: sharing_workload(jobs, seed=seed, shape=SharingShape(hours)),
    ),
    "synergy": PaperFamily(
        "Synergy's, of PAL",
        SYNERGY_JOBS,
        SYNERGY_HOURS,
        lambda jobs, hours, seed: synergy_workload(jobs, hours=hours, seed=seed),
        keeps_jobs=True,
    ),
}
FAMILY_NAMES = (*FAMILIES, *PAPER_FAMILIES)


def size_at(
    family: str, *, jobs: int | None, hours: float | None, jobs_per_hour: float
) -> tuple[int, float]:
    """Return number of jobs and hours of a workload at a rate of arrivals.

    Raises ParameterError if the number is given, but for a family that keeps it.
    """
    paper = PAPER_FAMILIES.get(family)
    if paper is not None and paper.keeps_jobs and hours is None:
        count = paper.jobs if jobs is None else jobs
        return count, count / jobs_per_hour
    if jobs is not None:
        raise ParameterError(
            "says how many jobs there are, and so does their number (jobs)",
            field="jobs_per_hour",
            value=jobs_per_hour,
            remedy="Leave the number of jobs out.",
        )
    length = (_family(family) if paper is None else paper).hours if hours is None else hours
    return max(round(jobs_per_hour * length), 1), length


def job_count(family: str, *, jobs: int | None, hours: float | None) -> int:
    """Return how many jobs `generate` would draw, without drawing any."""
    if jobs is not None:
        return jobs
    if family in PAPER_FAMILIES:
        return PAPER_FAMILIES[family].jobs
    return max(round((_family(family).hours if hours is None else hours) * JOBS_PER_HOUR), 1)


def generate(
    family: str,
    *,
    jobs: int | None = None,
    hours: float | None = None,
    seed: int = 0,
    models: Mapping[str, float] | None = None,
    work_scale: float = 1.0,
    xxl_share: float = 0.0,
) -> Workload:
    """Return a workload of exactly `jobs` jobs submitted within `hours`.

    The same arguments give the same workload. By default `hours` is the family's window and `jobs`
    20 per hour. Given their number, arrivals of a Poisson process are independent draws from its
    rate, so that the count can be exact. `models`: relative shares instead of the family's.
    `work_scale`: share of the standard training length of every job. `xxl_share`: of the jobs that
    fine-tune GPT, hybrid-parallel (Sia section 5.3), in place of as many of all others. The
    families of `PAPER_FAMILIES` have models and lengths of their own.
    """
    seed = _checked_count("seed", seed, least=0, most=MAX_SEED)
    if family in PAPER_FAMILIES:
        _refuse_choices(family, models, work_scale, xxl_share)
        return _of_paper(PAPER_FAMILIES[family], jobs, hours, seed)
    kind = _family(family)
    hours = (
        kind.hours if hours is None else _checked_number("hours", hours, above=0.0, most=MAX_HOURS)
    )
    jobs = (
        job_count(family, jobs=None, hours=hours)
        if jobs is None
        else _checked_count("jobs", jobs, least=1, most=MAX_JOBS)
    )
    work_scale = _checked_number("work_scale", work_scale, above=0.0, most=1e6)
    chosen = _checked_shares(kind.models if models is None else models, kind)
    shares = _with_xxl(chosen, xxl_share)
    rng = np.random.default_rng(seed)

    drawn: list[tuple[float, str, Request]] = []
    sizes = _submission_sizes(kind.bursts, jobs, rng)
    for start, size in zip(_arrivals(kind, len(sizes), hours, rng), sizes, strict=True):
        model = str(rng.choice(list(shares), p=list(shares.values())))
        request = _drawn_request(kind.requests[model], rng)
        drawn.extend(
            (at, model, request) for at in _burst_times(kind.bursts, float(start), size, hours, rng)
        )
    drawn.sort(key=lambda entry: entry[0])
    return Workload(
        name=f"{family}-{seed}",
        jobs=tuple(
            TraceJob(
                name=f"{model}-{number}",
                submit_seconds=at,
                model=model,
                gpu_count=request.gpu_count,
                batch_size=request.batch_size,
                work_scale=work_scale,
            )
            for number, (at, model, request) in enumerate(drawn)
        ),
        format=family,
    )


def _of_paper(paper: PaperFamily, jobs: int | None, hours: float | None, seed: int) -> Workload:
    count = paper.jobs if jobs is None else _checked_count("jobs", jobs, least=1, most=MAX_JOBS)
    length = (
        paper.hours if hours is None else _checked_number("hours", hours, above=0.0, most=MAX_HOURS)
    )
    return paper.draw(count, length, seed)


def _refuse_choices(
    family: str, models: Mapping[str, float] | None, work_scale: float, xxl_share: float
) -> None:
    """Raise ParameterError for what only the families of Sia's traces have."""
    given = {"models": models, "work_scale": work_scale, "xxl_share": xxl_share}
    usual = {"models": None, "work_scale": 1.0, "xxl_share": 0.0}
    for field, value in given.items():
        if value != usual[field]:
            raise ParameterError(
                f"has no effect on the family {family}",
                field=field,
                value=value,
                remedy=f"Leave it out, or generate one of: {', '.join(FAMILIES)}.",
            )


def _with_xxl(shares: Mapping[str, float], xxl_share: float) -> Mapping[str, float]:
    """Return shares in which jobs of the XXL class have this one."""
    if isinstance(xxl_share, bool) or not 0.0 <= xxl_share <= 1.0:
        raise ParameterError(
            "is no share from 0 to 1",
            field="xxl_share",
            value=xxl_share,
            remedy="Give a share of the jobs, such as 0.02.",
        )
    if not xxl_share:
        return shares
    name = next(model for model, size in SIZE_CLASS_OF.items() if size is SizeClass.XXL)
    others = {model: share * (1.0 - xxl_share) for model, share in shares.items() if model != name}
    left = 1.0 - sum(others.values())
    return dict(sorted({**others, name: left}.items()))


def _submission_sizes(bursts: Bursts | None, jobs: int, rng: np.random.Generator) -> list[int]:
    """The number of jobs of each submission; they sum to `jobs`."""
    if bursts is None:
        return [1] * jobs
    sizes: list[int] = []
    left = jobs
    while left:
        further = (
            int(rng.geometric(1.0 / bursts.mean_further_jobs)) if rng.random() < bursts.share else 0
        )
        sizes.append(min(1 + further, left))
        left -= sizes[-1]
    return sizes


def _arrivals(kind: Family, count: int, hours: float, rng: np.random.Generator) -> FloatArray:
    """The seconds of `count` submissions, drawn from the family's rate.

    The draws are independent.
    """
    edges = np.append(np.arange(math.ceil(hours), dtype=np.float64), hours)
    rate = np.resize(np.array(kind.hourly), len(edges) - 1)
    middle = edges[:-1] + 0.5
    rate = rate * (
        1.0 + kind.daily_swing * np.cos(2.0 * np.pi * (middle - kind.peak_hour) / _DAY_HOURS)
    )
    if kind.unevenness:
        rate = rate * rng.gamma(1.0 / kind.unevenness, kind.unevenness, len(rate))
    expected = np.concatenate(([0.0], np.cumsum(rate * np.diff(edges))))
    return np.asarray(
        np.interp(rng.random(count) * expected[-1], expected, edges) * _HOUR, dtype=np.float64
    )


def _burst_times(
    bursts: Bursts | None, start: float, size: int, hours: float, rng: np.random.Generator
) -> list[float]:
    """The seconds of the jobs of one submission, one after the other.

    All are within the window, in whole milliseconds.
    """
    if bursts is None or size == 1:
        return [_millisecond(start)]
    offsets = np.concatenate(([0.0], np.cumsum(rng.exponential(bursts.mean_gap_seconds, size - 1))))
    latest_start = max(hours * _HOUR - float(offsets[-1]), 0.0)
    times = np.minimum(min(start, latest_start) + offsets, hours * _HOUR)
    return [_millisecond(float(at)) for at in times]


def _millisecond(seconds: float) -> float:
    """Round down to a millisecond, so that no job leaves the window."""
    return math.floor(seconds * 1000.0) / 1000.0


def _drawn_request(requests: tuple[Request, ...], rng: np.random.Generator) -> Request:
    weights = np.array([request.weight for request in requests])
    return requests[int(rng.choice(len(requests), p=weights / weights.sum()))]


def _family(name: str) -> Family:
    if name not in FAMILIES:
        raise UnknownNameError(
            "is no workload family",
            field="family",
            value=name,
            remedy=f"Known are {', '.join(FAMILY_NAMES)}.",
        )
    return FAMILIES[name]


def _checked_number(field: str, value: float, *, above: float, most: float) -> float:
    usable = (
        isinstance(value, (int, float)) and not isinstance(value, bool) and above < value <= most
    )
    if not usable:
        raise ParameterError(
            f"is no number above {above:g} and up to {most:g}",
            field=field,
            value=value,
            remedy="Give a number in that range.",
        )
    return float(value)


def _checked_count(field: str, value: int, *, least: int, most: int) -> int:
    usable = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    if not usable:
        raise ParameterError(
            f"is no whole number from {least} to {most}",
            field=field,
            value=value,
            remedy="Give one in that range.",
        )
    return value


def _checked_shares(models: Mapping[str, float], kind: Family) -> Mapping[str, float]:
    """Return shares that sum to 1, sorted by name: the given order has no effect."""
    for model, share in models.items():
        if model not in kind.requests:
            raise ParameterError(
                "names a model without known requests",
                field="models",
                value=model,
                remedy=f"Known are {', '.join(sorted(kind.requests))}.",
            )
        if not (isinstance(share, (int, float)) and math.isfinite(share) and share >= 0):
            raise ParameterError(
                "is no share of at least zero",
                field=f"models[{model}]",
                value=share,
                remedy="Give a finite number from 0 up.",
            )
    total = sum(models.values())
    if not 0 < total < math.inf:
        raise ParameterError(
            "sum to nothing usable",
            field="models",
            value=dict(models),
            remedy="Give at least one model a share above 0.",
        )
    return {model: models[model] / total for model in sorted(models)}
