"""The labels of a job: a field of both forms, and how a page reads and shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import dash_mantine_components as dmc

from maat.api.jobs import JobBody
from maat.vocabulary import LABEL_KEY, LABEL_VALUE, MOST_LABELS

_LABEL = re.compile(f"{LABEL_KEY}={LABEL_VALUE}")


def labels_field(field_id: str) -> dmc.TagsInput:
    return dmc.TagsInput(
        id=field_id,
        label=JobBody.model_fields["labels"].title,
        value=[],
        placeholder="team=vision, then Enter",
        clearable=True,
        splitChars=[",", " "],
    )


def labels_of(texts: Sequence[str] | None) -> dict[str, str]:
    """Return what a field holds as the API's labels; the last counts if a key comes twice."""
    parted = (text.partition("=") for text in texts or ())
    return {key: value for key, _, value in parted}


def label_texts(labels: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in labels.items()]


def wrong_labels(texts: Sequence[str] | None) -> str:
    """Return what is wrong with what a field holds; nothing if the service takes it."""
    given = list(texts or ())
    wrong = next((text for text in given if not _LABEL.fullmatch(text)), None)
    if wrong is not None:
        return f"{wrong} is no label: write key=value, such as team=vision."
    if len(labels_of(given)) < len(given):
        return "A key comes twice: keep one of its labels."
    return f"Give at most {MOST_LABELS} labels." if len(given) > MOST_LABELS else ""
