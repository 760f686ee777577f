"""A private certificate authority, and certificates that it signs."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority of its own, known to those alone that are told of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        self.certificate = self._signed(self.name, self.key, ca=True, names=[])
        self.file = folder / "authority.pem"
        """Its certificate, for clients that are to trust it."""
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _signed(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        ca: bool,
        names: list[x509.GeneralName],
        ended: bool = False,
        regular: bool = True,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now + timedelta(days=-1 if ended else 1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        if ca:
            usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
            builder = builder.add_extension(usage, critical=True)
        if names:
            # RFC 5280, 4.2.1.6: critical where the subject is empty.
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=regular)
        return builder.sign(self.key, hashes.SHA256())

    def serving(
        self, *names: x509.GeneralName, ended: bool = False, regular: bool = True
    ) -> ssl.SSLContext:
        """The context of a server with a certificate for `names`; `regular`: as RFC 5280 says."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(
            x509.Name([]), key, ca=False, names=list(names), ended=ended, regular=regular
        )
        file = self.folder / f"{certificate.serial_number}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def trusting(self) -> ssl.SSLContext:
        """The context of a client that trusts this authority."""
        return ssl.create_default_context(cafile=self.file)
