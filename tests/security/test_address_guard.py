"""No endpoint, however it is written or resolved, brings a request to an address not allowed."""

from __future__ import annotations

import ipaddress
import random
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import pytest

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.webhooks.addresses import AddressPolicy, Refused
from cirrusmq.webhooks.client import Poster
from cirrusmq.webhooks.urls import check_endpoint, split

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

NOTHING_ALLOWED = AddressPolicy()
ONE_MACHINE = AddressPolicy(LOOPBACK)
CONTEXT = ssl.create_default_context()
"""What a poster would make of the system's authorities for itself, in longer than a test takes."""

# ---- addresses ----------------------------------------------------------------------------------

REFUSED_ADDRESSES = {
    "unspecified": ["0.0.0.0", "::", "::ffff:0.0.0.0", "64:ff9b::"],
    "loopback": [
        "127.0.0.1",
        "127.255.255.254",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "2606:4700::5efe:127.0.0.1",
        "2606:4700::200:5efe:127.0.0.1",
    ],
    "private": [
        "10.0.0.1",
        "10.255.255.255",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "::ffff:10.0.0.1",
        "::ffff:192.168.1.1",
        "64:ff9b::10.0.0.1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff:ffff::1",
        "fec0::1",
    ],
    "link-local": [
        "169.254.169.254",
        "169.254.170.2",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "fe80::1",
        "fe80::1%eth0",
        "febf::1",
    ],
    "shared": ["100.64.0.1", "100.127.255.255", "100.100.100.200", "::ffff:100.100.100.200"],
    "multicast": ["224.0.0.1", "239.255.255.250", "ff02::1", "ff0e::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "benchmarking": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "metadata": ["168.63.129.16", "::ffff:168.63.129.16"],
    "translation": ["64:ff9b:1::1", "64:ff9b:1::8.8.8.8", "64:ff9b:1:ffff::127.0.0.1"],
    "tunnel": [
        "192.88.99.1",
        "2002:7f00:1::1",
        "2002:a9fe:a9fe::1",
        "2002:808:808::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:0:7f00:1::",
    ],
    "reserved": [
        "0.0.0.1",
        "0.255.255.255",
        "192.0.0.8",
        "192.0.0.170",
        "192.0.0.192",
        "240.0.0.1",
        "255.255.255.255",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:0:127.0.0.1",
        "100::1",
        "100:0:0:1::1",
        "200::1",
        "2001:1::1",
        "2001:10::1",
        "2001:20::1",
        "4000::1",
        "5f00::1",
        "64:ff9b:2::8.8.8.8",
        "fe00::1",
    ],
}

GLOBAL_ADDRESSES = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.1",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "2001:200::1",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2606:4700::5efe:8.8.8.8",
]


@pytest.mark.parametrize(
    ("kind", "text"),
    [(kind, text) for kind, texts in REFUSED_ADDRESSES.items() for text in texts],
)
def test_a_non_global_address_is_refused(kind: str, text: str) -> None:
    with pytest.raises(Refused) as refusal:
        NOTHING_ALLOWED.check(ip_address(text))
    assert refusal.value.kind == kind


@pytest.mark.parametrize("text", GLOBAL_ADDRESSES)
def test_a_global_address_passes(text: str) -> None:
    NOTHING_ALLOWED.check(ip_address(text))


