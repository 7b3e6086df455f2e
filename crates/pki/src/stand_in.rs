//! A chain like one whose keys are elsewhere: the same to the byte, but for its keys and
//! signatures.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_sizes::KeyAlgorithm;
use lastbyte_sizes::der::{
    BOOLEAN, INTEGER, OCTET_STRING, SEQUENCE, bit_string, element, explicit, named_bits,
    object_identifier, sequence,
};
use lastbyte_sizes::profile::time;
use openssl::bn::BigNumContext;
use openssl::ec::{EcGroup, EcKey, PointConversionForm};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{HasPublic, Id, PKey, PKeyRef, Private};
use openssl::pkey_ctx::PkeyCtx;
use openssl::rsa::{Padding, Rsa};
use openssl::sign::{RsaPssSaltlen, Signer};
use openssl::x509::{X509, X509Ref};

use crate::anatomy::{Pieces, key_of, pieces};
use crate::authority::serial;
use crate::error::{PemProblem, PkiError};
use crate::explain::explain;
use crate::keys::{Keys, key_algorithm};
use crate::path::{issuer_of, path_from};
use crate::verify::{is_self_signed, is_valid};

const DAY: Duration = Duration::from_secs(86_400);
/// How long what has expired is valid, from now on.
const LIFE: Duration = DAY.saturating_mul(90);
/// Until when a root that nobody has seen is valid: of the last year that two digits can say.
const ROOT_LIFE: Duration = DAY.saturating_mul(10 * 365);

/// Certificates that say what others say, under keys of our own.
pub(crate) struct StandIn {
    /// As long as the original ones, in their order.
    pub(crate) certificates: Vec<X509>,
    pub(crate) root: X509,
    /// The end-entity's.
    pub(crate) key: PKey<Private>,
}

/// Makes one of a chain in its order, the end-entity first. A root that is not known is made with
/// the name and the kind of key that whoever signed the last certificate has.
///
/// # Errors
///
/// What is wrong with the chain: a key or a signature that can't be made anew.
pub(crate) fn stand_in(
    sent: &[X509],
    root: Option<&X509>,
    now: SystemTime,
) -> Result<Result<StandIn, PemProblem>, PkiError> {
    let mut all = sent.to_vec();
    match root {
        Some(root) if !sent.contains(root) => all.push(root.clone()),
        _ => {}
    }
    let mut keys: Vec<PKey<Private>> = Vec::new();
    for (index, certificate) in all.iter().enumerate() {
        let Ok(public) = certificate.public_key() else {
            let key = explain(certificate)?.key;
            let number = index + 1;
            return Ok(Err(PemProblem::UnreadableKey { number, key }));
        };
        // The certificates that a CA has of several roots are of one key.
        let is_same = |other: &X509| other.public_key().is_ok_and(|key| key.public_eq(&public));
        let same = all.iter().take(index).position(is_same);
        keys.push(match same.and_then(|same| keys.get(same)) {
            Some(key) => key.clone(),
            None => match key_like(&public)? {
                Some(key) => key,
                None => return Ok(Err(unknown(index + 1, certificate, What::Key)?)),
            },
        });
    }
    let path = path_from(&all, 0);
    let mut root = None;
    let mut made: Vec<X509> = Vec::new();
    for (index, certificate) in all.iter().enumerate() {
        let number = index + 1;
        if let Some(same) = all
            .iter()
            .take(index)
            .position(|other| other == certificate)
        {
            made.extend(made.get(same).cloned());
            continue;
        }
        let unseen = match (is_self_signed(certificate), issuer_of(&all, index, &[])) {
            (false, None) => match unseen_root(certificate, now)? {
                Some(root) => Some(root),
                None => return Ok(Err(unknown(number, certificate, What::Signature)?)),
            },
            _ => None,
        };
        let own = keys.get(index);
        let signer = match (&unseen, is_self_signed(certificate)) {
            (Some((_, key)), _) => Some(key),
            (None, true) => own,
            (None, false) => issuer_of(&all, index, &[]).and_then(|issuer| keys.get(issuer)),
        };
        let (Some(own), Some(signer)) = (own, signer) else {
            return Ok(Err(unknown(number, certificate, What::Signature)?));
        };
        let Some(like) = certificate_like(certificate, own, signer, now)? else {
            return Ok(Err(unknown(number, certificate, What::Signature)?));
        };
        if path.last() == Some(&index) {
            root = Some(unseen.map_or_else(|| like.clone(), |(root, _)| root));
        }
        made.push(like);
    }
    made.truncate(sent.len());
    Ok(match (root, keys.into_iter().next()) {
        (Some(root), Some(key)) => Ok(StandIn {
            certificates: made,
            root,
            key,
        }),
        _ => Err(PemProblem::NotPem),
    })
}

