"""Hashes and checks passwords with Argon2id, by the parameters of argon2-cffi."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from pydantic import SecretStr
from zxcvbn import zxcvbn

from backend.problems import FieldError, Invalid

_HASHER = PasswordHasher()
_LEAST_SCORE = 3  # of zxcvbn's 0 to 4: more than 10^8 tries of who knows how people choose
_MOST_JUDGED = 72  # characters: zxcvbn takes no more, and so many are enough


def hashed(password: SecretStr) -> str:
    return _HASHER.hash(_normal(password))


def is_right(password: SecretStr, stored: str | None) -> bool:
    """Return whether this is the password; takes as long if there is none."""
    try:
        _HASHER.verify(stored or _nobodys(), _normal(password))
    except (VerificationError, InvalidHashError):
        return False
    return stored is not None


def is_outdated(stored: str) -> bool:
    """Return whether it was hashed with other parameters than those of now."""
    return _HASHER.check_needs_rehash(stored)


def check_choice(password: SecretStr, *, user_name: str, pointer: str) -> None:
    """Refuse what is guessed first. Raises Invalid, which does not repeat the password."""
    chosen = _normal(password).casefold()
    without_name = chosen.replace(user_name.casefold(), "")
    if not (_is_strong(chosen, user_name) and _is_strong(without_name, user_name)):
        message, remedy = "This password is easily guessed.", "Choose another, such as a sentence."
        raise Invalid(
            f"{message} {remedy}", errors=[FieldError(pointer, "weak_password", message, remedy)]
        )


def _is_strong(text: str, user_name: str) -> bool:
    if not text:
        return False
    judged = zxcvbn(text[:_MOST_JUDGED], user_inputs=[user_name, "maat"])
    return bool(judged["score"] >= _LEAST_SCORE)


def _normal(password: SecretStr) -> str:
    """Return the text in one form: keyboards write the same letter in several."""
    return unicodedata.normalize("NFKC", password.get_secret_value())


@lru_cache(maxsize=1)
def _nobodys() -> str:
    """The hash of a password that nobody has, to compare with for as long as with a real one."""
    return _HASHER.hash("nobody signs in with this")
