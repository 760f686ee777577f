"""Encrypts the secrets of signing keys, each under its key's id, as KMS does."""

from __future__ import annotations

import os

from cirrusmq.base.errors import Unavailable
from cirrusmq_local.cloud.invocation import running

KEY = "Key.Arn"
"""The key's name in permissions."""
KEY_BYTES = 32
_NONCE_BYTES = 12


class NotSealedError(Exception):
    """This key has not encrypted the bytes, or not for this id."""


class SealingKey:
    """Encrypts and decrypts by AES in Galois/Counter Mode."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def encrypt(self, key_id: str, plain: bytes) -> bytes:
        """Returns the bytes, encrypted for a signing key."""
        # Imported here: few commands encrypt anything, and the import takes long.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self._key).encrypt(nonce, plain, key_id.encode())

    def decrypt(self, key_id: str, sealed: bytes) -> bytes:
        """Returns the decrypted bytes of a signing key. Raises NotSealedError."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce, content = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return AESGCM(self._key).decrypt(nonce, content, key_id.encode())
        except (InvalidTag, ValueError) as error:
            raise NotSealedError from error


class GuardedSealing:
    """Seals as the deployment does, only for functions whose policies allow it."""

    def __init__(self, key: SealingKey) -> None:
        self._key = key

    def seal(self, key_id: str, secret: str) -> bytes:
        """Returns the encrypted secret."""
        _require("kms:Encrypt", key_id)
        return self._key.encrypt(key_id, secret.encode())

    def unseal(self, key_id: str, sealed: bytes) -> str:
        """Returns the secret that was sealed for this key id. Raises Unavailable if it was not."""
        _require("kms:Decrypt", key_id)
        try:
            return self._key.decrypt(key_id, sealed).decode()
        except NotSealedError as error:
            raise Unavailable from error


def _require(action: str, key_id: str) -> None:
    invocation = running.get()
    if invocation is not None and not invocation.function.may(action, KEY, partition=key_id):
        raise PermissionError(f"{invocation.function.name} is not allowed {action} on {KEY}")
