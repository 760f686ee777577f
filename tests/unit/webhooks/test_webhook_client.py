"""One attempt to post: its request, its outcomes by answer, and its bounds."""

from __future__ import annotations

import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from cryptography import x509
from tests.certificates import Authority

from cirrusmq import __version__
from cirrusmq.model.answer_sample import AnswerSample
from cirrusmq.webhooks import connections, resolution
from cirrusmq.webhooks.addresses import AddressPolicy
from cirrusmq.webhooks.client import TIMEOUT_SECONDS, Poster, PostOutcome

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HEADERS = {"Content-Type": "text/plain", "x-cmq-message-id": "m1"}
CONTEXT = ssl.create_default_context()
"""What a poster would make of the system's authorities for itself, in longer than a test takes."""

Script = Callable[[socket.socket, int], None]


def read_request(conn: socket.socket) -> bytes:
    """One whole request; empty at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = conn.recv(65_536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")]
    missing = int(lengths[0].split(b":")[1]) - len(body)
    while missing > 0:
        part = conn.recv(65_536)
        data, missing = data + part, missing - len(part)
    return data


def answering(*answers: bytes) -> Script:
    """Answers request after request, all connections alike; the last answer repeats."""

    def script(conn: socket.socket, number: int) -> None:
        served = 0
        while read_request(conn):
            conn.sendall(answers[min(served, len(answers) - 1)])
            served += 1

    return script


def answering_once(answer: bytes) -> Script:
    """Answers one request and closes."""

    def script(conn: socket.socket, number: int) -> None:
        read_request(conn)
        conn.sendall(answer)

    return script


class Server:
    """A listening socket on loopback; every connection is handed to a script in a thread."""

    def __init__(
        self, script: Script, tls: ssl.SSLContext | None, address: tuple[str, int]
    ) -> None:
        self.script, self.tls = script, tls
        self.connections = 0
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(address, backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()

    def url(self, host: str = "127.0.0.1", path: str = "/") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    def _accept(self) -> None:
        while True:
            try:
                conn, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(conn)
            thread = threading.Thread(target=self._serve, args=(conn, self.connections))
            self._threads.append(thread)
            thread.start()

    def _serve(self, conn: socket.socket, number: int) -> None:
        with suppress(OSError):
            if self.tls is not None:
                conn = self.tls.wrap_socket(conn, server_side=True)
                self._open.append(conn)
            self.script(conn, number)
        conn.close()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join()
        for conn in list(self._open):
            with suppress(OSError):
                conn.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for conn in self._open:
            conn.close()


Serve = Callable[..., Server]
MakePoster = Callable[..., Poster]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[Server] = []

    def start(
        script: Script,
        tls: ssl.SSLContext | None = None,
        address: tuple[str, int] = ("127.0.0.1", 0),
    ) -> Server:
        servers.append(Server(script, tls, address))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def make_poster() -> Iterator[MakePoster]:
    posters: list[Poster] = []

    def make(**options: Any) -> Poster:
        chosen = {"timeout_seconds": 5.0, "context": CONTEXT, **options}
        posters.append(Poster(AddressPolicy(LOOPBACK), **chosen))
        return posters[-1]

    yield make
    for poster in posters:
        poster.close()


def names_of(*addresses: str) -> Callable[..., list[Any]]:
    def resolve(host: str, port: int, **_: object) -> list[Any]:
        return [(0, 0, 0, "", (address, port)) for address in addresses]

    return resolve


# ---- what is sent -------------------------------------------------------------------------------


def test_the_request_is_the_given_headers_and_body_and_no_more(
    serve: Serve, make_poster: MakePoster
) -> None:
    seen: list[bytes] = []

    def script(conn: socket.socket, number: int) -> None:
        while request := read_request(conn):
            seen.append(request)
            conn.sendall(OK)

    server = serve(script)
    poster = make_poster(resolver=names_of("127.0.0.1"))
    assert poster.post(server.url("a.example.", "/p?q=1"), HEADERS, b"\x00body").error is None
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert body == b"\x00body"
    assert head.decode().split("\r\n") == [
        "POST /p?q=1 HTTP/1.1",
        "Content-Type: text/plain",
        "x-cmq-message-id: m1",
        f"Host: a.example:{server.port}",
        f"User-Agent: CirrusMQ/{__version__}",
        "Content-Length: 5",
    ]


def test_an_empty_body_is_sent_with_its_length(serve: Serve, make_poster: MakePoster) -> None:
    server = serve(answering(OK))
    assert make_poster().post(server.url(), HEADERS, b"").error is None


def test_a_header_with_a_line_break_is_a_fault_of_ours(
    serve: Serve, make_poster: MakePoster
) -> None:
    server = serve(answering(OK))
    with pytest.raises(ValueError, match="header"):
        make_poster().post(server.url(), {"x": "1\r\ny: 2"}, b"")


# ---- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 204, 207, 299])
def test_any_2xx_is_a_success(serve: Serve, make_poster: MakePoster, status: int) -> None:
    server = serve(answering_once(f"HTTP/1.1 {status} \r\nContent-Length: 0\r\n\r\n".encode()))
    outcome = make_poster().post(server.url(), HEADERS, b"x")
    assert (outcome.status, outcome.error) == (status, None)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (300, "redirect 300"),
        (304, "redirect 304"),
        (308, "redirect 308"),
        (400, "status 400"),
        (404, "status 404"),
        (500, "status 500"),
        (999, "status 999"),
        (101, "status 101"),
    ],
)
def test_any_other_status_is_a_failure_named_by_its_number(
    serve: Serve, make_poster: MakePoster, status: int, error: str
) -> None:
    reason = "secret words of the subscriber"
    server = serve(answering_once(f"HTTP/1.1 {status} {reason}\r\n\r\n{reason}".encode()))
    outcome = make_poster().post(server.url(), HEADERS, b"x")
    assert (outcome.status, outcome.error) == (status, error)
    assert "secret" not in repr(outcome)


def test_a_failing_answer_has_a_sample_without_secrets(
    serve: Serve, make_poster: MakePoster
) -> None:
    head = b"Content-Type: text/plain\r\nX-Request-Id: r-7\r\nSet-Cookie: id=1\r\n"
    head += b"WWW-Authenticate: Basic\r\n goes=on\r\nX-Api-Key: k\r\nServer: s\r\n"
    interim = b"HTTP/1.1 103 Soon\r\nLink: </x>\r\n\r\n"
    failed = b"HTTP/1.1 500 No\r\n%bContent-Length: 9\r\n\r\nno, \xff it." % head
    server = serve(answering(interim + failed, OK))
    poster = make_poster()

    sample = poster.post(server.url(), HEADERS, b"x").sample

    assert sample == AnswerSample(
        headers=(
            ("Content-Type", "text/plain"),
            ("X-Request-Id", "r-7"),
            ("Server", "s"),
            ("Content-Length", "9"),
        ),
        body=b"no, \xff it.",
    )
    assert poster.post(server.url(), HEADERS, b"x").sample is None, "it took the message"
    assert server.connections == 1


def test_a_sample_is_bounded(serve: Serve, make_poster: MakePoster) -> None:
    head = b"".join(b"X-%03d: %b\r\n" % (number, b"v" * 95) for number in range(50))
    body = b"b" * 20_000
    answer = b"HTTP/1.1 502 No\r\n%bContent-Length: 20000\r\n\r\n%b" % (head, body)
    server = serve(answering(answer))
    poster = make_poster()
    for _ in range(2):
        sample = poster.post(server.url(), HEADERS, b"x").sample
        assert sample is not None
        assert (sample.body, sample.cut) == (b"b" * 1_024, True)
        assert [name for name, _ in sample.headers] == [f"X-{number:03d}" for number in range(9)]
    assert server.connections == 1, "the rest was read"


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [
        (429, b"Retry-After: 7\r\n", 7.0),
        (503, b"retry-after: 120\r\n", 120.0),
        (503, b"", None),
        (503, b"Retry-After: soon\r\n", None),
        (500, b"Retry-After: 7\r\n", None),
        (200, b"Retry-After: 7\r\n", None),
    ],
)
def test_only_a_busy_endpoint_says_when_to_try_again(
    serve: Serve, make_poster: MakePoster, status: int, header: bytes, seconds: float | None
) -> None:
    answer = b"HTTP/1.1 %d Said\r\n%bContent-Length: 0\r\n\r\n" % (status, header)
    outcome = make_poster().post(serve(answering_once(answer)).url(), HEADERS, b"x")
    assert (outcome.status, outcome.retry_after_seconds) == (status, seconds)


@pytest.mark.parametrize("interim", [[100], [102], [103, 103], [100, 102, 103, 199]])
def test_interim_answers_before_the_final_one_are_no_failure(
    serve: Serve, make_poster: MakePoster, interim: list[int]
) -> None:
    before = b"".join(b"HTTP/1.1 %d Soon\r\nLink: </x>\r\n\r\n" % status for status in interim)
    server = serve(answering(before + OK, before + b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"))
    poster = make_poster()
    assert poster.post(server.url(), HEADERS, b"1").status == 200
    # The connection holds nothing of the first answer any more.
    assert poster.post(server.url(), HEADERS, b"2").error == "status 500"
    assert server.connections == 1


@pytest.mark.parametrize("interim", [b"", b"HTTP/1.1 103 Soon\r\n%b\r\n"])
def test_an_answer_of_many_headers_is_no_failure(
    serve: Serve, make_poster: MakePoster, interim: bytes
) -> None:
    many = b"".join(b"X-Number-%d: 1,\r\n 2\r\n" % number for number in range(500))
    before = interim % many if interim else b""
    server = serve(answering(before + OK.replace(b"OK\r\n", b"OK\r\n" + many)))
    poster = make_poster()

    outcomes = [poster.post(server.url(), HEADERS, b"x") for _ in range(2)]

    assert [outcome.status for outcome in outcomes] == [200, 200]
    assert server.connections == 1


def test_an_interim_answer_alone_is_no_answer(serve: Serve, make_poster: MakePoster) -> None:
    server = serve(answering_once(b"HTTP/1.1 103 Soon\r\n\r\n"))
    outcome = make_poster().post(server.url(), HEADERS, b"x")
    assert (outcome.status, outcome.error) == (None, "connection")


def test_an_unrequested_change_of_protocol_is_a_failure_and_ends_the_connection(
    serve: Serve, make_poster: MakePoster
) -> None:
    server = serve(answering(b"HTTP/1.1 101 Switching\r\n\r\n" + OK, OK))
    poster = make_poster()
    assert poster.post(server.url(), HEADERS, b"1").error == "status 101"
    poster.post(server.url(), HEADERS, b"2")
    assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/9.9 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"220 mail.example ESMTP\r\n",
        b"\r\n" * 50,
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + (b"x: " + b"y" * 2_000 + b"\r\n") * 90,
        b"\x16\x03\x01" * 100 + b"\n",
    ],
)
def test_an_answer_outside_http_is_a_failure(
    serve: Serve, make_poster: MakePoster, answer: bytes
) -> None:
    server = serve(answering_once(answer))
    outcome = make_poster().post(server.url(), HEADERS, b"x")
    assert (outcome.status, outcome.error) == (None, "protocol")


def test_no_answer_whatever_raises(serve: Serve, make_poster: MakePoster) -> None:
    randomness = random.Random(7)
    pieces = [
        b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 204\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"\r\n",
        b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: " + b"9" * 5_000,
        b"Transfer-Encoding: chunked\r\n", b"zz\r\n", b"0\r\n\r\n", b"ffffffffffffffffff\r\n",
        b"Connection: close\r\n", b"\x00\xff\xfe", b": \r\n", b"\xe2\x80\xa8: a\r\n",
        b" folded\r\n",
    ]  # fmt: skip

    def script(conn: socket.socket, number: int) -> None:
        read_request(conn)
        conn.sendall(b"".join(randomness.choices(pieces, k=randomness.randrange(9))))

    server = serve(script)
    poster = make_poster()
    kinds = {poster.post(server.url(), HEADERS, b"x").error for _ in range(400)}
    assert kinds <= {None, "protocol", "connection"}
    assert len(kinds) >= 3


# ---- connections --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nbad",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 302 There\r\nContent-Length: 0\r\nLocation: /x\r\n\r\n",
    ],
)
def test_a_complete_answer_leaves_the_connection_for_the_next_request(
    serve: Serve, make_poster: MakePoster, answer: bytes
) -> None:
    server = serve(answering(answer))
    poster = make_poster()
    outcomes = [poster.post(server.url(), HEADERS, b"x") for _ in range(20)]
    assert server.connections == 1
    assert len({outcome.status for outcome in outcomes}) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500 No\r\n\r\n" + b" " * 9_000,
    ],
)
def test_a_connection_in_doubt_is_not_used_again(
    serve: Serve, make_poster: MakePoster, answer: bytes
) -> None:
    server = serve(answering_once(answer))
    poster = make_poster()
    for _ in range(3):
        assert poster.post(server.url(), HEADERS, b"x").error is None
    assert server.connections == 3


def test_a_connection_closed_by_the_server_meanwhile_costs_nothing(
    serve: Serve, make_poster: MakePoster
) -> None:
    requests: list[bytes] = []

    def script(conn: socket.socket, number: int) -> None:
        requests.append(read_request(conn))
        conn.sendall(OK)
        if number == 1:
            # Takes the second request and closes without a word, as when both happen at once.
            read_request(conn)

    server = serve(script)
    poster = make_poster()
    assert poster.post(server.url(), HEADERS, b"1").error is None
    assert poster.post(server.url(), HEADERS, b"2").error is None
    assert [request[-1:] for request in requests] == [b"1", b"2"]


def test_a_request_with_a_begun_answer_is_not_repeated(
    serve: Serve, make_poster: MakePoster
) -> None:
    def script(conn: socket.socket, number: int) -> None:
        read_request(conn)
        conn.sendall(OK)
        read_request(conn)
        conn.sendall(b"HTTP/1.1 2")
        # A close over unread data is a reset.
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    server = serve(script)
    poster = make_poster()
    assert poster.post(server.url(), HEADERS, b"1").error is None
    assert poster.post(server.url(), HEADERS, b"2").error is not None
    assert server.connections == 1


def test_a_broken_new_connection_is_a_failure_at_once(
    serve: Serve, make_poster: MakePoster
) -> None:
    def script(conn: socket.socket, number: int) -> None:
        read_request(conn)

    server = serve(script)
    outcome = make_poster().post(server.url(), HEADERS, b"x")
    assert (outcome.error, server.connections) == ("connection", 1)


def test_an_idle_connection_is_left_after_a_while(
    serve: Serve, make_poster: MakePoster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.0)
    server = serve(answering(OK))
    poster = make_poster()
    for _ in range(3):
        assert poster.post(server.url(), HEADERS, b"x").error is None
    assert server.connections == 3


def test_only_so_many_idle_connections_are_kept(
    serve: Serve, make_poster: MakePoster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE_CONNECTIONS", 2)
    servers = [serve(answering(OK)) for _ in range(3)]
    poster = make_poster()
    for _ in range(2):
        for server in servers:
            assert poster.post(server.url(), HEADERS, b"x").error is None
    assert [server.connections for server in servers] == [2, 2, 2]
    assert poster.post(servers[2].url(), HEADERS, b"x").error is None
    assert servers[2].connections == 2


def test_names_do_not_share_a_connection(serve: Serve, make_poster: MakePoster) -> None:
    server = serve(answering(OK))
    poster = make_poster(resolver=names_of("127.0.0.1"))
    for host in ("a.example", "b.example", "a.example", "b.example"):
        assert poster.post(server.url(host), HEADERS, b"x").error is None
    assert server.connections == 2


def test_32_threads_share_a_poster(serve: Serve, make_poster: MakePoster) -> None:
    def script(conn: socket.socket, number: int) -> None:
        while request := read_request(conn):
            body = request.partition(b"\r\n\r\n")[2]
            conn.sendall(b"HTTP/1.1 %s OK\r\nContent-Length: 3\r\n\r\nabc" % body)

    servers = [serve(script) for _ in range(2)]
    poster = make_poster(resolver=names_of("127.0.0.1"))

    def post(number: int) -> bool:
        status = 200 + number % 100
        server = servers[number % 2]
        return poster.post(server.url("s.example"), HEADERS, str(status).encode()).status == status

    with ThreadPoolExecutor(32) as threads:
        assert all(threads.map(post, range(1_500)))
    assert sum(server.connections for server in servers) <= 64


def test_a_refused_connection_is_an_outcome(make_poster: MakePoster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    outcome = make_poster().post(f"http://127.0.0.1:{port}/", HEADERS, b"x")
    assert (outcome.status, outcome.error) == (None, "connection")


def test_of_several_addresses_the_first_answering_one_is_taken(
    serve: Serve, make_poster: MakePoster
) -> None:
    server = serve(answering(OK))
    poster = make_poster(resolver=names_of("127.0.0.9", "::1", "127.0.0.1"))
    assert poster.post(server.url("a.example"), HEADERS, b"x").error is None


def test_an_address_of_ipv6_is_connected_to(make_poster: MakePoster) -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")

    def serve_once() -> None:
        conn, _ = listener.accept()
        with conn:
            seen.append(read_request(conn))
            conn.sendall(OK)

    seen: list[bytes] = []
    thread = threading.Thread(target=serve_once)
    with listener:
        thread.start()
        port = listener.getsockname()[1]
        assert make_poster().post(f"http://[::1]:{port}/", HEADERS, b"x").error is None
        thread.join()
    assert f"Host: [::1]:{port}\r\n".encode() in seen[0]


# ---- bounds -------------------------------------------------------------------------------------

LIMIT_SECONDS = 0.3
SLACK_SECONDS = 3.0
"""For a machine that is busy with other things; an attempt without bounds lasts for ever."""


def dripping(prefix: bytes, drip: bytes) -> Script:
    """Sends something every 50 ms, for as long as the client reads."""

    def script(conn: socket.socket, number: int) -> None:
        read_request(conn)
        conn.sendall(prefix)
        while True:
            time.sleep(0.05)
            conn.sendall(drip)

    return script


def silent(conn: socket.socket, number: int) -> None:
    while conn.recv(65_536):
        pass


def deaf(conn: socket.socket, number: int) -> None:
    """Takes the connection and never reads."""
    time.sleep(2 * LIMIT_SECONDS)


def post_within_the_limit(poster: Poster, url: str, body: bytes = b"x") -> PostOutcome:
    """The outcome of a post, which takes as long as its poster allows at most."""
    started = time.monotonic()
    outcome = poster.post(url, HEADERS, body)
    assert time.monotonic() - started < LIMIT_SECONDS + SLACK_SECONDS
    return outcome


def test_an_attempt_may_last_15_seconds() -> None:
    assert TIMEOUT_SECONDS == 15.0


@pytest.mark.parametrize(
    "script",
    [
        silent,
        dripping(b"", b"H"),
        dripping(b"HTTP/1.1 200 OK\r\n", b"x"),
        dripping(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
        dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["silence", "status", "header", "headers", "interim answers"],
)
def test_a_missing_answer_is_given_up(
    serve: Serve, make_poster: MakePoster, script: Script
) -> None:
    server = serve(script)
    started = time.monotonic()
    outcome = post_within_the_limit(make_poster(timeout_seconds=LIMIT_SECONDS), server.url())
    assert (outcome.status, outcome.error) == (None, "timeout")
    assert time.monotonic() - started >= LIMIT_SECONDS


@pytest.mark.parametrize(
    "script",
    [
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"x"),
        dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
        dripping(b"HTTP/1.0 200 OK\r\n\r\n", b"x"),
    ],
    ids=["length", "chunks", "trailers", "to the end"],
)
def test_a_dripping_body_is_cut_off_and_the_status_counts(
    serve: Serve, make_poster: MakePoster, script: Script
) -> None:
    server = serve(script)
    poster = make_poster(timeout_seconds=LIMIT_SECONDS)
    assert post_within_the_limit(poster, server.url()).error is None
    poster.post(server.url(), HEADERS, b"x")
    assert server.connections == 2


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n",
    ],
)
def test_of_a_huge_body_little_is_read(serve: Serve, make_poster: MakePoster, head: bytes) -> None:
    sent: list[int] = []

    def script(conn: socket.socket, number: int) -> None:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        read_request(conn)
        conn.sendall(head)
        while True:
            sent.append(conn.send(b"x" * 65_536))

    server = serve(script)
    started = time.monotonic()
    assert make_poster().post(server.url(), HEADERS, b"x").error is None
    assert time.monotonic() - started < SLACK_SECONDS
    # The buffers of both ends take some megabytes also if the client reads none.
    assert sum(sent) < 20_000_000


def test_a_non_reading_subscriber_is_given_up(serve: Serve, make_poster: MakePoster) -> None:
    server = serve(deaf)
    poster = make_poster(timeout_seconds=LIMIT_SECONDS)
    outcome = post_within_the_limit(poster, server.url(), b"x" * 30_000_000)
    assert outcome.error == "timeout"


@contextmanager
def accepting_nobody() -> Iterator[int]:
    """A port of 127.0.0.1 whose queue is full: connecting to it takes for ever."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for conn in waiting:
            conn.setblocking(False)
            conn.connect_ex(("127.0.0.1", port))
        try:
            yield port
        finally:
            for conn in waiting:
                conn.close()


