"""The signature of a call: an HMAC of its method, host, path and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cirrusmq_dialects.signing import same, sign

PATH = "/v2/index.php"
SIGNATURE = "Signature"


def is_signed_with(secret: str, method: str, host: str, params: Mapping[str, str]) -> bool:
    """Returns True if the call's `Signature` was made with the secret.

    An SDK leaves values that begin with `@` out of what it signs on POST, and sends them; others
    sign them too.
    """
    digest = "sha256" if params.get("SignatureMethod") == "HmacSHA256" else "sha1"
    given = params.get(SIGNATURE, "")
    # All forms are compared: the time reveals nothing.
    fits = [same(given, sign(secret, text, digest)) for text in _texts(method, host, params)]
    return any(fits)


def _texts(method: str, host: str, params: Mapping[str, str]) -> Iterator[str]:
    signed = {name: value for name, value in params.items() if name != SIGNATURE}
    yield text_to_sign(method, host, signed)
    if method == "POST" and any(value.startswith("@") for value in signed.values()):
        plain = {name: value for name, value in signed.items() if not value.startswith("@")}
        yield text_to_sign(method, host, plain)


def text_to_sign(method: str, host: str, params: Mapping[str, str]) -> str:
    """The text of a call of which its signature is made; its parameters are decoded."""
    pairs = (f"{name.replace('_', '.')}={params[name]}" for name in sorted(params, key=str.encode))
    return f"{method}{host}{PATH}?{'&'.join(pairs)}"
