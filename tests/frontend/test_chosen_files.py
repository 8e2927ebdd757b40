"""Files that a visitor chooses: their text, however its letters are coded, or why there is none."""

from __future__ import annotations

import asyncio
import base64
import gzip

import pytest
from dash import dcc

from frontend.components.files import ChosenText, NoText, texts_in
from frontend.pages.measurements import layout
from maat.api.measurements import MAX_BYTES

TEXT = "job,user\n1,ren\N{LATIN SMALL LETTER E WITH ACUTE}\n"


def chosen(content: bytes) -> ChosenText:
    sent = f"data:text/csv;base64,{base64.b64encode(content).decode()}"
    (file,) = asyncio.run(texts_in(sent, "jobs.csv"))
    return file


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_text_is_read_by_its_encoding(encoding: str) -> None:
    assert chosen(TEXT.encode(encoding)) == ChosenText("jobs.csv", TEXT, "")


def test_a_line_that_is_not_utf8_is_read_and_told() -> None:
    file = chosen(TEXT.encode("cp1252"))
    assert file.text == TEXT
    assert "read as Windows-1252" in file.note


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(TEXT.encode()), r"jobs.csv is compressed \(gzip\). Unpack it with gunzip"),
        (b"\x89PNG\xff\x00", "is a binary file"),
        (bytes(range(128, 256)) * 9, "is a binary file"),
        (b" \n", "is empty"),
    ],
    ids=["packed", "picture", "bytes", "empty"],
)
def test_what_is_no_text_is_refused_by_name(content: bytes, words: str) -> None:
    with pytest.raises(NoText, match=words):
        chosen(content)


def test_the_box_of_measurements_refuses_what_the_service_would() -> None:
    (box,) = [part for part in layout()._traverse() if isinstance(part, dcc.Upload)]
    assert box.max_size == box.children.to_plotly_json()["props"]["data-most-bytes"] == MAX_BYTES