@pytest.mark.parametrize("text", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_on_one_machine_loopback_passes(text: str) -> None:
    ONE_MACHINE.check(ip_address(text))


@pytest.mark.parametrize(
    "text", ["10.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "::", "fd00::1"]
)
def test_on_one_machine_nothing_else_of_the_inside_passes(text: str) -> None:
    with pytest.raises(Refused):
        ONE_MACHINE.check(ip_address(text))


def test_an_address_inside_an_allowed_one_must_be_allowed_as_well() -> None:
    translation = ip_network("64:ff9b:1::/48")
    inside = ip_address("64:ff9b:1::10.0.0.1")
    with pytest.raises(Refused, match="private"):
        AddressPolicy([translation]).check(inside)
    AddressPolicy([translation, ip_network("10.0.0.0/8")]).check(inside)
    AddressPolicy([translation]).check(ip_address("64:ff9b:1::8.8.8.8"))


@pytest.mark.parametrize(
    "text",
    [
        "2002:a00:1::1",  # 6to4 of 10.0.0.1
        "2001:0:a00:1:0:0:f7f7:f7f7",  # Teredo: its server 10.0.0.1, its client 8.8.8.8
        "2001:0:808:808:0:0:f5ff:fffe",  # Teredo: its server 8.8.8.8, its client 10.0.0.1
    ],
)
def test_an_allowed_tunnel_leads_to_global_addresses_alone(text: str) -> None:
    tunnels = [ip_network("2002::/16"), ip_network("2001::/32")]
    with pytest.raises(Refused, match="private"):
        AddressPolicy(tunnels).check(ip_address(text))
    AddressPolicy([*tunnels, ip_network("10.0.0.0/8")]).check(ip_address(text))


def test_a_network_of_one_kind_allows_no_address_of_the_other() -> None:
    with pytest.raises(Refused):
        AddressPolicy([ip_network("0.0.0.0/0")]).check(ip_address("::1"))
    with pytest.raises(Refused):
        AddressPolicy([ip_network("::/0")]).check(ip_address("::ffff:127.0.0.1"))


def passes(address: IPv4Address | IPv6Address) -> bool:
    try:
        NOTHING_ALLOWED.check(address)
    except Refused:
        return False
    return True


def test_whatever_python_calls_not_global_is_refused_too() -> None:
    randomness = random.Random(4)
    networks = [
        *(ip_network(f"{first}.0.0.0/8") for first in range(256)),
        *(ip_network(f"192.{second}.0.0/16") for second in range(256)),
        *(ip_network(f"{first:x}::/16") for first in range(0, 65_536, 97)),
        *(ip_network(f"2001:{second:x}::/32") for second in range(1_024)),
        ip_network("2000::/3"),
        ip_network("fc00::/6"),
    ]
    checked = 0
    for network in networks:
        for _ in range(8):
            address = network[randomness.randrange(network.num_addresses)]
            if not address.is_global:
                checked += 1
                assert not passes(address), address
    assert checked > 3_000


def test_the_neighbours_of_every_refused_ipv4_block_pass_unless_another_refuses_them() -> None:
    """The blocks' borders, by arithmetic: neither one address too many nor one too few."""
    blocks = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32",
        "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
        "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
    ]  # fmt: skip
    for block in map(ipaddress.IPv4Network, blocks):
        assert not passes(block[0]), block
        assert not passes(block[-1]), block
        for outside in (int(block[0]) - 1, int(block[-1]) + 1):
            if 0 < outside < 2**32:
                assert passes(IPv4Address(outside)), IPv4Address(outside)


# ---- URLs ---------------------------------------------------------------------------------------

REFUSED_URLS = [
    # numbers that some readers take for 127.0.0.1 or 169.254.169.254
    "https://2130706433/",
    "https://017700000001/",
    "https://0x7f000001/",
    "https://0x7F.1/",
    "https://0177.0.0.1/",
    "https://0x7f.0.0.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://127.0.0.1./",
    "https://2852039166/",
    "https://0xa9fea9fe/",
    "https://169.254.43518/",
    "https://0251.0376.0251.0376/",
    "https://256.256.256.256/",
    "https://1.2.3.4.5/",
    "https://example.0x/",
    "https://example.1/",
    # letters that look like digits, dots or slashes
    "https://\uff11\uff12\uff17.0.0.1/",
    "https://127。0。0。1/",
    "https://①②⑦.⓪.⓪.①/",
    "https://١٢٧.0.0.1/",
    "https://example。com/",
    "https://ⓔxample.com/",
    "https://exa\u00admple.com/",
    "https://exa\u200bmple.com/",
    "https://exa\u200dmple.com/",
    "https://straße.example/",
    "https://example.com\uff0fpath/",
    "https://℡.example/",
    # a user, a password, and forms that parsers disagree on
    "https://user@example.com/",
    "https://user:password@example.com/",
    "https://@example.com/",
    "https://example.com@127.0.0.1/",
    "https://127.0.0.1:80@example.com/",
    "https://example.com\\@127.0.0.1/",
    "https://example.com\\.evil.example/",
    "https://example.com/\\@127.0.0.1/",
    "https://example.com#@127.0.0.1/",
    "https://example.com/#part",
    "https://example.com/#",
    "https://example.com&@127.0.0.1/",
    "https://example.com:80:443/",
    # ports
    "https://example.com:/",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:99999/",
    "https://example.com:0443/",
    "https://example.com:+443/",
    "https://example.com:44a/",
    "https://example.com:\uff14\uff14\uff13/",
    "https://[::1]x/",
    "https://[::1]:/",
    # IPv6
    "https://[::1/",
    "https://::1/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[1:2:3]/",
    "https://[127.0.0.1]/",
    "https://[]/",
    "https://[v1.fe80]/",
    "https://[[::1]]/",
    # blanks and control characters
    " https://example.com/",
    "https://example.com/ ",
    "https://example.com/a b",
    "https://exam\tple.com/",
    "https://example.com/\r\nHost: 127.0.0.1",
    "https://example.com/\n",
    "https://example.com/\x00",
    "https://example.com/\x7f",
    "https://example.com/\u00a0",
    "https://example.com/\u2028",
    "https://example.com/\u202e",
    "https://example.com/\ud800",
    # no host, no URL, another scheme
    "",
    "https",
    "https:",
    "https://",
    "https:///path",
    "https://?query",
    "https://./",
    "https://../",
    "https://.example.com/",
    "https://example..com/",
    "https://-example.com/",
    "https://exa%6dple.com/",
    "https://127.0.0.1%00.example.com/",
    "https://exa$mple.com/",
    "https:/example.com/",
    "https:example.com",
    "//example.com/",
    "example.com",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_",
    "javascript:alert(1)",
    "http\u017f://example.com/",
    "https+unix://example.com/",
    f"https://{'a' * 64}.example/",
    f"https://{'.'.join(['a' * 50] * 5)}.example/",
    f"https://example.com/{'a' * 481}",
]

ACCEPTED_URLS = {
    "https://example.com": ("example.com", 443, "/", "example.com"),
    "https://example.com/": ("example.com", 443, "/", "example.com"),
    "HTTPS://Example.COM/Path?q=1": ("example.com", 443, "/Path?q=1", "example.com"),
    "https://example.com?q": ("example.com", 443, "/?q", "example.com"),
    "https://example.com:443/": ("example.com", 443, "/", "example.com"),
    "https://example.com:65535/": ("example.com", 65535, "/", "example.com:65535"),
    "https://example.com:8443/a@b:c": ("example.com", 8443, "/a@b:c", "example.com:8443"),
    "https://example.com./": ("example.com.", 443, "/", "example.com"),
    "https://a_b.example/": ("a_b.example", 443, "/", "a_b.example"),
    "https://bücher.example/": ("xn--bcher-kva.example", 443, "/", "xn--bcher-kva.example"),
    "https://BÜCHER.example/": ("xn--bcher-kva.example", 443, "/", "xn--bcher-kva.example"),
    "https://例え.example/ä?ö": (
        "xn--r8jz45g.example", 443, "/%C3%A4?%C3%B6", "xn--r8jz45g.example",
    ),
    "https://xn--bcher-kva.example/%20[]{}|^": (
        "xn--bcher-kva.example", 443, "/%20[]{}|^", "xn--bcher-kva.example",
    ),
    "https://8.8.8.8/": ("8.8.8.8", 443, "/", "8.8.8.8"),
    "https://1.example/": ("1.example", 443, "/", "1.example"),
    "https://0x7f.example/": ("0x7f.example", 443, "/", "0x7f.example"),
    "https://[2606:4700:0::1111]:8443/": (
        "2606:4700::1111", 8443, "/", "[2606:4700::1111]:8443",
    ),
    f"https://example.com/{'a' * 480}": ("example.com", 443, "/" + "a" * 480, "example.com"),
}  # fmt: skip


@pytest.mark.parametrize("url", REFUSED_URLS)
@pytest.mark.parametrize("http_allowed", [True, False])
def test_a_doubtful_url_is_no_endpoint(url: str, http_allowed: bool) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        check_endpoint(url, http_allowed=http_allowed)
    assert refusal.value.parameter == "endpoint"


@pytest.mark.parametrize("url", ACCEPTED_URLS)
def test_a_legal_url_is_an_endpoint_with_these_parts(url: str) -> None:
    check_endpoint(url, http_allowed=False)
    parts = split(url)
    assert (parts.host, parts.port, parts.target, parts.host_header) == ACCEPTED_URLS[url]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://127.0.0.1/", "loopback"),
        ("https://10.1.2.3:8443/hook", "private"),
        ("https://169.254.169.254/latest/meta-data", "link-local"),
        ("https://[::1]/", "loopback"),
        ("https://[::ffff:10.0.0.1]/", "private"),
        ("https://[fd00:ec2::254]/", "private"),
        ("https://[2002:a00:1::]/", "tunnel"),
        ("https://0.0.0.0/", "unspecified"),
    ],
)
def test_a_refused_address_is_no_endpoint(url: str, kind: str) -> None:
    """A name is judged by what it leads to, at each post; an address can be judged at once."""
    with pytest.raises(InvalidParameter) as refusal:
        check_endpoint(url, http_allowed=False, allowed_networks=("192.168.0.0/16",))
    assert refusal.value.parameter == "endpoint"
    assert f"must not be a {kind} address" in str(refusal.value)


