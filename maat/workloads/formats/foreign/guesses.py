"""What the columns of a CSV mean, by their names and their values.

A name alone misleads: `restarts` holds the letters of start, `pending_seconds` those of end. So the
words of a name must be those of a meaning, and the first rows must hold what the meaning needs. Of
two columns that fit equally well neither is taken: that is a question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from maat.scheduling.errors import TraceError
from maat.workloads.formats.foreign.dates import written_date
from maat.workloads.formats.foreign.durations import written_duration
from maat.workloads.formats.foreign.numbers import Decimal, number_by
from maat.workloads.formats.foreign.questions import TraceQuestion
from maat.workloads.formats.foreign.record_table import read_records
from maat.workloads.formats.foreign.records import is_absent
from maat.workloads.formats.foreign.units import words_of
from maat.workloads.recorded import MOST_RECORDED_GPUS

_SAMPLED_ROWS, _MOST_CHOICES = 500, 8
_LENGTHS = ("duration", "start", "end")
_MOST_SHARE_OF_OTHERS = 0.5  # of the cells of a column that may hold something else
_ODD_SHARE = 0.2  # of the numbers of a column that are no likely count of GPUs
_NOT_A_MOMENT = """
    wait waiting delay pending limit host node user by count num number reason exit code status
    state line args id latency priority rate
"""
_NOT_HOW_LONG = """
    wait waiting queue queued queueing pending limit requested request req max maximum estimated
    estimate expected predicted user type timelimit cpu gpu overhead restart
"""
_REQUESTS = frozenset(("request", "requested", "req"))
_NOT_A_COUNT = """
    type types model name spec kind device sku util utilization utilisation usage mem memory hours
    hour seconds secs time milli id ids index indices power temp percent pct share fraction list
    uuid price cost per node nodes cpu cpus core cores
"""
_NOT_A_NAME = "user vc team group node gpu state status type model"


@dataclass(frozen=True, slots=True)
class _Meaning:
    """`tiers`: sets of words; a name with all words of one is meant, the first tier before others.

    `but`: words with which a name means something else. `fits`: whether a cell holds such a value.
    """

    tiers: tuple[str, ...]
    fits: Callable[[str], bool]
    but: str = ""


def _is_moment(text: str) -> bool:
    return written_date(text, None) is not None or _is_number(text)


def _is_length(text: str) -> bool:
    return _is_number(text) or written_duration(text) is not None


def _is_number(text: str) -> bool:
    return any(number_by(kind, text) is not None for kind in Decimal)


def _is_count(text: str) -> bool:
    numbers = [number_by(kind, text) for kind in Decimal]
    return any(
        number is not None and number.is_integer() and 0 <= number <= MOST_RECORDED_GPUS
        for number in numbers
    )


def _is_words(text: str) -> bool:
    return not _is_number(text)


_MEANINGS: Mapping[str, _Meaning] = {
    "submit": _Meaning(
        (
            "submit|submitted|submission|submittime|arrival|arrived|arrive|arrivaltime",
            "queued at|queued on|queued date|queued timestamp|queued ts|enqueued",
            "created|creation",
        ),
        _is_moment,
        _NOT_A_MOMENT,
    ),
    "start": _Meaning(("start|started|starttime|begin|began|begins",), _is_moment, _NOT_A_MOMENT),
    "end": _Meaning(
        ("end|ended|endtime|finish|finished|finishtime|completed|completion|stopped",),
        _is_moment,
        _NOT_A_MOMENT,
    ),
    "duration": _Meaning(
        (
            "duration|elapsed|elapsedraw|runtime|run time|walltime|wall time|execution time"
            "|running time|run seconds|run hours|run minutes",
        ),
        _is_length,
        _NOT_HOW_LONG,
    ),
    "gpu_type": _Meaning(
        (
            "gpu type|gputype|gpu model|gpu name|gpu spec|gpu kind|gpu sku|gpu device|device type"
            "|device name|accelerator|accelerator type",
        ),
        _is_words,
        "count num number",
    ),
    "gpus": _Meaning(
        ("gpu|gpus|ngpu|ngpus|numgpu|numgpus|gpunum|gpucount|accelerators",),
        _is_count,
        _NOT_A_COUNT,
    ),
    "name": _Meaning(
        ("job id|jobid|jobidraw", "job|id|uuid", "job name|jobname", "name|task"),
        bool,
        _NOT_A_NAME,
    ),
    "tenant": _Meaning(
        ("tenant", "account", "team", "group", "vc", "project", "user|username"), bool
    ),
    "state": _Meaning(("state|status",), _is_words, "code"),
}


@dataclass(frozen=True, slots=True)
class Guess:
    """`mapping`: columns by what they mean. `questions`: what two columns could mean."""

    mapping: Mapping[str, str]
    questions: tuple[TraceQuestion, ...]


def complete_columns(source: Path | str, given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the columns by what they mean: those that are given, and the others by a guess.

    Raises TraceQuestion where a guess could be wrong, or a column that is needed is not there.
    """
    guess = guessed_columns(source, given)
    if guess.questions:
        raise guess.questions[0]
    return guess.mapping