def test_a_never_accepted_connection_is_given_up(make_poster: MakePoster) -> None:
    with accepting_nobody() as port:
        poster = make_poster(timeout_seconds=LIMIT_SECONDS)
        outcome = post_within_the_limit(poster, f"http://127.0.0.1:{port}/")
    assert outcome.error == "timeout"


def test_a_never_accepting_address_leaves_time_for_the_others(
    serve: Serve, make_poster: MakePoster
) -> None:
    with accepting_nobody() as port:
        server = serve(answering(OK), address=("127.0.0.2", port))
        poster = make_poster(resolver=names_of("127.0.0.1", "127.0.0.2"), timeout_seconds=1.0)
        assert poster.post(server.url("a.example"), HEADERS, b"x").error is None


# ---- looking up names ---------------------------------------------------------------------------


def test_a_name_is_looked_up_at_every_attempt(serve: Serve, make_poster: MakePoster) -> None:
    asked: list[str] = []

    def resolve(host: str, port: int, **options: object) -> list[Any]:
        asked.append(host)
        return names_of("127.0.0.1")(host, port)

    server = serve(answering(OK))
    poster = make_poster(resolver=resolve)
    for _ in range(3):
        assert poster.post(server.url("a.example"), HEADERS, b"x").error is None
    assert asked == ["a.example"] * 3


