"""PQTLS-AD once more, written from docs/pqtls-ad-format.md and sharing no code with Lastbyte: records, validation, and
as much of TLS 1.3 (RFC 8446) as its handshakes take, over the primitives of PyPI's `cryptography`.

    peer.py client ADDRESS:PORT NAME ANCHOR.pem [--zone ZONE-LINES] [--type 65280|52] [--retry]
    peer.py server CHAIN.pem KEY.pem [--retry] [--ignorant]
    peer.py vectors VECTORS.json

A client prints what became of it as JSON. With --retry there is a HelloRetryRequest; an --ignorant server knows no
such extension. For tests: one cipher suite, two groups, no sessions, and nothing in constant time.
"""

import argparse
import base64
import datetime
import hashlib
import hmac
import json
import os
import socket
import sys

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, mldsa, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509 import verification

EXTENSION = 64
TLSA = 52
TLSA_PREFIX = b"\xff\xff\xff"
LOWEST = {1: "root", 2: "intermediate", 3: "end-entity"}
X509_TYPE, RAW_PUBLIC_KEY = 0, 2


class Refused(Exception):
    """Something of the other side's that is not as it should be; with the TLS alert for it, if there is one."""

    def __init__(self, reason, alert=47):
        super().__init__(reason)
        self.alert = alert


# --- Lists and records -----------------------------------------------------------------------------------------------


def encode_list(ders):
    return b"".join(len(der).to_bytes(3, "big") + der for der in ders)


def digest(ders):
    return hashlib.sha256(encode_list(ders)).digest()


def decode_list(data):
    ders = []
    while data:
        length = int.from_bytes(data[:3], "big")
        if len(data) < 3 or length == 0 or len(data) < 3 + length or len(ders) == 10:
            raise Refused("not a list of certificates")
        ders.append(data[3 : 3 + length])
        data = data[3 + length :]
    return ders


def decode_record(rtype, rdata):
    """The lowest certificate, index, count, digest and certificates of one record."""
    if rtype == TLSA:
        if rdata[:3] != TLSA_PREFIX:
            raise Refused("a TLSA record of DANE")
        rdata = rdata[3:]
    if len(rdata) < 36 or rdata[0] != 1:
        raise Refused("no record of version 1")
    lowest, index, count = rdata[1:4]
    if lowest not in LOWEST or index >= count or count > 10:
        raise Refused("no such fragment")
    ders = decode_list(rdata[36:])
    if not ders:
        raise Refused("no certificate")
    return LOWEST[lowest], index, count, rdata[4:36], ders


def assemble(records):
    """Lists, each with its lowest certificate, of records in any order."""
    lists = {}
    for lowest, index, count, name, ders in records:
        known = lists.setdefault(name, (lowest, count, {}))
        if len(lists) > 8 or known[:2] != (lowest, count) or known[2].setdefault(index, ders) != ders:
            raise Refused("records that contradict each other, or too many")
    whole = []
    for name, (lowest, count, fragments) in lists.items():
        if len(fragments) != count:
            raise Refused("a fragment is missing")
        ders = [der for index in range(count) for der in fragments[index]]
        if len(ders) > 10 or len(encode_list(ders)) > 256 << 10 or digest(ders) != name:
            raise Refused("not the list that its digest says")
        whole.append((lowest, ders))
    return whole


def split(ders):
    """The certificates of each fragment."""
    room = 65_535 - 12 - (255 + 4) - (255 + 10) - 64 - 36 - 3
    groups = []
    for der in ders:
        if not groups or len(encode_list(groups[-1] + [der])) > room:
            groups.append([])
        groups[-1].append(der)
    return groups


def encode_records(name, rtype, lowest, ders):
    """Owners and RDATA."""
    number = next(number for number, word in LOWEST.items() if word == lowest)
    prefix = TLSA_PREFIX if rtype == TLSA else b""
    groups = split(ders)
    for index, group in enumerate(groups):
        owner = name if index == 0 else f"_{index}._pqtlsad.{name}"
        yield owner, prefix + bytes([1, number, index, len(groups)]) + digest(ders) + encode_list(group)