/// Whether a certificate has to state a longer validity.
pub(crate) fn is_extended(certificate: &X509Ref, now: SystemTime) -> bool {
    !is_valid(certificate, now, now + DAY)
}

/// What of a certificate can't be made anew.
enum What {
    Key,
    Signature,
}

fn unknown(number: usize, certificate: &X509Ref, what: What) -> Result<PemProblem, PkiError> {
    let explanation = explain(certificate)?;
    Ok(match what {
        What::Key => PemProblem::UnknownKey {
            number,
            key: explanation.key,
        },
        What::Signature => PemProblem::UnknownSignature {
            number,
            signature: explanation.signature,
        },
    })
}

/// A new key of the same kind, as long as that. `None` for one of a kind that is not made.
fn key_like<T: HasPublic>(key: &PKeyRef<T>) -> Result<Option<PKey<Private>>, PkiError> {
    let made = match (key.id(), key_algorithm(key)) {
        // With the same exponent, which is part of it.
        (Id::RSA, _) => {
            let rsa = key.rsa()?;
            PKey::from_rsa(Rsa::generate_with_e(key.bits(), rsa.e())?)?
        }
        (_, Some(algorithm)) => algorithm.generate()?,
        (Id::EC, None) => match key.ec_key()?.group().curve_name() {
            Some(curve) => ec_key(curve)?,
            None => return Ok(None),
        },
        (Id::RSA_PSS, None) => {
            let mut context = PkeyCtx::new_id(Id::RSA_PSS)?;
            context.keygen_init()?;
            context.set_rsa_keygen_bits(key.bits())?;
            context.keygen()?
        }
        (Id::ED25519, None) => PKey::generate_ed25519()?,
        (Id::ED448, None) => PKey::generate_ed448()?,
        _ => return Ok(None),
    };
    Ok(Some(made))
}

fn ec_key(curve: Nid) -> Result<PKey<Private>, PkiError> {
    let group = EcGroup::from_curve_name(curve)?;
    Ok(PKey::from_ec_key(EcKey::generate(&group)?)?)
}

/// A key that makes signatures like the one that a certificate has.
fn key_of_signer(pieces: &Pieces, nid: Nid) -> Result<Option<PKey<Private>>, PkiError> {
    let post_quantum = post_quantum(pieces.signature_algorithm);
    let bytes = pieces.signature.len();
    let key = match nid.signature_algorithms().map(|found| found.pkey) {
        _ if let Some(algorithm) = post_quantum => algorithm.generate()?,
        Some(Nid::RSAENCRYPTION | Nid::RSASSAPSS) => {
            let bits = u32::try_from(8 * bytes).unwrap_or(u32::MAX);
            PKey::from_rsa(Rsa::generate(bits)?)?
        }
        // The two numbers of a signature are as long as the curve, each with up to 3 bytes around
        // it, and all with 3.
        Some(Nid::X9_62_ID_ECPUBLICKEY) => ec_key(match bytes {
            ..=72 => Nid::X9_62_PRIME256V1,
            73..=104 => Nid::SECP384R1,
            _ => Nid::SECP521R1,
        })?,
        _ if nid == Nid::from_raw(Id::ED25519.as_raw()) => PKey::generate_ed25519()?,
        _ if nid == Nid::from_raw(Id::ED448.as_raw()) => PKey::generate_ed448()?,
        _ => return Ok(None),
    };
    Ok(Some(key))
}

