"""`maat quotas`, `quota`, `unquota`, `weight` and priorities, against the service itself."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from maat.cli.app import app as commands
from maat.client import ApiError, Client
from maat.scheduling.errors import ParameterError

Run = Callable[..., str]


@pytest.fixture
def run(maat: Client, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What a command prints."""
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return invoke


def test_a_quota_is_set_listed_changed_in_part_and_removed(run: Run) -> None:
    assert "No quota" in run("quotas")
    said = run("quota", "default", "--gpu-type", "a100", "--guaranteed", "8", "--ceiling", "12")
    assert said == "default is guaranteed 8 a100, with a ceiling of 12; it holds 0\n"
    head, row, *_ = run("quotas").splitlines()
    told = dict(zip(head.replace("in use", "in_use").split(), row.split(), strict=True))
    assert told == {
        "tenant": "default", "weight": "1", "gpu_type": "a100", "in_use": "0", "guaranteed": "8",
        "ceiling": "12", "borrowed": "0", "lent": "0",
    }  # fmt: skip
    assert "a100: 0 of 16 GPUs in use, 8 guaranteed" in run("quotas")

    changed = json.loads(
        run("quota", "default", "--gpu-type", "a100", "--guaranteed", "4", "--json")
    )
    assert (changed["guaranteed"], changed["ceiling"], changed["version"]) == (4, 12, 2)
    assert "no ceiling" in run("quota", "default", "--gpu-type", "a100", "--no-ceiling")
    run("unquota", "default", "--gpu-type", "a100")
    assert json.loads(run("quotas", "--json"))["items"] == []


def test_all_quotas_are_listed_however_many_pages_they_fill(run: Run, maat: Client) -> None:
    first = maat.quotas
    maat.quotas = lambda where, **more: first(where, limit=1, **more)  # type: ignore[method-assign]
    for gpu_type in ("a100", "rtx", "t4"):
        run("quota", "default", "--gpu-type", gpu_type, "--ceiling", "2")
    assert [one["gpu_type"] for one in json.loads(run("quotas", "--json"))["items"]] == [
        "a100",
        "rtx",
        "t4",
    ]


def test_a_tenant_is_weighed(run: Run) -> None:
    assert run("weight", "default", "2.5") == "default has the weight 2.5\n"
    assert json.loads(run("weight", "default", "3", "--json"))["weight"] == 3.0


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("quota", "default", "--gpu-type", "a100"), "--guaranteed"),
        (("quota", "default", "--gpu-type", "a100", "--guaranteed", "x"), "guaranteed"),
        (("quota", "default", "--gpu-type", "a100", "--ceiling", "-1"), "ceiling"),
        (("quota", "a", "--gpu-type", "a100", "--ceiling", "1", "--no-ceiling"), "--no-ceiling"),
        (("weight", "default", "nan"), "weight"),
        (("weight", "default", "1e9"), "weight"),
        (("weight", "default", "0"), "weight"),
        (("weight", "default", "1e-308"), "weight"),
        (("submit", "a", "--model", "bert", "--priority", "hihg"), "--priority"),
        (("submit", "a", "--model", "bert", "--priority", "1001"), "--priority"),
        (("submit", "a", "--model", "bert", "--weight", "1001"), "weight"),
        (("change", "a", "--weight", "nan"), "weight"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_service_is_asked(
    arguments: tuple[str, ...], field: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        CliRunner().invoke(commands, arguments, catch_exceptions=False)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("quota", "default", "--gpu-type", "h100", "--ceiling", "1"), 422),
        (("quota", "default", "--gpu-type", "a100", "--guaranteed", "17"), 422),
        (("quota", "nobody", "--gpu-type", "a100", "--ceiling", "1"), 404),
        (("unquota", "default", "--gpu-type", "a100"), 404),
    ],
)
def test_what_the_service_refuses_is_told(
    run: Run, arguments: tuple[str, ...], status: int
) -> None:
    with pytest.raises(ApiError) as refused:
        run(*arguments)
    assert refused.value.status == status


@pytest.mark.parametrize(("given", "number"), [("urgent", 20), ("low", -10), ("12", 12)])
def test_a_priority_is_given_by_class_or_number(
    run: Run, maat: Client, given: str, number: int
) -> None:
    run("submit", "named", "--model", "bert", "--priority", given, "--weight", "1.5")
    (job,) = maat.jobs(q="named")["items"]
    assert (job["priority"], job["weight"]) == (number, 1.5)
