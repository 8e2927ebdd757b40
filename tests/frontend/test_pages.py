"""Tests of the pages as an application: registration, limits on Dash, and unknown paths."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dash
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from plotly.offline import get_plotlyjs_version

from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.settings import Settings
from frontend import app as composition
from frontend.scripts import CHARTS_PATH, LATER_PATH, LIBRARIES_PATH, OWN_PATH

PATHS = (
    *("/", "/cluster", "/jobs", "/submit", "/rounds"),
    *("/simulate", "/sweeps", "/experiments", "/help"),
)
# Dash registers the router of its pages itself; it builds a layout and calls nothing.
DASHS_OWN = {".._pages_content.children..._pages_store.data.."}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("maat"),
        database_url="",
        broker_url="",
        implicit_admin=True,
        demo=True,
    )
    database = Database.of(settings)
    ensure_defaults(database, settings)
    database.dispose()
    return composition.create_app(settings)


@pytest.fixture(scope="module")
def browser(service: FastAPI) -> Iterator[TestClient]:
    with TestClient(
        service, base_url="http://127.0.0.1:8000", client=("127.0.0.1", 50000)
    ) as client:
        yield client


@pytest.fixture(scope="module")
def callbacks(browser: TestClient) -> dict[str, dict[str, Any]]:
    """Every callback of the application, known once the first page was asked for."""
    assert browser.get("/_dash-dependencies").status_code == 200
    return dash.get_app().callback_map


def test_every_callback_is_a_coroutine_function(callbacks: dict[str, dict[str, Any]]) -> None:
    served = {
        name: entry["callback"]
        for name, entry in callbacks.items()
        if entry.get("callback") is not None and name not in DASHS_OWN
    }

    assert len(served) > 15
    assert [
        name for name, function in served.items() if not inspect.iscoroutinefunction(function)
    ] == []


def test_no_callback_is_persistent_or_over_a_websocket(
    callbacks: dict[str, dict[str, Any]], browser: TestClient
) -> None:
    assert not any(
        entry.get("persistent") or entry.get("websocket") for entry in callbacks.values()
    )
    assert '"websocket"' not in browser.get("/").text


@pytest.mark.parametrize("path", PATHS)
def test_every_page_of_the_navigation_is_registered_and_answers(
    path: str, browser: TestClient
) -> None:
    answer = browser.get(path)

    assert path in {entry["path"] for entry in dash.page_registry.values()}
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    "path", ["/jobs/job_1", "/rounds/7", "/simulations/sim_1", "/sweeps/swp_1"]
)
def test_deep_links_answer_with_the_page_and_its_assets(path: str, browser: TestClient) -> None:
    answer = browser.get(path)

    assert answer.status_code == 200
    assert "/assets/maat.css" in answer.text
    assert f"{OWN_PATH}?v=" in answer.text


def test_a_first_request_for_a_deep_link_has_the_assets_too(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url="", broker_url="")
    with TestClient(
        composition.create_app(settings),
        base_url="http://127.0.0.1:8000",
        client=("127.0.0.1", 50000),
    ) as first:
        assert "/assets/maat.css" in first.get("/jobs").text


def test_an_unknown_path_is_a_page_with_status_404(browser: TestClient) -> None:
    answer = browser.get("/no/such/page")

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/%00", "/jobs/a%00b", "/jobs?q=%00"])
def test_an_address_that_is_refused_is_a_page_too_where_a_browser_asks_for_one(
    path: str, browser: TestClient
) -> None:
    asks_for_a_page = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = browser.get(path, headers=asks_for_a_page)
    other = browser.get(f"/api/v1{path}", headers=asks_for_a_page)
    script = browser.get(f"/assets{path}", headers={"Accept": "*/*"})

    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"]
    for refused in (other, script):
        assert refused.status_code == 400
        assert refused.headers["content-type"] == "application/problem+json"


def test_an_unknown_path_below_api_is_a_problem_and_never_a_page(browser: TestClient) -> None:
    answer = browser.get("/api/v1/nope")

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_no_page_names_another_host(browser: TestClient) -> None:
    sources = [browser.get(path).text for path in PATHS] + [
        file.read_text(encoding="utf-8") for file in sorted(composition.ASSETS.iterdir())
    ]

    for text in sources:
        assert "https://" not in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_what_is_sent_is_compressed(browser: TestClient) -> None:
    assert (
        browser.get("/", headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"
    )


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
@pytest.mark.parametrize(
    "path", ["/docs", "/openapi.json", "/api/v1/policies", "/api/v1/nope", CHARTS_PATH]
)
def test_head_has_the_headers_of_the_compressed_answer(
    path: str, encoding: str, browser: TestClient
) -> None:
    asked = {"Accept-Encoding": encoding, "X-Request-Id": "same"}
    browser.get(path, headers=asked)
    whole, head = browser.get(path, headers=asked), browser.head(path, headers=asked)
    assert head.status_code == whole.status_code
    assert head.content == b""
    assert dict(head.headers) == dict(whole.headers)
    assert "content-length" in head.headers


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
def test_a_page_can_be_read_again(path: str, browser: TestClient) -> None:
    first, second = (browser.get(path, headers={"Accept-Encoding": "gzip"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.text == second.text


def test_no_component_reads_markup_from_data() -> None:
    sources = "".join(
        file.read_text(encoding="utf-8") for file in Path(composition.__file__).parent.rglob("*.py")
    )

    assert "dangerously_allow_html" not in sources
    assert "dangerously_allow_code=True" not in sources


def test_scripts_are_compressed_once_and_kept_whatever_their_fingerprint(
    browser: TestClient,
) -> None:
    path = browser.get("/").text.partition('id="grid-script" data-src="')[2].partition('"')[0]
    plain = browser.get(path, headers={"Accept-Encoding": "identity"})

    first, second = browser.get(path), browser.get(path.replace(".v35", ".v36"))

    assert first.headers["content-encoding"] == second.headers["content-encoding"] == "gzip"
    assert first.text == second.text == plain.text
    assert "content-encoding" not in plain.headers
    assert first.headers["cache-control"] == plain.headers["cache-control"]
    assert browser.get("/_dash-component-suites/dash/nope.v1m1.js").status_code != 200


def test_the_libraries_are_one_script_that_browsers_keep(browser: TestClient) -> None:
    page = browser.get("/").text
    sources = [part.partition('"')[0] for part in page.split('<script src="')[1:]]
    answer = browser.get(sources[1])

    paths = [source.partition("?v=")[0] for source in sources]
    assert paths == [OWN_PATH, LIBRARIES_PATH, LATER_PATH]
    assert "immutable" in answer.headers["cache-control"]
    names = ("react.production", "react-dom.production", "MantineProvider", "DashRenderer")
    places = [answer.text.find(name) for name in names]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_charts_are_drawn_by_the_bundle_of_their_kinds_in_the_version_of_the_figures(
    encoding: str, browser: TestClient
) -> None:
    answer = browser.get(CHARTS_PATH, headers={"Accept-Encoding": encoding})

    assert answer.text.startswith(
        f"/**\n* plotly.js (cartesian - minified) v{get_plotlyjs_version()}\n"
    )
    assert (
        browser.get(CHARTS_PATH, headers={"If-None-Match": answer.headers["etag"]}).status_code
        == 304
    )


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
@pytest.mark.parametrize(
    "name",
    [
        "os/os.py",
        "sys/__init__.py",
        "os/os.v1_0m1.py",
        "a b/x.js",
        "dash//x.js",
        "dash/dcc/nope.js",
        "dash/dcc/nope.v1m1.js",
        "numpy/x.js",
    ],
)
def test_a_script_that_no_page_uses_is_a_problem(
    name: str, encoding: str, browser: TestClient
) -> None:
    answer = browser.get(f"/_dash-component-suites/{name}", headers={"Accept-Encoding": encoding})

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert "registered" not in answer.json()["detail"]


@pytest.mark.parametrize(
    "query",
    [
        "q=a&q=b",
        "state=nonsense&model=x&model=y",
        "range=1&range=2",
        "number=1&number=2",
        "job_id=a&job_id=b",
        "simulation_id=a&simulation_id=b",
        "x=1",
    ],
)
@pytest.mark.parametrize(
    "path", [*PATHS, "/jobs/job_1", "/rounds/7", "/simulations/sim_1", "/sweeps/swp_1", "/nope"]
)
def test_no_query_breaks_a_page(path: str, query: str, browser: TestClient) -> None:
    outputs = [
        {"id": "_pages_content", "property": "children"},
        {"id": "_pages_store", "property": "data"},
    ]
    inputs = [
        {"id": "_pages_location", "property": "pathname", "value": path},
        {"id": "_pages_location", "property": "search", "value": f"?{query}"},
    ]
    body = {
        "output": ".._pages_content.children..._pages_store.data..",
        "outputs": outputs,
        "inputs": inputs,
        "changedPropIds": ["_pages_location.pathname"],
    }

    answer = browser.post("/_dash-update-component", json=body)

    assert answer.status_code == 200
    assert answer.json()["response"]["_pages_content"]["children"]["type"] == "Div"


def test_an_error_that_a_callback_did_not_expect_is_logged_with_its_traceback_and_without_the_token(
    browser: TestClient,
    callbacks: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(*_: Any, **__: Any) -> str:
        raise ZeroDivisionError("the cause")

    parts = ("generated", "csv", "uploads", "import", "replay")
    name = f"..{'...'.join(f'simulate-{part}.style' for part in parts)}.."
    monkeypatch.setitem(callbacks[name], "callback", broken)
    outputs = [{"id": f"simulate-{part}", "property": "style"} for part in parts]
    changed = {"id": "simulate-kind", "property": "value", "value": "csv"}
    call = {
        "output": name,
        "outputs": outputs,
        "inputs": [changed],
        "changedPropIds": ["simulate-kind.value"],
    }

    answer = browser.post(
        "/_dash-update-component",
        json=call,
        headers={"Cookie": "session=maat_secret", "X-Request-Id": "seen-in-the-log"},
    )

    assert answer.status_code == 500
    assert "the cause" not in answer.text
    (failure,) = [record for record in caplog.records if record.name == "frontend.failures"]
    assert failure.exc_info is not None
    assert failure.exc_info[0] is ZeroDivisionError
    assert "seen-in-the-log" in failure.getMessage()
    assert "maat_secret" not in caplog.text


def first_layout_of(page: str) -> Any:
    text = page.partition('id="first-layout" type="application/json">')[2]
    return json.loads(text.partition("</script>")[0])


def part_of(layout: Any, name: str) -> Any:
    """The properties of the component with this id."""
    if isinstance(layout, list):
        found = (part_of(each, name) for each in layout)
        return next((each for each in found if each is not None), None)
    if not isinstance(layout, dict):
        return None
    properties = layout.get("props", {})
    return properties if properties.get("id") == name else part_of(properties.get("children"), name)


def routed(browser: TestClient, path: str, query: str) -> Any:
    """What Dash's router answers for an address: the page, and its title."""
    names = ("_pages_content", "children"), ("_pages_store", "data")
    asked = {"pathname": path, "search": query}
    body = {
        "output": "..{}...{}..".format(*(".".join(each) for each in names)),
        "outputs": [{"id": name, "property": of} for name, of in names],
        "inputs": [
            {"id": "_pages_location", "property": of, "value": value} for of, value in asked.items()
        ],
        "changedPropIds": [f"_pages_location.{of}" for of in asked],
    }
    answer = browser.post("/_dash-update-component", json=body).json()["response"]
    return answer["_pages_content"]["children"], answer["_pages_store"]["data"]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/", ""),
        ("/jobs", "?q=%3Cb%3E&state=failed&state=running"),
        ("/jobs/job%201", ""),
        ("/rounds/7", "?page=x"),
        ("/no/such/page", ""),
    ],
)
def test_the_html_brings_the_page_that_the_router_would_give(
    path: str, query: str, browser: TestClient
) -> None:
    layout = first_layout_of(browser.get(path + query).text)

    brought = part_of(layout, "_pages_content")["children"], part_of(layout, "_pages_store")["data"]
    assert brought == routed(browser, path, query)


