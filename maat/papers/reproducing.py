"""Makes items of a paper again: runs what they need, each run once, and shows what comes out."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maat.laboratory.content import digest
from maat.laboratory.parallel import Task, run_tasks
from maat.laboratory.results import Kept, ResultCache, kept_results
from maat.library.files import path_or_none
from maat.library.inputs import workers_of
from maat.library.progress import Bar
from maat.library.tables import Table
from maat.papers.bench import Bench, Size
from maat.papers.catalogue import PAPERS, item_of, paper_of
from maat.papers.cost import cost_of
from maat.papers.data import Data, given_data
from maat.papers.items import (
    Item,
    Label,
    Outcomes,
    Paper,
    Published,
    Row,
    Run,
    Runs,
    Shown,
    computed,
    key_of,
    outcome_of,
)
from maat.papers.observation import Observation
from maat.papers.own import OwnMeasurements, read_own, why_of
from maat.papers.own_checks import check_own
from maat.papers.standing import check_takes, why_not
from maat.scheduling.errors import MaatError

if TYPE_CHECKING:
    import plotly.graph_objects as go

OF_DATA = "data"
"""The label that says in each row of which measurements of one's own it is."""


@dataclass(frozen=True, eq=False, repr=False)
class Reproduced:
    """An item made again: its table, its figure, and why ours differ.

    `failed`: why it could not be made; then it has no rows. `notes`: what stood in for published
    data; `own`: the measurements of one's own that did, which each row names too. `cpu_seconds`: of
    its simulations, those that items share included.

    >>> import maat
    >>> [item] = maat.reproduce("pal", ["fig-13"])
    >>> item.item.title[:30], item.failed[:23], len(item.table)
    ('Average JCT of the Sia-Philly ', 'It needs published data', 0)
    """

    paper: Paper
    item: Item
    labels: Sequence[str] = ()
    rows: Sequence[Row] = ()
    why: str = ""
    figure: go.Figure | None = None
    notes: Sequence[str] = ()
    failed: str | None = None
    cpu_seconds: float = 0.0
    own: Sequence[OwnMeasurements] = ()

    @property
    def table(self) -> Table:
        """One row per measure: published, ours (a mean), its difference and its spread."""
        return Table(
            {
                **dict.fromkeys(self.labels, str),
                "measure": str,
                "published": str,
                "ours": float,
                "difference": float,
                "spread": float,
                "runs": int,
            },
            [
                (
                    *row.of,
                    row.measure,
                    _published(row),
                    row.mean,
                    row.difference,
                    row.spread,
                    len(row.ours),
                )
                for row in self.rows
            ],
        )

    @property
    def _name(self) -> str:
        return f"{self.paper.name} {self.item.key}: {self.title}"

    @property
    def title(self) -> str:
        """What it shows, and of which measurements if they are one's own."""
        titles = " and ".join(each.title for each in self.own)
        return f"{self.item.title} (of the {titles})" if titles else self.item.title

    def __repr__(self) -> str:
        return self._name if self.failed is None else f"{self._name}. Not made: {self.failed}"

    def _repr_html_(self) -> str:
        if self.failed is not None:
            return f"<p>{html.escape(self._name)}</p><p>Not made: {html.escape(self.failed)}</p>"
        sentences = "".join(f"<p>{html.escape(text)}</p>" for text in (self.why, *self.notes))
        return (
            f"<p>{html.escape(repr(self))}</p>{self.table.as_html(most=len(self.rows))}{sentences}"
        )


