"""Measurements of one's own in the papers' items: what they make and say, what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import maat
from maat.cli.app import app
from maat.papers.bench import Bench, Size
from maat.papers.catalogue import REPORTS, item_of, paper_of
from maat.papers.counting import counted_runs
from maat.papers.data import Data
from maat.papers.own import OwnMeasurements, read_own
from maat.papers.report import as_data, as_markdown
from maat.papers.reproducing import OpenItem, Reproduced, open_item
from maat.scheduling.errors import InputError
from maat.vocabulary import MeasurementKind

GPUS, TYPE = 20, "v100"
QUEUE = "fig-4"  # six jobs on 16 GPUs of PAL


@pytest.fixture(autouse=True)
def without_published_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAAT_DATA", raising=False)


def gpus(folder: Path, *, slowest: float = 1.5, gpu_type: str = TYPE) -> Path:
    """Write measured GPUs of every class, of which one is slow; return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for application in ("resnet", "bert", "pagerank"):
        times = [*[1.0] * (GPUS - 1), slowest]
        rows = "".join(f"gpu-{number},{time}\n" for number, time in enumerate(times))
        (folder / f"{application}-{gpu_type}.csv").write_text(f"uuid,perf\n{rows}")
    return folder


def made(paper: str, item: str, **given: Any) -> Reproduced:
    found = maat.reproduce(paper, item, progress=False, **given)
    assert isinstance(found, Reproduced)
    return found


def keys(paper: str, item: str, data: Data) -> set[str]:
    known = paper_of(paper)
    opened = open_item(known, item_of(known, item), Bench(data, Size.TINY))
    assert isinstance(opened, OpenItem)
    return opened.needs


def test_what_is_of_ones_own_measurements_says_so_everywhere(tmp_path: Path) -> None:
    folder = gpus(tmp_path / "lab")
    assert made("pal", QUEUE).failed is not None, "nothing is published here"
    item = made("pal", QUEUE, variability=folder)
    title = f"measured GPUs {folder}"
    assert item.failed is None
    assert item.title.endswith(f"(of the {title})")
    assert item.labels[-1] == "data"
    assert {row.of[-1] for row in item.rows} == {title}
    assert item.why == (
        f"These are figures of the {title}, which stand in for published data: the published "
        "values beside them are of other measurements, and no test of Maat."
    )
    (note,) = item.notes
    assert note.startswith(f"Not of published data: of the {title} (sha256 ")
    assert item.figure is not None
    assert item.figure.layout.title.text == f"Of the {title}, not of published data"
    report = as_markdown(as_data(item))
    assert report.count(title) > len(item.rows)


def test_a_run_is_known_by_the_content_of_what_stands_in(tmp_path: Path) -> None:
    published = gpus(tmp_path / "data" / "pal" / "variability")
    for path in published.iterdir():
        path.rename(path.with_name(f"{path.stem}-agg.csv"))
    same, copy = gpus(tmp_path / "same"), gpus(tmp_path / "copy")
    other = gpus(tmp_path / "other", slowest=2.0)
    of: list[set[str]] = [keys("pal", QUEUE, Data(tmp_path / "data"))]
    for folder in (same, copy, other):
        of.append(keys("pal", QUEUE, Data(None, read_own(variability=folder))))
    assert of[1] == of[2]
    assert not of[0] & of[1], "the published run, although of the same scores"
    assert not of[1] & of[3]


def test_of_all_items_those_are_made_that_take_what_is_given(tmp_path: Path) -> None:
    folder = gpus(tmp_path / "lab", slowest=3.0)
    own = read_own(variability=folder)
    taking = {item.key for item in REPORTS["pal"].items if own[0].kind in item.takes}
    assert QUEUE in taking
    assert "fig-3" not in taking
    with pytest.raises(
        InputError, match=r"variability: cannot stand in for anything in bsbf fig-1"
    ):
        maat.reproduce("bsbf", variability=folder)


@pytest.mark.parametrize(
    ("item", "kinds"),
    [
        ("sia fig-8", ["profiles", "trace"]),
        ("sia table-3", ["profiles"]),
        ("sia fig-7", ["profiles"]),
        ("sia table-1", []),
        ("pollux fig-8a", ["profiles"]),
        ("bsbf fig-3", ["interference"]),
        ("pal fig-13", ["variability", "trace"]),
        ("pal fig-3", []),
        ("fidelity traces", []),
    ],
)
def test_one_trace_stands_in_for_one_family_and_nothing_in_a_study_of_fidelity(
    item: str, kinds: Sequence[str]
) -> None:
    paper, key = item.split()
    assert [kind.value for kind in item_of(paper_of(paper), key).takes] == kinds


