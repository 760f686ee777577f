"""The URL of an endpoint: the accepted grammar, and the URL's parts as a request needs them.

The grammar is our own and narrow. Every parser of URLs reads the doubtful ones (`\\`, `@`, blanks,
short or octal addresses, letters that look like a dot) in its own way, so that a check and a
client may see two hosts in one URL. Here such a URL is refused, and the checked parts are used.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_network
from urllib.parse import quote

from cirrusmq.base.errors import InvalidParameter

ENDPOINT_CHARACTERS = 500
HOST_CHARACTERS = 253
PORTS = (1, 65_535)
DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?]*)(?P<path>[^?]*)(?P<query>\?.*)?"
)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_ALL_ASCII = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The parts of a URL. host: ASCII in small letters, a name or an address without brackets;
    target: path and query for the request line."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """The host's address; None if the host is a name."""
        if ":" in self.host:
            return IPv6Address(self.host)
        return IPv4Address(self.host) if _is_number(self.host) else None

    @property
    def tls_name(self) -> str:
        """The name that the certificate must have."""
        return self.host.removesuffix(".")

    @property
    def host_header(self) -> str:
        """The value of the request's `Host` header."""
        shown = f"[{self.host}]" if ":" in self.host else self.tls_name
        return shown if self.port == DEFAULT_PORTS[self.scheme] else f"{shown}:{self.port}"


def check_endpoint(url: str, *, http_allowed: bool, allowed_networks: Sequence[str] = ()) -> None:
    """Checks that a subscription may have `url`.

    A name is not looked up here: its addresses are checked whenever a request is made.
    allowed_networks: such as `10.1.0.0/16`, in which an address may be though it is not public.
    Raises InvalidParameter on `endpoint`.
    """
    parts = split(url)
    if parts.scheme == "http" and not http_allowed:
        raise _refusal("must be an https URL")
    if parts.address is not None:
        _check_address(parts.address, allowed_networks)


def _check_address(address: IPv4Address | IPv6Address, allowed_networks: Sequence[str]) -> None:
    # Most endpoints have names: a cold start does without the table of networks.
    from cirrusmq.webhooks.addresses import AddressPolicy, Refused

    try:
        AddressPolicy([ip_network(network) for network in allowed_networks]).check(address)
    except Refused as refused:
        raise _refusal(
            f"must not be a {refused.kind} address: nothing would ever be posted to it"
        ) from refused


def split(url: str) -> Endpoint:
    """Returns the parts of an http or https `url`. Raises `InvalidParameter` on `endpoint`."""
    if len(url) > ENDPOINT_CHARACTERS:
        raise _refusal(f"must be at most {ENDPOINT_CHARACTERS} characters")
    if any(character.isspace() or unicodedata.category(character)[0] == "C" for character in url):
        raise _refusal("must not have blanks, control characters or invisible ones")
    if "\\" in url:
        raise _refusal("must not have a backslash")
    # A fragment is never sent: a URL with one promises its author something that does not happen.
    if "#" in url:
        raise _refusal("must not have a fragment")
    match = _URL.fullmatch(url)
    if match is None or match["scheme"].lower() not in DEFAULT_PORTS:
        raise _refusal("must be a URL such as https://example.com/messages")
    if "@" in match["authority"]:
        raise _refusal("must not have a user or a password")
    scheme = match["scheme"].lower()
    host, port = _split_authority(match["authority"])
    return Endpoint(
        scheme=scheme,
        host=host,
        port=DEFAULT_PORTS[scheme] if port is None else _read_port(port),
        target=quote((match["path"] or "/") + (match["query"] or ""), safe=_ALL_ASCII),
    )


def _split_authority(authority: str) -> tuple[str, str | None]:
    """Returns the host, and the port's text if there is a colon for it."""
    if authority.startswith("["):
        literal, bracket, rest = authority[1:].partition("]")
        if not bracket or rest[:1] not in ("", ":"):
            raise _refusal("must have a ']' behind its IPv6 address")
        return _read_ipv6(literal), rest[1:] if rest else None
    name, colon, port = authority.partition(":")
    return _read_name(name), port if colon else None


def _read_port(port: str) -> int:
    if not _PORT.fullmatch(port) or int(port) > PORTS[1]:
        raise _refusal(f"must have a port from {PORTS[0]} to {PORTS[1]}, or none")
    return int(port)


def _read_ipv6(literal: str) -> str:
    try:
        address = IPv6Address(literal)
    except AddressValueError as error:
        raise _refusal("must have a valid IPv6 address") from error
    if address.scope_id is not None:
        raise _refusal("must not have an IPv6 address with a zone")
    return address.compressed


def _read_name(name: str) -> str:
    host = _to_ascii(name) if not name.isascii() else name.lower()
    # `2130706433`, `0x7f.1` and `0177.0.0.1` are names to some and 127.0.0.1 to others.
    if _is_number(host):
        try:
            return str(IPv4Address(host))
        except AddressValueError as error:
            raise _refusal("must write an IPv4 address as four plain decimal numbers") from error
    labels = host.removesuffix(".").split(".")
    if len(host) > HOST_CHARACTERS or not all(map(_LABEL.fullmatch, labels)):
        raise _refusal("must have a host: a name of letters, digits, '-' and '.', or an address")
    return host


def _to_ascii(name: str) -> str:
    """Returns the `xn--` form of a name, if IDNA's two editions agree on it.

    The codec is the older edition: it turns `ß` into `ss`, drops joiners, and makes digits and
    dots out of letters that look like them. A name that would become another one is refused.
    """
    try:
        host = name.encode("idna").decode("ascii").lower()
        if host.encode("ascii").decode("idna") == name.lower():
            return host
    except UnicodeError:
        pass
    raise _refusal("must have its host in the ASCII form that begins with xn--")


def _is_number(host: str) -> bool:
    """Returns True if some reader takes `host` for an IPv4 address: its last part is a number."""
    return bool(_NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]))


def _refusal(detail: str) -> InvalidParameter:
    return InvalidParameter("endpoint", detail)
