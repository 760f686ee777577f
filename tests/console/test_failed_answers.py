"""The page of a subscription shows what its URL answered to posts that failed."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest
from playwright.sync_api import expect
from tests.console.browsing import Console


class _Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b"<b>no room</b> in table orders"
        self.send_response(503)
        self.send_header("X-Request-Id", "r-7")
        self.send_header("Set-Cookie", "id=hidden")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_a_url_answered_is_on_its_page_if_it_is_asked_for(
    console: Console, service: httpx.Client, name: str, url: str
) -> None:
    assert service.put(f"/topics/{name}", json={}).status_code == 201
    asked = {"protocol": "http", "endpoint": url, "retry": {"policy": "custom", "waits": [3_600]}}
    path = f"/topics/{name}/subscriptions/hook"
    assert service.put(path, json=asked).status_code == 201
    page = console.show(f"subscriptions/{name}/hook")
    expect(page.get_by_text("Turn on keep_answers to see it.")).to_be_visible()

    assert service.patch(path, json={"keep_answers": True}).status_code == 200
    (message,) = service.post(
        f"/topics/{name}/messages", json={"messages": [{"body": "order 1"}]}
    ).json()["messages"]

    expect(page.get_by_role("heading", name="What came back")).to_be_visible()
    answer = page.locator("details", has_text="status 503")
    expect(answer).to_contain_text(f"Message {message['id']}, answered after")
    expect(answer).to_contain_text("X-Request-Id: r-7")
    expect(answer).to_contain_text("<b>no room</b> in table orders")
    expect(answer).not_to_contain_text("hidden")
    assert console.findings() == []
