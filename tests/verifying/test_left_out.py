"""Parts of a run that a service does not let be played, and runs that show nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cirrusmq_local.judging.check_replacing import Answered
from cirrusmq_local.verifying import record, result, run, summary, wave
from cirrusmq_local.verifying.hooks import Hooks
from cirrusmq_local.verifying.played import Played
from cirrusmq_local.verifying.promises import judge
from cirrusmq_local.verifying.remote import Remote, Service, ServiceGone
from cirrusmq_local.verifying.run import Scene
from cirrusmq_local.verifying.scenes import scenes

REFUSED = "InvalidParameter reply: this field is not known"
REFUSAL = b'{"code": "InvalidParameter", "detail": "priorities: this field is not known"}'


class _Older(BaseHTTPRequestHandler):
    """A service that knows no priorities."""

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        refused = b"priorities" in body
        self.send_response(400 if refused else 200)
        self.end_headers()
        self.wfile.write(REFUSAL if refused else b"{}")

    def do_DELETE(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


@pytest.fixture
def older() -> Iterator[Service]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Older) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        service = Service(f"http://127.0.0.1:{server.server_port}", "")
        yield service
        service.close()
        server.shutdown()


def test_a_scene_refused_by_an_older_release_is_left_out(older: Service) -> None:
    outcome, told = record.Outcome(), list[str]()

    made = {
        name: wave.is_made(Scene(older, name, scenes()[name], "v", 1), outcome, told.append)
        for name in ("singles", "priorities")
    }

    why = "PUT /queues/v-priorities-orders: InvalidParameter priorities: this field is not known"
    assert made == {"singles": True, "priorities": False}
    assert outcome.left_out == {"priorities": why}
    assert told == [f"priorities: left out, {why}"]


def _played(name: str, *sends: tuple[bool, dict[str, Any]]) -> Played:
    """sends: (it was answered, what its call has beside that of a plain one)."""
    remote = Remote(Service("http://127.0.0.1:9", ""), "v-", 1)
    nothing = [None]
    for number, (answered, more) in enumerate(sends):
        given: dict[str, Any] = {"labels": [f"m{number}"], "name": f"m{number}", "tags": [[]]}
        given |= dict.fromkeys(("groups", "keys", "delays", "colors"), nothing)
        given |= {"attempt": None, "priorities": [1], "replaces": None, "asks": None, **more}
        call = remote.history.begin("sender0", "send", "orders", given, 0)
        if answered:
            remote.history.end(call, "answered", Answered([("id", 0)]), 0)
        else:
            remote.history.end(call, "refused", REFUSED, 0)
    played = Played(name, scenes()[name], remote)
    judge(played)
    return played


def test_a_scene_without_accepted_sends_shows_nothing() -> None:
    played = _played("requests", (False, {}), (False, {}))

    assert played.refused == REFUSED
    assert played.judged == {}


@pytest.mark.parametrize(
    ("name", "sent", "promise"),
    [("requests", {"asks": 5}, "one-end"), ("replaced", {"replaces": "k"}, "replaced")],
)
def test_a_promise_with_only_refused_sends_is_not_tried(
    name: str, sent: dict[str, Any], promise: str
) -> None:
    assert promise not in _played(name, (True, {}), (False, sent)).judged
    assert promise in _played(name, (True, {}), (True, sent)).judged


def test_a_gone_service_is_asked_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: tries.append(seconds))
    tries: list[float] = []
    service = Service("http://127.0.0.1:9", "")
    other = service.as_other("another key")

    with pytest.raises(ServiceGone, match="nobody answers at http"):
        service.ask("GET", "/queues", tries=3)
    with pytest.raises(ServiceGone):
        other.ask("GET", "/queues")
    with pytest.raises(ServiceGone):
        wave.is_made(Hooks(service, "v", 1), record.Outcome(), print)

    assert len(tries) == 3 + 1 + 1


def test_a_set_clock_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    before = wave.clock_offset_ms()
    real = time.time_ns

    monkeypatch.setattr(time, "time_ns", lambda: real() - 5_000_000_000)

    assert abs(wave.clock_offset_ms() - before + 5_000) < 1_000


def test_the_page_names_left_out_scenes() -> None:
    outcome = record.Outcome(left_out={"priorities": "this field is not known"}, jumped_ms=7)
    options = record.Options(
        *("x", 1, 1.0, 1.0, {}), hooks=False, functions=False, usage=False, faults=[]
    )
    plan = dict.fromkeys(("write_units", "read_units", "dollars"), 1)
    service = {"version": "1", "commit": None, "template_sha256": "", "region": None}
    frame = {"made_at": "now", "service": service | {"place": "one machine"}}

    told = summary.summarize(outcome, options, frame, plan) | {"history_sha256": ""}

    assert told["clock"] == {"drift_ms": 0, "set_by_ms": 7}
    assert "Left out: priorities, this field is not known" in result.page(told)


def test_a_never_empty_place_is_given_up(older: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MAX_DRAIN_SECONDS", 0.05)
    scene = Scene(older, "singles", scenes()["singles"], "v", 1)
    monkeypatch.setattr(scene, "_take_all", lambda client, place: 1)
    monkeypatch.setattr(scene, "_kept", lambda place: 1)

    scene.drain()

    assert scene.played.undrained == ["orders"]


def test_an_impossible_late_group_is_given_up(
    older: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MAX_OPENS", 2)
    monkeypatch.setattr(run, "_ROUND_SECONDS", 0)
    scene = Scene(older, "late receivers", scenes()["late receivers"], "v", 1)
    older.url = "http://127.0.0.1:9"

    scene._open_late()

    assert len(scene.remote.history.calls) == 2
