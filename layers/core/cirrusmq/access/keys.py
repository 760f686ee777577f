"""Access keys. A secret has 256 random bits and is kept as its SHA-256 alone.

A signing key has its secret kept encrypted as well: signatures are verified with the secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Self

import msgspec
from msgspec.structs import replace

from cirrusmq.access.key_cache import MINUTE_MS, KeyCache, note_use
from cirrusmq.access.scopes import Kind, Right, Scope, checked, within
from cirrusmq.base.errors import (
    Forbidden,
    InUse,
    InvalidParameter,
    KeyNotFound,
    Throttled,
    Unauthenticated,
)
from cirrusmq.base.limits import GIVEN_ID_CHARACTERS
from cirrusmq.base.names import ACCOUNT_NAME, check_name, new_id
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import ADMIN_KEYS, access_key_key, account_access_key_key
from cirrusmq.storage.optimistic_locking import DirectoryChange, change
from cirrusmq.storage.pages import read_page

SECRET_BYTES = 32
SIGNING_ID = "AKID"
"""The beginning of a signing key's id."""
_NOBODY = hashlib.sha256(b"nobody").hexdigest()


class KeyRights(msgspec.Struct, frozen=True, kw_only=True):
    """The rights of an access key."""

    admin: bool = False
    """Everything in its account, and keys of all accounts."""
    scope: Scope | None = None
    """Its calls on queues and topics; None: all of its account."""
    manages_keys: bool | None = None
    """True if it makes, rotates and deletes keys. None, as in keys of older forms, means True."""
    expires_ms: int | None = None


class AccessKey(KeyRights, frozen=True, kw_only=True):
    """An access key as the directory keeps it."""

    id: str
    account: str
    created_ms: int
    secret_sha256: str
    description: str | None = None
    previous_sha256: str | None = None
    """The secret before its rotation, which is good for a while."""
    previous_until_ms: int = 0
    sealed_secret: bytes | None = None
    """The secret, encrypted, of a key that signs."""
    previous_sealed: bytes | None = None

    @property
    def signing(self) -> bool:
        """True if signatures made with its secret are accepted."""
        return self.sealed_secret is not None


class Caller(KeyRights, frozen=True, kw_only=True):
    """The account that a verified key belongs to, and the key's rights."""

    account: str
    key_id: str

    def may_manage_keys(self) -> bool:
        """Returns True if it makes, rotates and deletes keys."""
        return self.admin or self.manages_keys is not False

    @classmethod
    def of(cls, key: AccessKey) -> Self:
        """Returns the caller with a verified key."""
        return cls(
            account=key.account,
            key_id=key.id,
            admin=key.admin,
            scope=key.scope,
            manages_keys=key.manages_keys,
            expires_ms=key.expires_ms,
        )

    def require(self, rights: tuple[Right, ...], kind: Kind, ref: str, place: str = "") -> None:
        """Raises Forbidden if the key has a scope with none of the rights there."""
        scope = self.scope
        if scope is None or any(scope.allows(right, kind, ref, self.account) for right in rights):
            return
        wanted = " or ".join(rights)
        raise Forbidden(f"the access key's scope lacks {wanted} on {kind[:-1]} {ref[:130]}{place}")


