"""Keys of one cluster. ECDSA on P-256: a key takes 1 ms, an RSA key 1 s."""

import base64
import datetime
import ipaddress
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from holdfast.localcloud.home import write_private

LASTS = datetime.timedelta(days=3650)
BACKDATED = datetime.timedelta(hours=1)
"""For clients whose clock is a little behind."""
_SIGNS = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=False,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    certificate: bytes
    key: bytes


class Authority:
    """Certificate authority of a cluster, and the key for service accounts' tokens; created if missing."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        certificate, key, tokens = (directory / name for name in ("ca.crt", "ca.key", "sa.key"))
        if not tokens.exists():  # the last that is written
            self._make(certificate, key, tokens)
        self.certificate = certificate.read_bytes()
        self.key = key.read_bytes()
        self.token_key = tokens.read_bytes()
        self._issuer = x509.load_pem_x509_certificate(self.certificate).subject
        loaded = serialization.load_pem_private_key(self.key, password=None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        self._key = loaded

    @property
    def data(self) -> str:
        """Base64 of the certificate's PEM, as EKS returns it."""
        return base64.b64encode(self.certificate).decode()

    def client(self, name: str, *, groups: Iterable[str] = ()) -> Pair:
        """Return a client certificate of the user ``name`` in ``groups``."""
        return self._sign(name, groups=groups, usage=ExtendedKeyUsageOID.CLIENT_AUTH, names=(), addresses=())

    def server(self, name: str, *, names: Iterable[str] = (), addresses: Iterable[str] = ()) -> Pair:
        return self._sign(name, groups=(), usage=ExtendedKeyUsageOID.SERVER_AUTH, names=names, addresses=addresses)

    def _sign(
        self,
        name: str,
        *,
        groups: Iterable[str],
        usage: x509.ObjectIdentifier,
        names: Iterable[str],
        addresses: Iterable[str],
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _certificate(subject, key.public_key(), issuer=self._issuer, issuer_key=self._key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        reached = [
            *(x509.DNSName(each) for each in names),
            *(x509.IPAddress(ipaddress.ip_address(each)) for each in addresses),
        ]
        if reached:
            builder = builder.add_extension(x509.SubjectAlternativeName(reached), critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return Pair(certificate=signed.public_bytes(serialization.Encoding.PEM), key=_pem(key))

    @staticmethod
    def _make(certificate: Path, key: Path, tokens: Path) -> None:
        own = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
        builder = _certificate(name, own.public_key(), issuer=name, issuer_key=own.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_SIGNS, critical=True)
        signed = builder.sign(own, hashes.SHA256())
        write_private(certificate, signed.public_bytes(serialization.Encoding.PEM))
        write_private(key, _pem(own))
        write_private(tokens, _pem(ec.generate_private_key(ec.SECP256R1())))


def kubeconfig(*, server: str, authority: Authority, pair: Pair) -> bytes:
    cluster = {"server": server, "certificate-authority-data": authority.data}
    user = {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "local",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": "local", "user": user}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
    }
    return json.dumps(config).encode()


def _certificate(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, *, issuer: x509.Name, issuer_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    """Add both key identifiers, which Python 3.13 and newer require by default."""
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + LASTS)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
