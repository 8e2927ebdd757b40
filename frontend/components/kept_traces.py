"""Traces of earlier simulations: one is chosen instead of a new file.

A simulation keeps the text of its traces, imported ones too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256

import dash_mantine_components as dmc
from dash import Dash, Input, Output

from frontend.api import Api, Failure, error_message
from frontend.callbacks import NOTHING, Changes, answer
from frontend.formatting import clock, plural
from maat.api.simulation_answers import SimulationOut
from maat.client import calls

MOST_LOOKED_AT = 100  # simulations


def kept_trace_field(prefix: str) -> dmc.Select:
    return dmc.Select(
        id=f"{prefix}-kept",
        label="Or one of an earlier simulation",
        placeholder="none yet",
        data=[],
        clearable=True,
        searchable=True,
        size="xs",
    )


def register_kept_traces(app: Dash, api: Api, prefix: str) -> None:
    answer(
        app,
        partial(offer, api),
        output={
            "traces": Output(f"{prefix}-kept", "data"),
            "words": Output(f"{prefix}-kept", "placeholder"),
        },
        inputs={"_key": Input(f"{prefix}-key", "data")},
    )
    answer(
        app,
        partial(take, api),
        output={
            "texts": Output(f"{prefix}-text", "data", allow_duplicate=True),
            "digests": Output(f"{prefix}-files", "data", allow_duplicate=True),
            "file": Output(f"{prefix}-file", "children", allow_duplicate=True),
            "error": Output(f"{prefix}-csv-error", "children", allow_duplicate=True),
        },
        inputs={"chosen": Input(f"{prefix}-kept", "value")},
        prevent_initial_call=True,
    )


async def offer(api: Api, *, _key: str) -> Changes:
    """Offer the traces of the newest simulations that the visitor sees."""
    try:
        async with api.visitor() as maat:
            page = await maat.send(calls.simulations(limit=MOST_LOOKED_AT))
    except Failure as error:
        return {"words": error_message(error)[0]}
    found = kept_in(page["items"])
    return {"traces": found, "words": "choose one" if found else "none yet"}


def kept_in(simulations: Sequence[SimulationOut]) -> list[dict[str, str]]:
    """Return the CSV traces, newest first; one that was sent again under its name, once."""
    found: dict[tuple[str, int, int], dict[str, str]] = {}
    for simulation in simulations:
        traces = simulation["request"].get("traces", [])
        for number, size in _csv_in(traces):
            which = f", trace {number + 1}" if len(traces) > 1 else ""
            name = simulation["name"] or simulation["id"]
            words = f"{name}{which}: {plural(size, 'byte')}, {clock(simulation['created_at'])}"
            entry = {"value": f"{simulation['id']}/{number}", "label": words}
            found.setdefault((name, number, size), entry)
    return list(found.values())


def _csv_in(traces: Sequence[dict[str, object]]) -> Iterator[tuple[int, int]]:
    """Yield number and size in bytes of each trace that was sent as text."""
    for number, trace in enumerate(traces):
        size = trace.get("text_bytes")
        if isinstance(size, int):
            yield number, size


async def take(api: Api, *, chosen: str | None) -> Changes:
    """Take the text of the chosen trace as if its file had been uploaded again."""
    if not chosen:
        return NOTHING
    simulation_id, _, number = chosen.partition("/")
    try:
        async with api.visitor() as maat:
            text = (await maat.send(calls.simulation_trace(simulation_id, int(number))))["text"]
    except Failure as error:
        why = ". ".join(error_message(error))
        return {"texts": None, "digests": [], "file": "", "error": why}
    return {
        "texts": [text],
        "digests": [sha256(text.encode()).hexdigest()],
        "file": f"An earlier trace: {plural(text.count(chr(10)), 'line')}",
        "error": "",
    }