def reproduce(
    paper: str,
    item: str | Sequence[str] | None = None,
    *,
    data: str | Path | None = None,
    quick: bool = False,
    workers: int | None = None,
    executor: Executor | None = None,
    cache: str | Path | None = None,
    progress: bool = True,
    profiles: str | Path | None = None,
    trace: str | Path | None = None,
    variability: str | Path | None = None,
    interference: str | Path | None = None,
) -> Reproduced | list[Reproduced]:
    """Make a table or figure of a paper again, or all of them.

    It says what that costs before it runs. Raises InputError, which names the argument, its value
    and a remedy, for what is not known.

    Args:
        paper: `sia`, `pollux`, `bsbf` or `pal`; or a study of Maat's own: `fidelity`,
            `comparison`.
        item: One, such as `fig-8`, which is returned itself; several, or None for all: a list.
        data: Folder of the published data, or of a checkout of the artifacts; None: that of
            MAAT_DATA. Without either, the catalog and generated traces stand in where they can.
        quick: Whether to run less: about ten minutes on two cores for a paper.
        workers: Processes; None: one per core.
        executor: Any `concurrent.futures.Executor`, which runs them instead.
        cache: Folder of results: what is there is not run again.
        progress: Whether to say the cost on standard error, and to show a progress bar on a
            terminal; a notebook shows both.
        profiles: Folder of measured profiles, or a JSON table of throughputs, that stands in for
            the published ones; then of all items those are made that take them.
        trace: File of a trace that does, in items of one family of traces.
        variability: Folder of measured GPUs that does.
        interference: File of measured pairs that does; `FILE#p100` chooses one of its GPU types.

    >>> import maat
    >>> maat.reproduce("sia", "fig-99")
    Traceback (most recent call last):
    ...
    maat.scheduling.errors.UnknownNameError: item: is no item of sia (got 'fig-99'). Use one of: ...
    """
    known = paper_of(paper)
    own = read_own(
        profiles=profiles, trace=trace, variability=variability, interference=interference
    )
    items = chosen_items(known, [item] if isinstance(item, str) else item, own)
    size = Size.QUICK if quick else Size.WHOLE
    kept, published = (
        path_or_none(cache, field="cache"),
        given_data(path_or_none(data, field="data"), own),
    )
    check_own(items, published)
    with Bar(paper, quiet=not progress) as bar:
        say_cost(bar, known, items, data=published, size=size)
        made = list(
            make(
                known,
                items,
                data=published,
                size=size,
                workers=workers_of(workers, executor),
                executor=executor,
                cache=None if kept is None else ResultCache(kept),
                on_progress=bar.show,
            )
        )
    return made[0] if isinstance(item, str) else made


def chosen_items(
    paper: Paper, keys: Sequence[str] | None, own: Sequence[OwnMeasurements]
) -> tuple[Item, ...]:
    """Return the items of these keys; None: all, of one's own measurements all that take them.

    Raises UnknownNameError for another key, and InputError where measurements can stand in for
    nothing.
    """
    if keys is not None:
        named = tuple(item_of(paper, key) for key in keys)
        check_takes(paper, named, own)
        return named
    taking = tuple(
        each for each in paper.items if {own_one.kind for own_one in own} <= {*each.takes}
    )
    if not taking:
        check_takes(paper, paper.items, own)
    return taking


def say_cost(bar: Bar, paper: Paper, items: Sequence[Item], *, data: Data, size: Size) -> None:
    """Say what it costs to make those of the items that can be made."""
    possible = [item for item in items if why_not(item, data) is None]
    if possible:
        name = f" {possible[0].key}" if len(items) == 1 else ""
        bar.say(f"{paper.name}{name}, {size.value}: {cost_of(possible, size)}.")


def no_progress(done: int, total: int, at: str) -> None:
    """Show nothing."""


def make(
    paper: Paper,
    items: Sequence[Item],
    *,
    data: Data,
    size: Size,
    workers: int = 1,
    executor: Executor | None = None,
    cache: ResultCache | None = None,
    on_progress: Callable[[int, int, str], None] = no_progress,
) -> Iterator[Reproduced]:
    """Yield each item as soon as all that it needs has been run, in the order in which they end.

    Items that need the same run share it. One that cannot be made says why; the others go on.
    """
    left: list[OpenItem] = []
    for item in items:
        opened = open_item(paper, item, Bench(data, size))
        if isinstance(opened, Reproduced):
            yield opened
        else:
            left.append(opened)
    results: dict[str, Kept | MaatError] = {}
    runs = {key: run for each in left for key, run in each.runs_by_key.items()}
    results |= kept_results(list(runs), cache)[0]
    missing = {key: Task(computed, run) for key, run in runs.items() if key not in results}
    total = len(runs)

    def ready() -> Iterator[Reproduced]:
        for each in [each for each in left if each.needs <= results.keys()]:
            left.remove(each)
            yield each.closed(results)

    on_progress(len(results), total, "")
    yield from ready()
    for key, result in run_tasks(missing, workers=workers, executor=executor, cache=cache):
        results[key] = result
        on_progress(len(results), total, next((e.item.key for e in left if key in e.needs), ""))
        yield from ready()