def guessed_columns(source: Path | str, given: Mapping[str, str] | None = None) -> Guess:
    """Return what the columns seem to be. `given`: what is known of them already.

    Raises TraceError for what is no table.
    """
    table = read_records(source, error=TraceError)
    rows = [each.cells for each in islice(table.records, _SAMPLED_ROWS) if not each.problem]
    cells = {
        name: [row[place] for row in rows if not is_absent(row[place])]
        for place, name in enumerate(table.header)
    }
    mapping, questions = dict(given or {}), dict[str, TraceQuestion]()
    for field, meaning in _MEANINGS.items():
        if field in mapping:
            continue
        free = {name: of for name, of in cells.items() if name not in mapping.values()}
        fits = _preferred(field, _fitting(meaning, free), cells, mapping)
        if len(fits) == 1:
            mapping[field] = fits[0]
        elif fits:
            questions[field] = _several(field, fits)
    if "gpus" in mapping and "gpus" not in (given or {}):
        questions |= _doubts_of_gpus(mapping["gpus"], cells[mapping["gpus"]])
    return Guess(mapping, tuple(_needed(questions, mapping, cells)))


def _needed(
    questions: Mapping[str, TraceQuestion],
    mapping: Mapping[str, str],
    cells: Mapping[str, Sequence[str]],
) -> Iterator[TraceQuestion]:
    """Yield the questions whose answers change what is read, and what is missing."""
    has_length = "duration" in mapping or {"start", "end"} <= mapping.keys()
    for field, question in questions.items():
        if not (has_length and field in _LENGTHS):
            yield question
    free = [name for name in cells if name not in mapping.values()]
    for field in ("submit", "gpus"):
        if field not in mapping and field not in questions:
            yield _missing(field, cells, free)
    if not has_length and not set(_LENGTHS) & questions.keys():
        other = [mapping[field] for field in _LENGTHS if field in mapping]
        yield _missing("duration", cells, [*free, *other])


def _several(field: str, fits: Sequence[str]) -> TraceQuestion:
    return TraceQuestion(
        f"several columns may be {field}", field="mapping", about=field, choices=fits
    )


def _missing(field: str, cells: Mapping[str, Sequence[str]], free: Sequence[str]) -> TraceQuestion:
    meaning = _MEANINGS[field]
    open_names = [name for name in free if not _means_other(meaning, name)]
    likely = [
        name
        for name in open_names
        if _is_meant(meaning, name) or (cells[name] and _hold(cells[name], meaning.fits))
    ]
    likely.sort(key=lambda name: not _is_meant(meaning, name))
    choices = (likely or open_names)[:_MOST_CHOICES]
    return TraceQuestion(
        f"no column is {field} by its name and values",
        field="mapping",
        about=field,
        choices=choices or ["COLUMN"],
        remedy=None if choices else f"Give a file with a column that says it, such as {field}.",
    )


def _is_meant(meaning: _Meaning, name: str) -> bool:
    return any(_is_named(set(words_of(name)), tier, meaning.but) for tier in meaning.tiers)


def _means_other(meaning: _Meaning, name: str) -> bool:
    """Return whether a name has a word with which it means something else."""
    return not set(words_of(name)).isdisjoint(meaning.but.split())


def _preferred(
    field: str,
    fits: Sequence[str],
    cells: Mapping[str, Sequence[str]],
    mapping: Mapping[str, str],
) -> Sequence[str]:
    """Return those of the fitting columns that fit best; nothing depends on some fields."""
    if field in ("start", "end") and "submit" in mapping:
        kind = _are_dates(cells[mapping["submit"]])
        fits = [name for name in fits if _are_dates(cells[name]) == kind]
    if field == "gpus":
        had = [name for name in fits if not _REQUESTS & set(words_of(name))]
        fits = had or fits
    if field == "name":
        fits = [name for name in fits if len(set(cells[name])) == len(cells[name])] or fits
    return fits[:1] if field in ("name", "tenant", "state") else fits


def _are_dates(values: Sequence[str]) -> bool:
    return 2 * sum(written_date(text, None) is not None for text in values) > len(values)


def _fitting(meaning: _Meaning, cells: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns of the first tier that any column is of."""
    is_without_rows = not any(cells.values())
    for tier in meaning.tiers:
        fits = [
            name
            for name, values in cells.items()
            if _is_named(set(words_of(name)), tier, meaning.but)
            and (values or is_without_rows)
            and _hold(values, meaning.fits)
        ]
        if fits:
            return fits
    return []


def _is_named(words: set[str], tier: str, but: str) -> bool:
    named = (set(alternative.split()) for alternative in tier.split("|"))
    return words.isdisjoint(but.split()) and any(each <= words for each in named)


def _hold(values: Sequence[str], fits: Callable[[str], bool]) -> bool:
    """Return whether most cells that are not empty hold such values."""
    others = sum(not fits(text) for text in values)
    return others <= _MOST_SHARE_OF_OTHERS * len(values)


def _doubts_of_gpus(name: str, values: Sequence[str]) -> Mapping[str, TraceQuestion]:
    odd = _odd_count(values)
    if odd is None:
        return {}
    problem = f"{name} holds {odd}, which may be a share or a use in percent"
    return {"gpus": TraceQuestion(problem, field="mapping", about="gpus", choices=[name])}


def _odd_count(values: Sequence[str]) -> str | None:
    """Return a number that is no likely count of GPUs, if many cells are like it.

    Jobs of more than 8 GPUs have whole nodes, or even numbers of GPUs. A column whose smallest
    number is 25 counts hundredths.
    """
    numbers = [(number_by(Decimal.POINT, text) or 0.0, text) for text in values]
    odd = [text for number, text in numbers if number > 8 and number % 2]
    if odd and len(odd) > _ODD_SHARE * len(values):
        return odd[0]
    above = [(number, text) for number, text in numbers if number > 0]
    return above[0][1] if above and min(above)[0] >= 25 else None
