"""Tests of the form that simulates: its bodies, its parameters, and the places of errors."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.components import conditions
from frontend.components.conditions import (
    describe,
    incomplete_fields,
    reservation_of,
)
from frontend.components.kept_traces import kept_in
from frontend.components.parameter_fields import described, errors_of, offered, placeholder
from frontend.forms import errors_by_field, parse_seeds
from frontend.pages.simulate import body_of as simulation_body
from frontend.pages.simulate import count_of, unfinished
from frontend.pages.simulate import place as simulation_place
from maat.client.errors import ApiError, FieldProblem

FORM: dict[str, Any] = {
    "name": "n",
    "kind": "csv",
    "uploaded": None,
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
    **conditions.USUAL,
    "strong_scaling_share": "",
    "parameters": {"ids": [], "values": []},
    "reserve": {"type": "", "holder": ""},
    "reservations": [],
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
        "least_stay_seconds": 600,
        "most_moves_per_hour": 4,
        "reservations": [reservation_of(values)],
    }

    body = simulation_body({**FORM, **asked}, texts=[""], cluster_id=None)

    assert not {
        "profiling",
        "rigid_share",
        "failures",
        "reservations",
        "least_stay_seconds",
        "most_moves_per_hour",
    } & set(simulation_body(FORM, texts=[""], cluster_id=None))
    assert (body["least_stay_seconds"], body["most_moves_per_hour"]) == (600, 4)
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
        ({"locality_penalty": "inf"}, "locality_penalty"),
        ({"locality_penalty": "nan"}, "locality_penalty"),
        ({"locality_penalty": "1.7, vgg19=3"}, "locality_penalty"),
        ({"locality_penalty": "vgg19="}, "locality_penalty"),
        ({"tuned_by_policy": "any-pair"}, "tuned_by_policy"),
        ({"tuned_by_policy": "sia=best"}, "tuned_by_policy"),
        ({"tuned_by_policy": "sia=any-pair, sia=best-batch"}, "tuned_by_policy"),
        ({"measured_jobs": "all"}, "measured_jobs"),
    ],
)
def test_what_was_begun_in_a_form_and_would_be_lost_is_said_beside_its_field(
    change: dict[str, Any], field: str
) -> None:
    assert not incomplete_fields(FORM)
    assert list(incomplete_fields({**FORM, **change})) == [field]


@pytest.mark.parametrize(
    ("field", "text", "beside"),
    [
        ("least_stay_seconds", "10m", "least_stay_seconds"),
        ("most_moves_per_hour", "2.5", "most_moves_per_hour"),
        ("mtbf_hours", "1e9", "mtbf_hours"),
        ("jobs_per_gpu", "two", "jobs_per_gpu"),
        ("slowdown", "1,2", "interference"),
    ],
)
def test_a_text_in_a_field_for_a_number_is_refused(field: str, text: str, beside: str) -> None:
    assert f"“{text}” is no number" in incomplete_fields({**FORM, field: text})[beside]


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


def test_a_rule_of_tuning_is_sent_with_the_runs_of_its_policy_and_a_window_with_all() -> None:
    form = {**FORM, "tuned_by_policy": " fifo = any-pair", "measured_jobs": " 2000 - 3000 "}

    body = simulation_body(form, texts=[""], cluster_id=None)

    assert [(run["policy"], run.get("tuned")) for run in body["runs"]] == [
        *[("sia", None)] * 2,
        *[("fifo", "any-pair")] * 2,
    ]
    assert (body["measured_jobs"], body["tuned_gpus"]) == ("2000-3000", 16)
    assert not unfinished({**form, "kind": "generated"}, [], None)
    for_others = unfinished({**form, "kind": "generated", "policies": ["sia"]}, [], None)
    assert list(for_others) == ["tuned_by_policy"]


def test_a_share_of_gpt_jobs_is_sent_where_it_was_asked_for() -> None:
    drawn = {**FORM, "kind": "generated", "family": "helios", "xxl_share": 0.1}

    assert simulation_body(drawn, texts=None, cluster_id=None)["traces"][0]["xxl_share"] == 0.1
    none = simulation_body({**drawn, "xxl_share": 0}, texts=None, cluster_id=None)
    assert "xxl_share" not in none["traces"][0]


@pytest.mark.parametrize(
    ("pointer", "field"),
    [
        ("/traces/1/text", "csv"),
        ("/traces/0/xxl_share", "xxl_share"),
        ("/measured_jobs", "measured_jobs"),
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
    problem = FieldProblem("/quotas", "quotas", "It is wrong.")

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


def test_an_uploaded_trace_is_a_choice_of_its_own() -> None:
    form = {**FORM, "kind": "uploaded"}
    assert unfinished(form, ["a"], None)["uploaded"] == "Choose an uploaded trace."
    chosen = {**form, "uploaded": "mea_1"}
    assert "uploaded" not in unfinished(chosen, [], None)
    body = simulation_body(chosen, texts=["a,b\n"], cluster_id=None)
    assert body["traces"] == [{"kind": "uploaded", "measurement": "mea_1"}]
    for pointer in ("/traces/0/measurement", "/traces/0/text"):
        assert simulation_place(FieldProblem(pointer, "", "", ""), body) == "uploaded"


def test_traces_of_earlier_simulations_are_offered_once_and_drawn_ones_are_not() -> None:
    def simulation(number: int, *traces: dict[str, object]) -> Any:
        request = {"traces": list(traces)}
        created = f"2026-01-0{number}T00:00:00Z"
        return {"id": f"sim_{number}", "name": "march", "created_at": created, "request": request}

    drawn, sent = {"kind": "generated"}, {"kind": "csv", "text_bytes": 1200}
    listed = [simulation(3, drawn, sent), simulation(2, sent), simulation(1, sent)]
    unreadable: Any = {**simulation(4), "request": {}}

    assert kept_in([unreadable, *listed]) == [
        {"value": "sim_3/1", "label": "march, trace 2: 1 200 bytes, 3 Jan 00:00:00"},
        {"value": "sim_2/0", "label": "march: 1 200 bytes, 2 Jan 00:00:00"},
    ]
