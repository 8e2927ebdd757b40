"""Tests of forms: the choices they offer, the bodies they send, and the places of errors.

The format of numbers is tested in test_words.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from backend import pagination
from frontend.components.conditions import (
    DRAW,
    MAX_JOBS_PER_GPU,
    MAX_TUNED_GPUS,
    PROFILING,
    TUNED,
    describe,
    incomplete_fields,
    reservation_of,
)
from frontend.components.parameter_fields import described, errors_of, offered, placeholder
from frontend.components.reservation_fields import unfinished_reservation
from frontend.components.trace_fields import FAMILIES, MAX_TRACES
from frontend.forms import errors_by_field, parse_seeds
from frontend.pages import simulate
from frontend.pages.jobs import blocks
from frontend.pages.reservations import body_of as reservation_body
from frontend.pages.simulate import body_of as simulation_body
from frontend.pages.simulate import count_of
from frontend.pages.simulate import place as simulation_place
from frontend.pages.submit.model import (
    body_of,
    in_form_words,
    refused,
    still_wrong,
    types_of,
    unfinished,
    values_like,
)
from frontend.problems import friendly_message
from maat.api import simulations as schemas
from maat.client.errors import ApiError, FieldProblem
from maat.scheduling import cluster
from maat.vocabulary import ProfilingMode, ScoreDraw, TuningRule
from maat.workloads import generators

FORM: dict[str, Any] = {
    "name": "n",
    "kind": "csv",
    "family": "",
    "jobs": 1,
    "hours": 1,
    "seed": 0,
    "cluster": "",
    "fidelity": "paper",
    "draws": 1,
    "policies": ["sia", "fifo"],
    "placers": [],
    "seeds": "0,1",
    "profiling": "fidelity",
    "tuned": "none",
    "tuned_gpus": 16,
    "jobs_per_gpu": 1,
    "interference": "none",
    "slowdown": 1.25,
    "rigid_share": 0,
    "strong_scaling_share": "",
    "mtbf_hours": "",
    "repair_minutes": "",
    "variability": "alike",
    "variability_draw": "fidelity",
    "locality_penalty": "",
    "parameters": {"ids": [], "values": []},
    "reserve": {"type": "", "holder": ""},
    "reservations": [],
}


def test_the_pages_offer_what_the_service_takes_and_no_more() -> None:
    assert {value for value, _ in PROFILING} == {"fidelity", *ProfilingMode}
    assert {value for value, _ in TUNED} == {"none", *TuningRule}
    assert {value for value, _ in DRAW} == {"fidelity", *ScoreDraw}
    assert {value for value, _ in FAMILIES} <= set(generators.FAMILIES)
    assert (simulate.MAX_RUNS, MAX_TRACES) == (schemas.MAX_RUNS, schemas.MAX_TRACES)
    assert blocks.MAX_LIMIT == pagination.MAX_LIMIT
    assert (MAX_JOBS_PER_GPU, MAX_TUNED_GPUS) == (cluster.MAX_JOBS_PER_GPU, schemas.MAX_TUNED_GPUS)


def test_the_form_leaves_out_what_is_empty_or_means_nothing_for_the_kind_of_job() -> None:
    values = {
        "name": "a",
        "model": "bert",
        "adaptivity": "rigid",
        "gpu_count": 4,
        "min_gpus": 2,
        "max_gpus": 8,
        "batch_size": 64,
        "max_batch_size": 128,
    }
    rest = {
        "work_scale": 1,
        "gpu_types": [],
        "labels": ["team=vision"],
        "external_id": "",
        "workload_kind": "training",
        "promised_seconds": 9,
    }

    rigid = body_of({**values, **rest}, preemptible=True, cluster_id="clu_1")
    adaptive = body_of(
        {**values, **rest, "adaptivity": "adaptive"}, preemptible=False, cluster_id=None
    )

    assert rigid == {
        "name": "a",
        "model": "bert",
        "adaptivity": "rigid",
        "gpu_count": 4,
        "batch_size": 64,
        "work_scale": 1,
        "labels": {"team": "vision"},
        "workload_kind": "training",
        "cluster_id": "clu_1",
        "preemptible": True,
    }
    assert adaptive == {
        "name": "a",
        "model": "bert",
        "adaptivity": "adaptive",
        "min_gpus": 2,
        "max_gpus": 8,
        "max_batch_size": 128,
        "work_scale": 1,
        "labels": {"team": "vision"},
        "workload_kind": "training",
        "preemptible": False,
    }


def test_latency_bound_inference_sends_its_promise_and_the_batch_that_it_is_for_whatever_may_vary() -> (  # noqa: E501
    None
):
    values = {
        "name": "a",
        "model": "bert",
        "adaptivity": "adaptive",
        "max_gpus": 8,
        "batch_size": 16,
        "max_batch_size": 64,
    }

    body = body_of(
        {**values, "workload_kind": "latency-inference", "promised_seconds": 0.2},
        preemptible=True,
        cluster_id=None,
    )

    assert (body["batch_size"], body["promised_seconds"], body["max_gpus"]) == (16, 0.2, 8)
    assert "max_batch_size" not in body


def test_a_live_reservation_counts_its_hours_on_the_clock_of_the_cluster() -> None:
    values = {"type": "a100", "gpus": 4, "for": "job", "holder": " job_1 ", "from": 0, "until": 1.5}

    now = reservation_body(values, now="2026-11-20T12:00:00.000Z")
    later = reservation_body(
        {**values, "for": "tenant", "holder": "vision", "from": 2, "until": ""},
        now="2026-11-20T12:00:00.000Z",
    )

    assert now == {
        "gpu_type": "a100",
        "gpu_count": 4,
        "job_id": "job_1",
        "end_at": "2026-11-20T13:30:00+00:00",
    }
    assert later == {
        "gpu_type": "a100",
        "gpu_count": 4,
        "tenant": "vision",
        "start_at": "2026-11-20T14:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("0", [0]),
        ("0, 1,2", [0, 1, 2]),
        ("", None),
        ("a", None),
        ("-1", None),
        ("1.5", None),
        ("0, 0", None),
    ],
)
def test_seeds_are_whole_numbers_from_zero_each_once(text: str, seeds: list[int] | None) -> None:
    assert parse_seeds(text) == seeds


def test_an_empty_name_is_asked_for_in_plain_words() -> None:
    raw = {
        "field": "name",
        "message": "String should have at least 1 character.",
        "remedy": "Give at least 1 characters.",
    }

    assert (
        friendly_message(
            FieldProblem.parse({**raw, "code": "string_too_short"}),
            empty_name="Give the job a name.",
        )
        == "Give the job a name."
    )


def test_the_simulate_form_leaves_the_placer_to_the_one_that_suits_each_policy() -> None:
    body = simulation_body(FORM, texts=[""], cluster_id=None)

    assert body["runs"] == [
        {"policy": policy, "seed": seed} for policy in ("sia", "fifo") for seed in (0, 1)
    ]


def test_every_policy_is_sent_with_every_placer_and_every_draw_is_a_trace() -> None:
    form = {
        **FORM,
        "kind": "generated",
        "family": "philly",
        "seed": 5,
        "draws": 3,
        "placers": ["pal", "random"],
        "seeds": "0",
    }

    body = simulation_body(form, texts=None, cluster_id=None)

    assert [(run["policy"], run["placer"]) for run in body["runs"]] == [
        (p, q) for p in ("sia", "fifo") for q in ("pal", "random")
    ]
    assert [trace["seed"] for trace in body["traces"]] == [5, 6, 7]
    assert count_of(form, []) == 12


def test_conditions_are_sent_in_the_units_of_the_api_and_only_where_they_were_set() -> None:
    values = {"type": " a100", "gpus": 4, "for": "job", "holder": "bert-1", "from": 0, "until": 1.5}
    asked = {
        "profiling": "oracle",
        "rigid_share": 0.5,
        "mtbf_hours": 100,
        "repair_minutes": 20,
        "reservations": [reservation_of(values)],
    }

    body = simulation_body({**FORM, **asked}, texts=[""], cluster_id=None)

    assert not {"profiling", "rigid_share", "failures", "reservations"} & set(
        simulation_body(FORM, texts=[""], cluster_id=None)
    )
    assert (body["profiling"], body["rigid_share"], body["failures"]) == (
        "oracle",
        0.5,
        {"mtbf_hours": 100.0, "repair_seconds": 1200.0},
    )
    assert body["reservations"] == [
        {
            "gpu_type": "a100",
            "gpu_count": 4,
            "job": "bert-1",
            "start_seconds": 0.0,
            "end_seconds": 5400.0,
        }
    ]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"reserve": {"type": "a100", "holder": ""}}, "reservations"),
        ({"reserve": {"type": "", "holder": "vision"}}, "reservations"),
        ({"repair_minutes": 20}, "repair_minutes"),
        ({"locality_penalty": "much"}, "locality_penalty"),
        ({"locality_penalty": "nan"}, "locality_penalty"),
        ({"locality_penalty": "1.7, vgg19=3"}, "locality_penalty"),
        ({"locality_penalty": "vgg19="}, "locality_penalty"),
    ],
)
def test_what_was_begun_in_a_form_and_would_be_lost_is_said_beside_its_field(
    change: dict[str, Any], field: str
) -> None:
    assert not incomplete_fields(FORM)
    assert list(incomplete_fields({**FORM, **change})) == [field]


@pytest.mark.parametrize(
    ("change", "sent"),
    [
        ({"jobs_per_gpu": 2}, {"jobs_per_gpu": 2}),
        (
            {"jobs_per_gpu": 2, "interference": "synthetic"},
            {"jobs_per_gpu": 2, "interference": "synthetic"},
        ),
        (
            {"jobs_per_gpu": 3, "interference": "constant", "slowdown": 1.5},
            {"jobs_per_gpu": 3, "interference": 1.5},
        ),
        ({"jobs_per_gpu": 3, "interference": "constant", "slowdown": ""}, {"jobs_per_gpu": 3}),
        ({"tuned": "any-pair"}, {"tuned": "any-pair", "tuned_gpus": 16}),
        ({"tuned_gpus": 64, "slowdown": 2}, {}),
    ],
)
def test_shared_gpus_and_tuned_jobs_are_sent_where_they_were_asked_for(
    change: dict[str, Any], sent: dict[str, Any]
) -> None:
    body = simulation_body({**FORM, **change}, texts=[""], cluster_id=None)

    assert {
        name: body.get(name)
        for name in ("jobs_per_gpu", "interference", "tuned", "tuned_gpus")
        if name in body
    } == sent


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": " "}, "GPU type"),
        ({"gpus": ""}, "how many GPUs"),
        ({"holder": ""}, "tenant"),
        ({"from": 2, "until": 2}, "end after"),
    ],
)
def test_a_reservation_that_lacks_something_says_what(change: dict[str, Any], words: str) -> None:
    values = {
        "type": "a100",
        "gpus": 4,
        "for": "tenant",
        "holder": "vision",
        "from": 0,
        "until": "",
    }

    (field,) = change.keys() - {"from"}
    assert unfinished_reservation(values) == {}
    assert words in unfinished_reservation({**values, **change})[field]


@pytest.mark.parametrize(
    ("pointer", "field"),
    [
        ("/traces/1/text", "csv"),
        ("/trace/generated/jobs", "jobs"),
        ("/runs/0/policy", "policies"),
        ("/failures/mtbf_hours", "mtbf_hours"),
        ("/interference", "interference"),
        ("/jobs_per_gpu", "jobs_per_gpu"),
        ("/reservations/0/job", "reservations"),
        ("/name", "name"),
    ],
)
def test_a_refusal_stands_beside_the_field_that_it_is_about(pointer: str, field: str) -> None:
    problem = FieldProblem(pointer, pointer.rsplit("/", 1)[-1], "It is wrong.", "code", "Mend it.")

    assert errors_by_field(
        ApiError(status=422, title="t", errors=(problem,)),
        lambda found: simulation_place(found, {"runs": []}),
        empty_name="",
    ) == ({field: "It is wrong. Mend it."}, None)


def test_a_refusal_of_no_field_of_the_form_stands_above_it() -> None:
    problem = FieldProblem("/fidelity", "fidelity", "It is wrong.")

    beside, above = errors_by_field(
        ApiError(status=422, title="t", errors=(problem,)),
        lambda found: simulation_place(found, {"runs": []}),
        empty_name="",
    )

    assert beside == {}
    assert above is not None


def parameter(name: str, kind: str, default: Any, **more: Any) -> Any:
    empty = dict.fromkeys(("unit", "source", "minimum", "maximum", "choices"))
    return {
        "name": name,
        "type": kind,
        "default": default,
        "help": "It does this.",
        **empty,
        **more,
    }


PRESET: Any = {
    "name": "sia-artifact",
    "summary": "",
    "round_seconds": None,
    "policy_parameters": {"sia": {"p": -1.0}},
    "placer_parameters": {},
}


def test_a_field_stands_for_every_parameter_with_its_range_its_source_and_what_holds_without_it() -> (  # noqa: E501
    None
):
    p = parameter("p", "number", -0.5, minimum=-10, maximum=10, source="Sia section 3.4")
    assert described(p) == "It does this. From -10 to 10. Source: Sia section 3.4."
    assert placeholder("policy:sia", p, None) == "-0.5"
    assert placeholder("policy:sia", p, PRESET) == "-1 (sia-artifact)", "the fidelity's own value"
    assert placeholder("policy:fifo", p, PRESET) == "-0.5"
    assert placeholder("policy:fifo", parameter("sticky", "boolean", True), PRESET) == "yes"


def test_the_interval_of_rounds_stands_beside_the_parameters_of_policies_alone() -> None:
    fifo: Any = {"name": "fifo", "round_seconds": 60.0, "parameters": []}
    ((field, placed),) = offered("policy:fifo", fifo, PRESET)
    assert (field["name"], field["unit"], placed) == ("round_seconds", "s", "60")
    ((_, placed),) = offered("policy:fifo", fifo, {**PRESET, "round_seconds": 360.0})
    assert placed == "360 (sia-artifact)", "the fidelity's own value"
    assert offered("placer:pal", {**fifo, "round_seconds": None}, PRESET) == []


def test_the_interval_of_rounds_is_sent_with_the_runs_of_its_policy() -> None:
    given = {"ids": [{"of": "policy:sia", "name": "round_seconds"}], "values": [120]}
    body = simulation_body({**FORM, "seeds": "0", "parameters": given}, texts=[""], cluster_id=None)
    assert [(run["policy"], run.get("round_seconds")) for run in body["runs"]] == [
        ("sia", 120),
        ("fifo", None),
    ]
    assert not any("policy_parameters" in run for run in body["runs"])
    refused = FieldProblem("/runs/0/round_seconds", "", "")
    assert simulation_place(refused, body) == "policy:sia/round_seconds"


def test_parameters_that_were_typed_are_sent_with_the_runs_of_their_policy_and_placer() -> None:
    fields = {
        ("policy:sia", "p"): -1,
        ("policy:fifo", "head_of_line"): "",
        ("placer:pal", "binning"): "two",
        ("policy:sia", "robust"): "yes",
    }
    given = {
        "ids": [{"of": of, "name": name} for of, name in fields],
        "values": list(fields.values()),
    }

    body = simulation_body(
        {**FORM, "seeds": "0", "placers": ["pal"], "parameters": given}, texts=[""], cluster_id=None
    )

    assert [run.get("policy_parameters") for run in body["runs"]] == [
        {"p": -1, "robust": True},
        None,
    ]
    assert [run["placer_parameters"] for run in body["runs"]] == [{"binning": "two"}] * 2
    refused = FieldProblem.parse(
        {
            "pointer": "/runs/0/policy_parameters/p",
            "field": "p",
            "message": "It is out of range.",
            "remedy": "x",
        }
    )
    where = simulation_place(refused, body)
    assert where == "policy:sia/p"
    assert errors_of(given, {where: "It is out of range."}) == ["It is out of range.", "", "", ""]


def test_uploaded_measurements_are_sent_by_their_id() -> None:
    asked = {
        "jobs_per_gpu": 2,
        "interference": "uploaded:mea_1#p100",
        "variability": "uploaded:mea_2",
    }

    body = simulation_body({**FORM, **asked}, texts=[""], cluster_id=None)

    assert (body["interference"], body["variability"]) == ("mea_1#p100", "mea_2")
    used = [
        {"kind": "interference", "name": "Gavel", "gpu_type": "p100"},
        {"kind": "variability", "name": "TACC", "gpu_type": None},
    ]
    assert describe(body, used) == [
        ("Jobs per GPU", "up to 2, interference Gavel, p100"),
        ("GPUs of one type", "unequal as TACC measured"),
    ]


def test_the_draw_and_the_slowdown_across_nodes_are_sent_where_they_were_set_and_told_in_words() -> (  # noqa: E501
    None
):
    asked = {
        "variability": "uploaded:mea_2",
        "variability_draw": "rows",
        "locality_penalty": " 1.7",
    }

    one = simulation_body({**FORM, **asked}, texts=[""], cluster_id=None)
    by_model = simulation_body(
        {**FORM, "locality_penalty": "resnet50=1.2, vgg19=3"}, texts=[""], cluster_id=None
    )

    assert not {"variability_draw", "locality_penalty"} & set(
        simulation_body(FORM, texts=[""], cluster_id=None)
    )
    assert (one["variability_draw"], one["locality_penalty"]) == ("rows", 1.7)
    assert by_model["locality_penalty"] == {"resnet50": 1.2, "vgg19": 3.0}
    used = [{"kind": "variability", "name": "TACC", "gpu_type": None}]
    assert describe(one, used) == [
        ("GPUs of one type", "unequal as TACC measured, each a single measurement"),
        ("Slowdown across nodes", "1.7 for every model"),
    ]
    assert describe(by_model) == [("Slowdown across nodes", "1.2 for resnet50, 3 for vgg19")]


CIFAR: dict[str, Any] = {
    "name": "cifar10",
    "initial_batch_size": 128,
    "max_batch_size": 4096,
    "gpu_types": [
        {"gpu_type": name, "gpus_per_replica": unit}
        for name, unit in (("t4", 1), ("a100", 2), ("v100", 1))
    ],
}
HERE = {"t4": 8, "a100": 1}
JOB: dict[str, Any] = {
    "name": "n",
    "model": "cifar10",
    "adaptivity": "rigid",
    "gpu_count": 4,
    "min_gpus": 1,
    "max_gpus": "",
    "batch_size": "",
    "max_batch_size": "",
    "work_scale": 1,
    "gpu_types": [],
    "labels": [],
    "external_id": "",
    "workload_kind": "training",
    "promised_seconds": "",
}


def test_everything_that_is_wrong_with_a_job_is_told_at_once_in_the_words_of_the_form() -> None:
    wrong = {**JOB, "name": " ", "model": None, "gpu_count": 100, "batch_size": 7, "work_scale": 0}

    assert unfinished(JOB, CIFAR, HERE) == {}
    assert unfinished(wrong, CIFAR, HERE) == {
        "name": "Give the job a name.",
        "model": "Choose a model.",
        "gpu_count": "The cluster has at most 8 GPUs of one type that this job may use.",
        "batch_size": "Give 128 to 4 096: at those the model was measured.",
        "work_scale": "Give a number above 0, at most 1 000.",
    }
    adaptive = {
        **JOB,
        "adaptivity": "adaptive",
        "gpu_count": "",
        "min_gpus": 4,
        "max_gpus": 2,
        "max_batch_size": 9000,
    }
    assert set(unfinished(adaptive, CIFAR, HERE)) == {"max_gpus", "max_batch_size"}
    bound = {**JOB, "workload_kind": "latency-inference"}
    assert set(unfinished(bound, CIFAR, HERE)) == {"batch_size", "promised_seconds"}


def test_only_types_of_the_cluster_that_hold_a_replica_are_offered() -> None:
    assert types_of(CIFAR, HERE) == ["t4"]
    assert types_of(CIFAR, {}) == ["t4", "a100", "v100"]


def test_what_the_service_said_stays_until_its_field_is_mended() -> None:
    told = {"values": JOB, "errors": {"external_id": "It is taken.", "gpu_count": "No."}}

    assert still_wrong(JOB, told, CIFAR, HERE) == told["errors"]
    assert still_wrong({**JOB, "external_id": "mine"}, told, CIFAR, HERE) == {"gpu_count": "No."}
    assert still_wrong({**JOB, "adaptivity": "strong-scaling"}, told, CIFAR, HERE) == {}


def test_names_of_the_api_read_as_the_form_labels_them() -> None:
    assert (
        in_form_words("Give at most 4, or a larger max_batch_size.")
        == "Give at most 4, or a larger “Largest batch size”."
    )
    problem = FieldProblem(
        "/gpu_types/0", "0", "There is none.", "no_such_gpu_type", "Use min_gpus."
    )
    assert refused([problem]) == {"gpu_types": "There is none. Use “At least”."}


def test_an_empty_fixed_batch_is_sent_as_the_one_that_the_form_shows() -> None:
    assert body_of(JOB, preemptible=True, cluster_id=None, own_batch=128)["batch_size"] == 128
    assert (
        body_of({**JOB, "batch_size": 256}, preemptible=True, cluster_id=None, own_batch=128)[
            "batch_size"
        ]
        == 256
    )
    assert "batch_size" not in body_of(
        {**JOB, "adaptivity": "adaptive"}, preemptible=True, cluster_id=None, own_batch=128
    )


def test_a_form_is_filled_as_a_job_was_declared_but_for_what_a_remedy_changes_and_for_its_unique_id() -> (  # noqa: E501
    None
):
    declared = {
        **JOB,
        "max_gpus": None,
        "gpu_types": None,
        "labels": {"team": "vision"},
        "priority": 3,
        "external_id": "run-7",
        "batch_size": 512,
    }

    filled = values_like(declared, {"gpu_count": 2})

    labels = ["team=vision"]
    assert filled == {**JOB, "gpu_count": 2, "batch_size": 512, "priority": "3", "labels": labels}
