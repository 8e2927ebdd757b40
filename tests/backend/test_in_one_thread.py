"""A request is carried out in one thread: the route, its answer, and the commit."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

from fastapi import FastAPI, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRouter
from fastapi.testclient import TestClient
from sqlmodel import Session, col, select
from typing_extensions import TypedDict

from backend.accounts.models import Tenant
from backend.app import AT_ROOT, ROUTERS
from backend.database import Database, after_commit
from backend.problems import Conflict
from backend.web.dependencies import SessionDep, get_session
from backend.web.in_one_thread import in_one_thread
from backend.web.strict_json import StrictRoute


class Made(TypedDict):
    name: str
    weight: float


def test_no_dependency_of_a_route_takes_a_thread_of_its_own() -> None:
    routes: list[Any] = [route for router in (*ROUTERS, *AT_ROOT) for route in router.routes]
    calls = {call for route in routes for call in _calls(route.dependant)}

    assert len(calls) > 10
    assert [call for call in calls if not _is_coroutine(call)] == []


def test_every_route_that_takes_a_session_is_carried_out_in_one_thread_which_ends_it() -> None:
    routes: list[Any] = [route for router in (*ROUTERS, *AT_ROOT) for route in router.routes]
    taking = [route for route in routes if get_session in _calls(route.dependant)]

    assert len(taking) > 50
    assert [route.path for route in taking if not isinstance(route, StrictRoute)] == []
    assert [route.path for route in taking if in_one_thread(route) is None] == []
    # A dependency that took the session could use it in another thread, or raise before it ends.
    users = {call for route in taking for call in _users_of_session(route.dependant)}
    assert users == {route.endpoint for route in taking}


def test_what_a_route_wrote_before_it_failed_is_undone_and_its_connection_is_free(
    changeable_app: FastAPI, database: Database
) -> None:
    def make(session: SessionDep) -> Made:
        session.add(Tenant(name="made"))
        session.flush()
        raise Conflict("Not now.")

    client = _serving(changeable_app, make)

    for _ in range(20):  # more than there are connections
        assert client.post("/made").status_code == 409
    assert not _is_stored(database)
    assert changeable_app.state.database.engine.pool.checkedout() == 0


def test_an_answer_that_the_route_does_not_promise_is_not_committed(
    changeable_app: FastAPI, database: Database
) -> None:
    def make(session: SessionDep) -> Made:
        session.add(Tenant(name="made"))
        session.flush()
        wrong: Any = {"name": "made", "weight": "heavy"}
        return Made(**wrong)

    client = _serving(changeable_app, make)

    assert client.post("/made").status_code == 500
    assert not _is_stored(database)


def test_the_commit_precedes_the_answer_and_its_headers_stay(
    changeable_app: FastAPI, database: Database
) -> None:
    seen: list[tuple[bool, bool]] = []
    threads: list[int] = []

    def make(session: SessionDep, response: Response) -> Made:
        session.add(Tenant(name="made"))
        response.headers["ETag"] = '"1"'
        response.status_code = 202
        threads.append(threading.get_ident())
        after_commit(session, lambda: seen.append((_is_stored(database), _is_here(threads))))
        return Made(name="Jürgen", weight=1.5)

    answer = _serving(changeable_app, make).post("/made")

    assert (answer.status_code, answer.headers["etag"]) == (202, '"1"')
    assert answer.json() == {"name": "Jürgen", "weight": 1.5}
    assert answer.headers["content-type"] == "application/json"
    assert seen == [(True, True)]


def _serving(app: FastAPI, route: Callable[..., Any]) -> TestClient:
    router = APIRouter(route_class=StrictRoute)
    router.add_api_route("/made", route, methods=["POST"])
    app.include_router(router)
    app.router.routes.insert(0, app.router.routes.pop())  # before what answers every path
    return TestClient(app, raise_server_exceptions=False)


def _is_stored(database: Database) -> bool:
    with database.session_scope(writes=False) as session:
        return _made(session) is not None


def _made(session: Session) -> Tenant | None:
    return session.exec(select(Tenant).where(col(Tenant.name) == "made")).first()


def _is_here(threads: list[int]) -> bool:
    return threads == [threading.get_ident()]


def _users_of_session(dependant: Dependant) -> Iterator[Callable[..., Any]]:
    for inner in dependant.dependencies:
        if inner.call is get_session and dependant.call is not None:
            yield dependant.call
        yield from _users_of_session(inner)


def _calls(dependant: Dependant) -> Iterator[Callable[..., Any]]:
    for inner in dependant.dependencies:
        if inner.call is not None:
            yield inner.call
        yield from _calls(inner)


def _is_coroutine(call: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)
