"""The URL of an endpoint: the parts that a request takes from it, and the reason of a refusal."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.webhooks.urls import Endpoint, check_endpoint, split

NO_HOST = "must have a host: a name of letters, digits, '-' and '.', or an address"
NO_NUMBER = "must write an IPv4 address as four plain decimal numbers"
NO_PORT = "must have a port from 1 to 65535, or none"
NO_ASCII = "must have its host in the ASCII form that begins with xn--"
NO_URL = "must be a URL such as https://example.com/messages"
NO_BLANKS = "must not have blanks, control characters or invisible ones"
LONGEST_HOST = ".".join(["a" * 63] * 3 + ["b" * 61])


@pytest.mark.parametrize(
    ("url", "detail"),
    [
        ("https://example.com/" + "a" * 481, "must be at most 500 characters"),
        ("https://example.com/a b", NO_BLANKS),
        ("https://example.com/\x7f", NO_BLANKS),
        ("https://exa\u200bmple.com/", NO_BLANKS),
        ("https://example.com\\@127.0.0.1/", "must not have a backslash"),
        ("https://example.com/#part", "must not have a fragment"),
        ("example.com", NO_URL),
        ("ftp://example.com/", NO_URL),
        ("https://user@example.com/", "must not have a user or a password"),
        ("https://[::1/", "must have a ']' behind its IPv6 address"),
        ("https://[::1]x/", "must have a ']' behind its IPv6 address"),
        ("https://[::1]:/", NO_PORT),
        ("https://example.com:/", NO_PORT),
        ("https://example.com:0/", NO_PORT),
        ("https://example.com:65536/", NO_PORT),
        ("https://[1:2:3]/", "must have a valid IPv6 address"),
        ("https://[fe80::1%eth0]/", "must not have an IPv6 address with a zone"),
        ("https://2130706433/", NO_NUMBER),
        ("https://127.0.0.1./", NO_NUMBER),
        ("https://0177.0.0.1/", NO_NUMBER),
        ("https:///path", NO_HOST),
        ("https://example..com/", NO_HOST),
        ("https://-example.com/", NO_HOST),
        ("https://example-.com/", NO_HOST),
        (f"https://{'a' * 64}.example/", NO_HOST),
        (f"https://{LONGEST_HOST}b/", NO_HOST),
        ("https://stra\u00dfe.example/", NO_ASCII),
        ("https://example\u3002com/", NO_ASCII),
        ("https://" + "\u00e9" * 64 + ".example/", NO_ASCII),
    ],
)
def test_a_doubtful_url_is_refused_with_the_reason(url: str, detail: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        split(url)
    assert refused.value.detail == f"endpoint: {detail}"
    assert refused.value.parameter == "endpoint"


def test_a_url_without_tls_is_refused_if_only_https_is_allowed() -> None:
    with pytest.raises(InvalidParameter) as refused:
        check_endpoint("HTTP://example.com/", http_allowed=False)
    assert refused.value.detail == "endpoint: must be an https URL"
    check_endpoint("HTTP://example.com/", http_allowed=True)
    check_endpoint("https://example.com/", http_allowed=False)


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "target"),
    [
        ("https://example.com", "https", "example.com", 443, "/"),
        ("HTTP://Example.COM?q", "http", "example.com", 80, "/?q"),
        ("http://example.com:443/a?b?c", "http", "example.com", 443, "/a?b?c"),
        ("https://example.com:1/", "https", "example.com", 1, "/"),
        ("https://example.com:65535/", "https", "example.com", 65_535, "/"),
        ("https://[2001:DB8:0::1]/", "https", "2001:db8::1", 443, "/"),
        ("https://[2001:db8::1]:8443/", "https", "2001:db8::1", 8_443, "/"),
        ("https://127.0.0.1/", "https", "127.0.0.1", 443, "/"),
        ("https://B\u00dcCHER.example/\u00e4", "https", "xn--bcher-kva.example", 443, "/%C3%A4"),
        (f"https://{LONGEST_HOST}/", "https", LONGEST_HOST, 443, "/"),
        ("https://example.com/~!$&'()*+,;=:@%20[]{}|^`\"<>", "https", "example.com", 443,
         "/~!$&'()*+,;=:@%20[]{}|^`\"<>"),
    ],
)  # fmt: skip
def test_the_parts_are_those_of_the_request(
    url: str, scheme: str, host: str, port: int, target: str
) -> None:
    assert split(url) == Endpoint(scheme=scheme, host=host, port=port, target=target)


@pytest.mark.parametrize(
    ("url", "tls_name", "host_header", "address"),
    [
        ("https://example.com./", "example.com", "example.com", None),
        ("https://example.com:80/", "example.com", "example.com:80", None),
        ("http://example.com:80/", "example.com", "example.com", None),
        ("http://example.com:443/", "example.com", "example.com:443", None),
        ("https://8.8.8.8:99/", "8.8.8.8", "8.8.8.8:99", "8.8.8.8"),
        ("https://[2001:db8::1]:99/", "2001:db8::1", "[2001:db8::1]:99", "2001:db8::1"),
        ("https://[2001:db8::1]/", "2001:db8::1", "[2001:db8::1]", "2001:db8::1"),
        ("https://1.example/", "1.example", "1.example", None),
    ],
)
def test_the_names_for_certificate_and_host_header_omit_optional_parts(
    url: str, tls_name: str, host_header: str, address: str | None
) -> None:
    endpoint = split(url)
    assert (endpoint.tls_name, endpoint.host_header) == (tls_name, host_header)
    assert endpoint.address == (ip_address(address) if address else None)