def test_an_address_of_a_named_network_may_be_an_endpoint() -> None:
    named = ("10.1.0.0/16", "::1/128")
    for url in ("https://10.1.2.3/", "https://[::ffff:10.1.2.3]/", "https://[::1]/"):
        check_endpoint(url, http_allowed=False, allowed_networks=named)


def test_http_needs_the_deployments_permission() -> None:
    check_endpoint("http://localhost:9000/", http_allowed=True)
    assert split("http://localhost/").port == 80
    with pytest.raises(InvalidParameter, match="https"):
        check_endpoint("http://localhost:9000/", http_allowed=False)


def test_an_unchecked_url_is_not_posted_to() -> None:
    poster = Poster(ONE_MACHINE, resolver=no_lookup)
    for url in REFUSED_URLS:
        assert poster.post(url, {}, b"").error == "url"


# ---- answers of the name service ----------------------------------------------------------------


def no_lookup(*arguments: object, **options: object) -> list[Any]:
    raise AssertionError("nothing is to be looked up")


def answers(addresses: Sequence[str], port: int) -> list[Any]:
    return [
        (
            socket.AF_INET6 if ":" in text else socket.AF_INET,
            socket.SOCK_STREAM,
            6,
            "",
            (text, port, 0, 0) if ":" in text else (text, port),
        )
        for text in addresses
    ]