def read_zone(text, rtype):
    """Records of the lines of a zone file (RFC 3597)."""
    for line in text.splitlines():
        _, _, _, kind, mark, length, *data = line.split()
        if kind in (f"TYPE{rtype}", "TLSA" if rtype == TLSA else None) and mark == "\\#":
            rdata = bytes.fromhex("".join(data))
            if len(rdata) == int(length):
                yield decode_record(rtype, rdata)


# --- Certificates ----------------------------------------------------------------------------------------------------


def is_ca(certificate):
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def is_issued(certificate, issuer):
    try:
        certificate.verify_directly_issued_by(issuer)
        return True
    except (ValueError, TypeError, InvalidSignature):
        return False


def verify_server(leaf, others, name, anchors, at):
    """That a chain leads from `leaf`, which is for `name`, to an anchor."""
    policy = verification.PolicyBuilder().store(verification.Store(anchors)).time(at)
    try:
        policy.build_server_verifier(x509.DNSName(name)).verify(leaf, others)
    except verification.VerificationError as error:
        raise Refused(f"the chain is not accepted: {error}", 42) from error


def validate(lowest, ders, name, anchors, at):
    """The certificates of a list that may be offered."""
    try:
        chain = [x509.load_der_x509_certificate(der) for der in ders]
    except ValueError as error:
        raise Refused("not a certificate") from error
    if not all(is_issued(below, above) for above, below in zip(chain, chain[1:])):
        raise Refused("not a chain")
    if is_ca(chain[-1]) == (lowest == "end-entity") or (lowest == "root" and len(chain) > 1):
        raise Refused("not what it is said to hold")
    if lowest == "end-entity":
        verify_server(chain[-1], chain[:-1], name, anchors, at)
    else:
        top = chain[0]
        if not any(top == anchor or is_issued(top, anchor) for anchor in anchors):
            raise Refused("it leads to no anchor")
        if not all(one.not_valid_before_utc <= at <= one.not_valid_after_utc for one in chain):
            raise Refused("a certificate is not valid now")
    return chain


SCHEMES = {
    0x0403: ec.EllipticCurvePublicKey,
    0x0904: mldsa.MLDSA44PublicKey,
    0x0905: mldsa.MLDSA65PublicKey,
    0x0906: mldsa.MLDSA87PublicKey,
}


def scheme_of(key):
    return next(scheme for scheme, kind in SCHEMES.items() if isinstance(key, kind))


def signed_content(transcript):
    return b" " * 64 + b"TLS 1.3, server CertificateVerify\0" + transcript


def check_signature(key, scheme, signature, transcript):
    if scheme != scheme_of(key):
        raise Refused("a signature of another kind than the key")
    algorithm = [ec.ECDSA(hashes.SHA256())] if scheme == 0x0403 else []
    try:
        key.verify(signature, signed_content(transcript), *algorithm)
    except InvalidSignature as error:
        raise Refused("CertificateVerify does not verify", 51) from error


def sign(key, transcript):
    algorithm = [ec.ECDSA(hashes.SHA256())] if isinstance(key, ec.EllipticCurvePrivateKey) else []
    return key.sign(signed_content(transcript), *algorithm)


def load_key(pem, public):
    """A private key in PEM. Of ML-DSA, `cryptography` reads the seed alone, and OpenSSL writes what follows from it too (RFC
    9881, section 6): the seed is the first string of 32 bytes."""
    try:
        return serialization.load_pem_private_key(pem, None)
    except ValueError:
        kinds = [mldsa.MLDSA44PrivateKey, mldsa.MLDSA65PrivateKey, mldsa.MLDSA87PrivateKey]
        der = base64.b64decode(b"".join(pem.splitlines()[1:-1]))
        at = der.index(b"\x04\x20") + 2
        return kinds[scheme_of(public) - 0x0904].from_seed_bytes(der[at : at + 32])


def spki(key):
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


# --- Messages --------------------------------------------------------------------------------------------------------

CLIENT_HELLO, SERVER_HELLO, ENCRYPTED_EXTENSIONS, CERTIFICATE, CERTIFICATE_VERIFY, FINISHED = 1, 2, 8, 11, 15, 20
SERVER_NAME, GROUPS, SIGNATURES, CERTIFICATE_TYPE, VERSIONS, COOKIE, KEY_SHARE = 0, 10, 13, 20, 43, 44, 51
RETRY = hashlib.sha256(b"HelloRetryRequest").digest()
SUITE = b"\x13\x01"
GROUP_NUMBERS = (29, 23)


