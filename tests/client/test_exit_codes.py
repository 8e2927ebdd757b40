"""How commands end: 0 fine, 1 failed or not so, 2 bad input or refused, 130 interrupted."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import pytest
import typer

from maat.__main__ import main
from maat.cli.app import app as commands
from maat.client import ApiError, Client
from maat.client.errors import FieldProblem

NOBODY = "http://127.0.0.1:9"  # the port that discards
JOB = ("submit", "one", "--model", "bert")


@pytest.fixture
def here(maat: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)
    return maat


def code_of(*arguments: str) -> int:
    with patch.object(sys, "argv", ["maat", *arguments]), pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (JOB, 0, "is submitted"),
        (("jobs", "--json"), 0, "items"),
        (("submit", "one", "--model", "gpt-9"), 2, "Use one of"),  # the service refuses it
        (("submit", "one", "--model", "bert", "--gpus", "x"), 2, "Give a whole number"),
        (("explain", "nobody"), 2, "`maat jobs` lists them"),
        (("nodes", "--cluster", "none"), 2, "Check the id or name"),
        (("jobs", "--no-such-option"), 2, "No such option"),
        (("submit", "no.yaml"), 2, "cannot be read"),
        (("ready",), 1, "missing: worker"),
    ],
)
def test_a_command_ends_with_its_code_and_what_to_do(
    arguments: tuple[str, ...], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*arguments) == code
    said = capsys.readouterr()
    assert says in (said.out if arguments[0] == "ready" or code == 0 else said.err)
    assert "Traceback" not in said.err


@pytest.mark.usefixtures("here")
def test_a_refused_field_is_told_once_with_its_place_its_value_and_the_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert code_of("forecast", "--drain", "t4-0", "--drain", "nope") == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "maat: Some fields cannot be used:"
    (line,) = told[1:]
    assert line.startswith(
        "  changes.drain_nodes.1: The cluster has no node of this name (got 'nope'). "
    )
    assert line.count("Use some of: ") == 1


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            "forecast --policy nope",
            "  changes.policy: is no policy that Maat has (got 'nope'). Use one of: sia, fifo, ",
        ),
        (
            "create-cluster x --shape 4xt4",
            "  shape: cluster does not read as type=NODESxGPUS (got '4xt4'). Write for example ",
        ),
    ],
)
def test_what_the_library_refuses_in_the_service_is_told_once(
    command: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*command.split()) == 2
    title, line = capsys.readouterr().err.splitlines()
    assert title == "maat: Some fields cannot be used:"
    assert line.startswith(told)
    assert (line.count(command.split()[-1]), line.count(told.split("). ")[1])) == (1, 1)


def test_a_word_of_the_command_line_that_cannot_be_read_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert code_of("replay", "--policy", "fifo", "--since", "nonsense") == 2
    assert capsys.readouterr().err == (
        "maat: since: is no duration (got 'nonsense'). Write for example 24h, 90m or 7d.\n"
    )


def test_an_object_that_cannot_be_used_is_not_printed() -> None:
    window = {"pointer": "/traces/0/cluster", "message": "It ends before it begins."}
    error = FieldProblem.parse(window | {"remedy": "Begin it earlier.", "value": "{'since': 1.0}"})
    assert error.full_sentence == "It ends before it begins. Begin it earlier."


def test_a_wrong_row_of_a_table_is_told_once_with_its_number() -> None:
    row = {"pointer": "/traces/0/csv", "row": 3, "message": "time is no number.", "value": "x"}
    error = FieldProblem.parse(row | {"remedy": "Give seconds."})
    detail = "row 3: time: is no number (got 'x'). Give seconds."
    refused = ApiError(
        status=422, title="Some fields cannot be used", detail=detail, errors=(error,)
    )
    assert refused.summary == "Some fields cannot be used:"
    assert f"{error.place}: {error.full_sentence}" == (
        "traces.0.csv, row 3: time is no number (got 'x'). Give seconds."
    )


@pytest.mark.parametrize(
    "url",
    ["foo", "localhost:8000", "ftp://x", "http://", "http://[x", "http://x:99999", "http://a b"],
)
def test_a_setting_that_is_no_address_is_refused_where_it_is_set(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = f"is no address of a service (got {url!r}). Give for example http://127.0.0.1:8000.\n"
    assert code_of("jobs", "--url", url) == 2
    assert capsys.readouterr().err == f"maat: --url: {told}"
    monkeypatch.setenv("MAAT_URL", url)
    assert code_of("jobs") == 2
    assert capsys.readouterr().err == f"maat: MAAT_URL: {told}"


@pytest.mark.parametrize("token", ["sécret", "secret\n"])
def test_a_setting_that_is_no_token_is_refused_and_not_shown(
    token: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAAT_TOKEN", token)
    assert code_of("jobs", "--url", NOBODY) == 2
    told = capsys.readouterr().err
    assert told.startswith("maat: MAAT_TOKEN: ")
    assert token.strip() not in told


@pytest.mark.parametrize("command", ["jobs", "top", "explain x", "submit x --model bert"])
def test_a_service_that_is_away_is_a_failure(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*command.split(), "--url", NOBODY) == 1
    assert "Start it with `maat up`" in capsys.readouterr().err


def test_a_fault_of_the_service_is_a_failure_with_a_next_step(
    here: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ApiError(status=500, title="Something went wrong", remedy="Report the request id.")

    monkeypatch.setattr(here, "jobs", fail)
    assert code_of("jobs") == 1
    assert "Report the request id." in capsys.readouterr().err


def test_what_is_interrupted_ends_with_130(here: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(here, "jobs", interrupt)
    assert code_of("jobs") == 130


def test_help_tells_the_codes_as_the_documentation_does(capsys: pytest.CaptureFixture[str]) -> None:
    root = typer.main.get_command(commands)
    for arguments in (["--help"], ["jobs", "--help"], ["simulate", "--help"]):
        with pytest.raises(SystemExit):
            root.main(arguments)
        said = " ".join(capsys.readouterr().out.split())
        assert "Exit codes: 0 fine, 1 failed" in said
    page = (Path(__file__).parents[2] / "docs" / "using.md").read_text()
    assert all(f"| {code} |" in page for code in (0, 1, 2, 130))