/// The post-quantum algorithm that an `AlgorithmIdentifier` names. Of these, there is one kind of
/// key each.
pub(crate) fn post_quantum(identifier: &[u8]) -> Option<KeyAlgorithm> {
    KeyAlgorithm::ALL.into_iter().find(|algorithm| {
        algorithm.digest().is_none() && algorithm.signature_identifier() == identifier
    })
}

/// The same certificate with this key, signed with that of its issuer. `None` if such signatures
/// are not made.
fn certificate_like(
    certificate: &X509Ref,
    key: &PKeyRef<Private>,
    issuer: &PKeyRef<Private>,
    now: SystemTime,
) -> Result<Option<X509>, PkiError> {
    let der = certificate.to_der()?;
    let pieces = pieces(&der)?;
    let info = key.public_key_to_der()?;
    let public = match pieces.key.first() {
        // A point of which only one coordinate is written.
        Some(2 | 3) if key.id() == Id::EC => compressed(key)?,
        _ => key_of(&info)?.to_vec(),
    };
    let [from, until] = validity(&pieces, certificate, now);
    let signed = sequence(&[
        pieces.before,
        &sequence(&[&from, &until]),
        pieces.subject,
        &sequence(&[pieces.key_algorithm, &bit_string(&public)]),
        pieces.after,
    ]);
    let nid = certificate.signature_algorithm().object().nid();
    let signature = sign_like(&pieces, nid, issuer, &signed, Length::Same)?;
    let made = match signature {
        Some(signature) => assemble(&signed, &pieces, &signature)?,
        None => return Ok(None),
    };
    // Whatever else could be written in two ways.
    Ok((made.to_der()?.len() == der.len()).then_some(made))
}

fn compressed(key: &PKeyRef<Private>) -> Result<Vec<u8>, PkiError> {
    let key = key.ec_key()?;
    let mut context = BigNumContext::new()?;
    let point = key.public_key();
    Ok(point.to_bytes(key.group(), PointConversionForm::COMPRESSED, &mut context)?)
}

fn assemble(signed: &[u8], pieces: &Pieces, signature: &[u8]) -> Result<X509, PkiError> {
    let der = sequence(&[signed, pieces.signature_algorithm, &bit_string(signature)]);
    Ok(X509::from_der(&der)?)
}

/// The same, or from now on where it is over or has not begun; as long in bytes.
fn validity(pieces: &Pieces, certificate: &X509Ref, now: SystemTime) -> [Vec<u8>; 2] {
    let [from, until] = pieces.validity;
    if !is_extended(certificate, now) {
        return [from.to_vec(), until.to_vec()];
    }
    let since_1970 = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let [earlier, later] = [now - Duration::from_secs(3600), now + LIFE].map(since_1970);
    [written_like(from, earlier), written_like(until, later)]
}

/// A time with two digits of its year, or with four.
fn written_like(original: &[u8], since_1970: Duration) -> Vec<u8> {
    let written = time(since_1970);
    match (original.first(), written.split_at_checked(2)) {
        (Some(tag), Some((_, digits))) if original.len() == written.len() + 2 => {
            element(*tag, &[b"20", digits].concat())
        }
        _ => written,
    }
}

/// How long a signature is to be.
#[derive(Clone, Copy)]
enum Length {
    /// As long as the original's.
    Same,
    Any,
}

/// A signature of the algorithm that a certificate's has. `None` if that is not made, or never is
/// as long.
fn sign_like(
    pieces: &Pieces,
    nid: Nid,
    key: &PKeyRef<Private>,
    message: &[u8],
    length: Length,
) -> Result<Option<Vec<u8>>, PkiError> {
    // One ECDSA signature of 300 is two bytes shorter than usual, of 40 000 three.
    const ATTEMPTS: u32 = 1 << 19;
    let attempts = match key.id() {
        Id::RSA | Id::RSA_PSS => 1,
        _ => ATTEMPTS,
    };
    for _ in 0..attempts {
        let Some(signature) = sign(pieces, nid, key, message)? else {
            return Ok(None);
        };
        if matches!(length, Length::Any) || signature.len() == pieces.signature.len() {
            return Ok(Some(signature));
        }
    }
    Ok(None)
}

