"""OpenID Connect: authorization code flow with PKCE, state and nonce, by authlib and joserfc.

Talks to the provider and checks what it says. Who that is to Maat: oidc_people.py.
"""

from __future__ import annotations

import json
import logging
import secrets
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import httpx
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from backend.clocktime import utc_now
from backend.secret_key import SecretError, secret_key
from backend.settings import Settings

log = logging.getLogger(__name__)

CALLBACK = "/api/v1/sign-in/oidc/callback"
PENDING_SECONDS = 600  # for a person to sign in at the provider
_TIMEOUT_SECONDS = 10.0
_LEEWAY_SECONDS = 60  # between the clocks
_METADATA_SECONDS = 600
_MOST_SUBJECT = 255  # characters: OpenID Connect Core 1.0, section 2
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]

Claims = dict[str, Any]


class OidcRefused(Exception):
    """A sign-in by the provider that did not succeed.

    `code`: one of those that the page of signing in has words for; the text is for the log.
    """

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        super().__init__(reason)


@dataclass(frozen=True)
class Pending:
    """A sign-in that has begun, kept encrypted in a cookie of the browser that began it."""

    state: str
    nonce: str
    verifier: str
    next_path: str
    until: float


def begin(settings: Settings, next_path: str) -> tuple[str, str]:
    """Return the provider's address to send the browser to, and the cookie. Raises OidcRefused."""
    pending = Pending(
        state=secrets.token_urlsafe(32),
        nonce=secrets.token_urlsafe(32),
        verifier=secrets.token_urlsafe(48),
        next_path=next_path,
        until=utc_now().timestamp() + PENDING_SECONDS,
    )
    client_secret(settings)  # a missing secret is told here, not after the provider's page
    metadata = _metadata(settings)
    address = prepare_grant_uri(
        metadata["authorization_endpoint"],
        client_id=settings.oidc_client_id,
        response_type="code",
        redirect_uri=_redirect_uri(settings),
        scope=settings.oidc_scopes,
        state=pending.state,
        nonce=pending.nonce,
        code_challenge=create_s256_code_challenge(pending.verifier),
        code_challenge_method="S256",
    )
    return str(address), secret_key(settings).encrypted(json.dumps(asdict(pending))).decode()


def pending_of(settings: Settings, cookie: str | None) -> Pending:
    """Read the cookie of a sign-in that has begun. Raises OidcRefused."""
    try:
        pending = Pending(**json.loads(secret_key(settings).decrypted((cookie or "").encode())))
    except (SecretError, ValueError, TypeError):
        raise OidcRefused("expired", "no sign-in has begun in this browser") from None
    if pending.until < utc_now().timestamp():
        raise OidcRefused("expired", "the sign-in has taken too long")
    return pending


def finish(settings: Settings, pending: Pending, answer: dict[str, str]) -> Claims:
    """Exchange the provider's code and check its ID token; return the claims.

    `answer`: the query with which the browser came back. Raises OidcRefused.
    """
    if not secrets.compare_digest(answer.get("state", "").encode(), pending.state.encode()):
        raise OidcRefused("expired", "the state is not that of this browser")
    if answer.get("iss", settings.oidc_issuer) != settings.oidc_issuer:
        raise OidcRefused("provider", "another provider answered")
    if "code" not in answer:
        raise OidcRefused("cancelled", f"the provider refused: {answer.get('error', '')[:100]!r}")
    metadata = _metadata(settings)
    try:
        with httpx.Client(timeout=_TIMEOUT_SECONDS, trust_env=False) as http:
            token = _token(http, settings, metadata, pending, answer["code"])
            found: Any = _json(http.get(metadata["jwks_uri"]))
            keys = KeySet.import_key_set(found)
    except (httpx.HTTPError, JoseError, ValueError, KeyError, TypeError) as error:
        raise OidcRefused("provider", f"no token: {type(error).__name__}") from None
    return _checked(settings, pending, token, keys)


def _token(
    http: httpx.Client, settings: Settings, metadata: Claims, pending: Pending, code: str
) -> Claims:
    """Exchange the code for tokens; prove that this is the client, if it has a secret."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": _redirect_uri(settings),
        "code_verifier": pending.verifier,
        "client_id": settings.oidc_client_id,
    }
    secret = client_secret(settings)
    auth: httpx.Auth = httpx.Auth()
    methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    if secret and "client_secret_basic" in methods:  # both are encoded: RFC 6749, 2.3.1
        auth = httpx.BasicAuth(quote(settings.oidc_client_id, safe=""), quote(secret, safe=""))
    elif secret:
        form["client_secret"] = secret
    return _json(http.post(metadata["token_endpoint"], data=form, auth=auth))


def _json(answer: httpx.Response) -> Claims:
    """Return the object in an answer. Raises HTTPError, ValueError."""
    answer.raise_for_status()
    found = answer.json()
    if not isinstance(found, dict):
        raise ValueError("the provider's answer is not an object")
    return found


def _checked(settings: Settings, pending: Pending, token: Any, keys: KeySet) -> Claims:
    """Check signature, issuer, audience, expiry, nonce and the access token's hash."""
    try:
        decoded = jwt.decode(str(token["id_token"]), keys, algorithms=_ALGORITHMS)
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            options={
                "iss": {"essential": True, "value": settings.oidc_issuer},
                "aud": {"essential": True, "value": settings.oidc_client_id},
            },
            params={
                "nonce": pending.nonce,
                "client_id": settings.oidc_client_id,
                "access_token": token.get("access_token"),
            },
        )
        claims.validate(leeway=_LEEWAY_SECONDS)
    except (JoseError, KeyError, ValueError, TypeError) as error:
        raise OidcRefused("token", f"the ID token is not valid: {type(error).__name__}") from None
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= _MOST_SUBJECT:
        raise OidcRefused("token", "the ID token's subject is no text of a usable length")
    if not subject.isprintable():
        raise OidcRefused("token", "the ID token's subject cannot be shown")
    return dict(claims)


def _redirect_uri(settings: Settings) -> str:
    return settings.public_url.rstrip("/") + CALLBACK


def client_secret(settings: Settings) -> str:
    """Read the secret from its setting or its file. Raises OidcRefused if the file is gone."""
    if settings.oidc_client_secret_file is None:
        return settings.oidc_client_secret.get_secret_value()
    try:
        return settings.oidc_client_secret_file.read_text().strip()
    except OSError as error:
        raise OidcRefused("provider", f"no client secret: {error.strerror}") from None


def _metadata(settings: Settings) -> Claims:
    now = utc_now().timestamp()
    return _fetched(settings.oidc_issuer, int(now // _METADATA_SECONDS))


@lru_cache(maxsize=4)
def _fetched(issuer: str, _period: int) -> Claims:
    """Ask the provider for its addresses. Raises OidcRefused; failures are not kept."""
    try:
        found = httpx.get(
            issuer.rstrip("/") + "/.well-known/openid-configuration",
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,
        )
        metadata = _json(found)
        if metadata["issuer"] != issuer:
            raise OidcRefused("provider", "the provider calls itself otherwise")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            httpx.URL(metadata[name])
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        reason = f"the provider does not say where it is: {type(error).__name__}"
        raise OidcRefused("provider", reason) from None
    return metadata
