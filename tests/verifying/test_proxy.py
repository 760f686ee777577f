"""The proxy carries calls, loses answers after the work is done, and cuts requests before it is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from cirrusmq_local.verifying.proxy import Proxy


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    asked = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.asked += 1
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _post(proxy: Proxy) -> httpx.Response:
    url = f"http://127.0.0.1:{proxy.port}"
    return httpx.post(url, content=b"x" * 300_000, trust_env=False, timeout=10)


def test_without_faults_all_is_carried(server: _Server) -> None:
    with Proxy("127.0.0.1", server.server_port, seed=1, lost=1, cut=1) as proxy:
        assert len(_post(proxy).content) == 300_000
        assert proxy.faults == {"answers lost": 0, "requests cut": 0}


@pytest.mark.parametrize(("lost", "cut"), [(1, 0), (0, 1)], ids=["a lost answer", "a cut request"])
def test_a_fault_comes_after_the_work_or_before_it(server: _Server, lost: int, cut: int) -> None:
    with Proxy("127.0.0.1", server.server_port, seed=1, lost=lost, cut=cut) as proxy:
        proxy.on = True
        with pytest.raises(httpx.TransportError):
            _post(proxy)
        assert server.asked == lost
        assert proxy.faults == {"answers lost": lost, "requests cut": cut}


def test_a_server_may_speak_first_and_all_connections_may_be_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with (
            Proxy("127.0.0.1", port, seed=1, lost=0, cut=0, http=False) as proxy,
            socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client,
        ):
            behind, _ = server.accept()
            with behind:
                behind.settimeout(10)
                behind.sendall(b"hello")
                assert client.recv(5) == b"hello"
                client.sendall(b"and you")
                assert behind.recv(7) == b"and you"

                proxy.close_all()

                assert client.recv(1) == b""
                assert behind.recv(1) == b""
