"""The submit form and its text: each makes the same job; errors stand by their lines."""

from __future__ import annotations

from typing import Any

from frontend.pages.submit import as_text, from_text
from frontend.pages.submit.given import given_job, without_secrets
from frontend.pages.submit.model import FIELDS
from frontend.pages.submit.run_model import FIELDS as RUN_FIELDS
from frontend.pages.submit.run_model import SWITCHES
from maat.client.errors import FieldProblem
from maat.client.job_file import job_file_text, parse_job_file

PLAYED = """\
name: night
model: bert
adaptivity: strong-scaling
min_gpus: 2
max_gpus: 8
batch_size: 24
gpu_types: [t4]
work_scale: 0.5
preemptible: false
priority: -10
labels: {team: vision}
after: [job-1]
deadline: 2099-01-01T08:00:00.000Z
external_id: mine
"""
COMMAND = """\
name: night
model: mine
adaptivity: rigid
gpu_count: 2
run:
  argv: [python, train.py, "a b"]
  cwd: /srv
  env: {EPOCHS: 10}
  secret_env: {WANDB_API_KEY: }
  stop_seconds: 30.0
  max_retries: 1
  utilisation: {dram: 0.5, functional_unit: 0.25}
"""


def form(**given: Any) -> dict[str, Any]:
    """An empty form, with some of its parts."""
    later = {"after": [], "deadline": "", "array": ""}
    return {
        "values": dict.fromkeys(FIELDS),
        "preemptible": True,
        "later": later,
        "run_values": dict.fromkeys((*RUN_FIELDS, *SWITCHES)),
        "run_secrets": {"names": [], "values": []},
        "run_later": later,
        "runs": False,
        "cluster_id": "clu_1",
        "models": [],
        "capacity": {},
        **given,
    }


def filled(text: str) -> dict[str, Any]:
    """The form as a text fills it."""
    body = parse_job_file(text).body
    later = {**from_text.later_values(body), "array": ""}
    if "run" not in body:
        values, preemptible = from_text.played_values(body)
        return form(values=values, preemptible=preemptible, later=later)
    secrets = {"names": list(body["run"]["secret_env"]), "values": ["unseen"]}
    values = from_text.run_values(body)
    return form(run_values=values, run_secrets=secrets, run_later=later, runs=True)


def test_the_form_that_a_text_fills_makes_the_same_job_and_text() -> None:
    for text in (PLAYED, COMMAND):
        body = parse_job_file(text).body
        job = given_job(filled(text))
        assert job.wrong == {}
        shown = from_text.without_defaults(job.body)
        assert shown.pop("cluster_id") == "clu_1"
        assert from_text.declared(shown) == from_text.declared(body)
        assert parse_job_file(job_file_text(shown)).body == shown
        assert "unseen" not in job_file_text(shown)


async def written(text: str, given: dict[str, Any]) -> Any:
    clusters = [{"value": "clu_1", "label": "demo"}]
    return await as_text.write(given=given, kind="yaml", origin="", clusters=clusters, text=text)


def test_a_text_that_says_the_same_is_left_as_it_was_typed() -> None:
    import asyncio

    typed = "# nightly\n" + PLAYED
    assert "text" not in asyncio.run(written(typed, filled(PLAYED)))
    changed = asyncio.run(written(typed.replace("night", "day"), filled(PLAYED)))
    assert changed["text"].startswith("name: night\nmodel: bert\ncluster_id: demo\n")


def test_beside_a_text_stands_what_makes_an_array_of_its_job() -> None:
    import asyncio

    given = filled(PLAYED)
    assert "--array" not in asyncio.run(written("", given))["hint"]
    given["later"] = {**given["later"], "array": "0-2, 7"}
    assert "maat submit FILE --array 0-2,7" in asyncio.run(written("", given))["hint"]


def test_what_is_wrong_with_a_text_stands_by_its_line() -> None:
    def told(text: str, *, runs: bool = False) -> list[tuple[int, str]]:
        return from_text.wrong_lines(parse_job_file(text), runs=runs)

    assert told("name: a\nmodel: b\nmin_gpus: two\n") == [(3, "min_gpus: Give a whole number.")]
    assert told("model: b\n") == [(1, "name: Name it.")]
    assert told(PLAYED, runs=True)[0][1].startswith("run is missing")
    assert told(COMMAND)[0][0] == 6 - 1
    several = COMMAND.replace("10}", '"1\\n2"}')
    assert told(several, runs=True) == [(8, f"EPOCHS {_SEVERAL}")]
    refused = [FieldProblem("/gpu_types/0", "gpu_types", "There is none.", remedy="Use a100.")]
    found = from_text.refused_lines(parse_job_file(PLAYED), refused)
    assert found == [(7, "gpu_types: There is none. Use a100.")]


_SEVERAL = "has several lines, which the form cannot hold: maat submit takes this file."


def test_a_command_that_is_not_finished_is_text_all_the_same() -> None:
    given = form(runs=True, run_values={**form()["run_values"], "adaptivity": "rigid"})
    given["run_values"]["line"] = "python 'open"
    job = given_job(given)
    assert "line" in job.wrong
    assert job.body["run"]["argv"] == []
    with_secret = {"run": {"argv": ["a"], "secret_env": {"A": None}}, "name": "n"}
    assert without_secrets(with_secret) == {"run": {"argv": ["a"]}, "name": "n"}
