//! The server's side.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use foreign_types::ForeignTypeRef;
use lastbyte_sizes::SLH_DSA;
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::hash::MessageDigest;
use openssl::pkey::{Id, PKey, Private, Public};
use openssl::sha::sha256;
use openssl::ssl::{ClientHelloResponse, Ssl, SslAlert, SslContextBuilder, SslMode, SslRef};
use openssl::stack::Stack;
use openssl::x509::{X509, X509Builder, X509Ref};

use super::{EndEntity, certificate_type, hellos};
use crate::extension::{self, ExtensionType};
use crate::ffi;
use crate::server::{Chain, Omission, Selection, SharedChains};
use crate::{Digest, Part};

/// What this connection's client gets.
struct Chosen {
    selection: Selection,
    /// What the client declared that it has.
    offered: Option<Digest>,
    raw_public_key: RawPublicKey,
    end_entity: EndEntity,
}

/// Whether the client takes a raw public key (RFC 7250).
#[derive(Clone, Copy, PartialEq, Eq)]
enum RawPublicKey {
    Taken,
    NotTaken,
}

static CHOSEN: OnceLock<Index<Ssl, Chosen>> = OnceLock::new();
static GATE: OnceLock<Index<Ssl, Gate>> = OnceLock::new();

/// What clients get that ask for a name that no chain is for, or for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownNames {
    /// The first chain.
    #[default]
    Served,
    /// An alert, unrecognized_name (RFC 6066, section 3).
    Refused,
}

/// Whether a handshake goes on once it has a ClientHello.
#[derive(Debug)]
struct Gate {
    unknown: UnknownNames,
    is_open: AtomicBool,
    signs_slowly: AtomicBool,
    /// What the ClientHello asks for.
    requested_name: OnceLock<String>,
    is_refused: AtomicBool,
}

/// Has the handshake of `ssl` stop at each ClientHello, which is whole then, and nothing was
/// computed: `accept` fails with `ErrorCode::WANT_CLIENT_HELLO_CB`. It goes on where it stopped
/// when `accept` is called after [`pass`]. So whoever accepts decides where and when it is computed
/// and signed.
///
/// Its session is for the name that is asked for, and is not resumed for another one.
///
/// # Errors
/// OpenSSL's, if it has no memory.
pub fn stop_at_client_hello(ssl: &mut SslRef, unknown: UnknownNames) -> Result<(), ErrorStack> {
    let gate = Gate {
        unknown,
        is_open: AtomicBool::default(),
        signs_slowly: AtomicBool::default(),
        requested_name: OnceLock::new(),
        is_refused: AtomicBool::default(),
    };
    ssl.set_ex_data(super::index(&GATE)?, gate);
    Ok(())
}

/// Lets a handshake go on that has stopped at its ClientHello, up to the next one if there is one.
pub fn pass(ssl: &SslRef) {
    if let Some(gate) = gate(ssl) {
        gate.is_open.store(true, Ordering::Relaxed);
    }
}

/// Whether a handshake that has stopped at its ClientHello may sign with SLH-DSA, which takes a
/// hundred times as long as others.
pub fn may_sign_slowly(ssl: &SslRef) -> bool {
    gate(ssl).is_some_and(|gate| gate.signs_slowly.load(Ordering::Relaxed))
}

/// The name that the ClientHello of a handshake that stops there ([`stop_at_client_hello`]) asks
/// for, whatever becomes of the handshake.
pub fn requested_name(ssl: &SslRef) -> Option<&str> {
    gate(ssl)?.requested_name.get().map(String::as_str)
}

/// Whether a handshake failed as no chain is for the name that was asked for
/// ([`UnknownNames::Refused`]).
pub fn is_refused(ssl: &SslRef) -> bool {
    gate(ssl).is_some_and(|gate| gate.is_refused.load(Ordering::Relaxed))
}

fn gate(ssl: &SslRef) -> Option<&Gate> {
    ssl.ex_data(*GATE.get()?)
}