def vector(width, data):
    return len(data).to_bytes(width, "big") + data


def message(kind, body):
    return bytes([kind]) + vector(3, body)


def extensions(pairs):
    return vector(2, b"".join(kind.to_bytes(2, "big") + vector(2, data) for kind, data in pairs))


class Reader:
    def __init__(self, data):
        self.data = data

    def take(self, length):
        if len(self.data) < length:
            raise Refused("truncated", 50)
        taken, self.data = self.data[:length], self.data[length:]
        return taken

    def number(self, width):
        return int.from_bytes(self.take(width), "big")

    def vector(self, width):
        return self.take(self.number(width))

    def extensions(self):
        inner, found = Reader(self.vector(2)), {}
        while inner.data:
            kind = inner.number(2)
            if kind in found:
                raise Refused("an extension twice")
            found[kind] = inner.vector(2)
        return found


def read_hello(body):
    """The random, session id, suites and extensions of either hello."""
    reader = Reader(body[4:])
    reader.take(2)
    random, session = reader.take(32), reader.vector(1)
    suites = reader.vector(2) if body[0] == CLIENT_HELLO else reader.take(2)
    reader.vector(1) if body[0] == CLIENT_HELLO else reader.take(1)
    return random, session, suites, reader.extensions()


def said_digest(found):
    data = found.get(EXTENSION)
    if data is not None and len(data) != 32:
        raise Refused("a digest has 32 bytes", 50)
    return data


def offered_types(found):
    return Reader(found[CERTIFICATE_TYPE]).vector(1) if CERTIFICATE_TYPE in found else b""


class Share:
    """An ephemeral key of a group."""

    def __init__(self, group):
        self.group = group
        self.own = x25519.X25519PrivateKey.generate() if group == 29 else ec.generate_private_key(ec.SECP256R1())

    def public(self):
        key = self.own.public_key()
        if self.group == 29:
            return key.public_bytes_raw()
        return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)

    def entry(self):
        return self.group.to_bytes(2, "big") + vector(2, self.public())

    def shared(self, theirs):
        if self.group == 29:
            return self.own.exchange(x25519.X25519PublicKey.from_public_bytes(theirs))
        return self.own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs))


# --- Keys and records of TLS -----------------------------------------------------------------------------------------


def expand(secret, label, context, length):
    info = length.to_bytes(2, "big") + vector(1, b"tls13 " + label) + vector(1, context)
    return hmac.digest(secret, info + b"\x01", "sha256")[:length]


def derive(secret, label, transcript):
    return expand(secret, label, transcript, 32)


class Keys:
    """One direction's."""

    def __init__(self, secret):
        self.secret = secret
        self.aead = AESGCM(expand(secret, b"key", b"", 16))
        self.iv = expand(secret, b"iv", b"", 12)
        self.count = 0

    def nonce(self):
        number = int.from_bytes(self.iv, "big") ^ self.count
        self.count += 1
        return number.to_bytes(12, "big")

    def finished(self, transcript):
        return hmac.digest(expand(self.secret, b"finished", b"", 32), transcript, "sha256")


