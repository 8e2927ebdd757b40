"""Walks every GET route of an application and, as a browser does, every callback of its pages.

It returns the answers and asserts nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import dash
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from backend.shutdown import Shutdown

CALLBACK_PATH = "/_dash-update-component"
ROUTER = ".._pages_content.children..._pages_store.data.."
FILE = (
    "data:text/csv;base64,"
    + base64.b64encode(b"name,time,application,num_replicas,batch_size\na,0,bert,1,24\n").decode()
)
PASSES = 3


@dataclass(frozen=True)
class Seen:
    """One request and its answer.

    `where`: the route's path, or the callback's outputs. `asked`: the whole request.
    """

    where: str
    asked: str
    answer: str
    status: int


class SoonOver(Shutdown):
    """Ends an event stream after its third look."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0

    async def wait(self, seconds: float) -> bool:
        self._looks += 1
        return self._looks % 4 == 0


# ---- routes


def get_routes(app: FastAPI) -> Iterator[tuple[str, APIRoute | None]]:
    """Return the path of every route that answers GET; mounted folders hold only files.

    With it comes the route, if it declares its query parameters.
    """
    yield from _routes(app.routes, "")


def _routes(routes: Sequence[Any], prefix: str) -> Iterator[tuple[str, APIRoute | None]]:
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _routes(inner.routes, _prefix(route, prefix))
        elif "GET" in (getattr(route, "methods", None) or ()):
            yield (
                "/" + (prefix + route.path).lstrip("/"),
                route if isinstance(route, APIRoute) else None,
            )


def _prefix(included: Any, prefix: str) -> str:
    return prefix + str(included.include_context.prefix)


def path_names(path: str) -> list[str]:
    """Of its parameters, with their convertors."""
    return [part.split("}")[0] for part in path.split("{")[1:]]


def query_names(route: APIRoute | None) -> list[str]:
    return [] if route is None else list(dict.fromkeys(_names(route.dependant)))


def _names(dependant: Any) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _names(inner)


def walk_routes(
    client: TestClient, fill: Mapping[str, Sequence[str]], headers: Mapping[str, str]
) -> Iterator[Seen]:
    """Ask every GET route with every combination of values of its path.

    Each is asked without a query and with every value of each parameter. Raises KeyError for a
    parameter that `fill` lacks.
    """
    client.app.state.shutdown = SoonOver()  # type: ignore[attr-defined]
    for path, route in get_routes(client.app):  # type: ignore[arg-type]
        names = path_names(path)
        for values in product(*(fill[name.split(":")[0]] for name in names)):
            url = path
            for name, value in zip(names, values, strict=True):
                url = url.replace("{" + name + "}", value)
            for query in (
                {},
                *({name: value} for name in query_names(route) for value in fill[name]),
            ):
                answer = client.get(url, params=query, headers=dict(headers))
                yield Seen(
                    path, f"{url} {query}", f"{answer.headers} {answer.text}", answer.status_code
                )


# ---- pages

Place = tuple[str, str]


