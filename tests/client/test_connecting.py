"""Where a client connects to, whom it trusts, and what it never shows."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client.servers import Server

from cirrusmq_client import AsyncClient, Backoff, Client, Connection, find_connection
from cirrusmq_client.errors import CertificateRefused, NotConfigured, NotReachable

SECRET = "s3cr3t-0123456789abcdef"
ONCE = Backoff(tries=1)
VARIABLES = {
    "CIRRUSMQ_URL": "http://localhost:8080",
    "CIRRUSMQ_ACCESS_KEY_ID": "key",
    "CIRRUSMQ_SECRET": SECRET,
}


def connection(url: str, **options: Any) -> Connection:
    return Connection(url=url, access_key_id="key", secret=SECRET, **options)


def list_by_asyncio(given: Connection) -> list[Any]:
    async def work() -> list[Any]:
        async with AsyncClient(given, retry=ONCE) as client:
            return [each async for each in client.list_queues()]

    return asyncio.run(work())


def list_by_threads(given: Connection) -> list[Any]:
    with Client(given, retry=ONCE) as client:
        return list(client.list_queues())


either = pytest.mark.parametrize("list_queues", [list_by_threads, list_by_asyncio])
ListQueues = Callable[[Connection], list[Any]]


@pytest.mark.parametrize("around", ["{}\n", "{}\r\n", " {} ", "\t{}\r"])
@pytest.mark.parametrize("variable", VARIABLES)
def test_blanks_around_a_variable_are_left_out(variable: str, around: str) -> None:
    found = find_connection(environment=VARIABLES | {variable: around.format(VARIABLES[variable])})

    assert found.authorization == f"Bearer key:{SECRET}"
    assert found.url == VARIABLES["CIRRUSMQ_URL"]


@pytest.mark.parametrize(
    "inside", [f"{SECRET}\nmore", f"{SECRET} more", f"{SECRET}é", "\ufeff" + SECRET]
)
@pytest.mark.parametrize("variable", ["CIRRUSMQ_ACCESS_KEY_ID", "CIRRUSMQ_SECRET"])
def test_an_unsendable_value_is_named_and_not_shown(variable: str, inside: str) -> None:
    with pytest.raises(NotConfigured, match=f"^{variable}: character") as caught:
        find_connection(environment=VARIABLES | {variable: inside})

    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_secret_of_a_file_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "connection.json").write_text(
        json.dumps({"url": "http://localhost", "access_key_id": "k", "secret": f"{SECRET}\nmore"})
    )

    with pytest.raises(NotConfigured, match=r"connection\.json is damaged") as caught:
        find_connection(tmp_path, {})

    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_file_of_another_system_is_read(tmp_path: Path) -> None:
    (tmp_path / "connection.json").write_bytes(
        b'\xef\xbb\xbf{"url": "http://localhost",\r\n"access_key_id": "key", "secret": "s"}\r\n'
    )

    assert find_connection(tmp_path, {}).authorization == "Bearer key:s"


def test_nothing_shows_a_secret() -> None:
    given = connection("http://localhost:1", proxy=f"http://user:{SECRET}@localhost:2")
    with Client(given, retry=ONCE) as client:
        shown = [
            repr(given),
            repr(client),
            str(vars(client)),
            repr(client._transport._http.headers),
        ]
        with pytest.raises(NotReachable) as caught:
            client.health()

    shown += traceback.format_exception(caught.value)
    assert [each for each in shown if SECRET in each] == []


def with_proxy(url: str) -> Client:
    return Client(connection("http://localhost", proxy=url))


NO_URL, NO_PROXY = r"^url: is not a URL: it looks like", r"^proxy \(CIRRUSMQ_PROXY\): not a URL"
PASSWORD = r"^url: must be a URL without a user and password$"


@pytest.mark.parametrize(
    ("make", "words", "url"),
    [
        *(
            (connection, NO_URL, url)
            for url in (SECRET, f"http://:{SECRET}", f"ftp://{SECRET}", "")
        ),
        *((connection, PASSWORD, url) for url in ("https://user:pw@host", "http://user@host/")),
        *(
            (with_proxy, NO_PROXY, url)
            for url in (f"ftp://user:{SECRET}@host", f"http://:{SECRET}@", SECRET)
        ),
    ],
)
def test_a_refused_address_is_named_and_not_shown(
    make: Callable[[str], object], words: str, url: str
) -> None:
    with pytest.raises(NotConfigured, match=words) as caught:
        make(url)

    assert SECRET not in "".join(traceback.format_exception(caught.value))


@either
def test_a_certificate_of_nobody_known_is_told_as_such(
    tmp_path: Path, list_queues: ListQueues
) -> None:
    with Server(tmp_path) as server, pytest.raises(CertificateRefused) as caught:
        list_queues(connection(server.url))

    refused = f"the certificate of {server.url} is refused: unable to get local issuer certificate"
    assert str(caught.value).startswith(refused)
    assert "SSL_CERT_FILE" in str(caught.value)


@either
def test_a_certificate_of_another_host_is_told_as_such(
    tmp_path: Path, list_queues: ListQueues
) -> None:
    with (
        Server(tmp_path, host="other.example") as server,
        pytest.raises(CertificateRefused, match="Hostname mismatch"),
    ):
        list_queues(connection(server.url, ca_file=str(server.authority)))


@either
def test_a_private_authority_is_trusted_by_an_option(
    tmp_path: Path, list_queues: ListQueues
) -> None:
    with Server(tmp_path) as server:
        assert list_queues(connection(server.url, ca_file=str(server.authority))) == []


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "CIRRUSMQ_CA_FILE"])
def test_a_private_authority_is_trusted_by_a_variable(
    tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(tmp_path) as server:
        monkeypatch.setenv(variable, str(server.authority))
        given = VARIABLES | {"CIRRUSMQ_URL": server.url, variable: str(server.authority)}
        assert list_by_threads(find_connection(environment=given)) == []


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_text(content)

    with pytest.raises(
        NotConfigured, match=rf"^ca_file \(CIRRUSMQ_CA_FILE\): {path} is no readable"
    ):
        Client(connection("https://localhost", ca_file=str(path)))


@either
def test_a_server_without_tls_is_told_as_such(list_queues: ListQueues) -> None:
    with Server() as server, pytest.raises(NotReachable, match="does not speak TLS as it should"):
        list_queues(connection(server.url.replace("http:", "https:")))


@either
def test_calls_go_by_a_proxy(list_queues: ListQueues) -> None:
    with Server() as proxy:
        url = proxy.url.replace("//", "//user:pass@")
        assert list_queues(connection("http://service.invalid", proxy=url)) == []

    assert proxy.paths == ["http://service.invalid/queues"]
    assert proxy.proxy_keys == ["Basic dXNlcjpwYXNz"]


@either
def test_a_refusing_proxy_is_told_as_such(list_queues: ListQueues) -> None:
    with (
        Server() as proxy,
        pytest.raises(NotReachable, match=r"the proxy does not connect to https://service\.inv"),
    ):
        list_queues(connection("https://service.invalid", proxy=proxy.url))


def test_proxies_of_the_environment_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://localhost:1")
    with Server() as server:
        assert list_by_threads(connection(server.url)) == []
