"""Certificates of a cluster: its authority, and what that signs."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Pki:
    """An authority in a folder; certificates are valid for a day."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kubernetes")
        made = _builder(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.authority = directory / "ca.crt"
        self.authority.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))

    def sign(self, name: str, *, organization: str = "") -> tuple[Path, Path]:
        """Certificate and key of a name, for 127.0.0.1 and localhost."""
        key = ec.generate_private_key(ec.SECP256R1())
        places = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        made = _builder(_name(name, organization), self._name, key).add_extension(
            x509.SubjectAlternativeName(places), critical=False
        )
        paths = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        paths[0].write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        paths[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return paths


def _name(common: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    return x509.Name([*([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []), *parts])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