class Page:
    """One page in a browser: the properties of its components and the callbacks that it can call.

    A callback can be called if the page has its inputs.
    """

    def __init__(
        self,
        client: TestClient,
        address: str,
        settings: Mapping[str, Any],
        pressed: Mapping[str, Any] | None,
        answers: dict[str, Any] | None = None,
    ) -> None:
        """Load a page.

        `settings`: `ID.PROPERTY` -> the value that a script or the user has set. `pressed`: what
        every button says, if buttons are pressed. `answers`: what the same visitor was answered on
        other pages, by request: these requests, mostly of the frame, are not made again.
        """
        self._answers = {} if answers is None else answers
        self._client, self._settings, self._pressed = client, settings, pressed
        self._values: dict[Place, Any] = {}
        self._ids: set[str] = set()
        self._take(client.get("/_dash-layout").json())
        path, _, search = address.partition("?")
        shown = self._call(
            ROUTER,
            {
                "_pages_location.pathname": path,
                "_pages_location.search": f"?{search}" if search else "",
            },
        )
        self.seen = [shown]

    def run(self) -> Iterator[Seen]:
        """Run every callback of the page, and again when its inputs change, as a browser does."""
        yield from self.seen
        before: dict[str, str] = {}
        for _ in range(PASSES):
            for name, entry in callbacks().items():
                if not self._has(entry):
                    continue
                asked = json.dumps(self._inputs(entry), sort_keys=True, default=str)
                if before.get(name) != asked:
                    before[name] = asked
                    yield self._call(name, {})

    @property
    def shown(self) -> dict[str, Any]:
        """What the elements hold by now, by `ID.PROPERTY`."""
        return {f"{component}.{prop}": value for (component, prop), value in self._values.items()}

    def _has(self, entry: Mapping[str, Any]) -> bool:
        return all(
            _is_pattern(part["id"]) or part["id"] in self._ids
            for part in (*entry["inputs"], *entry["state"])
        )

    def _call(self, name: str, given: Mapping[str, Any]) -> Seen:
        entry = dash.get_app().callback_map[name]
        inputs, state = (
            self._inputs(entry, given),
            [self._value(part, given) for part in entry["state"]],
        )
        outputs = self._outputs(name)
        first = next((part for part in inputs if not isinstance(part, list)), None)
        body = {
            "output": name,
            "outputs": outputs if name.startswith("..") else outputs[0],
            "inputs": inputs,
            "state": state,
            "changedPropIds": [f"{first['id']}.{first['property']}"] if first else [],
        }
        asked = json.dumps(body)
        if asked not in self._answers:
            self._answers[asked] = self._client.post(CALLBACK_PATH, json=body)
        answer = self._answers[asked]
        if answer.status_code == 200:
            for component, properties in answer.json().get("response", {}).items():
                for prop, value in properties.items():
                    self._values[component, prop.split("@")[0]] = value
                    self._take(value)
        return Seen(name, asked, f"{answer.headers} {answer.text}", answer.status_code)

    def _outputs(self, name: str) -> list[Any]:
        parts = (
            name.removeprefix("..").removesuffix("..").split("...")
            if name.startswith("..")
            else [name]
        )
        pairs = [part.rsplit(".", 1) for part in parts]
        return [
            [{"id": json.loads(found), "property": prop} for found in self._matching(component)]
            if _is_pattern(component)
            else {
                "id": json.loads(component) if component.startswith("{") else component,
                "property": prop,
            }
            for component, prop in pairs
        ]

    def _inputs(
        self, entry: Mapping[str, Any], given: Mapping[str, Any] | None = None
    ) -> list[Any]:
        return [self._value(part, given or {}) for part in entry["inputs"]]

    def _value(self, part: Mapping[str, str], given: Mapping[str, Any]) -> Any:
        component, prop = part["id"], part["property"]
        if _is_pattern(component):
            return [
                {"id": json.loads(found), "property": prop, "value": self._of(found, prop)}
                for found in self._matching(component)
            ]
        place = f"{component}.{prop}"
        return {
            "id": component,
            "property": prop,
            "value": given[place] if place in given else self._of(component, prop),
        }

    def _of(self, component: str, prop: str) -> Any:
        place = f"{component}.{prop}"
        if place in self._settings:
            return self._settings[place]
        if self._pressed is not None and (
            prop == "n_clicks" or component.endswith(("-pressed", "-cancelled"))
        ):
            return 1 if prop == "n_clicks" else self._pressed
        if self._pressed is not None and prop in ("contents", "filename"):
            return FILE if prop == "contents" else "a.csv"
        return self._values.get((component, prop))

    def _matching(self, pattern: str) -> list[str]:
        wanted = json.loads(pattern)
        fixed = {key: value for key, value in wanted.items() if not isinstance(value, list)}
        ids = [json.loads(found) for found in sorted(self._ids) if found.startswith("{")]
        return [
            json.dumps(one, sort_keys=True)
            for one in ids
            if one.keys() == wanted.keys() and fixed.items() <= one.items()
        ]

    def _take(self, value: Any) -> None:
        """Note the components in a layout, and their properties."""
        if isinstance(value, list):
            for item in value:
                self._take(item)
        elif isinstance(value, dict):
            props = value.get("props")
            if isinstance(props, dict) and "type" in value and "id" in props:
                named = (
                    props["id"]
                    if isinstance(props["id"], str)
                    else json.dumps(props["id"], sort_keys=True)
                )
                self._ids.add(named)
                self._values |= {
                    (named, prop): held for prop, held in props.items() if prop != "children"
                }
            for item in value.values():
                self._take(item)


def callbacks() -> dict[str, Any]:
    """The callbacks that the service answers, but for the router."""
    known = dash.get_app().callback_map
    return {
        name: entry
        for name, entry in known.items()
        if entry.get("callback") is not None and name != ROUTER
    }


def _is_pattern(component: str) -> bool:
    return component.startswith("{") and any(
        isinstance(value, list) for value in json.loads(component).values()
    )
