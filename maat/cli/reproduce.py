"""`maat reproduce`: tables and figures of the papers, beside their published values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.numbers import whole_option
from maat.cli.output import print_json, print_table, say, warn
from maat.laboratory.results import ResultCache
from maat.library.pictures import Pictures
from maat.library.progress import Bar
from maat.papers.bench import Size
from maat.papers.catalogue import PAPERS, REPORTS, STUDIES, item_of, paper_of
from maat.papers.data import SETTING, Data
from maat.papers.items import Paper
from maat.papers.layout import layout
from maat.papers.own import read_own
from maat.papers.own_checks import check_own
from maat.papers.report import as_data
from maat.papers.reproducing import Reproduced, chosen_items, make, say_cost
from maat.papers.standing import as_rows
from maat.papers.written import Folder
from maat.scheduling.errors import InputError

OUTPUT = Path("reproduced")

PaperName = Annotated[
    str | None,
    typer.Argument(
        help="`sia`, `pollux`, `bsbf` or `pal`; a study of Maat's own: `fidelity`, `comparison`.",
        show_default=False,
    ),
]
ItemKeys = Annotated[
    list[str] | None,
    typer.Argument(help="Tables and figures, such as fig-8; by default all.", show_default=False),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        envvar=SETTING,
        help="Folder of the published data, or a checkout of the artifacts (docs/reproduce.md).",
    ),
]


def reproduce_command(
    paper: PaperName = None,
    items: ItemKeys = None,
    data: DataFolder = None,
    output: Annotated[
        Path, typer.Option(help="Folder of the report; each paper has one of its own there.")
    ] = OUTPUT,
    quick: Annotated[
        bool, typer.Option(help="Run less: about ten minutes on two cores for a paper.")
    ] = False,
    replace: Annotated[
        bool, typer.Option(help="Write a new report of the paper; results of runs are kept.")
    ] = False,
    processes: Annotated[
        int | None,
        whole_option("--workers", least=1, most=256, help="Processes; default: one per core."),
    ] = None,
    listed: Annotated[
        bool,
        typer.Option(
            "--list",
            help="List the items of the papers, of one, or these of it: possible now, or what they "
            "need.",
        ),
    ] = False,
    profiles: Annotated[
        str | None,
        typer.Option(
            help="Folder of measured profiles, or a table of throughputs, instead of the published."
        ),
    ] = None,
    trace: Annotated[
        str | None, typer.Option(help="File of a trace instead of the published ones.")
    ] = None,
    variability: Annotated[
        str | None, typer.Option(help="Folder of measured GPUs instead of the published ones.")
    ] = None,
    interference: Annotated[
        str | None, typer.Option(help="File of measured pairs instead of the published ones.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make tables and figures of the papers again, beside the published values."""
    own = read_own(
        profiles=profiles, trace=trace, variability=variability, interference=interference
    )
    found = Data(data, own)
    if listed:
        _list(_listed(paper, items or []), found, as_json=as_json)
        return
    if paper is None:
        raise InputError(
            "is missing",
            field="paper",
            remedy=f"Give one of: {', '.join(REPORTS)}; or --list.",
        )
    known = paper_of(paper)
    chosen = chosen_items(known, items or None, own)
    size = Size.QUICK if quick else Size.WHOLE
    check_own(chosen, found)
    folder = Folder(output, known, size, data=found, replace=replace)
    with folder.writing(), Pictures() as pictures, Bar(paper, quiet=as_json) as bar:
        say_cost(bar, known, chosen, data=found, size=size)
        made, written = [], list[Path]()
        for each in make(
            known,
            chosen,
            data=found,
            size=size,
            workers=processes or os.cpu_count() or 1,
            cache=ResultCache(output / "runs"),
            on_progress=bar.show,
        ):
            made.append(each)
            written += folder.add(each, pictures)
            if not as_json:
                _print(each)
        if pictures.why_none is not None:
            warn([pictures.why_none])
    if as_json:
        print_json({"paper": known.name, "size": size.value, "items": [as_data(m) for m in made]})
    elif written:
        say(f"Written to {folder.path}")
    if any(is_failure(each, asked=bool(items)) for each in made):
        raise typer.Exit(1)


def is_failure(made: Reproduced, *, asked: bool) -> bool:
    """Return whether an item failed; of a whole paper, what needs real hardware is left out."""
    return made.failed is not None and (asked or made.item.hardware is None)


def _print(made: Reproduced) -> None:
    say(f"{made.paper.name} {made.item.key}: {made.title}")
    if made.failed is not None:
        say(f"Not made: {made.failed}")
        return
    table = layout(list(made.table))
    print_table(table.words, table.numbers, table.rows)
    for sentence in (made.why, *made.notes):
        say(sentence)
    say("")


def _listed(name: str | None, keys: Sequence[str]) -> Sequence[Paper]:
    """Return the papers to list, of one with keys only those items. Raises UnknownNameError."""
    if name is None:
        return [*PAPERS.values()]
    paper = paper_of(name)
    chosen = [item_of(paper, key) for key in keys]
    return [
        with_changes(paper, items=tuple(each for each in paper.items if not keys or each in chosen))
    ]


def _list(papers: Sequence[Paper], data: Data, *, as_json: bool) -> None:
    rows = as_rows(papers, data)
    if as_json:
        possible = sum(row["standing"] == "possible now" for row in rows)
        print_json({"count": len(rows), "possible": possible, "items": rows})
        return
    print_table(
        ("Paper", "Item", "Shows", "Now"),
        ("CPU min, quick", "whole"),
        [
            (
                row["paper"],
                ", ".join((row["item"], *row["also"])),
                row["title"],
                row["standing"] + (", emulated" if row["emulated"] else ""),
                _minutes(row["quick_cpu_minutes"]),
                _minutes(row["whole_cpu_minutes"]),
            )
            for row in rows
        ],
    )
    for row in rows:
        if row["because"] is not None:
            say(f"{row['paper']} {row['item']}: {row['because']}")
    shown = {paper.name for paper in papers}
    for name, study in STUDIES.items():
        if study.name not in shown:
            say(f"maat reproduce {name}: {study.title} (Maat's own; --list {name})")


def _minutes(given: float | None) -> str:
    return "-" if given is None else f"{given:.1f}"
