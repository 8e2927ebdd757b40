"""The deployment's secret key: it encrypts jobs' secrets and makes the tokens of attempts.

It is MAAT_SECRET_KEY, or lies in the data folder, readable by its owner only. A deployment of
several machines gives all of them the same.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from backend.settings import Settings

ATTEMPT_PREFIX = "maatatt_"


class SecretError(Exception):
    """A secret cannot be read: the key is not the one it was written with."""


class SecretKey:
    """Encrypts, decrypts, and makes tokens."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hashlib.sha256(secret).digest()
        self._cipher = Fernet(base64.urlsafe_b64encode(self._derived(b"encryption")))

    def encrypted(self, value: str) -> bytes:
        return self._cipher.encrypt(value.encode())

    def decrypted(self, value: bytes) -> str:
        """Raises SecretError."""
        try:
            return self._cipher.decrypt(value).decode()
        except InvalidToken:
            raise SecretError(
                "A secret of this job was written with another key. Put MAAT_SECRET_KEY or the "
                "key file back, or submit the job again."
            ) from None

    def fingerprint(self, text: str) -> str:
        """Return by what a text is recognised, and cannot be guessed without the key."""
        return hmac.digest(self._derived(b"fingerprints"), text.encode(), "sha256").hex()

    def signature(self, text: str) -> str:
        """Return what only a holder of the key can make of a text."""
        return hmac.digest(self._derived(b"signatures"), text.encode(), "sha256").hex()

    def has_signed(self, text: str, signature: str) -> bool:
        return hmac.compare_digest(signature.encode(), self.signature(text).encode())

    def attempt_token(self, attempt_id: str) -> str:
        """Return the token with which an attempt reports. It is not stored anywhere."""
        return ATTEMPT_PREFIX + self._derived(b"attempt " + attempt_id.encode()).hex()

    def is_token_of(self, attempt_id: str, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.attempt_token(attempt_id).encode())

    def _derived(self, purpose: bytes) -> bytes:
        return hmac.digest(self._secret, purpose, "sha256")


def secret_key(settings: Settings) -> SecretKey:
    given = settings.secret_key.get_secret_value()
    return _key_of(given.encode()) if given else _of_file(_file_of(settings))


def has_secret_key(settings: Settings) -> bool:
    """Return whether a key exists. This makes none, unlike `secret_key`."""
    return bool(settings.secret_key.get_secret_value()) or _file_of(settings).exists()


def _file_of(settings: Settings) -> Path:
    return settings.data_path / "secret.key"


@lru_cache(maxsize=4)
def _key_of(secret: bytes) -> SecretKey:
    return SecretKey(secret)


@lru_cache(maxsize=16)
def _of_file(file: Path) -> SecretKey:
    """Read the key; make it first if there is none. Of several processes one makes it."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, own = tempfile.mkstemp(dir=file.parent, prefix="secret.")  # its owner's only
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(Fernet.generate_key())
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(own, file)
        os.unlink(own)
    return SecretKey(file.read_bytes())