fn sign(
    pieces: &Pieces,
    nid: Nid,
    key: &PKeyRef<Private>,
    message: &[u8],
) -> Result<Option<Vec<u8>>, PkiError> {
    let digest = nid.signature_algorithms().map(|found| found.digest);
    let digest = digest.and_then(MessageDigest::from_nid);
    let mut signer = match digest {
        _ if nid == Nid::RSASSAPSS => {
            let Some(digest) = pss_digest(pieces.signature_algorithm) else {
                return Ok(None);
            };
            let mut signer = Signer::new(digest, key)?;
            signer.set_rsa_padding(Padding::PKCS1_PSS)?;
            signer.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH)?;
            signer
        }
        Some(digest) => Signer::new(digest, key)?,
        None if key.id() == Id::RSA || key.id() == Id::EC => return Ok(None),
        None => Signer::new_without_digest(key)?,
    };
    Ok(Some(signer.sign_oneshot_to_vec(message)?))
}

/// The digest that the parameters of RSASSA-PSS name (RFC 4055 section 3.1), as the authors of
/// certificates have it: the same for the mask, and as long as the salt.
fn pss_digest(identifier: &[u8]) -> Option<MessageDigest> {
    let names = |last: u32| {
        let oid = object_identifier(&[2, 16, 840, 1, 101, 3, 4, 2, last]);
        identifier.windows(oid.len()).any(|part| part == oid)
    };
    let digests = [
        (1, MessageDigest::sha256()),
        (2, MessageDigest::sha384()),
        (3, MessageDigest::sha512()),
    ];
    let mut digests = digests.into_iter();
    digests.find_map(|(last, digest)| names(last).then_some(digest))
}

/// A root that nobody has seen, and its key: of whoever signed this certificate.
fn unseen_root(
    certificate: &X509Ref,
    now: SystemTime,
) -> Result<Option<(X509, PKey<Private>)>, PkiError> {
    const BASIC_CONSTRAINTS: [u32; 4] = [2, 5, 29, 19];
    const KEY_USAGE: [u32; 4] = [2, 5, 29, 15];
    /// keyCertSign and cRLSign.
    const SIGNS: u8 = 0b0000_0110;
    let der = certificate.to_der()?;
    let pieces = pieces(&der)?;
    let nid = certificate.signature_algorithm().object().nid();
    let Some(key) = key_of_signer(&pieces, nid)? else {
        return Ok(None);
    };
    // Some name their issuer by its number.
    let number = match certificate.authority_serial() {
        Some(serial) => serial.to_bn()?.to_vec(),
        None => serial()?.to_vec(),
    };
    // Not negative.
    let number = match number.first() {
        Some(0x80..) | None => [vec![0], number].concat(),
        _ => number,
    };
    let critical = |oid: &[u32], value: &[u8]| {
        sequence(&[
            &object_identifier(oid),
            &element(BOOLEAN, &[0xff]),
            &element(OCTET_STRING, value),
        ])
    };
    let is_ca = sequence(&[&element(BOOLEAN, &[0xff])]);
    let extensions = sequence(&[
        &critical(&BASIC_CONSTRAINTS, &is_ca),
        &critical(&KEY_USAGE, &named_bits(SIGNS)),
    ]);
    let since_1970 = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let times = [now - DAY, now + ROOT_LIFE].map(|at| time(since_1970(at)));
    let [from, until] = &times;
    let signed = sequence(&[
        &element(explicit(0), &element(INTEGER, &[2])),
        &element(INTEGER, &number),
        pieces.signature_algorithm,
        pieces.issuer,
        &element(SEQUENCE, &[from.as_slice(), until].concat()),
        pieces.issuer,
        &key.public_key_to_der()?,
        &element(explicit(3), &extensions),
    ]);
    let Some(signature) = sign_like(&pieces, nid, &key, &signed, Length::Any)? else {
        return Ok(None);
    };
    Ok(Some((assemble(&signed, &pieces, &signature)?, key)))
}
