"""The network addresses that a request may go to: global ones, and networks that are named.

A subscriber chooses the endpoint, so its name may point anywhere: at the machine itself, at the
network behind it, at a cloud's metadata. Only addresses of the public internet pass.

The table is our own, since `ipaddress.is_global` is another one in every release of Python. Before
3.11.10 and 3.12.4 it calls 64:ff9b:1::/48, 2002::/16 and most of 192.0.0.0/24 global; 3fff::/20,
5f00::/16 and 100:0:0:1::/64 are global to many later ones; multicast and site-local addresses are
global there too; and an IPv4 address inside an IPv6 one counts for mapped ones at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Every block that the IANA Special-Purpose Address Registries do not call globally reachable:
# https://www.iana.org/assignments/iana-ipv4-special-registry and …/iana-ipv6-special-registry.
# If such a block has smaller ones that are (anycast addresses of protocols, in 192.0.0.0/24
# and 2001::/23), the whole block is refused: no subscriber is there.
_NOT_GLOBAL: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/32", "unspecified"),
    ("0.0.0.0/8", "reserved"),  # RFC 791: this network
    ("10.0.0.0/8", "private"),  # RFC 1918
    ("100.64.0.0/10", "shared"),  # RFC 6598
    ("127.0.0.0/8", "loopback"),  # RFC 1122
    ("169.254.0.0/16", "link-local"),  # RFC 3927; the metadata of most clouds
    ("172.16.0.0/12", "private"),  # RFC 1918
    ("192.0.0.0/24", "reserved"),  # RFC 6890: protocol assignments
    ("192.0.2.0/24", "documentation"),  # RFC 5737
    ("192.88.99.0/24", "tunnel"),  # RFC 7526: relays of 6to4, withdrawn
    ("192.168.0.0/16", "private"),  # RFC 1918
    ("198.18.0.0/15", "benchmarking"),  # RFC 2544
    ("198.51.100.0/24", "documentation"),  # RFC 5737
    ("203.0.113.0/24", "documentation"),  # RFC 5737
    ("224.0.0.0/4", "multicast"),  # RFC 5771
    ("240.0.0.0/4", "reserved"),  # RFC 1112; the broadcast address
    # Not in a registry: public by its number, yet Azure answers it inside every virtual machine.
    ("168.63.129.16/32", "metadata"),
    ("::/128", "unspecified"),  # RFC 4291
    ("::1/128", "loopback"),  # RFC 4291
    ("64:ff9b:1::/48", "translation"),  # RFC 8215
    ("fc00::/7", "private"),  # RFC 4193; the metadata of AWS
    ("fe80::/10", "link-local"),  # RFC 4291
    ("fec0::/10", "private"),  # RFC 3879: site-local, withdrawn
    ("ff00::/8", "multicast"),  # RFC 4291
    ("2001::/32", "tunnel"),  # RFC 4380: Teredo
    ("2001:2::/48", "benchmarking"),  # RFC 5180
    ("2001::/23", "reserved"),  # RFC 2928: protocol assignments
    ("2001:db8::/32", "documentation"),  # RFC 3849
    ("2002::/16", "tunnel"),  # RFC 3056: 6to4
    ("3fff::/20", "documentation"),  # RFC 9637
)
_REFUSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), kind) for network, kind in _NOT_GLOBAL
)

# The one block that IANA has opened for global unicast (RFC 4291, section 2.4), and well-known
# NAT64 (RFC 6052), which the registry calls globally reachable. All other IPv6 is refused, be it
# in the table or not: 100::/64, 5f00::/16, ::a.b.c.d, ::ffff:0:a.b.c.d, reserved blocks.
_NAT64 = IPv6Network("64:ff9b::/96")
_OPEN_IPV6 = (IPv6Network("2000::/3"), _NAT64)

_CARRY_IPV4_LAST = (_NAT64, IPv6Network("64:ff9b:1::/48"))
_TEREDO = IPv6Network("2001::/32")
_6TO4 = IPv6Network("2002::/16")
_ISATAP_MARKS = (0x0000_5EFE, 0x0200_5EFE)
_32_BITS = 0xFFFF_FFFF


class Refused(Exception):
    """No request goes to this address; `kind` is its block: private, loopback, shared …"""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(kind)


class AddressPolicy:
    """Lets global addresses pass, and addresses in the networks that the deployment names."""

    def __init__(self, allowed_networks: Sequence[Network] = ()) -> None:
        self._allowed = tuple(allowed_networks)

    def check(self, address: Address) -> None:
        """Raises `Refused` unless `address`, and every IPv4 address inside it, may be reached.

        An IPv4-mapped address is the IPv4 address: that is where the system connects to. Other
        forms are judged by their own block and by the addresses inside; each may be allowed.
        """
        for each in _embedded_addresses(address):
            if not any(each in network for network in self._allowed):
                _check_global(each)


def _embedded_addresses(address: Address) -> Iterable[Address]:
    """Returns the address, or the mapped one in its place, and the IPv4 addresses inside it."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    return (address, *(IPv4Address(number) for number in _carried(address)))


def _carried(address: IPv6Address) -> Iterable[int]:
    """Yields the IPv4 addresses, as numbers, at which the packets for `address` may arrive."""
    number = int(address)
    if any(address in network for network in _CARRY_IPV4_LAST):
        yield number & _32_BITS
    if address in _6TO4:
        yield number >> 80 & _32_BITS
    if address in _TEREDO:
        yield number >> 64 & _32_BITS  # the server
        yield ~number & _32_BITS  # the client, with its bits turned
    if number >> 32 & _32_BITS in _ISATAP_MARKS:  # RFC 5214, under any prefix
        yield number & _32_BITS


def _check_global(address: Address) -> None:
    for network, kind in _REFUSED:
        if address in network:
            raise Refused(kind)
    if isinstance(address, IPv6Address) and not any(address in open_ for open_ in _OPEN_IPV6):
        raise Refused("reserved")