/// What a ClientHello callback answers to a handshake that is to stop ([`stop_at_client_hello`]):
/// none if it goes on. [`install`] asks itself; it is for servers without the mechanism.
pub fn stopped(ssl: &SslRef) -> Option<ClientHelloResponse> {
    let is_stopped = !gate(ssl)?.is_open.swap(false, Ordering::Relaxed);
    is_stopped.then_some(ClientHelloResponse::RETRY)
}

/// Has a server's handshakes answer with `chains`: as plain TLS to clients without the extension,
/// without what DNS delivered to those with it. `end_entity` is how the key is proved when the
/// whole chain is left out: [`EndEntity::Carrier`] is an experiment, and clients that take raw
/// public keys still get those.
///
/// It takes the context's ClientHello callback, certificate callback and custom extension. The
/// context needs no certificate of its own.
///
/// # Errors
/// OpenSSL's, if it has the extension itself.
pub fn install(
    context: &mut SslContextBuilder,
    chains: Arc<SharedChains>,
    number: ExtensionType,
    end_entity: EndEntity,
) -> Result<(), ErrorStack> {
    let index = super::index(&CHOSEN)?;
    // Otherwise OpenSSL completes the chain from what it trusts.
    context.set_mode(SslMode::NO_AUTO_CHAIN);
    context.set_client_hello_callback(move |ssl, alert| {
        let chains = chains.load();
        let name = name_in_hello(ssl);
        let chosen = choose(ssl, &chains, name.as_deref(), number, end_entity);
        if let Some(gate) = gate(ssl) {
            if let Some(name) = &name {
                gate.requested_name.get_or_init(|| name.clone());
            }
            let has_chain = || name.as_deref().is_some_and(|name| chains.knows(name));
            if gate.unknown == UnknownNames::Refused && !has_chain() {
                gate.is_refused.store(true, Ordering::Relaxed);
                *alert = SslAlert::UNRECOGNIZED_NAME;
                return Err(ErrorStack::get());
            }
            let slowly = takes_slh_dsa(ssl) && chosen.has_slh_dsa();
            gate.signs_slowly.store(slowly, Ordering::Relaxed);
            if let Some(stopped) = stopped(ssl) {
                return Ok(stopped);
            }
            let name = name.unwrap_or_default();
            ffi::set_session_id_context(ssl, &sha256(name.as_bytes()))?;
        }
        // After a HelloRetryRequest nothing that was set for the first ClientHello stays.
        let types: &[u8] = if chosen.is_raw_key() {
            &[certificate_type::RAW_PUBLIC_KEY, certificate_type::X509]
        } else {
            &[certificate_type::X509]
        };
        let set = ffi::set_server_certificate_types(ssl, types);
        ssl.set_ex_data(index, chosen);
        set.map(|()| ClientHelloResponse::SUCCESS)
    });
    ffi::set_certificate_callback(context, |ssl| {
        let Some(index) = CHOSEN.get() else {
            return false;
        };
        prepare(ssl, *index).is_ok()
    });
    context.add_custom_ext(
        number.0,
        hellos(),
        move |ssl, _, _| Ok(answer(ssl, index)),
        |_, _, data, _| match Digest::from_bytes(data) {
            Some(_) => Ok(()),
            None => Err(SslAlert::DECODE_ERROR),
        },
    )
}

/// How many certificates were left out of this handshake, and what they are.
pub fn omitted(ssl: &SslRef) -> Option<(Part, usize)> {
    let Omission { chain, omitted } = omission(ssl)?;
    Some((chain.part(*omitted), *omitted))
}

/// How many bytes of the Certificate message that saved.
pub fn omitted_bytes(ssl: &SslRef) -> usize {
    /// The length of a certificate, and that of its extensions, which are none (RFC 8446, section 4.4.2).
    const ENTRY: usize = 3 + 2;
    let Some(Omission { chain, omitted }) = omission(ssl) else {
        return 0;
    };
    let lengths = chain.lengths().rev().take(*omitted);
    let whole: usize = lengths.map(|length| length + ENTRY).sum();
    let is_raw_key = || ssl.ex_data(*CHOSEN.get()?).map(Chosen::is_raw_key);
    if *omitted < chain.certificates().len() {
        return whole;
    }
    let instead = if is_raw_key() == Some(true) {
        chain.public_key().public_key_to_der()
    } else {
        ssl.certificate().map_or(Ok(Vec::new()), X509Ref::to_der)
    };
    whole.saturating_sub(instead.map_or(0, |instead| instead.len() + ENTRY))
}

