"""`maat reproduce`: every item on a small instance; runs made once; a folder that is never torn."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from kept_reports import constant, kept_items
from shown_items import SHOWN
from small_disk import SmallDisk
from typer.testing import CliRunner

import maat
from maat.cli.app import app
from maat.cli.reproduce import is_failure
from maat.laboratory.results import ResultCache
from maat.library.pictures import Pictures
from maat.papers.bench import Bench, Size
from maat.papers.catalogue import PAPERS, STUDIES, item_of
from maat.papers.cost import cost_of
from maat.papers.data import Data
from maat.papers.items import (
    Computation,
    Item,
    Outcomes,
    Paper,
    Published,
    Row,
    Shown,
    WithRho,
    key_of,
    nothing_shown,
)
from maat.papers.layout import layout
from maat.papers.report import as_data, title_of
from maat.papers.reproducing import Reproduced, make
from maat.papers.standing import Standing, standing_of
from maat.papers.written import Folder
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, MaatError, UnknownNameError
from maat.simulation.iteration_models import shipped_models
from maat.simulation.scenario import Scenario
from maat.workloads.generators import generate

ITEMS = [(paper, item) for paper in PAPERS.values() for item in paper.items]
OF_STUDIES = [(study, item) for study in STUDIES.values() for item in study.items]
WITHOUT_HARDWARE = [(paper, item) for paper, item in ITEMS + OF_STUDIES if item.hardware is None]


def called(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["reproduce", *words])
    return result.exit_code, result.output


@pytest.mark.needs_data
def test_the_runs_that_an_item_names_are_those_of_its_published_data(data_folder: Path) -> None:
    bench = Bench(Data(data_folder), Size.WHOLE)
    counted = {
        (paper.name, item.key): len(item.runs(bench)) for paper, item in ITEMS if not item.hardware
    }
    assert counted == {
        (paper.name, item.key): item.whole_runs for paper, item in ITEMS if not item.hardware
    }


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("paper", "item"), [pytest.param(p, i, id=f"{p.name}-{i.key}") for p, i in WITHOUT_HARDWARE]
)
def test_an_item_comes_out_of_a_small_instance(
    paper: Paper, item: Item, data_folder: Path, results: ResultCache
) -> None:
    data = Data(data_folder)
    assert standing_of(item, data) is Standing.POSSIBLE
    (made,) = make(paper, [item], data=data, size=Size.TINY, cache=results)
    assert made.failed is None
    assert made.why.endswith(".")
    for row in made.rows:
        assert len(row.of) == len(made.labels)
        assert all(math.isfinite(value) for value in row.ours), row
    expected = SHOWN[f"{paper.name} {item.key}"]
    [shown] = [row for row in made.rows if (row.of, row.measure) == expected[:2]]
    assert shown.ours
    published = Published.of(shown.published)
    assert (None if published is None else published.text) == expected.published
    assert (made.figure is None) == (expected.axis is None)
    assert expected.axis is None or expected.axis in x_titles(made.figure)
    check_is_kept_so(made)


# of workload 1 alone, which a small instance has not
NOT_OF_SMALL_INSTANCES = {("pal fig-11", "average JCT, s")}


def check_is_kept_so(made: Reproduced) -> None:
    """Check that the report in docs/ has the sentence and the published values of the code."""
    kept = kept_items(made.paper)
    if not kept:
        return
    item, title = as_data(made), title_of(as_data(made))
    assert title in kept
    assert constant(kept[title].sentence) == constant(item["why"])
    table = layout(item["rows"])
    place = table.words.index("published") if "published" in table.words else None
    for row in table.rows if place is not None else ():
        of, published = tuple(row[:place]), row[place]
        if (f"{made.paper.name} {made.item.key}", of[-1]) not in NOT_OF_SMALL_INSTANCES:
            assert kept[title].published.get(of, published) == published, of


@pytest.mark.parametrize("paper", [*PAPERS.values(), *STUDIES.values()], ids=lambda p: p.name)
def test_a_report_that_is_kept_has_every_item_by_its_title_in_order(paper: Paper) -> None:
    titles = [
        title_of({"item": item.key, "title": item.title, "emulated": item.emulated})
        for item in paper.items
        if item.hardware is None
    ]
    assert [*kept_items(paper)] in (titles, [])
    assert kept_items(paper) or paper.name == "fidelity", "docs/fidelity.md tells of it"


def test_a_sentence_is_compared_without_what_came_out() -> None:
    told = "Figures cannot hold: 3 of 12.5; best are Sia at 120, SJF-BSBF at 480 jobs."
    found = "Figures can hold: 1 of 2; best are Pollux at 7 jobs."
    assert constant(told) == constant(found)
    assert constant(told) != constant(told.replace("best", "worst"))


def x_titles(figure: go.Figure | None) -> list[str]:
    """Return the titles of the x axes of a figure, which draws something."""
    assert figure is not None
    drawn = json.loads(figure.to_json())
    assert drawn["data"]
    axes = [axis for name, axis in drawn["layout"].items() if name.startswith("xaxis")]
    return [axis.get("title", {}).get("text", "").replace("<br>", " ") for axis in axes]


def test_every_item_but_that_of_real_gpus_has_a_row_that_no_other_has() -> None:
    every = {f"{paper.name} {item.key}" for paper, item in ITEMS + OF_STUDIES}
    assert every - set(SHOWN) == {"pal fig-3"}
    assert len({shown[:3] for shown in SHOWN.values()}) == len(SHOWN) == len(every) - 1


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> ResultCache:
    """Results that the items of these tests share, as those of one call do."""
    return ResultCache(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_items_without_data_stand_in_or_say_what_they_need(paper: Paper, tmp_path: Path) -> None:
    for item in paper.items:
        bench = Bench(Data(), Size.TINY)
        if item.needs:
            (made,) = make(paper, [item], data=Data(), size=Size.TINY)
            assert made.failed is not None
            assert "docs/reproduce.md" in made.failed or item.hardware is not None
        elif item.hardware is None:
            if not item.runs(bench):
                item.show(bench, {})
            assert bool(bench.notes) == bool(item.uses), item.key


def test_keys_are_names_of_the_papers_and_differ() -> None:
    for paper in PAPERS.values():
        keys = [key for item in paper.items for key in (item.key, *item.also)]
        assert len(set(keys)) == len(keys)
        assert all(key.partition("-")[0] in ("fig", "table", "sec") for key in keys)


@pytest.mark.parametrize(
    ("published", "ours", "text", "difference"),
    [
        (2.0, 2.5, "2", 0.25),
        (Published(40, 70), 35, "40 to 70", -0.125),
        (Published(40, 70), 50, "40 to 70", 0.0),
        (Published(most=0.3), 0.2, "at most 0.3", 0.0),
        (Published(least=100), 50, "at least 100", -0.5),
        (0.0, 1.0, "0", None),
        (0.0, 0.0, "0", 0.0),
        (Published(most=0.0), 0.2, "at most 0", None),
    ],
)
def test_a_difference_is_to_the_nearest_published_value(
    published: float | Published, ours: float, text: str, difference: float | None
) -> None:
    row = Row(("sia",), "h", [ours], published)
    assert row.difference == pytest.approx(difference)
    known = Published.of(published)
    assert known is not None
    assert known.text == text


def counted(folder: str, name: str) -> Mapping[str, Any]:
    path = Path(folder, name)
    path.write_text(path.read_text() + "." if path.exists() else ".")
    return {"value": 2.0}


def twice(folder: Path, *, failing: str = "") -> Paper:
    """Return a paper of two items that need the same work, and one of its own each."""

    def runs(name: str) -> dict[tuple[str, ...], Computation]:
        return {
            (each,): Computation(counted, {"folder": str(folder), "name": each})
            for each in ("shared", name)
        }

    def show(bench: Bench, outcomes: Outcomes) -> Shown:
        return Shown(("run",), [Row(k, "h", [o["value"]], 1.0) for k, o in outcomes.items()], "So.")

    def fail(bench: Bench) -> dict[tuple[str, ...], Computation]:
        raise InputError("is wrong", field="trace", remedy="Give another.")

    return Paper(
        "twice",
        "A paper",
        (
            Item("fig-1", "One", show, runs=lambda bench: runs("a")),
            Item("fig-2", "Two", show, runs=lambda bench: runs("b")),
            Item("fig-3", "Three", show, runs=fail),
        ),
    )


def test_what_several_items_need_runs_once_and_is_kept(tmp_path: Path) -> None:
    paper, cache = twice(tmp_path), ResultCache(tmp_path / "runs")
    for _ in range(2):
        made = {
            each.item.key: each
            for each in make(paper, paper.items, data=Data(), size=Size.TINY, cache=cache)
        }
        assert made["fig-1"].table["difference"] == [1.0, 1.0]
        assert made["fig-2"].failed is None
        assert made["fig-3"].failed == "trace: is wrong. Give another."
    assert [(tmp_path / name).read_text() for name in ("shared", "a", "b")] == [".", ".", "."]


def test_what_was_observed_with_other_fields_is_observed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workload = generate("philly", jobs=2, hours=1.0, seed=1)
    run = Scenario(workload, shipped_models(), Cluster.parse("t4=1x4"))
    before = {key_of(each) for each in (run, WithRho(run), WithRho(run, series=True))}
    monkeypatch.setattr("maat.papers.items.Observation", Item)  # other fields
    after = {key_of(each) for each in (run, WithRho(run), WithRho(run, series=True))}
    assert len(before | after) == 6


def test_the_library_names_what_it_does_not_know() -> None:
    with pytest.raises(UnknownNameError, match=r"paper: is no paper .*got 'nobody'.*sia"):
        maat.reproduce("nobody")
    with pytest.raises(InputError, match=r"data: is no folder \(got 'nowhere'\)"):
        maat.reproduce("pal", "fig-13", data="nowhere")


def test_a_folder_with_nothing_of_the_papers_is_refused(tmp_path: Path) -> None:
    words = ["reproduce", "pal", "--data", str(tmp_path), "--output", str(tmp_path / "o")]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, InputError)  # which ends with 2
    assert "data: has nothing of the papers" in str(result.exception)
    assert not (tmp_path / "o").exists()


def test_a_folder_that_is_half_there_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "pal" / "traces").mkdir(parents=True)
    code, output = called("pal", "fig-13", "--data", str(tmp_path), "--output", str(tmp_path / "o"))
    assert code == 1
    assert "It needs published data: pal variability" in " ".join(output.split())
    assert not list((tmp_path / "o" / "pal").glob("fig-13*"))


def test_an_item_that_needs_hardware_fails_alone_when_it_is_asked_for(tmp_path: Path) -> None:
    code, output = called("pal", "fig-3", "--output", str(tmp_path))
    assert code == 1
    assert "Not made: The utilisations are not published" in " ".join(output.split())
    assert "Written to" not in output
    made = Reproduced(PAPERS["pal"], item_of(PAPERS["pal"], "fig-3"), failed="needs a GPU")
    assert not is_failure(made, asked=False)


def test_the_list_is_of_all_papers_and_counts_what_is_possible() -> None:
    code, output = called("--list", "--json")
    listed = json.loads(output)
    assert code == 0
    assert listed["count"] == len(listed["items"]) == len(ITEMS)
    assert listed["possible"] == sum(i["standing"] == "possible now" for i in listed["items"])
    code, output = called("--list")
    assert code == 0
    assert "fig-13" in output


def test_the_list_finds_an_item_by_any_figure_that_it_shows() -> None:
    code, output = called("pal", "fig-7", "--list", "--json")
    assert code == 0
    assert [(each["item"], each["also"]) for each in json.loads(output)["items"]] == [
        ("fig-6", list(item_of(PAPERS["pal"], "fig-6").also))
    ]
    code, output = called("pal", "--list")
    assert code == 0
    for key in (key for item in PAPERS["pal"].items for key in (item.key, *item.also)):
        assert key in output
    result = CliRunner().invoke(app, ["reproduce", "pal", "fig-99", "--list"])
    assert isinstance(result.exception, UnknownNameError)


def written(
    folder: Path,
    size: Size,
    work: Path,
    *,
    data: Path | None = None,
    replace: bool = False,
    drawn: bool = False,
) -> None:
    paper = twice(work)
    report = Folder(folder, paper, size, data=Data(data), replace=replace)
    with report.writing(), Pictures() as pictures:
        for each in make(paper, paper.items[:2], data=Data(), size=size):
            figure = go.Figure(go.Scatter(x=[1], y=[2], name="</script>")) if drawn else None
            report.add(dataclasses.replace(each, figure=figure), pictures)


@pytest.mark.needs_chromium
def test_a_report_has_every_file_and_needs_nothing_else(tmp_path: Path) -> None:
    written(tmp_path, Size.QUICK, tmp_path, drawn=True)
    folder = tmp_path / "twice"
    for key in ("fig-1", "fig-2"):
        kinds = {path.suffix for path in folder.glob(f"{key}.*")}
        assert kinds == {".csv", ".md", ".json", ".html", ".svg", ".png"}
    assert (folder / "fig-1.svg").read_text().startswith("<svg")
    page = (folder / "index.html").read_text()
    assert page.count("Plotly.newPlot(") >= 2
    assert '"</script>"' not in page
    assert "<script src" not in page
    text = (folder / "index.md").read_text()
    assert "![Figure 1: One](fig-1.svg)" in text
    assert "Made by `maat reproduce twice fig-1 fig-2 --quick` on " in text


def test_a_folder_has_items_of_one_size(tmp_path: Path) -> None:
    written(tmp_path, Size.QUICK, tmp_path)
    with pytest.raises(InputError, match=r"has a report of quick runs.*--replace"):
        written(tmp_path, Size.WHOLE, tmp_path)
    written(tmp_path, Size.WHOLE, tmp_path, replace=True)
    assert "All runs." in (tmp_path / "twice" / "index.md").read_text()


def test_a_report_has_items_of_the_same_data(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "pal").mkdir(parents=True)
    written(tmp_path, Size.QUICK, tmp_path, data=data)
    written(tmp_path, Size.QUICK, tmp_path, data=data / ".." / "data")
    with pytest.raises(InputError, match=r"made with the data in .*data, and this is without pub"):
        written(tmp_path, Size.QUICK, tmp_path)
    written(tmp_path, Size.QUICK, tmp_path, replace=True)
    with pytest.raises(InputError, match=r"made without published data, and .*--replace it"):
        written(tmp_path, Size.QUICK, tmp_path, data=data)


@pytest.mark.parametrize("name", ["index.html", "index.md", "fig-2.csv", "report.json"])
def test_files_that_are_of_no_report_are_not_overwritten(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "twice"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")  # which no call writes
    (folder / name).write_text("{")
    with pytest.raises(InputError, match=rf"output: has .*{name}.* --replace it"):
        written(tmp_path, Size.QUICK, tmp_path)
    assert (folder / name).read_text() == "{"
    written(tmp_path, Size.QUICK, tmp_path, replace=True)
    assert json.loads((folder / "report.json").read_text())["size"] == "quick"
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_call_that_was_stopped_before_its_first_report_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "twice"
    folder.mkdir()
    (folder / ".writing").touch()
    (folder / "fig-1.csv").write_text("of the call that was stopped")
    written(tmp_path, Size.QUICK, tmp_path)
    assert (folder / "index.html").exists()


def test_the_library_takes_the_data_that_the_command_line_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAAT_DATA", str(tmp_path / "absent"))
    with pytest.raises(InputError, match=r"data: is no folder"):
        maat.reproduce("pal", "fig-5", progress=False)
    monkeypatch.setenv("MAAT_DATA", "")
    found = maat.reproduce("pal", "fig-5", progress=False)
    assert isinstance(found, Reproduced)
    assert "no folder is given" in str(found.failed)
    assert repr(found).startswith("pal fig-5: Bins of PM scores")
    assert "Not made: It needs published data" in repr(found)


def test_all_of_a_paper_says_its_cost_before_it_runs_and_nothing_if_it_shall_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def begun(*given: Any, **named: Any) -> list[Reproduced]:
        said.append(capsys.readouterr().err)
        return []

    monkeypatch.setattr("maat.papers.reproducing.make", begun)
    maat.reproduce("bsbf", quick=True)
    maat.reproduce("sia", ["table-1"], progress=False)
    maat.reproduce("pal", ["fig-3"])
    assert said == ["bsbf, quick: about 10 CPU minutes.\n", "", ""], "fig-3 cannot be made"


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        ([3.4, 12.0], "about 15 CPU minutes"),
        ([0.5], "less than a CPU minute"),
        ([3.4, None], "about 3.4 CPU minutes, 1 item not measured"),
        ([None], "an unknown number of CPU minutes (nobody has measured it)"),
    ],
)
def test_a_cost_says_what_nobody_has_measured(minutes: list[float | None], words: str) -> None:
    items = [Item("fig-1", "One", nothing_shown, cpu_minutes=(each, None)) for each in minutes]
    assert cost_of(items, Size.QUICK) == words
    assert "nobody" in cost_of(items, Size.WHOLE)


def test_two_calls_do_not_write_one_report(tmp_path: Path) -> None:
    written(tmp_path, Size.QUICK, tmp_path)
    with (tmp_path / "twice" / ".writing").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="is being written by another call"):
            written(tmp_path, Size.QUICK, tmp_path)


def test_a_full_disk_leaves_nothing_torn(small_disk: SmallDisk, tmp_path: Path) -> None:
    with pytest.raises(MaatError, match=r"No space left on device.*what was computed is kept"):
        written(small_disk.path, Size.QUICK, tmp_path, drawn=True)  # one page has plotly's 5 MB
    left = [path for path in small_disk.path.rglob("*") if path.is_file()]
    assert not [path for path in left if path.suffix == ".part"]
    assert all(json.loads(path.read_text()) for path in left if path.suffix == ".json")


def test_data_that_cannot_be_read_fail_their_item_and_are_named(tmp_path: Path) -> None:
    scores = tmp_path / "pal" / "variability" / "longhorn-agg.csv"
    scores.mkdir(parents=True)  # where a file should be
    found = maat.reproduce("pal", "fig-5", data=tmp_path, progress=False)
    assert isinstance(found, Reproduced)
    assert found.failed == f"{scores} cannot be read (Is a directory)."
