"""Access keys. A secret has 256 random bits and is kept as its SHA-256 alone."""

from __future__ import annotations

import base64
import hashlib
import hmac

import msgspec

from cirrusmq.base.errors import Forbidden, InUse, KeyNotFound, Unauthenticated
from cirrusmq.base.limits import GIVEN_ID_CHARACTERS
from cirrusmq.base.names import ACCOUNT_NAME, check_name, new_id
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage import directory
from cirrusmq.storage.directory_keys import ADMIN_KEYS, account_key_place, key_place
from cirrusmq.storage.pages import read_page

SECRET_BYTES = 32
_NOBODY = hashlib.sha256(b"nobody").hexdigest()


class AccessKey(msgspec.Struct, frozen=True, kw_only=True):
    """An access key as the directory keeps it."""

    id: str
    account: str
    admin: bool
    created_ms: int
    secret_sha256: str
    description: str | None = None


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The account that a verified key belongs to, and the key's rights."""

    account: str
    key_id: str
    admin: bool


def verify(core: Core, authorization: str | None) -> Caller:
    """The caller of `Bearer <access key id>:<secret>`; Unauthenticated if the key is wrong."""
    scheme, _, credentials = (authorization or "").partition(" ")
    key_id, colon, secret = credentials.strip().partition(":")
    well_formed = colon and key_id and credentials.isascii() and len(credentials) <= 512
    if scheme.lower() != "bearer" or not well_formed:
        raise Unauthenticated
    key = directory.read_cached(core, key_place(key_id), AccessKey)
    given = hashlib.sha256(secret.encode()).hexdigest()
    # The comparison runs for unknown ids too, so that its time tells nothing.
    same = hmac.compare_digest(given, key.secret_sha256 if key else _NOBODY)
    if key is None or not same:
        raise Unauthenticated
    return Caller(account=key.account, key_id=key.id, admin=key.admin)


def create_key(
    core: Core, account: str, *, admin: bool, description: str | None = None
) -> tuple[AccessKey, str]:
    """Make a key, which is answered with its secret; the first one creates its account."""
    check_name("account", account, ACCOUNT_NAME)
    secret = base64.urlsafe_b64encode(core.random_bytes(SECRET_BYTES)).decode().rstrip("=")
    key = AccessKey(
        id="CK" + new_id(core.random) + new_id(core.random)[:6],
        account=account,
        admin=admin,
        created_ms=core.now_ms(),
        secret_sha256=hashlib.sha256(secret.encode()).hexdigest(),
        description=description,
    )
    writes = [
        directory.put_new(core, key_place(key.id), key),
        directory.put_new(core, account_key_place(account, key.id), key),
    ]
    if admin:
        writes.append(directory.change_count(core, ADMIN_KEYS, 1))
    core.store.transact(writes)
    return key, secret


def create_key_as(
    core: Core, caller: Caller, account: str | None, *, admin: bool, description: str | None
) -> tuple[AccessKey, str]:
    """Make a key on behalf of a caller: for its own account, or, as an admin, for any."""
    target = account_named(caller, account)
    if admin and not caller.admin:
        raise Forbidden("only an admin key makes admin keys")
    return create_key(core, target, admin=admin, description=description)


def account_named(caller: Caller, account: str | None) -> str:
    """The account that a caller names, if it may manage its keys; its own where it names none."""
    if account is None or account == caller.account:
        return caller.account
    check_name("account", account, ACCOUNT_NAME)
    if not caller.admin:
        raise Forbidden("only an admin key manages keys of other accounts")
    return account


def list_keys(
    core: Core, account: str, limit: int, cursor: str | None
) -> tuple[list[AccessKey], str | None]:
    """A page of the account's keys."""
    place = (account_key_place(account, "").pk, "key#")
    return read_page(core, ("keys", account), place, limit, cursor, AccessKey)


def delete_key(core: Core, caller: Caller, key_id: str) -> None:
    """Delete a key of the caller's account, or, as an admin, of any; never the last admin key."""
    if len(key_id) > GIVEN_ID_CHARACTERS:
        raise KeyNotFound
    found = directory.read(core, key_place(key_id), AccessKey)
    if found is None or not (caller.admin or found.value.account == caller.account):
        raise KeyNotFound
    key = found.value
    if key.admin and not caller.admin:
        raise Forbidden("only an admin key deletes admin keys")
    writes = [
        directory.delete_version(core, key_place(key_id), found.version),
        directory.delete(core, account_key_place(key.account, key_id)),
    ]
    if key.admin:
        writes.append(directory.change_count(core, ADMIN_KEYS, -1, "#count > :bound", 1))
    try:
        core.store.transact(writes)
    except TransactionRefused as refused:
        if 2 in refused.failed:
            raise InUse("the last admin key cannot be deleted") from refused
        raise KeyNotFound from refused
    core.cache.turn_over(key_place(key_id))