/// The name of the group that the keys were exchanged in, as OpenSSL has it.
pub fn group(ssl: &SslRef) -> Option<&str> {
    ffi::group_name(ssl)
}

fn omission(ssl: &SslRef) -> Option<&Omission> {
    let chosen = ssl.ex_data(*CHOSEN.get()?)?;
    let Selection::Without(omissions) = &chosen.selection else {
        return None;
    };
    let sent = ssl.certificate()?;
    let mut all = omissions.iter();
    // A carrier stands for the only one that there is.
    all.find(|omission| is_same(omission.chain.end_entity(), sent))
        .or(omissions.first())
}

/// The name that a ClientHello asks for, in lower case.
fn name_in_hello(ssl: &SslRef) -> Option<String> {
    const SERVER_NAME: u16 = 0;
    let name = ffi::client_hello_extension(ssl, SERVER_NAME);
    name.and_then(|data| extension::server_name(&data))
}

fn choose(
    ssl: &SslRef,
    chains: &crate::server::Chains,
    name: Option<&str>,
    number: ExtensionType,
    end_entity: EndEntity,
) -> Chosen {
    const SERVER_CERTIFICATE_TYPE: u16 = 20;
    let extension = |number| ffi::client_hello_extension(ssl, number);
    let offered = extension(number.0).and_then(|data| Digest::from_bytes(&data));
    // A length of one byte, and the types.
    let types = extension(SERVER_CERTIFICATE_TYPE);
    let takes_raw_key = types
        .as_deref()
        .and_then(|data| data.get(1..))
        .is_some_and(|types| types.contains(&certificate_type::RAW_PUBLIC_KEY));
    Chosen {
        selection: chains.select(name, offered.as_ref()),
        offered,
        raw_public_key: if takes_raw_key {
            RawPublicKey::Taken
        } else {
            RawPublicKey::NotTaken
        },
        end_entity,
    }
}

/// Whether the client verifies signatures of SLH-DSA.
fn takes_slh_dsa(ssl: &SslRef) -> bool {
    const SIGNATURE_ALGORITHMS: u16 = 13;
    let offered = ffi::client_hello_extension(ssl, SIGNATURE_ALGORITHMS).unwrap_or_default();
    // A length of two bytes, and the code points.
    let mut offered = offered.chunks_exact(2).skip(1);
    let is_slh_dsa = |code: &[u8]| {
        let mut all = SLH_DSA.iter();
        all.any(|signature| signature.code_point.to_be_bytes() == code)
    };
    offered.any(is_slh_dsa)
}

impl Chosen {
    /// Whether a chain that may be sent has a key of SLH-DSA.
    fn has_slh_dsa(&self) -> bool {
        match &self.selection {
            Selection::Without(omissions) => {
                let mut omissions = omissions.iter();
                omissions.any(|omission| omission.chain.is_slh_dsa())
            }
            Selection::Whole(chains) => chains.iter().any(|chain| chain.is_slh_dsa()),
        }
    }

    /// Whether the end-entity's key is all that is sent.
    fn is_raw_key(&self) -> bool {
        self.leaves_out_all() && self.raw_public_key == RawPublicKey::Taken
    }

    fn leaves_out_all(&self) -> bool {
        match &self.selection {
            Selection::Without(omissions) => omissions.iter().any(Omission::is_whole),
            Selection::Whole(_) => false,
        }
    }
}