def test_what_cannot_stand_in_is_refused_with_field_value_and_remedy(tmp_path: Path) -> None:
    lab, a100 = gpus(tmp_path / "lab"), gpus(tmp_path / "a100", gpu_type="a100")
    file = lab / f"resnet-{TYPE}.csv"
    with pytest.raises(InputError) as wrong:
        made("pal", QUEUE, profiles=file)
    assert (wrong.value.field, wrong.value.value) == ("profiles", str(file))
    assert wrong.value.remedy == "Leave it out: no item of pal takes it."
    with pytest.raises(InputError, match=rf"has no measurements of resnet.*{TYPE}") as lacking:
        made("pal", QUEUE, variability=a100)
    assert (lacking.value.field, lacking.value.value) == ("variability", str(a100))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"variability: has no CSV files"):
        made("pal", QUEUE, variability=tmp_path / "empty")
    with pytest.raises(InputError, match=r"trace: cannot be read"):
        made("pal", "fig-13", trace=tmp_path / "absent")


def test_profiles_that_lack_a_model_or_a_gpu_type_are_refused(tmp_path: Path) -> None:
    table = {"v100": {"('ResNet-18 (batch size 32)', 1)": {"null": 10.0}}}
    (tmp_path / "rates.json").write_text(json.dumps(table))
    for paper, item in (("sia", "fig-2"), ("pollux", "fig-9")):
        with pytest.raises(InputError, match=r"lack a model that is needed here.*ResNet-18") as no:
            made(paper, item, profiles=tmp_path / "rates.json")
        assert no.value.field == "profiles"


def test_a_table_of_pairs_stands_in_for_the_public_ones(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("victim,partner,gpu_count,slowdown\nbert,ncf,1,7.5\nncf,bert,1,1.5\n")
    item = made("bsbf", "fig-3", interference=table)
    largest = next(row for row in item.rows if row.measure == "largest xi")
    assert (largest.of[1], largest.mean) == ("all pairs", 7.5)
    assert item.why.startswith("These are figures of the measured pairs ")


def test_a_trace_stands_in_and_records_that_are_no_jobs_are_told(tmp_path: Path) -> None:
    trace = tmp_path / "lab.csv"
    trace.write_text(
        "job_id,num_gpus,submit_time,duration,model\n0,2,0,600,BERT\n1,2,0,600,vgg19\n2,x,0,9,BERT\n"
    )
    own = read_own(trace=trace, variability=gpus(tmp_path / "lab"))
    bench = Bench(Data(None, own), Size.QUICK)
    runs = item_of(REPORTS["pal"], "fig-12").runs(bench)
    assert {label[-1] for label in runs} == {str(trace)}
    assert any("left out" in note for note in bench.notes)


def test_a_report_is_of_the_same_measurements_of_ones_own(tmp_path: Path) -> None:
    folder, output = gpus(tmp_path / "lab"), tmp_path / "o"
    words = ["reproduce", "pal", "table-1", "--variability", str(folder), "--output", str(output)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    report = (output / "pal" / "index.md").read_text()
    assert f"maat reproduce pal table-1 --variability {folder}" in report
    assert "Not of published data" in report
    assert f"measured GPUs {folder}" in (output / "pal" / "table-1.csv").read_text()
    gpus(folder, slowest=2.0)
    again = CliRunner().invoke(app, words)
    assert isinstance(again.exception, InputError)
    assert "has a report made with" in str(again.exception)


@pytest.mark.parametrize("item", ["sia fig-4", "pollux fig-8a", "pal fig-13", "sia sec-5.3"])
def test_runs_are_counted_without_their_jobs(item: str, tmp_path: Path) -> None:
    trace = tmp_path / "lab.csv"
    trace.write_text("job_id,num_gpus,submit_time,duration,model\n0,2,0,600,BERT\n")
    paper, key = item.split()
    known = item_of(paper_of(paper), key)
    own = read_own(trace=trace, variability=gpus(tmp_path / "lab")) if paper == "pal" else ()
    data = Data(None, own)
    assert counted_runs(known, data) == len(known.runs(Bench(data, Size.WHOLE))) > 0


def test_measurements_of_one_name_and_other_content_are_not_the_same() -> None:
    kind = MeasurementKind.VARIABILITY
    a, b = (OwnMeasurements(kind, "lab", digest, {}) for digest in ("1", "2"))
    assert a == OwnMeasurements(kind, "lab", "1", {"file": "text"})
    assert a != b


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"profiles": {"bert": object()}}, "profiles: is no path"),
        ({"profiles": "a\0b"}, "profiles: is no path"),
        ({"profiles": ""}, "profiles: is no path"),
        ({"trace": "/dev/zero"}, "trace: cannot be read .*no regular file"),
    ],
)
def test_what_is_no_file_is_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_own(**given)


def test_pairs_of_several_gpu_types_name_the_one_that_is_read(tmp_path: Path) -> None:
    table = tmp_path / "pairs.json"
    table.write_text("{}")
    titles = [read_own(interference=given)[0].title for given in (table, f"{table}#p100")]
    assert titles == [f"measured pairs {table}#v100", f"measured pairs {table}#p100"]
