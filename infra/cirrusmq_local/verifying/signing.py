"""Signatures of results: Ed25519, over the JSON without its member `signature`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

ALGORITHM = "Ed25519"


class BadSignature(Exception):
    """A result that was changed, or is not signed."""


def canonical(result: dict[str, Any]) -> bytes:
    """The bytes that are signed."""
    held = {name: value for name, value in result.items() if name != "signature"}
    return json.dumps(held, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sign(result: dict[str, Any], key_file: Path) -> None:
    """Sign a result by a private key in PEM; a key that is not there is made, for its owner alone.

    Raises ValueError if the file holds another kind of key.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if key_file.exists():
        try:
            key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{key_file} is no private key in PEM without a password") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError(f"{key_file} is not an Ed25519 key")
    else:
        key = Ed25519PrivateKey.generate()
        text = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(text)
    public = key.public_key().public_bytes(
        serialization.Encoding.Raw, serialization.PublicFormat.Raw
    )
    result["signature"] = {
        "algorithm": ALGORITHM,
        "public_key": public.hex(),
        "value": key.sign(canonical(result)).hex(),
    }


def check(result: dict[str, Any]) -> str:
    """The public key that signed a result, in hex. Raises BadSignature."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    signature = result.get("signature")
    if not isinstance(signature, dict) or signature.get("algorithm") != ALGORITHM:
        raise BadSignature("it is not signed")
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["public_key"]))
        key.verify(bytes.fromhex(signature["value"]), canonical(result))
    except (InvalidSignature, KeyError, TypeError, ValueError):
        raise BadSignature("the signature is not of this content") from None
    return str(signature["public_key"])
