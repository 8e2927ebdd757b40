"""/docs without a network: Swagger UI from an installed package.

It also serves a page for every kind of problem.
"""

from __future__ import annotations

import inspect
from importlib.resources import as_file, files
from pathlib import Path

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles

from backend.problems import NotFound, all_problems
from backend.web.security_headers import inline_script_hashes

OPENAPI_URL = "/openapi.json"
_ASSETS_URL = "/docs/assets"


def install_documentation(app: FastAPI) -> None:
    app.mount(_ASSETS_URL, StaticFiles(directory=_assets()), name="docs-assets")
    page = _with_landmark(bytes(_swagger_page().body).decode())
    app.state.script_hashes.update(inline_script_hashes(page))

    async def docs() -> HTMLResponse:
        """Return a new response for each request: compression writes into its headers."""
        return HTMLResponse(page)

    app.add_api_route("/docs", docs, include_in_schema=False)
    app.add_api_route("/problems/{slug}", problem_page, include_in_schema=False)


def _swagger_page() -> HTMLResponse:
    """Build the page that tries every route from the browser."""
    return get_swagger_ui_html(
        openapi_url=OPENAPI_URL,
        title="Maat: REST API",
        swagger_js_url=f"{_ASSETS_URL}/swagger-ui-bundle.js",
        swagger_css_url=f"{_ASSETS_URL}/swagger-ui.css",
        swagger_favicon_url=f"{_ASSETS_URL}/favicon.png",
        swagger_ui_parameters={
            "displayOperationId": True,
            "docExpansion": "none",
            "validatorUrl": None,
        },
    )


def _with_landmark(page: str) -> str:
    """Add a language and a main landmark, which FastAPI's page lacks."""
    for plain, marked in (
        ("<html>", '<html lang="en">'),
        ('<div id="swagger-ui">\n    </div>', '<main id="swagger-ui">\n    </main>'),
    ):
        if plain not in page:
            raise RuntimeError(f"FastAPI's page of the documentation no longer has {plain!r}")
        page = page.replace(plain, marked)
    return page


async def problem_page(slug: str) -> PlainTextResponse:
    """The page that a problem's `type` links to."""
    for problem in all_problems():
        if problem.slug == slug:
            return PlainTextResponse(
                f"{problem.title} ({problem.status})\n\n{inspect.getdoc(problem)}\n\n"
                f"{problem.remedy}\n"
            )
    raise NotFound(f"There is no problem {slug!r}.")


def _assets() -> Path:
    """Return the assets' folder.

    The package is installed as files, so the context can close.
    """
    with as_file(files("fastapi_offline") / "static") as folder:
        return folder
