"""Tests of the names of files in an uploaded zip: any name is taken or refused, never an error."""

from __future__ import annotations

import base64
import io
import re
import zipfile

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from measurement_samples import GPUS, MEASUREMENTS
from pydantic import TypeAdapter

from backend.measurements.archives import texts_of_archive
from backend.problems import Invalid
from maat.api.fields import Name

NO_NAME = "A file in the zip has no name."
LEADS_OUT = "A name in the zip leads out of its folder."
TOO_LONG = "A name in the zip is too long."
NOT_SHOWN = "A name in the zip holds characters that cannot be shown, or begins or ends with white"
awkward = st.text("./\\: \0\u202eaC-", max_size=8)


def zip_of(*names: str, text: str = GPUS) -> str:
    """Return a zip in base64 whose entries have exactly these names."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            entry = zipfile.ZipInfo()
            entry.filename = name
            archive.writestr(entry, text)
    return base64.b64encode(packed.getvalue()).decode()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", NO_NAME),
        (".", NO_NAME),
        ("./.", NO_NAME),
        ("\0bert-t4.csv", NOT_SHOWN),
        ("bert-t4.csv\0", NOT_SHOWN),
        ("bert-t4.csv ", NOT_SHOWN),
        (f"{'b' * 200}-t4.csv", TOO_LONG),
        ("a/../../bert-t4.csv", LEADS_OUT),
        ("C:bert-t4.csv", LEADS_OUT),
    ],
)
def test_a_name_that_is_none_is_refused_in_words(name: str, says: str) -> None:
    with pytest.raises(Invalid, match=re.escape(says)):
        texts_of_archive(zip_of(name))


def test_a_zip_of_a_file_without_a_name_is_a_request_that_is_refused(client: TestClient) -> None:
    body = {"kind": "variability", "name": "hostile", "archive": zip_of("")}
    answer = client.post(MEASUREMENTS, json=body)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/archive", "path")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@settings(deadline=None, max_examples=200)
@given(names=st.lists(awkward | st.text(st.characters(codec="utf-8")), min_size=1, max_size=3))
def test_of_any_names_all_are_as_files_may_be_named_or_the_zip_is_refused(
    names: list[str],
) -> None:
    try:
        texts = texts_of_archive(zip_of(*names))
    except Invalid:
        return
    for name in texts:
        assert TypeAdapter(Name).validate_python(name) == name
        assert not {"", ".", ".."} & set(name.split("/"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_is_packed_once_however_its_name_is_written() -> None:
    assert texts_of_archive(zip_of("./a//bert-t4.csv")) == {"a/bert-t4.csv": GPUS}
    with pytest.raises(Invalid, match="Two files in the zip have this name"):
        texts_of_archive(zip_of("./bert-t4.csv", "bert-t4.csv"))
