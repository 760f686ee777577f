"""A client's trusted authorities, its proxy, and the reasons of failed connections."""

from __future__ import annotations

import os
import ssl
from functools import cache

import httpx

from cirrusmq_client.connection import Connection
from cirrusmq_client.errors import CertificateRefused, NotConfigured, NotReachable

CA_FILE, CA_FOLDER = "SSL_CERT_FILE", "SSL_CERT_DIR"
_PROXIES = ("http", "https", "socks5", "socks5h")


def trusted(connection: Connection) -> ssl.SSLContext:
    """Returns the trusted authorities. Raises NotConfigured if a file is not valid.

    These are the public ones, replaced by SSL_CERT_FILE or SSL_CERT_DIR if set, and in addition the
    authorities in the connection's `ca_file`.
    """
    return _context(os.environ.get(CA_FILE), os.environ.get(CA_FOLDER), connection.ca_file)


@cache
def _context(file: str | None, folder: str | None, own: str | None) -> ssl.SSLContext:
    """Returns a context that clients of the process share: its certificates take 20 ms to read."""
    if file or folder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        context = httpx.create_ssl_context(trust_env=False)
    for name, path in ((CA_FILE, file), ("ca_file (CIRRUSMQ_CA_FILE)", own)):
        if path:
            try:
                context.load_verify_locations(cafile=path)
            except (OSError, ssl.SSLError) as error:
                raise NotConfigured(
                    f"{name}: {path} is no readable file of certificates in PEM: {error.strerror}"
                ) from error
    if folder:
        context.load_verify_locations(capath=folder)
    return context


def proxy_of(connection: Connection) -> httpx.Proxy | None:
    """Returns the connection's proxy, or None. Raises NotConfigured, without the password."""
    if connection.proxy is None:
        return None
    try:
        proxy = httpx.Proxy(connection.proxy)
    except Exception:  # its text has the URL
        proxy = None
    if proxy is None or proxy.url.scheme not in _PROXIES or not proxy.url.host:
        raise NotConfigured("proxy (CIRRUSMQ_PROXY): not a URL like http://proxy.example:3128")
    return proxy


def not_reached(url: str, error: BaseException) -> NotReachable:
    """Returns the error for a failed connection: no answer, or a failure of TLS."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return CertificateRefused(
                f"the certificate of {url} is refused: {cause.verify_message}; SSL_CERT_FILE, or"
                " ca_file of a Connection, names an authority to trust"
            )
        if isinstance(cause, ssl.SSLError):
            return NotReachable(f"{url} does not speak TLS as it should: {cause.reason}")
        cause = cause.__cause__ or cause.__context__
    return NotReachable(f"nothing answers at {url}")
