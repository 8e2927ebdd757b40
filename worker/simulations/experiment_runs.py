"""The runs of experiments as JSON for the API and the pages."""

from __future__ import annotations

from typing import Any

from backend.answers import answer_of
from backend.experiments.requests import AnyExperiment
from backend.simulations.series import reduced
from maat.api.experiments import RentedOut, SearchOut, TrialOut
from maat.laboratory.experiments import Autoscaling, ElasticAgainstStatic
from maat.laboratory.shares import OnShare
from maat.laboratory.tuning import TrialRecord
from maat.scheduling.policies import suiting_placer


def run_to_json(plan: AnyExperiment, run: str, *, on_share: OnShare) -> dict[str, Any]:
    """Play a run and return it as it is answered. Series have at most as many points as charts."""
    if isinstance(plan, Autoscaling):
        return dict(_rented(plan, run, on_share))
    return dict(_searched(plan, run, on_share))


def _rented(plan: Autoscaling, run: str, on_share: OnShare) -> RentedOut:
    found = plan.play(run, on_share=on_share)
    return answer_of(
        RentedOut,
        found,
        run=run,
        title=plan.title_of(run),
        nodes=plan.fixed_nodes_of(run),
        rented=reduced(found.rented),
        efficiencies=reduced(found.efficiencies),
    )


def _searched(plan: ElasticAgainstStatic, run: str, on_share: OnShare) -> SearchOut:
    found = plan.play(run, on_share=on_share)
    return SearchOut(
        run=run,
        title=plan.title_of(run),
        policy=found.policy,
        placer=suiting_placer(found.policy),
        top_score=found.top_score(),
        avg_jct_seconds=found.average_jct_seconds,
        makespan_seconds=found.makespan_seconds,
        trials=[_trial(record) for record in found.records],
    )


def _trial(record: TrialRecord) -> TrialOut:
    return TrialOut(
        name=record.name,
        submit_seconds=record.submit,
        end_seconds=record.finish,
        score=record.score,
        settings=dict(record.settings),
    )