@dataclass(frozen=True)
class OpenItem:
    """An item whose runs are known: by label, the key of each."""

    paper: Paper
    item: Item
    bench: Bench
    runs: Runs
    keys: Mapping[Label, str]

    @property
    def runs_by_key(self) -> Mapping[str, Run]:
        """Return each run once, by its content."""
        return {key: self.runs[label] for label, key in self.keys.items()}

    @property
    def needs(self) -> set[str]:
        """Return the keys of its runs."""
        return set(self.keys.values())

    def closed(self, results: Mapping[str, Kept | MaatError]) -> Reproduced:
        """Show the item, or say which run failed."""
        outcomes: dict[Label, Any] = {}
        for label, key in self.keys.items():
            result = results[key]
            if isinstance(result, MaatError):
                return _failed(self.paper, self.item, f"{', '.join(label)}: {result}", self.bench)
            outcomes[label] = outcome_of(self.runs[label], result)
        return _shown(self.paper, self.item, self.bench, outcomes)


def open_item(paper: Paper, item: Item, bench: Bench) -> OpenItem | Reproduced:
    """Find out what an item needs; return it as failed if it cannot be made."""
    lacking = why_not(item, bench.data)
    if lacking is not None:
        return _failed(paper, item, lacking, bench)
    try:
        runs = item.runs(bench)
        keys = {label: _key(run, bench.data.own) for label, run in runs.items()}
    except MaatError as error:
        return _failed(paper, item, str(error), bench)
    except OSError as unreadable:
        return _failed(paper, item, _unreadable(unreadable), bench)
    return OpenItem(paper, item, bench, runs, keys)


def _key(run: Run, own: Sequence[OwnMeasurements]) -> str:
    """Return the key of a run: with measurements of one's own another than without."""
    key = key_of(run)
    return key if not own else digest({"run": key, "own": {o.kind: o.content for o in own}})


def _shown(paper: Paper, item: Item, bench: Bench, outcomes: Outcomes) -> Reproduced:
    try:
        shown: Shown = item.show(bench, outcomes)
    except MaatError as error:
        return _failed(paper, item, str(error), bench)
    except OSError as unreadable:
        return _failed(paper, item, _unreadable(unreadable), bench)
    spent = sum(run.cpu_seconds for run in outcomes.values() if isinstance(run, Observation))
    made = Reproduced(
        paper,
        item,
        shown.labels,
        shown.rows,
        shown.why,
        shown.figure,
        tuple(bench.notes),
        cpu_seconds=spent,
    )
    return _of_own(made, bench.data.own) if bench.data.own else made


def _of_own(made: Reproduced, own: Sequence[OwnMeasurements]) -> Reproduced:
    """Say of which measurements it is: in its sentence, notes and figure, and in every row."""
    titles = " and ".join(each.title for each in own)
    if made.figure is not None:
        made.figure.update_layout(title=_below(f"Of the {titles}, not of published data"))
    return replace(
        made,
        labels=(*made.labels, OF_DATA),
        rows=[replace(row, of=(*row.of, titles)) for row in made.rows],
        why=why_of(own),
        notes=(*(each.sentence for each in own), *made.notes),
        own=tuple(own),
    )


def _below(text: str) -> dict[str, Any]:
    """Return a figure's title in its lowest line, where no legend is."""
    return {
        "text": html.escape(text),
        "font": {"size": 11},
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yanchor": "bottom",
        "yref": "container",
        "pad": {"l": 8, "b": 4},
        "automargin": True,
    }


def _unreadable(error: OSError) -> str:
    return f"{error.filename} cannot be read ({error.strerror})."


def _failed(paper: Paper, item: Item, why: str, bench: Bench) -> Reproduced:
    return Reproduced(paper, item, notes=tuple(bench.notes), failed=why, own=bench.data.own)


def _published(row: Row) -> str | None:
    published = Published.of(row.published)
    return None if published is None else published.text


__all__ = ["PAPERS", "Reproduced", "make", "reproduce"]
