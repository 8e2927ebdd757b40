"""Tests of the deployment's secret key: its creation, its encryption, its tokens."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backend import secret_key as module
from backend.secret_key import SecretError, SecretKey, secret_key
from backend.settings import Settings


def settings_in(folder: Path, **fields: object) -> Settings:
    return Settings(_env_file=None, data_dir=folder, **fields)


def test_of_many_that_ask_at_once_all_get_the_one_key_that_is_kept(tmp_path: Path) -> None:
    given = settings_in(tmp_path)

    def ask(_: int) -> str:
        module._of_file.cache_clear()
        return secret_key(given).attempt_token("att_1")

    with ThreadPoolExecutor(16) as pool:
        tokens = set(pool.map(ask, range(64)))
    assert len(tokens) == 1
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_secret_is_read_back_with_its_own_key_only() -> None:
    key, other = SecretKey(b"one"), SecretKey(b"other")
    kept = key.encrypted("hush")
    assert b"hush" not in kept
    assert key.decrypted(kept) == "hush"
    with pytest.raises(SecretError, match="MAAT_SECRET_KEY"):
        other.decrypted(kept)


def test_a_token_belongs_to_one_attempt_under_one_key(tmp_path: Path) -> None:
    key = secret_key(settings_in(tmp_path, secret_key="given"))
    token = key.attempt_token("att_1")
    assert key.is_token_of("att_1", token)
    assert not key.is_token_of("att_2", token)
    assert not SecretKey(b"other").is_token_of("att_1", token)
    assert list(tmp_path.iterdir()) == []
