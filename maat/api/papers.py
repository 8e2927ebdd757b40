"""The tables and figures of the papers, and reproductions of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Body, Timestamp
from maat.api.measurements import UsedOut
from maat.api.operations import OperationState
from maat.api.simulations import MeasurementName
from maat.vocabulary import MeasurementKind

Standing = Literal["possible now", "needs data", "needs hardware", "takes other data"]


class OwnNames(Body):
    """Uploaded measurements of the caller's tenant that stand in for published data, by kind."""

    profiles: MeasurementName | None = Field(
        default=None,
        description="The name or id of uploaded profiles, or of a table of throughputs, that stand "
        "in for published ones.",
    )
    trace: MeasurementName | None = Field(
        default=None, description="The name or id of an uploaded trace that does."
    )
    variability: MeasurementName | None = Field(
        default=None, description="The name or id of uploaded measurements of GPUs that do."
    )
    interference: MeasurementName | None = Field(
        default=None,
        description="The name or id of an uploaded table of pairs that does; `NAME#p100` chooses "
        "one of its GPU types.",
    )


class ReproductionBody(OwnNames):
    """Tables and figures of one paper to make again."""

    paper: Annotated[str, Field(max_length=100, examples=["pal"])]
    items: (
        Annotated[list[Annotated[str, Field(max_length=100)]], Field(min_length=1, max_length=64)]
        | None
    ) = Field(
        default=None,
        description="As the paper names them, such as `fig-8`; default: all that can be made now.",
        examples=[["fig-13"]],
    )
    quick: bool = Field(
        default=True,
        description="Fewer traces and seeds: about ten minutes on two cores for a paper.",
    )


class ReproducedStateOut(TypedDict):
    """How far an item is. `done` of `total` runs; both 0 before its runs are known."""

    state: OperationState
    done: int
    total: int
    finished_at: Timestamp | None


class NewestOut(ReproducedStateOut):
    """An item in one reproduction that the reader may see.

    `measurements`: uploads that stood in for published data.
    """

    reproduction_id: str
    quick: bool
    measurements: list[UsedOut]


class PaperItemOut(TypedDict):
    """A table or figure of a paper.

    `also`: further names of it; `because`: why it cannot be made now, with what helps;
    `stands_in`: published data that are not there, for which the catalog or a generator stands in;
    `emulated`: whether it runs on emulated devices. CPU minutes are null where nobody measured
    them. `whole_runs`: how many runs it has if it is not quick; null where it cannot be made, or
    the service makes none. `takes`: the kinds of uploads that can stand in for its published data.
    `newest`: its newest reproduction; `newest_made`: the newest that succeeded and has no uploads.
    """

    key: str
    also: list[str]
    title: str
    standing: Standing
    because: str | None
    stands_in: list[str]
    emulated: bool
    quick_cpu_minutes: float | None
    whole_cpu_minutes: float | None
    whole_runs: int | None
    takes: list[MeasurementKind]
    newest: NewestOut | None
    newest_made: NewestOut | None


class PaperOut(TypedDict):
    name: str
    title: str
    items: list[PaperItemOut]


class PapersOut(TypedDict):
    """All papers. `has_data`: whether the service has a folder of published data.

    `data_problem`: why it cannot be used, else null. `most_whole_runs`: how many runs a
    reproduction that is not quick may have; 0: none is made.
    """

    papers: list[PaperOut]
    has_data: bool
    data_problem: str | None
    most_whole_runs: int


class ReproducedItemOut(ReproducedStateOut):
    """An item of a reproduction. `failed`: why it was not made."""

    key: str
    title: str
    failed: str | None


class ReproducedRowOut(TypedDict):
    """A line of a table.

    `of`: a cell for each of the table's labels; `published`: the published value in words, such as
    "1.2" or "at least 3"; `ours`: the mean over traces and seeds; `difference`: its share above the
    published value, null also where that is 0 and ours is not; `spread`: sample standard deviation;
    `runs`: how many values `ours` is of.
    """

    of: list[str]
    measure: str
    published: str | None
    ours: float | None
    difference: float | None
    spread: float | None
    runs: int


class ReproducedItemDetail(ReproducedItemOut):
    """An item with its table and figure; they are empty until it was made.

    `labels`: the names of the columns of `of`; `why`: why ours differ; `notes`: what stood in for
    published data; `cpu_minutes`: of its simulations; `figure`: as plotly draws it.
    """

    labels: list[str]
    rows: list[ReproducedRowOut]
    why: str
    notes: list[str]
    emulated: bool
    cpu_minutes: float | None
    figure: dict[str, Any] | None


class ReproductionOut(TypedDict):
    """A reproduction: items of one paper that are made again. `done` of `total` runs.

    `measurements`: uploads that stand in for published data.
    """

    id: str
    paper: str
    title: str
    quick: bool
    operation_id: str
    created_at: Timestamp
    state: OperationState
    done: int
    total: int
    measurements: list[UsedOut]
    items: list[ReproducedItemOut]
