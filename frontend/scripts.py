"""Scripts that are answered from memory, compressed once: charts, libraries, and Maat's own.

The charts are drawn by Plotly's bundle of the kinds of charts that the pages use. The whole bundle
is three times as large, and evaluating it is the longest task of every page with a chart. A test
holds the script's version to that of the Python package, whose figures it draws.

Maat's own scripts, `assets/*.js`, are one file for a browser, in the order of their names, and so
are the libraries that Dash names in the HTML, in its order: a visit asks for three instead of
forty. Those of Maat's that change the libraries, `*_later.js`, are the third. The two scripts of
grids are one as well, which comes with the first grid.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Sequence
from hashlib import blake2s
from pathlib import Path

from dash.fingerprint import check_fingerprint
from fastapi import FastAPI, Request, Response

# Where Dash's renderer asks for the whole bundle.
CHARTS_PATH = "/_dash-component-suites/plotly/package_data/plotly.min.js"
CHARTS = Path(__file__).parent / "vendor" / "plotly-cartesian.min.js"
ASSETS = Path(__file__).parent / "assets"
OWN_PATH, LATER_PATH = "/assets/maat.js", "/assets/later.js"
# Dash's own components load their later parts from beside the script that they came with.
LIBRARIES_PATH = "/_dash-component-suites/dash/dcc/libraries.js"
LIBRARY = re.compile(r'<script src="/_dash-component-suites/([^"?]+)"></script>\n?')
GRID_PATH = "/_dash-component-suites/dash_ag_grid/dash_ag_grid.js"
OF_GRIDS = "dash_ag_grid/"
AFTER_GRIDS = f"{OF_GRIDS}async-community.js"  # it would ask for it with the first grid
NOT_AT_ONCE = ("dash/dash_table/", OF_GRIDS)  # never, and with the first grid
AT_ONCE = ("dash/dcc/async-graph.js",)  # Dash would ask for it with the first chart
APART = "worker_"  # a browser runs these apart from the pages
LATER = "_later.js"  # these need the libraries
_FOR_A_YEAR = "public, max-age=31536000, immutable"


def serve_charts_script(service: FastAPI) -> None:
    """Before Dash adds its own routes, so that this one answers."""
    _serve(service, CHARTS_PATH, CHARTS.read_bytes())


def serve_own_scripts(service: FastAPI) -> tuple[str, str]:
    """Serve Maat's own scripts as two; return their addresses, which name their content.

    The first comes before the libraries, the second after them.
    """
    files = sorted(file for file in ASSETS.glob("*.js") if not file.name.startswith(APART))
    first, later = (
        b"\n".join(file.read_bytes() for file in files if file.name.endswith(LATER) is is_later)
        for is_later in (False, True)
    )
    return (
        f"{OWN_PATH}?v={_serve(service, OWN_PATH, first)}",
        f"{LATER_PATH}?v={_serve(service, LATER_PATH, later)}",
    )


def serve_libraries(service: FastAPI, tags: str) -> str:
    """Serve the scripts of these tags as one; return its address, which names its content."""
    at_once = (name for name in _named_in(tags) if not name.startswith(NOT_AT_ONCE))
    return _serve_as_one(service, LIBRARIES_PATH, [*at_once, *AT_ONCE])


def serve_grids(service: FastAPI, tags: str) -> str:
    """Serve the scripts of the grids as one; return its address, which names its content."""
    of_grids = (name for name in _named_in(tags) if name.startswith(OF_GRIDS))
    return _serve_as_one(service, GRID_PATH, [*of_grids, AFTER_GRIDS])


def _named_in(tags: str) -> list[str]:
    return [str(check_fingerprint(name)[0]) for name in LIBRARY.findall(tags)]  # type: ignore[no-untyped-call]


def _serve_as_one(service: FastAPI, path: str, scripts: Sequence[str]) -> str:
    whole = b"\n;\n".join(_file_of(name).read_bytes() for name in scripts)
    version = _serve(service, path, whole)
    service.routes.insert(0, service.routes.pop())  # before that of Dash
    return f"{path}?v={version}"


def _file_of(script: str) -> Path:
    """The file of a script that Dash calls `package/path`."""
    package, _, path = script.partition("/")
    return Path(str(sys.modules[package].__file__)).parent / path


def _serve(service: FastAPI, path: str, plain: bytes) -> str:
    """Answer a script at this path; return its version, by which browsers may keep it."""
    small = gzip.compress(plain, mtime=0)
    version = blake2s(plain, digest_size=12).hexdigest()
    etag = f'"{version}"'

    async def script(request: Request) -> Response:
        named = request.query_params.get("v") == version
        keep = _FOR_A_YEAR if named else "no-cache"
        headers = {"ETag": etag, "Cache-Control": keep, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(plain, media_type="text/javascript", headers=headers)
        return Response(
            small, media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"}
        )

    service.add_api_route(path, script, methods=["GET"], include_in_schema=False)
    return version