def test_the_layout_of_one_address_is_not_given_to_another(browser: TestClient) -> None:
    browser.get("/submit")

    assert "submit-name" not in browser.get("/").text
    assert "submit-name" not in browser.get("/_dash-layout").text


def test_an_address_ends_no_script_of_the_html(browser: TestClient) -> None:
    page = browser.get("/jobs?q=</script><b>").text

    assert "</script><b>" not in page
    assert "</script><b>" in json.dumps(first_layout_of(page))


def test_scripts_of_charts_and_grids_are_fetched_early_only_where_they_are_shown(
    browser: TestClient,
) -> None:
    pages = {path: browser.get(path).text for path in ("/account", "/", "/jobs")}
    early = {
        path: {
            name
            for name in ("plotly.min.js", "dash_ag_grid")
            for line in page.splitlines()
            if 'rel="preload" as="script"' in line and name in line
        }
        for path, page in pages.items()
    }

    assert early == {"/account": set(), "/": {"plotly.min.js"}, "/jobs": {"dash_ag_grid"}}


def test_the_html_brings_who_the_visitor_is_and_which_clusters_there_are(
    browser: TestClient,
) -> None:
    page = browser.get("/")
    layout = first_layout_of(page.text)

    assert page.headers["cache-control"] == "private, no-cache"
    clusters = browser.get("/api/v1/clusters").json()["items"]
    offered = [{"value": one["id"], "label": one["name"]} for one in clusters]
    assert offered != []
    assert part_of(layout, "clusters")["data"] == part_of(layout, "cluster-select")["data"]
    assert part_of(layout, "clusters")["data"] == offered
    assert part_of(layout, "visitor")["children"] == browser.get("/api/v1/me").json()["user"]
    assert part_of(layout, "signed-out")["data"] is False


@pytest.mark.parametrize("path", ["/sign-in", "/no/such/page"])
def test_the_html_tells_nothing_to_who_is_not_let_in(path: str, browser: TestClient) -> None:
    page = browser.get(path, headers={"X-Forwarded-For": "192.0.2.1"}).text
    layout = first_layout_of(page)

    assert part_of(layout, "clusters").get("data") is None
    assert part_of(layout, "signed-out").get("data") is None
    assert part_of(layout, "visitor")["children"] == ""
