"""The cluster's private certificate authority: ECDSA on P-256, one key for one purpose.

A certificate contains only what the authority decides: nothing of a signing request is taken over but the public key,
which its signature proves. Each certificate names exactly one role and can be used by both ends of a connection, never
to sign others.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from protos.trust.private import PrivateFileError, read_private
from protos.trust.roles import Identity, Role, TrustError, role_of_uri, server_name_of_role, uri_of_role

AUTHORITY_VALIDITY = timedelta(days=20 * 365)
CERTIFICATE_VALIDITY = timedelta(days=5 * 365)
# A certificate is renewed in the last third of its life, so that a host that is off for a year still comes back.
RENEWAL_SHARE = 1 / 3
# Clocks of hosts that have just booted may be behind the master's.
BACKDATING = timedelta(hours=1)
REQUEST_BYTES_MAX = 16 << 10


@dataclass(frozen=True, slots=True)
class Authority:
    """The authority with its private key, able to sign."""

    key: ec.EllipticCurvePrivateKey = field(repr=False)
    certificate: x509.Certificate

    @property
    def certificate_pem(self) -> bytes:
        """CA certificate (PEM) that every daemon of the cluster trusts."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @classmethod
    def load(cls, directory: Path) -> "Authority":
        """Load `directory`/ca.key and ca.pem; TrustError if they cannot be used."""
        try:
            key = serialization.load_pem_private_key(read_private(directory / "ca.key"), password=None)
            certificate = x509.load_pem_x509_certificate((directory / "ca.pem").read_bytes())
        except PrivateFileError as error:
            raise TrustError(str(error)) from error
        except OSError as error:
            raise TrustError(f"{directory / 'ca.pem'}: {error.strerror}.") from error
        except ValueError as error:
            raise TrustError(f"{directory} does not hold the key and certificate of an authority: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise TrustError(f"{directory / 'ca.key'} is not the key of {directory / 'ca.pem'}.")
        return cls(key, certificate)

    def sign(self, request_pem: bytes, role: Role, now: datetime | None = None) -> bytes:
        """Certificate (PEM) for this role and the key in the request; TrustError for an invalid request."""
        return self.certify(_public_key_of(request_pem), role, now)

    def certify(self, public_key: ec.EllipticCurvePublicKey, role: Role, now: datetime | None = None) -> bytes:
        """Certificate (PEM) that the holder of this key has this role."""
        start = (now or datetime.now(UTC)) - BACKDATING
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        names = [x509.DNSName(server_name_of_role(role)), x509.UniformResourceIdentifier(uri_of_role(role))]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_common_name(role.host or "lavad"))
            .issuer_name(self.certificate.subject)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(min(start + CERTIFICATE_VALIDITY, self.certificate.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(usages, critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM)


def make_authority(cluster: str, now: datetime | None = None) -> Authority:
    """New authority, in memory only; `cluster` is for human readers of its certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    start = (now or datetime.now(UTC)) - BACKDATING
    name = _common_name(f"lava {cluster}"[:64])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + AUTHORITY_VALIDITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(key, certificate)


def make_key() -> ec.EllipticCurvePrivateKey:
    """New private key of the cluster's kind."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as unencrypted PEM; store it only with `protos.trust.private.write_private`."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def make_request(key: ec.EllipticCurvePrivateKey, host: str) -> bytes:
    """Signing request (PEM): proof that its sender holds the key. The name in it is for human readers only."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_common_name(host))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def check_identity(identity: Identity, role: Role, now: datetime | None = None) -> None:
    """Raise TrustError, with the reason, unless this identity is valid now, for this role, and of its own authority."""
    moment = now or datetime.now(UTC)
    certificate, key, authority = _parsed(identity)
    if key.public_key() != certificate.public_key():
        raise TrustError("The certificate belongs to another key.")
    if _role(certificate) != role:
        raise TrustError(f"The certificate is not for {uri_of_role(role)}.")
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise TrustError("The certificate was not signed by this cluster's authority.") from error
    if not certificate.not_valid_before_utc <= moment <= certificate.not_valid_after_utc:
        raise TrustError(
            f"The certificate is valid from {certificate.not_valid_before_utc:%Y-%m-%d} "
            f"to {certificate.not_valid_after_utc:%Y-%m-%d}, not now."
        )


def is_near_expiry(identity: Identity, now: datetime | None = None) -> bool:
    """True if the certificate is in the last part of its life, or expired."""
    certificate, _, _ = _parsed(identity)
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return (now or datetime.now(UTC)) > certificate.not_valid_after_utc - life * RENEWAL_SHARE


def serial_of(certificate_pem: bytes) -> str:
    """The serial number, in hexadecimal, for logs."""
    return f"{x509.load_pem_x509_certificate(certificate_pem).serial_number:x}"


@dataclass(frozen=True, slots=True)
class Facts:
    """Serial number and validity of a certificate; times are seconds since the epoch."""

    serial: str
    issued_at: float
    expires_at: float


@lru_cache(maxsize=32_768)
def facts_of(certificate_pem: bytes) -> Facts:
    """Facts of a certificate of this cluster; cached, since a host shows the same one with each call.

    Raises:
        TrustError: it cannot be parsed.
    """
    try:
        found = x509.load_pem_x509_certificate(certificate_pem)
    except ValueError as error:
        raise TrustError("The certificate cannot be read.") from error
    issued = (found.not_valid_before_utc + BACKDATING).timestamp()
    return Facts(f"{found.serial_number:x}", issued, found.not_valid_after_utc.timestamp())


def _parsed(identity: Identity) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey, x509.Certificate]:
    try:
        certificate = x509.load_pem_x509_certificate(identity.certificate_pem)
        authority = x509.load_pem_x509_certificate(identity.ca_pem)
        key = serialization.load_pem_private_key(identity.key_pem, password=None)
    except ValueError as error:
        raise TrustError(f"The stored key and certificates cannot be read: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TrustError("The stored key is not of the kind that lava makes.")
    return certificate, key, authority


def _role(certificate: x509.Certificate) -> Role:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound as error:
        raise TrustError("The certificate names no role in a lava cluster.") from error
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if len(uris) != 1:
        raise TrustError("The certificate names no role in a lava cluster.")
    return role_of_uri(uris[0])


def _public_key_of(request_pem: bytes) -> ec.EllipticCurvePublicKey:
    if len(request_pem) > REQUEST_BYTES_MAX:
        raise TrustError("The signing request is too long.")
    try:
        request = x509.load_pem_x509_csr(request_pem)
        proved = request.is_signature_valid
        key = request.public_key()
    except Exception as error:  # the parser of hostile input raises many kinds, all with one meaning here
        raise TrustError("The signing request cannot be read.") from error
    if not proved:
        raise TrustError("The signing request is not signed by the key in it.")
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise TrustError("The signing request must be for an ECDSA key on P-256.")
    return key


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
