"""A real OpenID Connect provider in a thread, which a test can make misbehave.

It demands PKCE, a nonce and a registered client with its secret. `forge` changes its ID tokens.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import flask
import httpx
import oidc_provider_mock
from joserfc import jwt
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

Forge = Callable[[dict[str, Any], RSAKey], str]


@dataclass
class Provider:
    """`claims`: of each person, by subject; read at every sign-in. `seen`: what Maat asked."""

    issuer: str
    claims: dict[str, dict[str, Any]]
    client_id: str = ""
    client_secret: str = ""
    forge: Forge | None = None
    challenges: dict[str, str] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def approve(self, address: str, subject: str) -> str:
        """Sign in at the provider, as a person does; return where it sends the browser."""
        answer = httpx.post(address, data={"sub": subject, "action": "authorize"})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def deny(self, address: str) -> str:
        answer = httpx.post(address, data={"action": "deny"})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]


def signed(claims: Mapping[str, Any], key: RSAKey, algorithm: str = "RS256") -> str:
    return jwt.encode({"alg": algorithm, "kid": key.kid}, dict(claims), key)


@contextmanager
def provider_of(claims: dict[str, dict[str, Any]]) -> Iterator[Provider]:
    users = [oidc_provider_mock.User(sub=sub, claims=given) for sub, given in claims.items()]
    app = oidc_provider_mock.app(
        require_client_registration=True, require_nonce=True, user_claims=users
    )
    server = make_server("127.0.0.1", 0, app, threaded=True)
    provider = Provider(f"http://127.0.0.1:{server.server_port}", claims)
    app.before_request(lambda: _demand_pkce(provider))
    app.after_request(lambda response: _answered(provider, response))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        made = httpx.post(
            f"{provider.issuer}/oauth2/clients",
            json={"redirect_uris": ["https://maat.example/api/v1/sign-in/oidc/callback"]},
        ).json()
        provider.client_id, provider.client_secret = made["client_id"], made["client_secret"]
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _demand_pkce(provider: Provider) -> Any:
    """The library knows no PKCE: this demands it as RFC 7636 says."""
    request = flask.request
    provider.seen.append(f"{request.method} {request.path}")
    if request.path == "/oauth2/authorize" and request.args.get("code_challenge_method") != "S256":
        return "no PKCE", 400
    if request.path == "/oauth2/token":
        verifier = request.form.get("code_verifier", "").encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier).digest()).rstrip(b"=").decode()
        if provider.challenges.get(request.form.get("code", "")) != digest:
            return {"error": "invalid_grant"}, 400
    return None


def _answered(provider: Provider, response: flask.Response) -> flask.Response:
    where = response.headers.get("location", "")
    if flask.request.path == "/oauth2/authorize" and "code=" in where:
        code = httpx.URL(where).params["code"]
        provider.challenges[code] = flask.request.args["code_challenge"]
    if flask.request.path == "/oauth2/token" and provider.forge and response.status_code == 200:
        token = response.get_json()
        key = RSAKey.import_key(flask.g.oidc_provider_mock_storage.jwk.as_dict(is_private=True))
        payload = token["id_token"].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        token["id_token"] = provider.forge(claims, key)
        response.set_data(json.dumps(token))
    return response