def test_the_systems_own_resolver_is_the_default(serve: Serve, make_poster: MakePoster) -> None:
    server = serve(answering(OK))
    assert make_poster().post(server.url("localhost"), HEADERS, b"x").error is None


@pytest.mark.parametrize(
    "fault", [socket.gaierror(-2, "unknown"), UnicodeError("label too long"), OSError(24, "files")]
)
def test_a_name_without_an_address_is_an_outcome(make_poster: MakePoster, fault: Exception) -> None:
    def resolve(host: str, port: int, **options: object) -> list[Any]:
        raise fault

    assert make_poster(resolver=resolve).post("https://a.example/", {}, b"").error == "dns"
    assert make_poster(resolver=names_of()).post("https://a.example/", {}, b"").error == "dns"


def test_a_hanging_resolver_is_given_up(
    make_poster: MakePoster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolution, "LOOKUPS", 2)
    release = threading.Event()
    asked: list[str] = []

    def resolve(host: str, port: int, **options: object) -> list[Any]:
        asked.append(host)
        release.wait(10)
        return []

    poster = make_poster(resolver=resolve, timeout_seconds=0.2)
    try:
        for _ in range(3):
            assert post_within_the_limit(poster, "https://a.example/").error == "timeout"
        # The third was never asked: lookups that hang do not pile up without end.
        assert len(asked) == 2
    finally:
        release.set()
    deadline = time.monotonic() + 5
    while any(thread.name == "lookup" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert poster.post("https://a.example/", {}, b"").error == "dns"


# ---- TLS ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def trusting(make_poster: MakePoster, authority: Authority) -> MakePoster:
    """Makes posters that find any name on this machine, and trust the authority alone."""
    return partial(make_poster, resolver=names_of("127.0.0.1"), context=authority.trusting())


def test_a_certificate_for_the_name_is_accepted_and_the_name_is_told(
    serve: Serve, trusting: MakePoster, authority: Authority
) -> None:
    told: list[str | None] = []
    tls = authority.serving(x509.DNSName("good.example"))
    tls.sni_callback = lambda _socket, name, _context: told.append(name)
    server = serve(answering(OK), tls)
    poster = trusting()
    for host in ("good.example", "GOOD.example", "good.example."):
        for _ in range(5):
            outcome = poster.post(server.url(host), HEADERS, b"x" * 60_000)
            assert outcome.error is None
    assert set(told) == {"good.example"}
    assert server.connections == 2


def test_a_certificate_for_another_name_is_not_accepted(
    serve: Serve, trusting: MakePoster, authority: Authority
) -> None:
    asked: list[bytes] = []

    def script(conn: socket.socket, number: int) -> None:
        asked.append(read_request(conn))

    server = serve(
        script, authority.serving(x509.DNSName("other.example"), x509.DNSName("*.good.example"))
    )
    poster = trusting()
    for host in ("good.example", "a.b.good.example", "localhost", "127.0.0.1"):
        assert poster.post(server.url(host), HEADERS, b"x").error == "tls"
    assert not any(asked)


@pytest.mark.parametrize(
    "fault",
    [{"regular": False}, {"ended": True}],
    ids=["it breaks the standard", "its time is over"],
)
def test_a_certificate_with_a_fault_is_refused_by_every_version_of_python(
    serve: Serve, trusting: MakePoster, authority: Authority, fault: dict[str, bool]
) -> None:
    server = serve(answering(OK), authority.serving(x509.DNSName("good.example"), **fault))
    assert trusting().post(server.url("good.example"), HEADERS, b"").error == "tls"


def test_a_certificate_for_the_address_does_for_a_url_with_the_address(
    serve: Serve, trusting: MakePoster, authority: Authority
) -> None:
    server = serve(answering(OK), authority.serving(x509.IPAddress(ip_address("127.0.0.1"))))
    poster = trusting()
    assert poster.post(server.url("127.0.0.1"), HEADERS, b"x").error is None
    assert poster.post(server.url("good.example"), HEADERS, b"x").error == "tls"


def test_an_unknown_authority_is_not_believed(
    serve: Serve, make_poster: MakePoster, authority: Authority
) -> None:
    server = serve(answering(OK), authority.serving(x509.DNSName("good.example")))
    poster = make_poster(resolver=names_of("127.0.0.1"), context=None)  # its own, by default
    assert poster.post(server.url("good.example"), HEADERS, b"x").error == "tls"


def test_a_server_without_tls_gets_no_request(serve: Serve, trusting: MakePoster) -> None:
    got: list[bytes] = []

    def script(conn: socket.socket, number: int) -> None:
        got.append(conn.recv(65_536))
        conn.sendall(OK)

    server = serve(script)
    poster = trusting()
    url = server.url("good.example").replace("http:", "https:")
    assert poster.post(url, {"x-secret": "s3cret"}, b"body").error == "tls"
    assert b"s3cret" not in got[0]


@pytest.mark.parametrize("drip", [b"", b"\x16"])
def test_an_unfinished_handshake_is_given_up(
    serve: Serve, trusting: MakePoster, drip: bytes
) -> None:
    def script(conn: socket.socket, number: int) -> None:
        conn.recv(65_536)
        # A record of 16 KiB that is sent byte by byte.
        conn.sendall(b"\x16\x03\x03\x40\x00")
        while True:
            time.sleep(0.05)
            conn.sendall(drip)

    server = serve(script)
    poster = trusting(timeout_seconds=LIMIT_SECONDS)
    url = server.url("good.example").replace("http:", "https:")
    assert post_within_the_limit(poster, url).error == "timeout"


def test_a_dripping_body_under_tls_is_cut_off(
    serve: Serve, trusting: MakePoster, authority: Authority
) -> None:
    server = serve(
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"x"),
        authority.serving(x509.DNSName("good.example")),
    )
    poster = trusting(timeout_seconds=LIMIT_SECONDS)
    assert post_within_the_limit(poster, server.url("good.example")).error is None


@pytest.mark.parametrize("over_tls", [False, True])
def test_a_slowly_reading_subscriber_is_given_up(
    serve: Serve, trusting: MakePoster, authority: Authority, over_tls: bool
) -> None:
    def script(conn: socket.socket, number: int) -> None:
        while conn.recv(65_536):
            time.sleep(0.02)

    tls = authority.serving(x509.DNSName("good.example")) if over_tls else None
    server = serve(script, tls)
    poster = trusting(timeout_seconds=LIMIT_SECONDS)
    outcome = post_within_the_limit(poster, server.url("good.example"), b"x" * 100_000_000)
    assert outcome.error == "timeout"
