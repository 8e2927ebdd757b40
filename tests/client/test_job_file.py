"""A job as a file: what is read, which line is named when it cannot be, and what is written."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from maat.api.commands import CommandBody, UtilisationBody
from maat.api.jobs import JobBody
from maat.client.job_file import (
    JobFileError,
    job_file_text,
    parse_job_file,
    read_job_file,
    with_secrets,
)
from maat.scheduling.errors import InputError

COMMAND = """\
# every night
name: night-run
model: bert            # any name
priority: high
deadline: 2026-12-01T08:00:00Z
labels: {team: no, year: 2026}
gpu_types: [t4, 010]
run:
  argv: [python, train.py, --lr, 0.10, --resume, null]
  cwd: /srv/work
  env:
    EPOCHS: 010
    NOTE: |
      two
      lines
  secret_env:
    WANDB_API_KEY:
  total_samples: 1e6
  profile: false
"""


def test_a_file_says_what_it_shows() -> None:
    read = parse_job_file(COMMAND)
    assert read.body["priority"] == "high"
    assert read.body["deadline"] == "2026-12-01T08:00:00Z"
    assert read.body["labels"] == {"team": "no", "year": "2026"}
    assert read.body["gpu_types"] == ["t4", "010"]
    assert read.body["run"]["argv"] == ["python", "train.py", "--lr", "0.10", "--resume", None]
    assert read.body["run"]["env"] == {"EPOCHS": "010", "NOTE": "two\nlines\n"}
    assert read.body["run"]["total_samples"] == 1e6
    assert read.body["run"]["profile"] is False
    assert read.line_of("/run/argv/3") == 9
    assert read.line_of("/run/env/EPOCHS") == 12
    assert read.line_of("/run/stop_seconds") == 8
    assert read.line_of("/min_gpus") == 2


def test_secrets_that_are_only_named_take_their_values_from_elsewhere() -> None:
    body = read_job_file(COMMAND)
    filled = with_secrets(body, {"WANDB_API_KEY": "k", "OTHER": "o"})
    assert filled["run"]["secret_env"] == {"WANDB_API_KEY": "k"}
    with pytest.raises(
        JobFileError, match=r"run\.secret_env: has no value \(got 'WANDB_API_KEY'\)"
    ):
        with_secrets(body, {})
    assert with_secrets({"name": "a"}, {}) == {"name": "a"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "is empty"),
        ("# only a comment\n", 1, "is empty"),
        ("- name: a\n", 1, "not a list of fields"),
        (
            "name: a\nmodel: b\nmin_gpu: 2\n",
            3,
            "min_gpu: is no field of a job. Did you mean min_gpus?",
        ),
        ("name: a\nrun:\n  argv: [a]\n  cmd: b\n", 4, "cmd: is no field of run"),
        ("name: a\nname: b\n", 2, "name: is given twice"),
        ("name: a\nmodel: b: c\n", 2, "cannot be read as YAML"),
        ("name: a\n\tmodel: b\n", 2, "indent with spaces"),
        ("name: a\nlabels: {a: b\n", 3, "cannot be read as YAML"),
        ("name: a\n---\nname: b\n", 2, "a second document"),
        ("name: &n a\nmodel: *n\n", 1, "an anchor or an alias"),
        ("name: !!python/object:os.system a\n", 1, "a tag"),
        ("name: a\nmodel: b\x07\n", 2, "no text file has"),
        ("name: a\n? [b]\n: c\n", 2, "a name that is no word"),
        ("name: a\nlabels: " + "[" * 5000 + "\n", 2, "nested too deep"),
        ("name: " + "a" * 1_000_001, None, "more than 1000000 characters"),
    ],
)
def test_what_cannot_be_read_names_line_field_and_remedy(
    text: str, line: int | None, words: str
) -> None:
    with pytest.raises(InputError) as told:
        read_job_file(text, source="job.yaml")
    assert told.value.row == line
    assert words in str(told.value)
    assert str(told.value).startswith("job.yaml" if line is None else f"job.yaml, line {line}: ")


_TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=20
) | st.sampled_from(
    [
        "no",
        "1e9",
        "010",
        "0x1F",
        "1:30",
        "2026-12-01",
        "null",
        "~",
        "",
        " a",
        "# b",
        "- c",
        "a: b",
        "!",
    ]
)
_RUN = st.fixed_dictionaries(
    {
        "argv": st.lists(_TEXT, min_size=1, max_size=3),
        "env": st.dictionaries(_TEXT, _TEXT, max_size=2),
    },
    optional={
        "total_samples": st.floats(1e-3, 1e15),
        "profile": st.booleans(),
        "utilisation": st.fixed_dictionaries({"dram": st.floats(0, 1)}),
    },
)


@given(
    st.fixed_dictionaries(
        {"name": _TEXT, "model": _TEXT},
        optional={
            "run": _RUN,
            "labels": st.dictionaries(_TEXT, _TEXT, max_size=2),
            "priority": st.integers(-1000, 1000) | st.just("urgent"),
            "gpu_types": st.lists(_TEXT, max_size=2),
            "max_gpus": st.none() | st.integers(1, 9),
        },
    )
)
def test_what_is_written_is_read_back_here_and_by_any_yaml(body: dict[str, object]) -> None:
    text = job_file_text(body)
    assert read_job_file(text) == body
    assert yaml.safe_load(text) == body


def test_every_field_of_a_job_may_stand_in_a_file_in_the_order_of_the_schema() -> None:
    run = dict.fromkeys(CommandBody.model_fields) | {
        "utilisation": dict.fromkeys(UtilisationBody.model_fields)
    }
    body = dict.fromkeys(reversed(JobBody.model_fields)) | {"run": run}
    text = job_file_text(body)
    assert read_job_file(text) == body
    assert list(read_job_file(text)) == list(JobBody.model_fields)