class Names:
    """A name service whose answer to each question is the next of `given`; the last one stays."""

    def __init__(self, *given: Sequence[str]) -> None:
        self.given = list(given)
        self.questions: list[str] = []

    def __call__(self, host: str, port: int, **_: object) -> list[Any]:
        self.questions.append(host)
        place = min(len(self.questions), len(self.given)) - 1
        return answers(self.given[place], port)


class Receiver(ThreadingHTTPServer):
    """A local subscriber that counts its requests and may answer with a redirect."""

    daemon_threads = True
    location: str | None = None
    requests: int = 0
    connections: int = 0

    def get_request(self) -> tuple[socket.socket, Any]:
        self.connections += 1
        return super().get_request()


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        self.server.requests += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(302 if self.server.location else 200)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    with Receiver(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@contextmanager
def poster_with(names: Names, policy: AddressPolicy = ONE_MACHINE) -> Iterator[Poster]:
    poster = Poster(policy, resolver=names, timeout_seconds=5.0, context=CONTEXT)
    try:
        yield poster
    finally:
        poster.close()


@pytest.mark.parametrize(
    "resolved",
    [[text] for texts in REFUSED_ADDRESSES.values() for text in texts]
    + [
        ["8.8.8.8", "10.0.0.1"],
        ["10.0.0.1", "8.8.8.8"],
        ["8.8.8.8", "1.1.1.1", "9.9.9.9", "::1"],
        ["2606:4700::1111", "::ffff:169.254.169.254"],
        ["8.8.8.8", "64:ff9b::169.254.169.254"],
    ],
    ids=",".join,
)
def test_a_name_with_one_such_address_is_not_connected_to(
    resolved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_connection(*_: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", no_connection)
    with poster_with(Names(resolved), NOTHING_ALLOWED) as poster:
        outcome = poster.post("https://subscriber.example/", {}, b"x")
    assert (outcome.status, outcome.error) == (None, "address")


def test_an_address_in_the_url_is_checked_like_a_resolved_one() -> None:
    poster = Poster(NOTHING_ALLOWED, resolver=no_lookup)
    for text in ("127.0.0.1", "169.254.169.254", "[::1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]"):
        assert poster.post(f"http://{text}:9/", {}, b"x").error == "address"


def test_a_mixed_answer_reaches_nobody(receiver: Receiver) -> None:
    names = Names(["127.0.0.1", "10.0.0.1"])
    with poster_with(names) as poster:
        url = f"http://subscriber.example:{receiver.server_port}/"
        assert poster.post(url, {}, b"x").error == "address"
    assert receiver.connections == 0


def test_a_changing_answer_is_asked_for_once_and_connected_to_as_checked(
    receiver: Receiver,
) -> None:
    """A second look-up, as a client makes that is given the name, would lead elsewhere."""
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    with poster_with(names) as poster:
        url = f"http://subscriber.example:{receiver.server_port}/"
        assert poster.post(url, {}, b"x").error is None
        assert names.questions == ["subscriber.example"]
        # The connection is still open, and not used: the name does not lead there any more.
        assert poster.post(url, {}, b"x").error == "address"
    assert receiver.requests == 1


def test_a_kept_connection_is_only_used_while_the_name_leads_to_it(receiver: Receiver) -> None:
    names = Names(["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"])
    with poster_with(names) as poster:
        url = f"http://subscriber.example:{receiver.server_port}/"
        assert poster.post(url, {}, b"x").error is None
        assert poster.post(url, {}, b"x").error == "connection"
        assert poster.post(url, {}, b"x").error is None
    assert (receiver.requests, receiver.connections) == (2, 1)


def test_a_redirect_is_a_failure_and_not_followed(receiver: Receiver) -> None:
    with receiving() as inside, poster_with(Names(["127.0.0.1"])) as poster:
        for location in (f"http://127.0.0.1:{inside.server_port}/", "//127.0.0.1/", "/again"):
            receiver.location = location
            outcome = poster.post(f"http://a.example:{receiver.server_port}/", {}, b"x")
            assert (outcome.status, outcome.error) == (302, "redirect 302")
        assert (receiver.requests, inside.requests) == (3, 0)


def test_the_environment_names_no_proxy(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as proxy, poster_with(Names(["127.0.0.1"])) as poster:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        assert poster.post(f"http://a.example:{receiver.server_port}/", {}, b"x").error is None
        assert proxy.connections == 0
