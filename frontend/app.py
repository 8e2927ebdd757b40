"""The composition root: the service's application with the pages mounted on it.

`uvicorn frontend.app:app` serves both. Only this file of the frontend imports the service's code;
the others use its API.
"""

from __future__ import annotations

import re
from asyncio import gather
from inspect import isawaitable
from typing import Any, cast
from urllib.parse import urlencode

import dash
from dash import Dash
from dash.backends._fastapi import reset_current_request, set_current_request
from dash.development.base_component import Component
from dash.exceptions import DependencyException
from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from backend.app import create_app as create_service
from backend.app import put_guards_outside
from backend.settings import Settings, get_settings
from frontend.api import Api
from frontend.failures import LoggedFailures
from frontend.first_visit import first_layout, with_first_visit
from frontend.index import (
    CHARTS_SCRIPT,
    INDEX,
    INDEX_SCRIPT_HASH,
    LATER_SCRIPTS,
    LIBRARIES,
    OWN_SCRIPTS,
)
from frontend.loading import Loaded, loaded
from frontend.pages import PAGES
from frontend.scripts import (
    ASSETS,
    CHARTS_PATH,
    LIBRARY,
    serve_charts_script,
    serve_grids,
    serve_libraries,
    serve_own_scripts,
)
from frontend.shell import register_shell, shell_layout
from frontend.suites import CompressedSuites
from frontend.visitors import SIGN_IN, is_signed_out
from maat.api.clusters import ClusterOut
from maat.api.service import MeOut
from maat.garbage import leave_out_what_is_loaded
from worker.own_policies import run_own_policies_apart
from worker.rehearsals.rehearsal import LiveRehearsal

FOR_ONE_VISITOR = "private, no-cache"  # the HTML says who that is
GRID_SCRIPT = re.compile(r'<script src="[^"]*/dash_ag_grid/dash_ag_grid[^"]*">')


def create_app(settings: Settings | None = None, *, on_sockets: bool = False) -> FastAPI:
    """The whole of Maat on one ASGI application: /api/v1, /docs, and the pages."""
    service: FastAPI = create_service(settings, rehearsal=LiveRehearsal(), on_sockets=on_sockets)
    mount_pages(service)
    return service


class Pages(Dash):
    """Dash whose inline scripts are named in the service's Content-Security-Policy.

    Dash makes some of these scripts with the first page only. The libraries are one script, without
    that of the grids, which is named and not run: `assets/grid_later.js` asks for it.
    """

    grid_script: str

    def index(self, layout: Component | None = None) -> str:
        """Return the HTML. `layout`: comes with it, so that Dash need not ask for it."""
        html: str = super().index()  # type: ignore[no-untyped-call]
        cast(Any, self.server).state.script_hashes.update([*self.csp_hashes(), INDEX_SCRIPT_HASH])
        named = f'<script type="text/plain" id="grid-script" data-src="{self.grid_script}">'
        html = LIBRARY.sub("", GRID_SCRIPT.sub(named, html))
        return with_first_visit(html, layout, grid_script=self.grid_script)


def mount_pages(service: FastAPI) -> Dash:
    """Put the pages on an application.

    Its own routes keep precedence; unknown paths below /api stay the service's 404.
    """
    dash.page_registry.clear()
    service.add_exception_handler(DependencyException, _no_such_script)
    service.add_middleware(LoggedFailures)  # before those of Dash, so that it stands inside them
    serve_charts_script(service)
    own, later = serve_own_scripts(service)
    html = INDEX.replace(OWN_SCRIPTS, own).replace(LATER_SCRIPTS, later)
    pages = Pages(
        "frontend",
        server=cast(Any, service),
        backend="fastapi",
        use_pages=True,
        pages_folder="",
        assets_folder=str(ASSETS),
        assets_ignore=r"\.js$",
        index_string=html.replace(CHARTS_SCRIPT, CHARTS_PATH),
        title="Maat",
        update_title="",
        compress=True,
        serve_locally=True,
        suppress_callback_exceptions=True,
        include_pages_meta=False,
        hooks={"request_post": "window.maat.onlyChanged"},
        add_log_handler=False,
    )
    cast(
        Any, pages.backend
    ).websocket_capability = (
        False  # no callback uses one, and the browser would open it all the same
    )
    tags = pages._generate_scripts_html()
    libraries = serve_libraries(service, tags)
    pages.grid_script = serve_grids(service, tags)
    pages.index_string = pages.index_string.replace(LIBRARIES, libraries)
    pages.layout = shell_layout
    service.add_middleware(CompressedSuites)
    service.state.page_outputs = pages.callback_map  # what a call may name; filled before the first
    api = Api(service)
    register_shell(pages, api)
    for page in PAGES:
        page.register(pages, api)
    _answer_every_page_path(service, pages, api)
    put_guards_outside(service)
    return pages