def verify(core: Core, authorization: str | None, source: str | None = None) -> Caller:
    """Returns the caller of `Bearer <access key id>:<secret>`. Raises Unauthenticated.

    In a deployment that has rates, raises Throttled if the address `source` sent too many wrong
    keys within a minute.
    """
    scheme, _, credentials = (authorization or "").partition(" ")
    key_id, colon, secret = credentials.strip().partition(":")
    well_formed = colon and key_id and credentials.isascii() and len(credentials) <= 512
    if scheme.lower() != "bearer" or not well_formed:
        raise Unauthenticated
    given, now_ms = hashlib.sha256(secret.encode()).hexdigest(), core.now_ms()
    slows = core.settings.account_requests_per_second > 0
    known = core.memory(KeyCache)
    if slows and known.refuses(source, key_id, given, now_ms):
        left_seconds = (MINUTE_MS - now_ms % MINUTE_MS) // 1_000 + 1
        raise Throttled(
            "too many wrong access keys came from this address within a minute", left_seconds
        )
    key = None
    if not known.is_unknown(key_id, now_ms):
        key = directory.read_cached(core, access_key_key(key_id), AccessKey)
    # The comparisons run for unknown ids too, so that their time reveals nothing.
    same = hmac.compare_digest(given, key.secret_sha256 if key else _NOBODY)
    earlier = key.previous_sha256 if key else None
    same_earlier = hmac.compare_digest(given, earlier or _NOBODY) and earlier is not None
    if key is None or not (same or (same_earlier and now_ms < key.previous_until_ms)):
        known.note_wrong(source, key_id, now_ms, unknown=key is None)
        raise Unauthenticated(knows_key=key is not None)
    if key.expires_ms is not None and now_ms >= key.expires_ms:
        raise Unauthenticated("the access key has expired", knows_key=True)
    known.note_good(key.id, given)
    note_use(core, key.id)
    return Caller.of(key)


def create_key(
    core: Core,
    account: str,
    rights: KeyRights,
    description: str | None = None,
    *,
    signing: bool = False,
) -> tuple[AccessKey, str]:
    """Makes a key. Returns it with its secret; the first key creates its account.

    `signing`: its secret may sign, too, as the SDKs of other services do.
    """
    check_name("account", account, ACCOUNT_NAME)
    if signing and rights.admin:
        raise InvalidParameter("signing", "must not be given for an admin key, which does not sign")
    secret, digest = new_secret(core)
    parts = [new_id(core.random) for _ in range(3 if signing else 2)]
    # Long, and of this beginning, as SDKs of other services want theirs.
    key_id = f"{SIGNING_ID}{''.join(parts)[:32]}" if signing else f"CK{''.join(parts)[:18]}"
    key = AccessKey(
        **msgspec.structs.asdict(_checked(core, account, rights)),
        id=key_id,
        account=account,
        created_ms=core.now_ms(),
        secret_sha256=digest,
        sealed_secret=core.sealing.seal(key_id, secret) if signing else None,
        description=description,
    )
    writes = [
        directory_writes.put_new(core, access_key_key(key.id), key),
        directory_writes.put_new(core, account_access_key_key(account, key.id), key),
    ]
    if key.admin:
        writes.append(directory_writes.change_count(core, ADMIN_KEYS, 1))
    core.store.transact(writes)
    return key, secret


def create_key_as(
    core: Core,
    caller: Caller,
    account: str | None,
    rights: KeyRights,
    description: str | None,
    *,
    signing: bool = False,
) -> tuple[AccessKey, str]:
    """Makes a key on behalf of a caller: for its own account, or, as an admin, for any."""
    target = account_named(caller, account)
    if rights.admin and not caller.admin:
        raise Forbidden("only an admin key makes admin keys")
    _check_outranks(caller, _checked(core, target, rights))
    return create_key(core, target, rights, description, signing=signing)


def account_named(caller: Caller, account: str | None) -> str:
    """Returns the named account, or the caller's if none is named. Raises Forbidden if the caller
    may not manage the account's keys."""
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
    key = (account_access_key_key(account, "").pk, "key#")
    return read_page(core, ("keys", account), key, limit, cursor, AccessKey)