class Stream:
    """A connection's records, messages and transcript."""

    def __init__(self, connection):
        self.connection = connection
        self.reading = self.writing = None
        self.pending = b""
        self.transcript = b""

    def hash(self):
        return hashlib.sha256(self.transcript).digest()

    def exactly(self, length):
        data = b""
        while len(data) < length:
            more = self.connection.recv(length - len(data))
            if not more:
                raise Refused("the connection ends early")
            data += more
        return data

    def read_record(self):
        while True:
            header = self.exactly(5)
            kind, data = header[0], self.exactly(int.from_bytes(header[3:], "big"))
            if kind == 20:
                continue
            if self.reading and kind == 23:
                try:
                    data = self.reading.aead.decrypt(self.reading.nonce(), data, header).rstrip(b"\0")
                except Exception as error:
                    raise Refused("a record can't be decrypted", 20) from error
                kind, data = data[-1], data[:-1]
            if kind == 21 and data[1] != 0:
                raise Refused(f"the other side's alert {data[1]}")
            return kind, data

    def read_message(self, *expected):
        """The next message of the handshake, whole."""
        while len(self.pending) < 4 or len(self.pending) < 4 + int.from_bytes(self.pending[1:4], "big"):
            kind, data = self.read_record()
            if kind != 22:
                raise Refused(f"a record of the kind {kind} within the handshake", 10)
            self.pending += data
        end = 4 + int.from_bytes(self.pending[1:4], "big")
        whole, self.pending = self.pending[:end], self.pending[end:]
        if whole[0] not in expected:
            raise Refused(f"the message {whole[0]} instead of {expected}", 10)
        return whole

    def hear(self, *expected):
        whole = self.read_message(*expected)
        self.transcript += whole
        return whole

    def write_record(self, kind, data):
        for at in range(0, len(data), 1 << 14):
            piece = data[at : at + (1 << 14)]
            if self.writing:
                header = b"\x17\x03\x03" + (len(piece) + 17).to_bytes(2, "big")
                piece = self.writing.aead.encrypt(self.writing.nonce(), piece + bytes([kind]), header)
                self.connection.sendall(header + piece)
            else:
                self.connection.sendall(bytes([kind]) + b"\x03\x03" + vector(2, piece))

    def say(self, whole):
        self.transcript += whole
        self.write_record(22, whole)

    def retried(self):
        """The transcript begins anew with the hash of the first hello (RFC 8446, 4.4.1)."""
        self.transcript = message(254, self.hash())

    def secrets(self, shared):
        """Keys of the handshake, client's and server's, and the secret of those after it."""
        empty = hashlib.sha256(b"").digest()
        early = hmac.digest(b"\0" * 32, b"\0" * 32, "sha256")
        handshake = hmac.digest(derive(early, b"derived", empty), shared, "sha256")
        self.master = hmac.digest(derive(handshake, b"derived", empty), b"\0" * 32, "sha256")
        return [Keys(derive(handshake, who + b" hs traffic", self.hash())) for who in (b"c", b"s")]

    def application(self):
        """Once the server's Finished is in the transcript."""
        return [Keys(derive(self.master, who + b" ap traffic", self.hash())) for who in (b"c", b"s")]

    def close(self, alert=0):
        try:
            self.write_record(21, bytes([1 if alert == 0 else 2, alert]))
        except OSError:
            pass


# --- The client ------------------------------------------------------------------------------------------------------


def look_up(zone, rtype, name, anchors):
    """What may be offered, and why nothing may."""
    now = datetime.datetime.now(datetime.timezone.utc)
    best, outcome = None, "no-record"
    try:
        for lowest, ders in assemble(read_zone(zone, rtype)):
            validate(lowest, ders, name, anchors, now)
            if best is None or len(encode_list(ders)) > len(encode_list(best[1])):
                best = (lowest, ders)
    except Refused as error:
        outcome = f"invalid: {error}"
    return best, outcome


def client(address, name, anchors, offer, retry):
    stream = Stream(socket.create_connection(address, timeout=30))
    try:
        return shake_client(stream, name, anchors, offer, retry)
    except Refused as error:
        stream.close(error.alert)
        raise


