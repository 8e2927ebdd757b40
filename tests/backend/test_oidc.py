"""Signing in at a real OpenID Connect provider, and every way in which that must fail."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from joserfc.jwk import RSAKey
from oidc_provider import Provider, provider_of, signed
from sqlmodel import select

from backend.accounts.local_paths import local_path
from backend.accounts.models import User
from backend.database import Database
from backend.settings import Settings

Configured = Callable[..., TestClient]
BEGIN, ME = "/api/v1/sign-in/oidc", "/api/v1/me"
PEOPLE = {
    "sub-ann": {"preferred_username": "ann", "groups": ["ml-vision", "everybody"]},
    "sub-root": {"preferred_username": "root", "groups": ["ml-vision", "admins"]},
    "sub-local": {"preferred_username": "Local", "groups": ["ml-vision"]},
    "sub-slash": {"preferred_username": "../x", "groups": ["ml-vision"]},
}


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with provider_of(PEOPLE) as provider:
        yield provider


@pytest.fixture
def provider(running: Provider) -> Iterator[Provider]:
    running.seen.clear()
    yield running
    running.forge = None


@pytest.fixture
def configured(app: FastAPI, settings: Settings, provider: Provider) -> Configured:
    """A browser before a Maat that knows the provider."""

    def make(**more: Any) -> TestClient:
        given: dict[str, Any] = {
            "public_url": "https://maat.example",
            "oidc_issuer": provider.issuer,
            "oidc_client_id": provider.client_id,
            "oidc_client_secret": provider.client_secret,
            "oidc_default_tenant": "default",
            **more,
        }
        app.state.settings = Settings(
            _env_file=None, **(settings.model_dump(exclude=given.keys()) | given)
        )
        return TestClient(
            app,
            base_url="https://maat.example",
            client=("10.0.0.9", 1),
            follow_redirects=False,
            raise_server_exceptions=False,
        )

    return make


def go(browser: TestClient, provider: Provider, subject: str, *, next_path: str = "/jobs") -> Any:
    """Sign in at the provider and come back; the answer of Maat."""
    begun = browser.get(BEGIN, params={"next": next_path})
    assert begun.status_code == 303, begun.text
    return browser.get(provider.approve(begun.headers["location"], subject))


def refusal(answer: Any) -> str:
    assert answer.status_code == 303
    where = urlsplit(answer.headers["location"])
    assert where.path == "/sign-in"
    assert "session" not in str(answer.headers.get_list("set-cookie"))
    return parse_qs(where.query)["refused"][0]


def test_a_person_of_the_provider_becomes_a_viewer_of_the_tenant_that_is_set(
    configured: Configured, provider: Provider, database: Database
) -> None:
    browser = configured()
    answer = go(browser, provider, "sub-ann", next_path="/jobs?state=running")
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?state=running")
    me = browser.get(ME).json()
    assert (me["user"], me["tenant"], me["role"], me["by"]) == (
        "ann",
        "default",
        "viewer",
        "session",
    )
    assert "POST /oauth2/token" in provider.seen
    go(browser, provider, "sub-ann")
    with database.session_scope(writes=False) as session:
        (again,) = session.exec(select(User).where(User.subject == "sub-ann")).all()
    assert again.issuer == provider.issuer


def test_the_request_bears_state_nonce_and_a_challenge_and_no_secret(
    configured: Configured, provider: Provider
) -> None:
    browser = configured()
    first, second = (
        parse_qs(urlsplit(browser.get(BEGIN).headers["location"]).query) for _ in range(2)
    )
    assert first["response_type"] == ["code"]
    assert first["code_challenge_method"] == ["S256"]
    assert first["redirect_uri"] == ["https://maat.example/api/v1/sign-in/oidc/callback"]
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name][0]) >= 32
        assert first[name] != second[name]
    assert provider.client_secret not in str(first)


def test_without_a_setting_that_lets_them_in_people_are_refused(
    configured: Configured, provider: Provider, database: Database
) -> None:
    for more in (
        {"oidc_default_tenant": ""},
        {"oidc_default_tenant": "no such"},
        {"oidc_role_claim": "groups", "oidc_roles": {"others": "viewer"}},
    ):
        assert refusal(go(configured(**more), provider, "sub-ann")) == "unknown"
    with database.session_scope(writes=False) as session:
        assert session.exec(select(User.name)).all() == ["local"]


def test_claims_give_tenant_and_role_and_the_role_follows_them(
    configured: Configured, provider: Provider, client: TestClient
) -> None:
    client.post("/api/v1/tenants", json={"name": "vision"})
    groups: dict[str, Any] = {
        "oidc_default_tenant": "",
        "oidc_tenant_claim": "groups",
        "oidc_tenants": {"ml-vision": "vision"},
        "oidc_role_claim": "groups",
    }
    roles = {"admins": "cluster_admin", "everybody": "submitter"}
    for subject, role in (("sub-ann", "submitter"), ("sub-root", "cluster_admin")):
        browser = configured(**groups, oidc_roles=roles)
        assert go(browser, provider, subject).headers["location"] == "/jobs"
        me = browser.get(ME).json()
        assert (me["tenant"], me["role"]) == ("vision", role)
    browser = configured(**groups, oidc_roles={"everybody": "viewer"})
    go(browser, provider, "sub-ann")
    assert browser.get(ME).json()["role"] == "viewer"
    assert refusal(go(configured(**groups, oidc_roles={"x": "viewer"}), provider, "sub-ann"))


def test_a_name_of_the_provider_never_leads_to_a_user_who_is_there(
    configured: Configured, provider: Provider, client: TestClient
) -> None:
    client.post("/api/v1/users", json={"name": "ann", "role": "cluster_admin"})
    assert refusal(go(configured(), provider, "sub-ann")) == "name_taken"
    assert refusal(go(configured(), provider, "sub-local")) == "name_taken"
    assert refusal(go(configured(), provider, "sub-slash")) == "bad_name"


def test_who_is_deactivated_or_whose_tenant_is_closed_stays_out(
    configured: Configured, provider: Provider, client: TestClient
) -> None:
    client.post("/api/v1/tenants", json={"name": "vision"})
    browser = configured(oidc_default_tenant="vision")
    go(browser, provider, "sub-ann")
    change = {"headers": {"If-Match": "*"}}
    client.patch("/api/v1/users/ann", json={"active": False}, **change)
    assert browser.get(ME).status_code == 401
    assert refusal(go(browser, provider, "sub-ann")) == "unknown"
    client.patch("/api/v1/users/ann", json={"active": True}, **change)
    client.patch("/api/v1/tenants/vision", json={"closed": True}, **change)
    assert refusal(go(browser, provider, "sub-ann")) == "unknown"


def _unsigned(claims: dict[str, Any], key: RSAKey) -> str:
    parts = [{"alg": "none"}, claims]
    coded = [base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=").decode() for p in parts]
    return ".".join([*coded, ""])


def _by_public_key(claims: dict[str, Any], key: RSAKey) -> str:
    parts = [{"alg": "HS256", "kid": key.kid}, claims]
    coded = [base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=").decode() for p in parts]
    body = ".".join(coded)
    mac = hmac.digest(key.as_pem(private=False), body.encode(), "sha256")
    return f"{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def _altered(claims: dict[str, Any], key: RSAKey) -> str:
    head, _, signature = signed(claims, key).split(".")
    other = json.dumps({**claims, "sub": "sub-root"}).encode()
    return f"{head}.{base64.urlsafe_b64encode(other).rstrip(b'=').decode()}.{signature}"


FORGERIES: dict[str, Callable[[dict[str, Any], RSAKey], str]] = {
    "another key": lambda c, k: signed(c, RSAKey.generate_key(2048, {"kid": k.kid})),
    "altered after signing": _altered,
    "unsigned": _unsigned,
    "signed with the public key as a secret": _by_public_key,
    "for another client": lambda c, k: signed({**c, "aud": "another"}, k),
    "for several, issued to another": lambda c, k: signed(
        {**c, "aud": [c["aud"] if isinstance(c["aud"], str) else c["aud"][0], "b"], "azp": "b"}, k
    ),
    "of another issuer": lambda c, k: signed({**c, "iss": "https://evil.example"}, k),
    "expired": lambda c, k: signed({**c, "exp": int(time.time()) - 120}, k),
    "without an end": lambda c, k: signed({n: v for n, v in c.items() if n != "exp"}, k),
    "another nonce": lambda c, k: signed({**c, "nonce": "replayed"}, k),
    "without a nonce": lambda c, k: signed({n: v for n, v in c.items() if n != "nonce"}, k),
    "of another access token": lambda c, k: signed({**c, "at_hash": "A" * 22}, k),
    "without a subject": lambda c, k: signed({n: v for n, v in c.items() if n != "sub"}, k),
    "a subject that is no text": lambda c, k: signed({**c, "sub": 7}, k),
    "an endless subject": lambda c, k: signed({**c, "sub": "x" * 256}, k),
    "a subject with a NUL": lambda c, k: signed({**c, "sub": "a\0b"}, k),
    "no token": lambda c, k: "nonsense",
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_an_id_token_that_is_not_for_this_sign_in_lets_nobody_in(
    configured: Configured,
    provider: Provider,
    database: Database,
    forge: Callable[[dict[str, Any], RSAKey], str],
) -> None:
    provider.forge = forge
    browser = configured()
    assert refusal(go(browser, provider, "sub-ann")) == "token"
    assert browser.get(ME).status_code == 401
    with database.session_scope(writes=False) as session:
        assert session.exec(select(User.name)).all() == ["local"]


def test_an_honest_token_signed_anew_is_accepted(
    configured: Configured, provider: Provider
) -> None:
    """So the forgeries above are refused for what they forge."""
    provider.forge = signed
    assert go(configured(), provider, "sub-ann").headers["location"] == "/jobs"


def test_the_way_back_belongs_to_the_browser_that_set_out_and_leads_in_once(
    configured: Configured, provider: Provider
) -> None:
    browser, victim = configured(), configured()
    back = provider.approve(browser.get(BEGIN).headers["location"], "sub-ann")
    assert refusal(victim.get(back)) == "expired"
    victim.get(BEGIN)
    assert refusal(victim.get(back)) == "expired"
    assert browser.get(back).headers["location"] == "/"
    assert refusal(browser.get(back)) == "expired"


def test_a_code_of_another_sign_in_is_refused_by_its_challenge(
    configured: Configured, provider: Provider
) -> None:
    browser = configured()
    stolen = provider.approve(configured().get(BEGIN).headers["location"], "sub-root")
    own = browser.get(BEGIN).headers["location"]
    code = parse_qs(urlsplit(stolen).query)["code"][0]
    state = parse_qs(urlsplit(own).query)["state"][0]
    answer = browser.get(f"{BEGIN}/callback", params={"code": code, "state": state})
    assert refusal(answer) == "provider"


def test_who_says_no_at_the_provider_comes_back_to_the_page_of_signing_in(
    configured: Configured, provider: Provider
) -> None:
    browser = configured()
    begun = browser.get(BEGIN, params={"next": "/jobs"})
    state = parse_qs(urlsplit(begun.headers["location"]).query)["state"][0]
    said = {"error": "access_denied", "state": state, "iss": provider.issuer}
    answer = browser.get(f"{BEGIN}/callback", params=said)
    assert refusal(answer) == "cancelled"
    assert parse_qs(urlsplit(answer.headers["location"]).query)["next"] == ["/jobs"]
    begun = browser.get(BEGIN)
    state = parse_qs(urlsplit(begun.headers["location"]).query)["state"][0]
    mixed = {"code": "x", "state": state, "iss": "https://evil.example"}
    assert refusal(browser.get(f"{BEGIN}/callback", params=mixed)) == "provider"


def test_a_provider_that_is_away_or_is_another_is_said_on_the_page(
    configured: Configured, provider: Provider
) -> None:
    away = configured(oidc_issuer="http://127.0.0.1:9")
    assert refusal(away.get(BEGIN)) == "provider"
    another = configured(oidc_issuer=provider.issuer.replace("127.0.0.1", "localhost") + "/")
    assert refusal(another.get(BEGIN)) == "provider"


def test_a_wrong_or_lost_client_secret_lets_nobody_in_and_a_file_may_hold_it(
    configured: Configured, provider: Provider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert refusal(go(configured(oidc_client_secret="wrong"), provider, "sub-ann")) == "provider"
    file = tmp_path / "secret"
    file.write_text(provider.client_secret + "\n")
    held = configured(oidc_client_secret="", oidc_client_secret_file=file)
    with caplog.at_level("DEBUG"):
        assert go(held, provider, "sub-ann").headers["location"] == "/jobs"
    ours = [r.getMessage() for r in caplog.records if r.name.startswith(("backend", "http"))]
    assert ours
    assert provider.client_secret not in str(ours)
    file.unlink()
    assert refusal(held.get(BEGIN)) == "provider"


def test_without_a_provider_there_is_nothing_at_these_addresses(client: TestClient) -> None:
    assert client.get(BEGIN).status_code == 404
    assert client.get(f"{BEGIN}/callback").status_code == 404
    assert client.get("/api/v1/sign-in-ways").json()["oidc"] is None


@pytest.mark.parametrize(
    "issuer", ["http://sso.example", "sso.example", "ftp://127.0.0.2", "http://127.0.0.1.evil"]
)
def test_a_provider_over_plain_http_elsewhere_is_not_accepted(issuer: str) -> None:
    with pytest.raises(ValueError, match="https"):
        Settings(_env_file=None, oidc_issuer=issuer)


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "/\t/evil.example",
        "/%0a/evil.example\n",
        "javascript:alert(1)",
        "evil.example",
        "",
        None,
        "/api/v1/sign-in/oidc",
        "/sign-in?next=/sign-in",
        "/x/..//evil.example",
        "/.//evil.example",
        "/%2e%2e//evil.example",
        "/jobs/%2E./evil.example",
        "/" + "x" * 3000,
    ],
)
def test_no_address_of_another_site_is_a_page_to_come_back_to(wanted: str | None) -> None:
    assert local_path(wanted) == "/"


@pytest.mark.parametrize("wanted", ["/", "/jobs", "/jobs?state=running&q=a%20b", "/jobs/job_1#x"])
def test_pages_of_maat_are(wanted: str) -> None:
    assert local_path(wanted) == wanted
