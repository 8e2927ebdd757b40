"""The script that draws charts: Plotly's bundle of the kinds of charts that the pages use.

The whole bundle is three times as large, and evaluating it is the longest task of every page with a
chart. A test holds the script's version to that of the Python package, whose figures it draws.
"""

from __future__ import annotations

import gzip
from hashlib import blake2s
from pathlib import Path

from fastapi import FastAPI, Request, Response

# Where Dash's renderer asks for the whole bundle.
PATH = "/_dash-component-suites/plotly/package_data/plotly.min.js"
SCRIPT = Path(__file__).parent / "vendor" / "plotly-cartesian.min.js"


def serve_charts_script(service: FastAPI) -> None:
    """Before Dash adds its own routes, so that this one answers."""
    plain = SCRIPT.read_bytes()
    small = gzip.compress(plain, mtime=0)
    etag = f'"{blake2s(plain, digest_size=12).hexdigest()}"'

    async def script(request: Request) -> Response:
        headers = {"ETag": etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(plain, media_type="text/javascript", headers=headers)
        return Response(
            small, media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"}
        )

    service.add_api_route(PATH, script, methods=["GET"], include_in_schema=False)
