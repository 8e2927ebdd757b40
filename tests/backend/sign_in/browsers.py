"""What a browser does that signs in, as Maat's own pages do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient

Browser = Callable[..., TestClient]
"""Makes a browser: `Browser(url=..., address=...)`."""
SESSIONS, ME, JOBS = "/api/v1/sessions", "/api/v1/me", "/api/v1/jobs"
PASSWORD, ANOTHER = "a sentence to remember", "another sentence for it"
HTTPS = "https://maat.example"


def sign_in(browser: TestClient, name: str = "ann", password: str = PASSWORD) -> Any:
    return browser.post(SESSIONS, json={"name": name, "password": password})


def signed_in(browser: TestClient, name: str = "ann", password: str = PASSWORD) -> TestClient:
    """The browser, as Maat's own pages use it: it repeats the CSRF token."""
    answer = sign_in(browser, name, password)
    assert answer.status_code == 201, answer.text
    browser.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
    return browser


def submit(browser: TestClient, **more: Any) -> Any:
    return browser.post(JOBS, json={"name": "train", "model": "bert"}, **more)


def cookie_header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())
