"""Browser tests of the security headers: pages work, injected scripts and frames do not."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.needs_chromium

INJECT = """() => {
    const inline = document.createElement('script');
    inline.textContent = 'window.injected = "script"';
    document.body.appendChild(inline);
    const holder = document.createElement('div');
    holder.innerHTML = '<img src="/nothing" onerror="window.injected = \\'handler\\'">';
    document.body.appendChild(holder);
    const image = holder.querySelector('img');
    return new Promise((done) => image.addEventListener('error', () => setTimeout(done, 0)));
}"""


def test_the_documentation_works_under_the_policy(server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/docs")

    page.locator("#operations-tag-health").click()
    page.locator("#operations-health-getHealth .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()

    expect(page.locator(".live-responses-table tbody .response-col_status").first).to_contain_text(
        "200"
    )
    assert tab.witness.errors == []
    assert tab.witness.foreign == []


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_an_injected_script_does_not_run(path: str, server: Any, tab: Any) -> None:
    page = tab.open(server.url + path)
    page.wait_for_selector("#cluster-select, .opblock-tag", state="attached")

    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.evaluate(INJECT)

    assert page.evaluate("window.injected") is None


@pytest.fixture
def other_site(server: Any) -> Iterator[str]:
    """Another site's page, which frames Maat."""
    html = (
        f'<!doctype html><title>elsewhere</title><iframe src="{server.url}/jobs"></iframe>'.encode()
    )

    class Framing(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Framing) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_port}/"
        site.shutdown()


def test_no_other_site_can_frame_a_page(other_site: str, tab: Any) -> None:
    with tab.page.expect_console_message(
        lambda message: "frame" in message.text and "'none'" in message.text
    ):
        tab.open(other_site)

    assert tab.page.frames[-1].locator("#cluster-select").count() == 0