async def _no_such_script(request: Request, _: Exception) -> Response:
    """Answer 404 for a script that no page uses; Dash would answer with a server error."""
    absent = HTTPException(404, f"There is nothing at {request.url.path}.")
    return cast(Response, await request.app.exception_handlers[HTTPException](request, absent))


def _answer_every_page_path(service: FastAPI, pages: Pages, api: Api) -> None:
    """Answer every other path with its page, or with 404 and the page that says so.

    The guards answer with a page too, if they refuse an address that a browser asks for.
    """

    async def page(request: Request) -> Response:
        known = any(_matches(entry, request.url.path) for entry in dash.page_registry.values())
        clusters, me = None, None
        if request.url.path != SIGN_IN:
            offered, who = await _asked_for_frame(api, request)
            if known and who.failure is not None and is_signed_out(who.failure):
                return _to_sign_in(request)
            clusters, me = offered.answer, who.answer
        sent = request.scope["raw_path"], request.scope["query_string"]
        path, query = (part.decode("latin-1") for part in sent)
        layout = first_layout(path, query, clusters=clusters, me=me)
        return await page_of_status(request, 200 if known else 404, layout)

    async def page_of_status(
        request: Request, status: int, layout: Component | None = None
    ) -> Response:
        for prepare in cast(
            Any, pages.backend
        )._before_request_funcs:  # Dash itself runs these for its own paths only
            waiting = prepare()
            if isawaitable(waiting):
                await waiting
        token = set_current_request(request)  # type: ignore[no-untyped-call]
        try:
            html = pages.index(layout)
            return Response(html, status, {"Cache-Control": FOR_ONE_VISITOR}, "text/html")
        finally:
            reset_current_request(token)  # type: ignore[no-untyped-call]

    service.state.page_of_status = page_of_status
    service.add_api_route("/{path:path}", page, methods=["GET"], include_in_schema=False)
    service.add_api_route("/", page, methods=["GET"], include_in_schema=False)
    service.routes.insert(0, service.routes.pop())  # before that of Dash, which asks nobody


async def _asked_for_frame(
    api: Api, request: Request
) -> tuple[Loaded[list[ClusterOut]], Loaded[MeOut]]:
    """Ask the service for what the frame of the visitor's pages shows."""
    async with api.client_of(request.scope) as maat:
        clusters, me = await gather(loaded(maat.clusters()), loaded(maat.me()))
    return clusters, me


def _to_sign_in(request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    following = urlencode({"next": f"{request.url.path}{query}"})
    return RedirectResponse(f"{SIGN_IN}?{following}", status_code=303)


def _matches(entry: dict[str, Any], path: str) -> bool:
    """Whether a page of the registry stands at this path."""
    template = entry.get("path_template")
    if template is None:
        return entry["path"].rstrip("/") == path.rstrip("/") and not entry["module"].endswith(
            "not_found_404"
        )
    wanted, given = template.strip("/").split("/"), path.strip("/").split("/")
    return len(wanted) == len(given) and all(
        part.startswith("<") or part == other for part, other in zip(wanted, given, strict=True)
    )


def __getattr__(name: str) -> Any:
    """Make `app` when a server asks for it, so that importing this module opens no database."""
    if name == "app":
        run_own_policies_apart(get_settings())
        globals()["app"] = create_app(on_sockets=True)
        leave_out_what_is_loaded()
        return globals()["app"]
    raise AttributeError(name)
