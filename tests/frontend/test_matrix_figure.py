"""The matrix of a round: jobs by configurations, with what was chosen."""

from __future__ import annotations

import re

import frontend_samples as samples
import plotly.graph_objects as go
import pytest

from frontend.figures.matrix import MAX_JOBS, matrix_figure

FRAME = re.compile(r"M([-\d.]+),([-\d.]+)H([-\d.]+)V([-\d.]+)H\1Z")


def framed(figure: go.Figure) -> list[tuple[int, int]]:
    """The cells with a frame, of which each has a black and a white one."""
    black, white = (shape.path for shape in figure.layout.shapes if shape.name == "chosen")
    assert black == white
    assert FRAME.sub("", black) == ""
    edges = [tuple(map(float, frame)) for frame in FRAME.findall(black)]
    return [(round((x0 + x1) / 2), round((y0 + y1) / 2)) for x0, y0, x1, y1 in edges]


def test_the_matrix_frames_exactly_the_chosen_cells() -> None:
    figure = matrix_figure(samples.record(), scheme="light")

    assert sorted(framed(figure)) == [(1, 0), (3, 2)]


def test_the_matrix_leaves_infeasible_cells_without_a_value_and_scales_each_job_by_its_best() -> (
    None
):
    figure = matrix_figure(samples.record(), scheme="light")

    assert figure.data[0].z[2][0] is None
    assert figure.data[0].z[2][1] is None
    assert figure.data[0].z[0][2] == 1.0
    assert figure.data[0].z[0][0] == pytest.approx(0.25)
    assert "cannot run" in figure.data[0].hovertext[2][0]
    assert "goodput 180" in figure.data[0].hovertext[0][1]
    assert "chosen" in figure.data[0].hovertext[0][1]


@pytest.mark.parametrize(("count", "angle"), [(6, 0), (8, -90)])
def test_names_of_configurations_stand_upright_where_they_would_run_into_one_another(
    count: int, angle: int
) -> None:
    configurations = [
        {"gpu_type": "a100", "gpu_count": 1 + index, "node_count": 1} for index in range(count)
    ]
    pairs = {
        "job": [0] * count,
        "column": list(range(count)),
        "goodput": [1.0] * count,
        "utility": None,
    }
    record = {
        **samples.record(),
        "job_names": ["a"],
        "chosen": [0],
        "configurations": configurations,
        "pairs": pairs,
    }

    assert matrix_figure(record, scheme="light").layout.xaxis.tickangle == angle


def test_a_long_name_beside_the_matrix_keeps_its_ends() -> None:
    record = {**samples.record(), "job_names": ["deepspeech2-finetune-0025-0001"] * 3}

    layout = matrix_figure(record, scheme="light").layout

    assert layout.yaxis.ticktext[0] == "1. deepspeech…e-0025-0001"
    assert layout.meta["row_names"][0] == "1. deepspeech2-finetune-0025-0001"


def test_the_matrix_pages_through_many_jobs() -> None:
    count = MAX_JOBS + 5
    record = {
        **samples.record(),
        "job_ids": [f"job_{i}" for i in range(count)],
        "job_names": [f"job {i}" for i in range(count)],
        "pairs": {
            "job": list(range(count)),
            "column": [0] * count,
            "goodput": [1.0] * count,
            "utility": None,
        },
        "chosen": [0] * count,
        "runner_up": [None] * count,
        "why": [[]] * count,
    }

    assert len(matrix_figure(record, scheme="light").data[0].y) == MAX_JOBS
    assert len(matrix_figure(record, scheme="light", first=MAX_JOBS).data[0].y) == 5


def test_of_another_tenants_job_the_matrix_has_a_frame_and_no_goodput() -> None:
    record = samples.record()
    pairs = record["pairs"]
    kept = [
        i
        for i, row in enumerate(pairs["job"])
        if row != 0 or pairs["column"][i] == record["chosen"][0]
    ]
    hidden = {
        name: values
        if values is None
        else [None if name == "goodput" and pairs["job"][i] == 0 else values[i] for i in kept]
        for name, values in pairs.items()
    }
    seen = {
        **record,
        "job_names": ["another tenant's job", *record["job_names"][1:]],
        "pairs": hidden,
        "others": [0],
    }
    figure = matrix_figure(seen, scheme="light")
    assert framed(figure) == framed(matrix_figure(record, scheme="light"))
    assert all(value is None for value in figure.data[0].z[0])
    assert any(value is not None for value in figure.data[0].z[1])
    assert all(
        "another tenant's job" in text and "goodput" not in text
        for text in (text.replace("&#x27;", "'") for text in figure.data[0].hovertext[0])
    )


def test_a_round_in_which_only_others_waited_says_so() -> None:
    record = {
        **samples.record(),
        "pairs": {"job": [], "column": [], "goodput": [], "utility": []},
        "chosen": [None] * 3,
        "others": [0, 1, 2],
    }
    told = " ".join(note.text for note in matrix_figure(record, scheme="light").layout.annotations)
    assert "Only jobs of other tenants waited" in told
