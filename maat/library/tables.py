"""Tables: named columns of numbers and texts that pandas, polars and Arrow take as they are."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from maat.library.arrow import Kind, stream_capsule

Cell = int | float | str | bool | None
MOST_SHOWN = 20  # rows, of a table that is shown


class Table:
    """Rows with named columns, each of one kind; an unknown value is None.

    `pandas.DataFrame(table.to_dict())`, `polars.DataFrame(table)` and `pyarrow.table(table)` make
    it theirs: it has Arrow's C stream interface (`__arrow_c_stream__`). In a notebook it is shown
    as a table.

    >>> table = Table({"job": str, "hours": float}, [("a", 1.5), ("b", None)])
    >>> table["hours"]
    [1.5, None]
    >>> table.to_dict()
    {'job': ['a', 'b'], 'hours': [1.5, None]}
    >>> [row["job"] for row in table]
    ['a', 'b']
    >>> len(table), table.columns
    (2, ('job', 'hours'))
    >>> table.as_html(most=1)[-22:]
    '<p>and 1 more rows</p>'
    """

    def __init__(self, kinds: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> None:
        """`kinds`: of every column, by its name; `rows`: cells in the order of the columns."""
        self._kinds = dict(kinds)
        cells = list(zip(*rows, strict=True)) or [()] * len(self._kinds)
        self._cells = {name: list(values) for name, values in zip(kinds, cells, strict=True)}

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Cell]]) -> Table:
        """Return the table of these columns, as `to_dict` gives them.

        Kinds are those of their values; a column without any is of floats.

        >>> Table.of({"job": ["a", "b"], "gpus": [4, None]}).to_dict()
        {'job': ['a', 'b'], 'gpus': [4, None]}
        """
        kinds = {name: _kind_of(values) for name, values in columns.items()}
        return cls(kinds, zip(*columns.values(), strict=True))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._kinds)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(next(iter(self._cells.values()), ()))

    def __getitem__(self, column: str) -> list[Cell]:
        """Return the values of a column. Raises KeyError, which names the columns."""
        if not isinstance(column, str):
            raise TypeError(
                f"A table gives columns by name, not rows by number: table[{self.columns[0]!r}]. "
                "list(table) is its rows."
                if self.columns
                else "This table has no columns."
            )
        if column not in self._cells:
            raise KeyError(f"{column}: no such column. Use one of: {', '.join(self.columns)}.")
        return list(self._cells[column])

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        """Yield every row as a dictionary."""
        for cells in zip(*self._cells.values(), strict=True):
            yield dict(zip(self._cells, cells, strict=True))

    def to_dict(self) -> dict[str, list[Cell]]:
        """Return the columns by name."""
        return {name: list(values) for name, values in self._cells.items()}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as an Arrow stream; a schema that is requested is not followed."""
        return stream_capsule({name: (kind, self[name]) for name, kind in self._kinds.items()})

    def __repr__(self) -> str:
        return f"Table of {len(self)} rows: {', '.join(self.columns)}"

    def _repr_html_(self) -> str:
        return self.as_html()

    def as_html(self, *, most: int = MOST_SHOWN) -> str:
        """Return the table in HTML; of more than `most` rows, it says how many are left out."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        first = [row for _, row in zip(range(most), self, strict=False)]
        body = "".join(
            f"<tr>{''.join(_cell(value) for value in row.values())}</tr>" for row in first
        )
        left = len(self) - len(first)
        more = f"<p>and {left} more rows</p>" if left else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def joined(parts: Iterable[tuple[Mapping[str, Cell], Table]]) -> Table:
    """Return the rows of tables with the same columns below each other.

    Before those of each stand the cells, by column, that say what it is of.

    >>> of_policy = Table({"job": str}, [("a",)])
    >>> joined([({"policy": "sia"}, of_policy), ({"policy": "fifo"}, of_policy)]).to_dict()
    {'policy': ['sia', 'fifo'], 'job': ['a', 'a']}
    """
    known = list(parts)
    if not known:
        return Table({}, ())
    (first, table), *_ = known
    columns = {
        **{name: [who[name] for who, of in known for _ in range(len(of))] for name in first},
        **{name: [cell for _, of in known for cell in of[name]] for name in table.columns},
    }
    return Table.of(columns)


def _kind_of(values: Sequence[Cell]) -> Kind:
    kinds = {type(value) for value in values if value is not None}
    return next((kind for kind in (str, float, int, bool) if kind in kinds), float)


def _cell(value: Any) -> str:
    """Return a cell in HTML; texts are escaped, they may be anybody's."""
    if value is None:
        return "<td></td>"
    if isinstance(value, float):
        return f'<td style="text-align: right">{value:.6g}</td>'
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align: right">{value}</td>'
    return f"<td>{html.escape(str(value))}</td>"