/// Gives the connection its certificates.
fn prepare(ssl: &mut SslRef, index: Index<Ssl, Chosen>) -> Result<(), ErrorStack> {
    let Some(chosen) = ssl.ex_data(index) else {
        return Ok(());
    };
    let is_carrier =
        chosen.leaves_out_all() && !chosen.is_raw_key() && chosen.end_entity == EndEntity::Carrier;
    let selection = chosen.selection.clone();
    // Those for the first ClientHello, after a HelloRetryRequest: of an algorithm, say, that no
    // chain has any more.
    ffi::clear_certificates(ssl);
    match selection {
        Selection::Without(omissions) => {
            // Of one algorithm, what is used last stays.
            omissions
                .iter()
                .rev()
                .try_for_each(|Omission { chain, omitted }| {
                    if is_carrier {
                        return use_carrier(ssl, chain);
                    }
                    // The end-entity stands there even if only its key is sent.
                    let sent = chain.certificates().len().saturating_sub(*omitted).max(1);
                    use_chain(ssl, chain, sent)
                })
        }
        Selection::Whole(chains) => chains
            .iter()
            .try_for_each(|chain| use_chain(ssl, chain, chain.certificates().len())),
    }
}

/// Sends the first `sent` certificates.
fn use_chain(ssl: &mut SslRef, chain: &Chain, sent: usize) -> Result<(), ErrorStack> {
    let mut issuers = Stack::new()?;
    for issuer in chain.certificates().iter().take(sent).skip(1) {
        issuers.push(issuer.clone())?;
    }
    ffi::use_certificate(ssl, chain.end_entity(), chain.key(), &issuers)
}

/// What the ServerHello says: the echo if something is left out, else which chain is sent.
fn answer(ssl: &SslRef, index: Index<Ssl, Chosen>) -> Option<Digest> {
    let chosen = ssl.ex_data(index)?;
    let offered = chosen.offered.filter(|_| !ssl.session_reused())?;
    match &chosen.selection {
        Selection::Without(_) => Some(offered),
        Selection::Whole(chains) => {
            let sent = ssl.certificate()?;
            let mut chains = chains.iter();
            let sent = chains.find(|chain| is_same(chain.end_entity(), sent))?;
            Some(sent.digest())
        }
    }
}

/// OpenSSL keeps the very certificate that it was given.
fn is_same(own: &X509Ref, sent: &X509Ref) -> bool {
    own.as_ptr() == sent.as_ptr()
}

/// Sends a certificate that carries the end-entity's digest, and signs with the end-entity's key.
fn use_carrier(ssl: &mut SslRef, chain: &Chain) -> Result<(), ErrorStack> {
    let carried = carried(&chain.end_entity().to_der()?)?;
    // OpenSSL accepts a certificate of the key that signs, and sends it as it is by then.
    let mut carrier = blank(chain.key())?;
    let nothing = Stack::new()?;
    ffi::use_certificate(ssl, &carrier, chain.key(), &nothing)?;
    ffi::change_key(&mut carrier, &carried)
}

/// The digest of an end-entity in the form of a key: both have 32 bytes.
pub(super) fn carried(end_entity: &[u8]) -> Result<PKey<Public>, ErrorStack> {
    PKey::public_key_from_raw_bytes(&sha256(end_entity), Id::ED25519)
}

/// The smallest certificate of a key, signed by nobody in particular.
fn blank(key: &PKey<Private>) -> Result<X509, ErrorStack> {
    use openssl::asn1::Asn1Time;
    use openssl::bn::BigNum;
    static SIGNER: OnceLock<PKey<Private>> = OnceLock::new();
    let signer = match SIGNER.get() {
        Some(signer) => signer,
        None => {
            let signer = PKey::generate_ed25519()?;
            SIGNER.get_or_init(|| signer)
        }
    };
    let mut carrier = X509Builder::new()?;
    let serial = BigNum::from_u32(1)?.to_asn1_integer()?;
    carrier.set_serial_number(&serial)?;
    // Nobody checks them; these take the fewest bytes.
    let (from, until) = (Asn1Time::from_unix(0)?, Asn1Time::from_unix(0)?);
    carrier.set_not_before(&from)?;
    carrier.set_not_after(&until)?;
    carrier.set_pubkey(key)?;
    carrier.sign(signer, MessageDigest::null())?;
    Ok(carrier.build())
}
