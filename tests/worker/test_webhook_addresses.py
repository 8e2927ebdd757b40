"""Where webhooks may go: never into the service's own network, unless the operator allows it."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from report_receiver import receiving

from backend.webhooks import addresses
from backend.webhooks.addresses import RefusedAddress, checked_target, is_public
from worker.webhooks.posting import Undelivered, post

HERE = ("127.0.0.1",)


def answering(*found: str) -> Any:
    asked: list[str] = []

    def look_up(host: str, _: int) -> Sequence[str]:
        asked.append(host)
        return found

    look_up.asked = asked  # type: ignore[attr-defined]
    return look_up


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",  # noqa: S104  (nothing binds to it)
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "192.0.0.192",
        "192.88.99.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:db8::1",
        "not an address",
    ],
)
def test_addresses_of_private_networks_are_not_public(address: str) -> None:
    assert not is_public(address)
    with pytest.raises(RefusedAddress):
        checked_target(
            "https://name.example/", to_private=False, look_up=answering("93.184.216.34", address)
        )


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"])
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)
    look_up = answering(address)
    target = checked_target("https://name.example/x", to_private=False, look_up=look_up)
    assert (target.address, target.host, target.port) == (address, "name.example", 443)


@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433/",
        "http://0x7f000001/",
        "http://017700000001/",
        "http://127.1/",
        "http://localhost/",
        "http://[::ffff:127.0.0.1]/",
    ],
)
def test_other_ways_to_write_this_machine_lead_nowhere(url: str) -> None:
    with pytest.raises(RefusedAddress):
        checked_target(url, to_private=False)


def test_a_message_goes_to_the_address_that_was_checked_under_the_name_of_the_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    look_up = answering(*HERE)
    really = socket.getaddrinfo

    def no_names(host: Any, *given: Any, **named: Any) -> Any:
        assert host in ("127.0.0.1", b"127.0.0.1"), "the name was looked up again"
        return really(host, *given, **named)

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setattr(socket, "getaddrinfo", no_names)
    with receiving() as receiver:
        url = receiver.url("hooks.example.com")
        target = checked_target(url, to_private=True, look_up=look_up)
        assert post(target, b"{}", {}, seconds=10.0) == 204
    assert look_up.asked == ["hooks.example.com"]
    ((headers, _, path),) = receiver.received
    assert headers["Host"] == f"hooks.example.com:{receiver.port}"
    assert path == "/hook?x=1"


def test_a_redirect_is_answered_and_not_followed() -> None:
    with receiving(307) as receiver:
        target = checked_target(receiver.url(), to_private=True)
        assert post(target, b"{}", {}, seconds=10.0) == 307
    assert len(receiver.received) == 1


def test_a_receiver_that_never_answers_is_given_up() -> None:
    with receiving() as receiver:
        receiver.hold.clear()
        target = checked_target(receiver.url(), to_private=True)
        with pytest.raises(Undelivered, match=r"within 0\.3 s"):
            post(target, b"{}", {}, seconds=0.3)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    with receiving(tls=self_signed(tmp_path, "hooks.example.com")) as receiver:
        url = receiver.url("hooks.example.com", "https")
        target = checked_target(url, to_private=True, look_up=answering(*HERE))
        with pytest.raises(Undelivered, match="certificate"):
            post(target, b"{}", {}, seconds=10.0)
    assert receiver.received == []


def test_names_are_looked_up_for_real() -> None:
    assert set(addresses._look_up("localhost", 80)) <= {"127.0.0.1", "::1"}
    with pytest.raises(RefusedAddress, match="not known"):
        checked_target("https://no-such-host.invalid/", to_private=True)


def self_signed(folder: Path, name: str) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@given(host=st.text(max_size=300), path=st.text(max_size=10))
def test_any_host_is_looked_up_or_refused_with_words(host: str, path: str) -> None:
    with suppress(RefusedAddress):
        assert checked_target(
            f"https://{host}/{path}", to_private=True, look_up=encoding_as_the_system_does
        ).host


def encoding_as_the_system_does(host: str, _: int) -> Sequence[str]:
    host.encode("idna")
    return ("93.184.216.34",)
