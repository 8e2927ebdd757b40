"""Register callbacks: module functions that name what they change.

A page's `register` binds what a function needs with `partial` and gives its outputs names:

    answer(app, partial(show, api), output={"note": Output(...)}, inputs={"live": Input(...)})

The function takes its inputs and state by name and returns the outputs that change, by name. Every
output that it does not name keeps its value. Callbacks that need no data run in the browser:
`in_browser`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, Literal, TypeAlias, cast

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, no_update
from dash.exceptions import PreventUpdate

Changes: TypeAlias = Mapping[str, object]
"""Name of an output -> its new value. An output that is absent keeps its value."""
Function: TypeAlias = Callable[..., Awaitable[Changes]]
Outputs: TypeAlias = Mapping[str, "Output | Mapping[str, Output]"]
"""Name -> output, or a group of named outputs. The answer for a group is a mapping of its own."""
Sources: TypeAlias = Mapping[str, "Input | State | Sources"]
Running: TypeAlias = list[tuple[Output, object, object]]

NOTHING: Changes = {}
NOTICES = Output("notices", "sendNotifications", allow_duplicate=True)


def answer(
    app: Dash,
    function: Function,
    *,
    output: Outputs,
    inputs: Sources,
    state: Sources | None = None,
    running: Running | None = None,
    prevent_initial_call: bool | Literal["initial_duplicate"] = False,
) -> None:
    """Call `function` whenever one of `inputs` changes, and set the outputs that it names.

    Raises:
        KeyError: From the callback, if the function names an output that there is none of.
    """

    async def call(**given: object) -> dict[str, object]:
        changes = await function(**given)
        if not changes:
            raise PreventUpdate  # no value stands for an output of as many components as there are
        return all_of(output, changes)

    app.callback(
        output=dict(output),
        inputs=dict(inputs),
        state=dict(state or {}),
        running=running,
        prevent_initial_call=prevent_initial_call,
    )(wraps(getattr(function, "func", function))(call))


def as_inputs(sources: Sources) -> dict[str, Input | Sources]:
    """The same, so that each of them calls the function when it changes."""
    return {
        name: as_inputs(source)
        if isinstance(source, Mapping)
        else Input(source.component_id, source.component_property)
        for name, source in sources.items()
    }


def all_of(output: Outputs, changes: Changes) -> dict[str, object]:
    """Return a value for every output: the new one, or `no_update`."""
    if unknown := changes.keys() - output.keys():
        raise KeyError(f"the callback has no output named {', '.join(sorted(unknown))}")
    values: dict[str, object] = {}
    for name, target in output.items():
        if isinstance(target, Mapping):
            values[name] = all_of(target, cast(Changes, changes.get(name, NOTHING)))
        else:
            values[name] = changes.get(name, no_update)
    return values


def is_press_of(button_id: str) -> bool:
    """Return whether the running callback was triggered by a press of this button."""
    return ctx.triggered_id == button_id and bool(ctx.triggered[0]["value"])


def in_browser(app: Dash, function: str, *dependencies: Any, **more: Any) -> None:
    """A callback that runs in the browser: `function` of one of the scripts in assets/."""
    app.clientside_callback(ClientsideFunction("maat", function), *dependencies, **more)  # type: ignore[no-untyped-call]
