"""An item of a paper, a table or a figure, as data; and what comes out of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from maat.laboratory.content import content_key, digest
from maat.papers.bench import Bench
from maat.papers.data import KINDS, place_of
from maat.papers.observation import Observation, observe
from maat.simulation.record import Progress
from maat.simulation.scenario import Scenario
from maat.vocabulary import MeasurementKind

if TYPE_CHECKING:
    import plotly.graph_objects as go

Label = tuple[str, ...]
"""What a run is of, such as ("philly-1", "Sia")."""


@dataclass(frozen=True)
class Computation:
    """Work that is no simulation: `function(**arguments)`, of a module, with plain arguments.

    It returns a mapping of JSON's own types. Raise `version` when it returns something else.
    """

    function: Callable[..., Mapping[str, Any]]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1


@dataclass(frozen=True)
class WithRho:
    """A simulation whose finish-time fairness is needed too; it takes longer.

    `series`: what jobs and cluster did over time is needed as well; that takes more room. `alone`:
    the simulation whose rules hold for jobs alone, so that several have one yardstick; None: its
    own.
    """

    scenario: Scenario
    series: bool = False
    alone: Scenario | None = None


Run = Scenario | WithRho | Computation
Runs = Mapping[Label, Run]
"""What an item needs: simulations, and other work."""

Outcomes = Mapping[Label, Any]
"""What came out: an Observation of a simulation, the mapping of other work."""


@dataclass(frozen=True, slots=True)
class Published:
    """A published value, or what is said of it: from `least` to `most`."""

    least: float = -math.inf
    most: float = math.inf

    @classmethod
    def of(cls, given: float | Published | None) -> Published | None:
        return given if given is None or isinstance(given, Published) else cls(given, given)

    @property
    def text(self) -> str:
        if self.least == self.most:
            return f"{self.least:g}"
        if self.least == -math.inf:
            return f"at most {self.most:g}"
        if self.most == math.inf:
            return f"at least {self.least:g}"
        return f"{self.least:g} to {self.most:g}"

    def difference(self, ours: float) -> float | None:
        """Return by which share ours is off the nearest published value: 0.1 is 10 % more.

        None where 0 is published and ours is another: that is no share of anything.
        """
        nearest = min(max(ours, self.least), self.most)
        if ours == nearest:
            return 0.0
        return None if nearest == 0 else ours / nearest - 1


@dataclass(frozen=True, slots=True)
class Row:
    """A line of an item's table.

    `of`: a cell for each of the table's labels; `measure`: what is measured, with its unit; `ours`:
    a value for each trace or seed; none where nothing came out.
    """

    of: Label
    measure: str
    ours: Sequence[float]
    published: float | Published | None = None

    @property
    def mean(self) -> float | None:
        return fmean(self.ours) if self.ours else None

    @property
    def spread(self) -> float | None:
        """Return the sample standard deviation; None of fewer than two values."""
        return stdev(self.ours) if len(self.ours) > 1 else None

    @property
    def difference(self) -> float | None:
        """Return by which share the mean is off what was published; None where 0 is missed."""
        published = Published.of(self.published)
        return None if published is None or self.mean is None else published.difference(self.mean)


@dataclass(frozen=True)
class Shown:
    """What an item shows: its table, figure and sentence.

    `labels`: the columns of `Row.of`; `why`: why ours differ from the published values, if so.
    """

    labels: Sequence[str]
    rows: Sequence[Row]
    why: str
    figure: go.Figure | None = None


def no_runs(bench: Bench) -> Runs:
    """Return the runs of an item that needs none."""
    return {}


def nothing_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    """Show nothing: for an item that only real hardware can make."""
    return Shown((), (), why="")


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper.

    Attributes:
        key: As the paper names it: `fig-8`, `table-3`.
        title: What it shows.
        show: Its table, figure and sentence, from what came out.
        also: Further keys, where one item is several figures of the paper: `fig-7` beside `fig-6`.
        runs: What must be run for it.
        needs: Published data without which it cannot be made: names of `data.PLACES`, with the part
            that fills {} after a slash.
        uses: Published data for which the catalog or a generator stands in.
        hardware: Why it needs real hardware; then what is shown is no more than emulated.
        emulated: Whether it runs on emulated devices, although the paper's ran on real ones.
        cpu_minutes: Measured in its simulations, for (quick, whole); None: not measured.
        whole_runs: How many runs it has on all of its published data (a test counts them).
        is_of_published_alone: Whether nothing can stand in for its published data, as in a study of
            how near Maat comes to what others computed from them.
    """

    key: str
    title: str
    show: Callable[[Bench, Outcomes], Shown]
    also: tuple[str, ...] = ()
    runs: Callable[[Bench], Runs] = no_runs
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    hardware: str | None = None
    emulated: bool = False
    cpu_minutes: tuple[float | None, float | None] = (None, None)
    whole_runs: int = 0
    is_of_published_alone: bool = False

    @property
    def takes(self) -> tuple[MeasurementKind, ...]:
        """The kinds of one's own measurements that can stand in for its published data.

        One trace cannot stand in for several, of other families, rates or sizes, that it compares.
        """
        if self.is_of_published_alone or self.hardware is not None:
            return ()
        places = [place_of(named) for named in (*self.needs, *self.uses)]
        kinds = [KINDS[name] for name, _ in places if name in KINDS]
        traces = [part or "" for name, part in places if KINDS.get(name) is MeasurementKind.TRACE]
        several = len(traces) > 1 or any(part.startswith("scale/") for part in traces)
        return tuple(
            kind for kind in dict.fromkeys(kinds) if not (several and kind is MeasurementKind.TRACE)
        )


@dataclass(frozen=True)
class Paper:
    """A paper, or a study of Maat's own: name (`sia`), title, and items in the paper's order."""

    name: str
    title: str
    items: tuple[Item, ...]


def key_of(run: Run) -> str:
    """Return the key of a run's content."""
    if isinstance(run, Scenario):
        return _observed(run, "observation")
    if isinstance(run, WithRho):
        kept = "observation, rho and series" if run.series else "observation and rho"
        if run.alone is not None:
            kept = f"{kept} against {content_key(run.alone)}"
        return _observed(run.scenario, kept)
    named = f"{run.function.__module__}:{run.function.__qualname__}"
    return digest({"function": named, "arguments": run.arguments, "version": run.version})


def computed(run: Run, *, on_progress: Progress | None = None) -> Mapping[str, Any]:
    """Compute a run, and return what the cache keeps of it.

    `on_progress`: called in each round of a simulation. Raises MaatError for what cannot be
    computed, and Cancelled if `on_progress` did.
    """
    if isinstance(run, Scenario):
        return observe(run, on_progress=on_progress)
    if isinstance(run, WithRho):
        return observe(
            run.scenario, rho=True, series=run.series, alone=run.alone, on_progress=on_progress
        )
    return run.function(**run.arguments)


def _observed(scenario: Scenario, kept: str) -> str:
    """Return the key of an observation: another once observations have other fields."""
    names = [field.name for field in fields(Observation)]
    return digest({"scenario": content_key(scenario), "with": kept, "fields": names})


def outcome_of(run: Run, kept: Mapping[str, Any]) -> Any:
    """Return the outcome of a run as items read it, from what the cache keeps."""
    return kept if isinstance(run, Computation) else Observation.of(kept)
