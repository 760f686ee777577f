"""Keys with scopes, a key of a stranger, and altered receipts: each does what it may, nothing else.

key that sends to orders     send orders ── taken       receive orders, send other, purge … ── 403
stranger's key               any call on orders ── 403 or 404
altered receipt              delete ── the message stays
"""

from __future__ import annotations

import time
from random import Random
from typing import Any, ClassVar, NamedTuple

import httpx

from cirrusmq_local.judging.history import Violation
from cirrusmq_local.verifying.played import Judged
from cirrusmq_local.verifying.remote import LOST, Remote, Service

KEYS, ACCESS = "keys", "access"
_QUEUES = ("orders", "other")
_STEP_SECONDS = 0.2
_REFUSED = (401, 403, 404)
_ALTERED = 0.25
"""The share of steps that delete by an altered receipt."""


class _Call(NamedTuple):
    """A call that a key may make if it has a right on the queue; none has the right ``."""

    right: str
    method: str
    path: str
    body: Any = None


_CALLS = (
    _Call("send", "POST", "/queues/{queue}/messages", {"messages": [{"body": "a"}]}),
    _Call("receive", "POST", "/queues/{queue}/messages/receive", {"max": 1}),
    _Call("manage", "PATCH", "/queues/{queue}", {"description": "changed"}),
    _Call("manage", "POST", "/queues/{queue}/purge", {}),
    _Call("any", "GET", "/queues/{queue}"),
    _Call("", "PUT", "/topics/{queue}", {}),
    _Call("", "POST", "/keys", {}),
    _Call("manage", "DELETE", "/queues/{queue}"),
)


class _Key(NamedTuple):
    """A key's name, its rights on queues, and the service by it."""

    name: str
    rights: dict[str, str]
    """Queue -> the right on it."""
    service: Service

    def may(self, call: _Call, queue: str) -> bool:
        """Returns True if its scope has a call."""
        right = self.rights.get(queue, "")
        return bool(call.right and right) and call.right in (right, "any")


class ScopedKeys:
    """Two queues, and keys that may do a part of what can be done with them."""

    name: ClassVar[str] = "scoped keys"
    needs: ClassVar[str] = "keys are not made"

    def __init__(self, service: Service, prefix: str, seed: int) -> None:
        self._service, self._account = service, prefix
        self.remote = Remote(service, f"{prefix}-scoped-keys-", seed)
        self.posted = Judged()
        self.disturbed = False
        self._random = Random(f"{seed} {self.name}")
        self._admin: Service | None = None
        self._ids: list[str] = []
        self._keys: list[_Key] = []
        self._found: list[tuple[str, Violation]] = []

    def make_by(self, maker: Service, admin: Service) -> None:
        """Make the queues and keys. Raises ValueError if the service refuses it."""
        self._admin = admin
        for queue in _QUEUES:
            self._service.ask("PUT", f"/queues/{self._own(queue)}", {"partitions": 1})
        for right, queue in (("send", "orders"), ("receive", "orders"), ("manage", "other")):
            scope = {right: {"queues": [self._own(queue)]}}
            self._make_key(maker, f"{right} {queue}", {queue: right}, self._account, scope)
        self._make_key(maker, "stranger", {}, f"{self._account}-stranger", None)

    def play(self, seconds: float) -> None:
        """Make calls that are allowed, and calls that are not, for a while."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if self._random.random() < _ALTERED:
                self._delete_altered()
            else:
                key, call = self._random.choice(self._keys), self._random.choice(_CALLS)
                self._try(key, call, self._random.choice(_QUEUES))
            time.sleep(_STEP_SECONDS)

    def drain(self) -> None:
        """Nothing is left to be received."""

    def judge(self) -> None:
        """Note the calls that were answered otherwise than the keys allow."""
        sound = sum(not call.faults for call in self.remote.history.calls)
        for promise in (KEYS, ACCESS):
            told = [each for name, each in self._found if name == promise]
            self.posted.note(promise, sound, told)

    def remove(self) -> None:
        """Remove the queues and the keys."""
        for queue in _QUEUES if self._admin is not None else ():
            self._service.ask("DELETE", f"/queues/{self._own(queue)}")
        for key_id in self._ids:
            assert self._admin is not None
            self._admin.ask("DELETE", f"/keys/{key_id}")
        for key in self._keys:
            key.service.close()

    def _own(self, queue: str) -> str:
        return f"{self.remote.prefix}{queue}"

    def _make_key(
        self, maker: Service, name: str, rights: dict[str, str], account: str, scope: Any
    ) -> None:
        body = {"account": account} | ({"scope": scope} if scope else {})
        made = maker.ask("POST", "/keys", body)
        self._ids.append(str(made["access_key_id"]))
        bearer = f"Bearer {made['access_key_id']}:{made['secret']}"
        self._keys.append(_Key(name, rights, self._service.as_other(bearer)))

    def _try(self, key: _Key, call: _Call, queue: str) -> None:
        """One call, whose answer must be what the key allows."""
        allowed = key.may(call, queue)
        if allowed and call.method == "DELETE":
            return  # the queue would be gone
        named = self._own(queue)
        if key.name == "stranger":
            named = f"{self._service.account}:{named}"
            if "{queue}" not in call.path or call.path.startswith("/topics"):
                return  # in its own account it may do that
        status, noted = self._ask(key, call.method, call.path.format(queue=named), call.body)
        if status is None:
            return
        what = f"{key.name}: {call.method} {call.path} of {queue} was answered {status}"
        if not allowed and status < 400:
            promise = ACCESS if key.name == "stranger" else KEYS
            self._found.append((promise, Violation(f"{what}, and is not allowed", (noted,))))
        elif allowed and status in _REFUSED:
            self._found.append((KEYS, Violation(f"{what}, and is allowed", (noted,))))

    def _delete_altered(self) -> None:
        """Receive a message, delete by an altered receipt, then by the receipt itself."""
        path = f"/queues/{self._own('orders')}/messages"
        asked = {"max": 1, "visibility_timeout_seconds": 30}
        for each in self._service.ask("POST", f"{path}/receive", asked)["messages"]:
            receipt = str(each["receipt"])
            index = self._random.randrange(len(receipt))
            other = "A" if receipt[index] != "A" else "B"
            altered = receipt[:index] + other + receipt[index + 1 :]
            told = _Key("altered receipt", {}, self._service)
            status, noted = self._ask(told, "POST", f"{path}/delete", {"receipts": [altered]})
            if status is not None and status < 400 and altered in noted.answer.get("deleted", []):
                text = "an altered receipt deleted a message"
                self._found.append((ACCESS, Violation(text, (noted,))))
            self._service.ask("POST", f"{path}/delete", {"receipts": [receipt]})

    def _ask(self, key: _Key, method: str, path: str, body: Any) -> tuple[int | None, Any]:
        """Make a call by a key and note it. Returns its status; None if nobody knows it."""
        history, now_ms = self.remote.history, self.remote.stage.now_ms
        call = history.begin(key.name, f"key {method}", path, {"body": body}, now_ms())
        try:
            answer = key.service.client().request(method, path, json=body)
        except httpx.TransportError:
            answer = None
        if answer is None or answer.status_code >= 500:
            call.faults.append(LOST)
            history.end(call, "failed", None, now_ms())
            return None, call
        outcome: Any = "answered" if answer.status_code < 400 else "refused"
        shown = answer.json() if answer.content else {}
        history.end(call, outcome, shown, now_ms())
        return answer.status_code, call
