"""Callers that sign: their key's secret never travels, so it has to be known here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cirrusmq.access.key_cache import MINUTE_MS, KeyCache, note_use
from cirrusmq.access.keys import AccessKey, Caller
from cirrusmq.base.errors import Throttled
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory
from cirrusmq.storage.directory import access_key_key

_NOBODY = "nobody's secret, of as many characters as others"
_SIGNS = "signs"
"""In the place of a good secret's digest, in an environment's memory of its callers."""


class UnknownKeyError(Exception):
    """No signing key has this id, or it has expired."""


class WrongSignatureError(Exception):
    """The signature was not made with the key's secret."""


def verify_signature(
    core: Core, key_id: str, is_signed_with: Callable[[str], bool], source: str | None = None
) -> Caller:
    """Returns the caller with the key of this id.

    is_signed_with: returns True if the signature was made with a secret.
    Raises UnknownKeyError or WrongSignatureError. In a deployment that has rates, raises Throttled
    if the address `source` sent too many wrong signatures within a minute.
    """
    now_ms = core.now_ms()
    slows, known = core.settings.account_requests_per_second > 0, core.memory(KeyCache)
    if slows and known.refuses(source, key_id, _SIGNS, now_ms):
        left_seconds = (MINUTE_MS - now_ms % MINUTE_MS) // 1_000 + 1
        raise Throttled("too many wrong signatures came from this address", left_seconds)
    key = None
    if not known.is_unknown(key_id, now_ms):
        key = directory.read_cached(core, access_key_key(key_id), AccessKey)
    if key is None or not key.signing:
        is_signed_with(_NOBODY)  # so that the time reveals nothing
        known.note_wrong(source, key_id, now_ms, unknown=key is None)
        raise UnknownKeyError
    if not any(map(is_signed_with, _secrets(core, key, now_ms))):
        known.note_wrong(source, key_id, now_ms, unknown=False)
        raise WrongSignatureError
    if key.expires_ms is not None and now_ms >= key.expires_ms:
        raise UnknownKeyError
    known.note_good(key.id, _SIGNS)
    note_use(core, key.id)
    return Caller.of(key)


def _secrets(core: Core, key: AccessKey, now_ms: int) -> Iterator[str]:
    """The key's secret, and the one before for as long as that is good."""
    sealed = [key.sealed_secret]
    if now_ms < key.previous_until_ms:
        sealed.append(key.previous_sealed)
    for each in sealed:
        if each is None:
            continue
        secret = core.memory(KeyCache).opened(each, now_ms)
        if secret is None:
            secret = core.sealing.unseal(key.id, each)
            core.memory(KeyCache).note_opened(each, secret, now_ms)
        yield secret
