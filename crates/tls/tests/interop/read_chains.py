"""The reader of chains of the interop tests: reads each with PyPI's cryptography.

    python read_chains.py SERVER-NAME FOLDER...

A folder holds sent.pem, the certificates in the order in which they are sent, and root.pem. For
each certificate it prints a line: the folder, "sent" or "kept", the bytes of its DER, the OIDs of the
key and of the signature, and whether the signature was "verified" or is of an "unknown" algorithm.
It fails on the first thing that is wrong.
"""

import datetime
import pathlib
import sys

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

LEAF_EXTENSIONS = {
    x509.KeyUsage,
    x509.ExtendedKeyUsage,
    x509.BasicConstraints,
    x509.SubjectKeyIdentifier,
    x509.AuthorityKeyIdentifier,
    x509.AuthorityInformationAccess,
    x509.SubjectAlternativeName,
    x509.CertificatePolicies,
    x509.CRLDistributionPoints,
}
CRITICAL = {x509.KeyUsage, x509.BasicConstraints}


def read(folder, name):
    sent = x509.load_pem_x509_certificates((folder / "sent.pem").read_bytes())
    root = x509.load_pem_x509_certificate((folder / "root.pem").read_bytes())
    chain = sent if sent[-1] == root else [*sent, root]
    serials = {certificate.serial_number for certificate in chain}
    assert len(serials) == len(chain), "serial numbers are not unique"
    for place, certificate in enumerate(chain):
        issuer = chain[min(place + 1, len(chain) - 1)]
        check_validity(certificate)
        check_link(certificate, issuer)
        check_timestamps(certificate)
        if place == 0:
            check_leaf(certificate, name)
        else:
            check_authority(certificate, is_root=certificate == root, below=place - 1)
        print(
            folder.name,
            "sent" if place < len(sent) else "kept",
            len(certificate.public_bytes(Encoding.DER)),
            certificate.public_key_algorithm_oid.dotted_string,
            certificate.signature_algorithm_oid.dotted_string,
            verify(certificate, issuer),
        )


def check_validity(certificate):
    now = datetime.datetime.now(datetime.timezone.utc)
    assert certificate.not_valid_before_utc < now < certificate.not_valid_after_utc


def check_link(certificate, issuer):
    assert certificate.version == x509.Version.v3
    assert certificate.issuer == issuer.subject
    if certificate is issuer:
        return
    ours = value(certificate, x509.AuthorityKeyIdentifier).key_identifier
    assert ours == value(issuer, x509.SubjectKeyIdentifier).digest


def check_leaf(certificate, name):
    names = value(certificate, x509.SubjectAlternativeName)
    assert names.get_values_for_type(x509.DNSName) == [name, f"www.{name}"]
    assert not value(certificate, x509.BasicConstraints).ca
    usage = value(certificate, x509.KeyUsage)
    assert usage.digital_signature and not usage.key_cert_sign
    server_auth = [ExtendedKeyUsageOID.SERVER_AUTH]
    assert list(value(certificate, x509.ExtendedKeyUsage)) == server_auth
    # It lives no longer than a public CA may say.
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert life <= datetime.timedelta(days=398), life
    kinds = {type(extension.value) for extension in certificate.extensions}
    assert LEAF_EXTENSIONS <= kinds, LEAF_EXTENSIONS - kinds
    check_critical(certificate)


def check_authority(certificate, is_root, below):
    constraints = value(certificate, x509.BasicConstraints)
    assert constraints.ca
    assert constraints.path_length == (None if is_root else below)
    usage = value(certificate, x509.KeyUsage)
    assert usage.key_cert_sign and usage.crl_sign
    check_critical(certificate)


def check_critical(certificate):
    for extension in certificate.extensions:
        assert extension.critical == (type(extension.value) in CRITICAL), extension


def check_timestamps(certificate):
    """Those of Certificate Transparency, where there are any."""
    try:
        timestamps = list(value(certificate, x509.PrecertificateSignedCertificateTimestamps))
    except x509.ExtensionNotFound:
        return
    assert timestamps
    for timestamp in timestamps:
        assert timestamp.version == x509.certificate_transparency.Version.v1
        assert len(timestamp.log_id) == 32 and timestamp.signature
        issued = timestamp.timestamp.replace(tzinfo=datetime.timezone.utc)
        # The certificate's own time is an hour before it was issued.
        hours = (issued - certificate.not_valid_before_utc).total_seconds() / 3600
        assert 0 <= hours < 2, issued


def verify(certificate, issuer):
    try:
        issuer.public_key()
    except (UnsupportedAlgorithm, ValueError):
        return "unknown"
    certificate.verify_directly_issued_by(issuer)
    return "verified"


def value(certificate, kind):
    return certificate.extensions.get_extension_for_class(kind).value


name, *folders = sys.argv[1:]
for folder in map(pathlib.Path, folders):
    try:
        read(folder, name)
    except Exception as error:
        error.add_note(folder.name)
        raise