def shake_client(stream, name, anchors, offer, retry):
    random, session = os.urandom(32), os.urandom(32)

    def hello(shares, more):
        pairs = [
            (SERVER_NAME, vector(2, b"\0" + vector(2, name.encode()))),
            (GROUPS, vector(2, b"".join(group.to_bytes(2, "big") for group in GROUP_NUMBERS))),
            (SIGNATURES, vector(2, b"".join(scheme.to_bytes(2, "big") for scheme in SCHEMES))),
            (VERSIONS, vector(1, b"\x03\x04")),
            (KEY_SHARE, vector(2, b"".join(share.entry() for share in shares))),
        ]
        if offer:
            pairs.append((EXTENSION, digest(offer[1])))
            if offer[0] == "end-entity":
                pairs.append((CERTIFICATE_TYPE, vector(1, bytes([RAW_PUBLIC_KEY, X509_TYPE]))))
        body = b"\x03\x03" + random + vector(1, session) + vector(2, SUITE) + vector(1, b"\0")
        return message(CLIENT_HELLO, body + extensions(pairs + more))

    # Without a share, the server has to ask for one.
    share = Share(29)
    stream.say(hello([] if retry else [share], []))
    answer = stream.read_message(SERVER_HELLO)
    answered, _, suite, found = read_hello(answer)
    if answered == RETRY:
        if EXTENSION in found:
            raise Refused("a HelloRetryRequest does not carry it")
        stream.retried()
        stream.transcript += answer
        share = Share(int.from_bytes(found[KEY_SHARE], "big"))
        cookie = [(COOKIE, found[COOKIE])] if COOKIE in found else []
        stream.say(hello([share], cookie))
        answer = stream.read_message(SERVER_HELLO)
        answered, _, suite, found = read_hello(answer)
    stream.transcript += answer
    if suite != SUITE or found.get(VERSIONS) != b"\x03\x04" or answered == RETRY:
        raise Refused("not what was offered")
    if EXTENSION in found and not offer:
        raise Refused("an extension that was not offered", 110)
    answer = said_digest(found)
    echoed = offer is not None and answer == digest(offer[1])
    entry = Reader(found[KEY_SHARE])
    if entry.number(2) != share.group:
        raise Refused("another group")
    ours, stream.reading = stream.secrets(share.shared(entry.vector(2)))
    encrypted = Reader(stream.hear(ENCRYPTED_EXTENSIONS)[4:]).extensions()
    raw = encrypted.get(CERTIFICATE_TYPE, b"\0")[0] == RAW_PUBLIC_KEY
    body = Reader(stream.hear(CERTIFICATE)[4:])
    body.vector(1)
    entries, sent = Reader(body.vector(3)), []
    while entries.data:
        sent.append(entries.vector(3))
        entries.vector(2)
    delivered = [x509.load_der_x509_certificate(der) for der in offer[1]] if echoed else []
    if raw:
        if not delivered or offer[0] != "end-entity" or sent != [spki(delivered[-1].public_key())]:
            raise Refused("a raw public key that no delivered end-entity has", 42)
        chain = delivered[::-1]
    else:
        chain = [x509.load_der_x509_certificate(der) for der in sent] + delivered
    if not chain:
        raise Refused("no certificate", 50)
    verify_server(chain[0], chain[1:], name, anchors, datetime.datetime.now(datetime.timezone.utc))
    before = stream.hash()
    proof = Reader(stream.hear(CERTIFICATE_VERIFY)[4:])
    check_signature(chain[0].public_key(), proof.number(2), proof.vector(2), before)
    before = stream.hash()
    if stream.hear(FINISHED)[4:] != stream.reading.finished(before):
        raise Refused("Finished does not verify", 51)
    writing, reading = stream.application()
    stream.writing = ours
    stream.write_record(22, message(FINISHED, ours.finished(stream.hash())))
    stream.writing, stream.reading = writing, reading
    stream.write_record(23, f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
    body = b""
    while True:
        kind, data = stream.read_record()
        if kind == 21:
            break
        body += data if kind == 23 else b""
    stream.close()
    return {
        "outcome": outcome(offer and digest(offer[1]), answer),
        "sent": "raw public key" if raw else len(sent),
        "body": body.decode().partition("\r\n\r\n")[2],
    }


def outcome(offered, answer):
    if offered is None:
        return "no-record"
    if answer is None:
        return "refused-by-server"
    return "used" if answer == offered else "mismatch"


# --- The server ------------------------------------------------------------------------------------------------------


def serve(chain, key, retry, ignorant):
    listener = socket.create_server(("127.0.0.1", 0))
    print("listening on {}:{}".format(*listener.getsockname()), flush=True)
    while True:
        connection, _ = listener.accept()
        connection.settimeout(30)
        stream = Stream(connection)
        try:
            shake_server(stream, chain, key, retry, ignorant)
        except Refused as error:
            stream.close(error.alert)
            print(f"refused: {error}", flush=True)
        except OSError as error:
            print(f"refused: {error}", flush=True)
        connection.close()


def pick(found, retry, again):
    """A share of the client's, or the group that it is asked for."""
    shares, entries = Reader(Reader(found[KEY_SHARE]).vector(2)), {}
    while shares.data:
        group = shares.number(2)
        entries[group] = shares.vector(2)
    wanted = 23 if retry else 29
    if wanted in entries and (again or not retry):
        return wanted, entries[wanted]
    return wanted, None


def shake_server(stream, chain, key, retry, ignorant):
    ders = [one.public_bytes(serialization.Encoding.DER) for one in chain]
    _, session, suites, found = read_hello(stream.hear(CLIENT_HELLO))
    group, theirs = pick(found, retry, False)

    def hello(random, pairs):
        body = b"\x03\x03" + random + vector(1, session) + SUITE + b"\0"
        return message(SERVER_HELLO, body + extensions([(VERSIONS, b"\x03\x04")] + pairs))

    if theirs is None:
        stream.retried()
        stream.say(hello(RETRY, [(KEY_SHARE, group.to_bytes(2, "big"))]))
        _, session, suites, found = read_hello(stream.hear(CLIENT_HELLO))
        group, theirs = pick(found, retry, True)
    if theirs is None or SUITE not in (suites[at : at + 2] for at in range(0, len(suites), 2)):
        raise Refused("nothing in common", 40)
    name = found.get(SERVER_NAME, b"")[5:].decode().lower()
    names = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    offered = said_digest(found) if not ignorant else None
    omitted, pairs = 0, []
    if offered is not None:
        counts = range(1, len(ders) + 1) if name in names.get_values_for_type(x509.DNSName) else ()
        omitted = next((count for count in counts if digest(ders[::-1][:count]) == offered), 0)
        pairs.append((EXTENSION, offered if omitted else digest(ders[::-1])))
    share = Share(group)
    stream.say(hello(os.urandom(32), [(KEY_SHARE, share.entry())] + pairs))
    stream.reading, stream.writing = stream.secrets(share.shared(theirs))
    ours, theirs = stream.writing, stream.reading
    raw = omitted == len(ders) and RAW_PUBLIC_KEY in offered_types(found)
    stream.say(message(ENCRYPTED_EXTENSIONS, extensions([(CERTIFICATE_TYPE, b"\2")] if raw else [])))
    # TLS has no empty Certificate.
    sent = [spki(key.public_key())] if raw else ders[: max(1, len(ders) - omitted)]
    entries = b"".join(vector(3, der) + b"\0\0" for der in sent)
    stream.say(message(CERTIFICATE, b"\0" + vector(3, entries)))
    scheme = scheme_of(key.public_key()).to_bytes(2, "big")
    stream.say(message(CERTIFICATE_VERIFY, scheme + vector(2, sign(key, stream.hash()))))
    stream.say(message(FINISHED, ours.finished(stream.hash())))
    before = stream.hash()
    reading, writing = stream.application()
    if stream.read_message(FINISHED)[4:] != theirs.finished(before):
        raise Refused("Finished does not verify", 51)
    stream.reading, stream.writing = reading, writing
    print(f"sent {'a raw public key' if raw else len(sent)}, omitted {omitted}", flush=True)
    request = b""
    while b"\r\n\r\n" not in request:
        kind, data = stream.read_record()
        if kind == 21:
            return
        request += data if kind == 23 else b""
    body = b"hello from Python"
    stream.write_record(23, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    stream.close()


# --- The vectors -----------------------------------------------------------------------------------------------------


def is_refused(read):
    try:
        read()
        return False
    except Refused:
        return True


def vectors(file):
    known = json.load(file)
    hexed = bytes.fromhex
    name, passed = known["name"], 0

    def check(holds, what):
        nonlocal passed
        if not holds:
            raise SystemExit(f"not as the vectors say: {what}")
        passed += 1

    def time(seconds):
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)

    anchors = {
        chain: [x509.load_der_x509_certificate(hexed(kept["anchor"]))] for chain, kept in known["chains"].items()
    }
    for one in known["lists"]:
        chain = [hexed(der) for der in known["chains"][one["chain"]]["certificates"]]
        ders = [chain[at] for at in one["certificates"]]
        check(encode_list(ders).hex() == one["encoding"], one["lowest"])
        check(digest(ders).hex() == one["digest"], one["lowest"])
        check(one["extension"] == (b"\0\x40\0\x20" + digest(ders)).hex(), one["lowest"])
        check(one["server_sends"] == list(range(len(chain) - len(ders))), one["lowest"])
        if one["lowest"] == "end-entity":
            leaf = x509.load_der_x509_certificate(ders[-1])
            check(spki(leaf.public_key()).hex() == one["server_proves"]["raw_public_key"], "raw public key")
        for kind in one["records"]:
            made = list(encode_records(name, kind["type"], one["lowest"], ders))
            check(made == [(record["owner"], hexed(record["rdata"])) for record in kind["records"]], kind["type"])
            lines = "\n".join(f"{record['owner']}. 1 IN TYPE{kind['type']} {record['zone_file']}" for record in kind["records"])
            check(assemble(read_zone(lines, kind["type"])) == [(one["lowest"], ders)], kind["type"])
    for one in known["fragments"]:
        ders = [bytes((i + j) % 256 for i in range(length)) for j, length in enumerate(one["certificate_bytes"])]
        check(digest(ders).hex() == one["digest"], one["certificate_bytes"])
        made = list(encode_records(name, 65_280, "end-entity", ders))
        told = [(record["owner"], record["rdata_bytes"], record["rdata_sha256"]) for record in one["records"]]
        check([(owner, len(rdata), hashlib.sha256(rdata).hexdigest()) for owner, rdata in made] == told, ders[0][:1])
        check(assemble(decode_record(65_280, rdata) for _, rdata in reversed(made)) == [("end-entity", ders)], "order")
    for one in known["invalid_records"]:
        check(is_refused(lambda: decode_record(one["type"], hexed(one["rdata"]))), one["what"])
    for one in known["invalid_sets"]:
        read = [decode_record(one["type"], hexed(rdata)) for rdata in one["rdata"]]
        check(is_refused(lambda: assemble(read)), one["what"])
    for one in known["validation"]:
        ders = [hexed(der) for der in one["certificates"]]
        given = (one["lowest"], ders, name, anchors[one["anchor_of"]], time(one["at_unix"]))
        check(is_refused(lambda: validate(*given)) == (one["outcome"] != "offered"), one["what"])
    for one in known["extension_data"]:
        found = {EXTENSION: hexed(one["data"])}
        check(is_refused(lambda: said_digest(found)) == (one["digest"] is None), one["data"])
    for one in known["answers"]:
        answer = one["server_hello"] and hexed(one["server_hello"])
        check(outcome(hexed(one["client_hello"]), answer) == one["outcome"], one["outcome"])
    for one in known["hellos"]:
        random, _, _, found = read_hello(hexed(one["message"]))
        answer = said_digest(found)
        check((random == RETRY) == (one["kind"] == "HelloRetryRequest"), one["of"])
        check(answer == (one["digest"] and hexed(one["digest"])), one["of"])
        types = found.get(CERTIFICATE_TYPE)
        check(types == (one["server_certificate_type"] and hexed(one["server_certificate_type"])), one["of"])
    print(f"{passed} checks of the vectors pass")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("client")
    one.add_argument("address")
    one.add_argument("name")
    one.add_argument("anchor", type=argparse.FileType("rb"))
    one.add_argument("--zone", type=argparse.FileType())
    one.add_argument("--type", type=int, default=65_280)
    one.add_argument("--retry", action="store_true")
    one = commands.add_parser("server")
    one.add_argument("chain", type=argparse.FileType("rb"))
    one.add_argument("key", type=argparse.FileType("rb"))
    one.add_argument("--retry", action="store_true")
    one.add_argument("--ignorant", action="store_true")
    one = commands.add_parser("vectors")
    one.add_argument("file", type=argparse.FileType())
    given = parser.parse_args()
    if given.command == "vectors":
        vectors(given.file)
    elif given.command == "server":
        chain = x509.load_pem_x509_certificates(given.chain.read())
        key = load_key(given.key.read(), chain[0].public_key())
        serve(chain, key, given.retry, given.ignorant)
    else:
        anchors = x509.load_pem_x509_certificates(given.anchor.read())
        zone = given.zone.read() if given.zone else ""
        offer, why_not = look_up(zone, given.type, given.name, anchors)
        host, _, port = given.address.rpartition(":")
        try:
            told = client((host, int(port)), given.name, anchors, offer, given.retry)
        except Refused as error:
            sys.exit(f"refused: {error}")
        if offer is None:
            told["outcome"] = why_not
        print(json.dumps(told))


main()
