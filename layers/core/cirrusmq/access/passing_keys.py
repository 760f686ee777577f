"""Access keys of the deployment's own, for minutes: in no account's list, gone by themselves."""

from __future__ import annotations

from cirrusmq.access.keys import AccessKey, new_secret
from cirrusmq.access.scopes import Scope
from cirrusmq.base.names import new_id
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory_writes
from cirrusmq.storage.directory import access_key_key

BEGINNING = "trial-"
"""No other key's id begins so: the role that makes these can write no other key."""


def create_passing_key(core: Core, account: str, scope: Scope, seconds: int) -> tuple[str, str]:
    """A new key's id and secret. `account` may have a name that no caller's account can have."""
    secret, digest = new_secret(core)
    now_ms = core.now_ms()
    expires_ms = now_ms + seconds * 1_000
    key = AccessKey(
        id=BEGINNING + new_id(core.random),
        account=account,
        created_ms=now_ms,
        secret_sha256=digest,
        scope=scope,
        manages_keys=False,
        expires_ms=expires_ms,
    )
    made = directory_writes.put(core, access_key_key(key.id), key, expires_at=expires_ms // 1_000)
    core.store.transact([made])
    return key.id, secret


def delete_passing_key(core: Core, key_id: str) -> None:
    """Deletes the key before it expires."""
    core.store.transact([directory_writes.delete(core, access_key_key(key_id))])
    core.cache.turn_over(access_key_key(key_id))