def rotate_key(
    core: Core, caller: Caller, key_id: str, grace_seconds: int
) -> tuple[AccessKey, str]:
    """Gives a key a new secret; the previous one stays good for `grace_seconds`.

    A rotation during that time replaces the newer secret, which an answer that was lost may have
    taken along, and leaves the older one to programs that still use it:

        secrets  A ── rotate ── A and B ── rotate ── A and C ── A's time is over ── C
    """
    secret, digest = new_secret(core)

    def plan() -> DirectoryChange[AccessKey]:
        found = _manageable(core, caller, key_id)
        key, now_ms = found.value, core.now_ms()
        until_ms = now_ms + grace_seconds * 1_000
        sealed = core.sealing.seal(key_id, secret) if key.signing else None
        rotated = replace(key, secret_sha256=digest, sealed_secret=sealed)
        if key.previous_sha256 is None or now_ms >= key.previous_until_ms:
            rotated = replace(
                rotated,
                previous_sha256=key.secret_sha256,
                previous_sealed=key.sealed_secret,
                previous_until_ms=until_ms,
            )
        else:
            rotated = replace(rotated, previous_until_ms=min(key.previous_until_ms, until_ms))
        if rotated.previous_until_ms <= now_ms:
            rotated = replace(
                rotated, previous_sha256=None, previous_sealed=None, previous_until_ms=0
            )
        writes = [
            directory_writes.put_over(core, access_key_key(key_id), rotated, found),
            directory_writes.put(core, account_access_key_key(key.account, key_id), rotated, found),
        ]
        return DirectoryChange(result=rotated, writes=writes, keys=[access_key_key(key_id)])

    return change(core, plan), secret


def delete_key(core: Core, caller: Caller, key_id: str) -> str:
    """Deletes a key of the caller's account, or, as an admin, of any. Returns its account.

    Raises InUse for the last admin key.
    """
    found = _manageable(core, caller, key_id)
    key = found.value
    writes = [
        directory_writes.delete_version(core, access_key_key(key_id), found.version),
        directory_writes.delete(core, account_access_key_key(key.account, key_id)),
    ]
    if key.admin:
        writes.append(directory_writes.change_count(core, ADMIN_KEYS, -1, "#count > :bound", 1))
    try:
        core.store.transact(writes)
    except TransactionRefused as refused:
        if 2 in refused.failed:
            raise InUse("the last admin key cannot be deleted") from refused
        raise KeyNotFound from refused
    core.cache.turn_over(access_key_key(key_id))
    return key.account


def _manageable(core: Core, caller: Caller, key_id: str) -> directory.Document[AccessKey]:
    """Returns the key. Raises KeyNotFound or Forbidden if the caller may not manage it."""
    if len(key_id) > GIVEN_ID_CHARACTERS:
        raise KeyNotFound
    found = directory.read(core, access_key_key(key_id), AccessKey)
    if found is None or not (caller.admin or found.value.account == caller.account):
        raise KeyNotFound
    if found.value.admin and not caller.admin:
        raise Forbidden("only an admin key manages admin keys")
    _check_outranks(caller, found.value)
    return found


def _check_outranks(caller: Caller, rights: KeyRights) -> None:
    """Raises Forbidden if the other key may do more than the caller's, or for longer."""
    if caller.admin:
        return
    if not within(rights.scope, caller.scope):
        raise Forbidden("the access key manages no key of a wider scope than its own")
    if caller.expires_ms is not None and not (
        rights.expires_ms is not None and rights.expires_ms <= caller.expires_ms
    ):
        raise Forbidden("the access key manages no key that expires later than itself")


def _checked(core: Core, account: str, rights: KeyRights) -> KeyRights:
    if rights.admin and rights.scope is not None:
        raise InvalidParameter("scope", "must not be given for an admin key, which may do all")
    if rights.expires_ms is not None and rights.expires_ms <= core.now_ms():
        raise InvalidParameter("expires_at", "must be a time to come")
    if rights.scope is None:
        return rights
    return replace(rights, scope=checked(rights.scope, account))


def new_secret(core: Core) -> tuple[str, str]:
    """A secret and its SHA-256."""
    secret = base64.urlsafe_b64encode(core.random_bytes(SECRET_BYTES)).decode().rstrip("=")
    return secret, hashlib.sha256(secret.encode()).hexdigest()
