"""Certificates of a cluster: its authority, and what that signs."""

import datetime
import inspect
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Pki:
    """
    An authority in a folder; certificates are valid for a day.

    Args:
        is_strict: Its certificates are such that Python 3.13 and newer trust them by default. False: as EKS has made
            them, without key identifiers and with no extension of the authority but that it is one. Sources:
            aws/containers-roadmap#570, #2638 (clusters that began with Kubernetes 1.16 or older), awslabs/mcp#3791.
    """

    def __init__(self, directory: Path, *, is_strict: bool = True) -> None:
        self.directory, self._is_strict = directory, is_strict
        directory.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kubernetes")
        made = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        if is_strict:
            made = made.add_extension(_usage(key_cert_sign=True), critical=True)
        self.authority = directory / "ca.crt"
        self.authority.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))

    def sign(
        self, name: str, *, organization: str = "", place: str = "127.0.0.1", ends_in: datetime.timedelta = DAY
    ) -> tuple[Path, Path]:
        """Certificate and key of a name, for an address and localhost."""
        key = ec.generate_private_key(ec.SECP256R1())
        places = [x509.IPAddress(ipaddress.ip_address(place)), x509.DNSName("localhost")]
        made = (
            self._builder(_name(name, organization), key, ends_in=ends_in)
            .add_extension(x509.SubjectAlternativeName(places), critical=False)
            .add_extension(_usage(digital_signature=True), critical=True)
        )
        paths = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        paths[0].write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        paths[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return paths

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ends_in: datetime.timedelta = DAY
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, now + ends_in) - datetime.timedelta(minutes=5))
            .not_valid_after(now + ends_in)
        )
        if not self._is_strict:
            return made
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuers = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return made.add_extension(own, critical=False).add_extension(issuers, critical=False)


def _name(common: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    return x509.Name([*([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []), *parts])


def _usage(**allowed: bool) -> x509.KeyUsage:
    names = inspect.signature(x509.KeyUsage).parameters
    return x509.KeyUsage(**{name: allowed.get(name, False) for name in names})


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
