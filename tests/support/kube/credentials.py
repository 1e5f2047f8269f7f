"""Keys, certificates and tokens of one throw-away cluster; all of it lies in the cluster's own folder."""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: bytes
    key: bytes


class Authority:
    """A certificate authority that lives as long as the test run."""

    def __init__(self, name: str) -> None:
        self._key = _new_key()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        alternatives: list[x509.GeneralName] = [x509.DNSName(name)]
        self._certificate = (
            _begun(self._name, self._name, self._key.public_key(), alternatives)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pair(self) -> Pair:
        return Pair(self._certificate.public_bytes(Encoding.PEM), _pem(self._key))

    def issue(self, names: Sequence[str], addresses: Sequence[str] = ()) -> Pair:
        """A server's certificate."""
        key = _new_key()
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate = (
            _begun(subject, self._name, key.public_key(), alternatives)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Pair(certificate.public_bytes(Encoding.PEM), _pem(key))


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)  # Kueue reads no other kind for its authority


def _begun(
    subject: x509.Name, issuer: x509.Name, key: rsa.RSAPublicKey, alternatives: list[x509.GeneralName]
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        # Kueue renews what ends within 90 days, which no test wants to see.
        .not_valid_after(now + datetime.timedelta(days=365))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def signing_keys(folder: Path) -> tuple[Path, Path]:
    """The private and the public key with which the cluster signs the tokens of its service accounts."""
    key = _new_key()
    private, public = folder / "accounts.key", folder / "accounts.pub"
    private.write_bytes(_pem(key))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def kubeconfig(path: Path, server: str, authority: Path, token: str) -> Path:
    """Where the server is, whom to believe and who we are, in the form that every Kubernetes program reads."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "me", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "me"}}],
        "current-context": "test",
    }
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    path.chmod(0o600)
    return path
