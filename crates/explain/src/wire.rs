//! What an arm puts on the wire, by arithmetic: the sizes that an observer would read.

use std::collections::BTreeSet;

use lastbyte_exchange::{
    AddressValidation, Exchange, FailedAttempt, Handshake, HandshakeFlight, Negotiated, Quic,
    Transport,
};
use lastbyte_sizes::framing::{
    self, CHANGE_CIPHER_SPEC, ENCRYPTED_EXTENSIONS, RECORD_HEADER, certificate_verify, finished,
    hello_retry_request, server_hello,
};
use lastbyte_sizes::profile::SERVER_NAME;
use lastbyte_sizes::{ChainSpec, Group, KeyAlgorithm, Message, Resumption, StackName, quic};
use thiserror::Error;

use lastbyte_study::{Arm, ArmChain, Cell, Flush, Lengths, OnWire, TransportName};

/// Arithmetic alone does not know what an arm puts on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("arm {arm:?}: {what}; {hint}")]
pub struct Unknown {
    /// As it was written.
    pub arm: String,
    /// What is not known.
    pub what: String,
    /// What to do.
    pub hint: String,
}

/// Bytes of the Finished of TLS_AES_256_GCM_SHA384, which OpenSSL prefers.
const FINISHED: usize = finished(48);
/// That cipher suite.
const CIPHER_SUITE: u16 = 0x1302;

/// The messages of a full handshake of OpenSSL with itself, as an observer reads them. A signature of ECDSA has its
/// likeliest length.
///
/// # Errors
///
/// [`Unknown`] where a part of the arm's handshake is not a matter of tables: the user's own files, other stacks,
/// what is resumed, a client's chain, deliveries.
pub fn wire(arm: &Arm) -> Result<Exchange, Unknown> {
    wire_of(arm, Sizes::Made(made(arm)?))
}

/// The same where the arm's chain is the user's own, of these sizes.
///
/// # Errors
///
/// As [`wire`].
pub fn wire_of_own(arm: &Arm, own: &OwnChain) -> Result<Exchange, Unknown> {
    wire_of(arm, Sizes::Own(own))
}

/// The same of a chain that is known by its sizes.
pub(super) fn wire_of(arm: &Arm, chain: Sizes<'_>) -> Result<Exchange, Unknown> {
    let handshakes = handshakes(arm, chain)?;
    let Some(succeeds) = handshakes.last() else {
        return handshake(arm, chain, &OnWire::default());
    };
    let exchange = handshake(arm, chain, succeeds)?;
    let failed = match handshakes.split_last() {
        Some((_, [_, ..])) if exchange.carried(HandshakeFlight::HelloRetryRequest) > 0 => {
            let what = "a HelloRetryRequest on a connection that fails is not walked through";
            return Err(no_arithmetic(arm, what));
        }
        Some((_, [first, ..])) => Some(failed_attempt(&handshake(arm, chain, first)?)),
        _ => None,
    };
    Ok(Exchange { failed, ..exchange })
}

/// What a connection had on the wire whose client gave up.
fn failed_attempt(exchange: &Exchange) -> FailedAttempt {
    // In plain text: OpenSSL's client encrypts from its Finished on.
    const ALERT: usize = RECORD_HEADER + 2;
    let until_certificate = [
        Message::ServerHello,
        Message::EncryptedExtensions,
        Message::Certificate,
    ];
    let records = until_certificate
        .map(|message| number(message.wire_bytes(exchange.bytes(message) as usize)));
    FailedAttempt {
        client_hello_wire_bytes: exchange.sent(HandshakeFlight::ClientHello),
        server_flight_wire_bytes: exchange.sent(HandshakeFlight::Server),
        through_certificate_wire_bytes: records.iter().sum::<u32>() + number(CHANGE_CIPHER_SPEC),
        alert_wire_bytes: number(ALERT),
    }
}

/// What the arm's delivery makes of its handshakes.
fn handshakes(arm: &Arm, chain: Sizes<'_>) -> Result<Vec<OnWire>, Unknown> {
    let known = match chain {
        Sizes::Made(spec) => arm.delivery.arithmetic(spec),
        Sizes::Own(own) => arm.delivery.arithmetic_of(Lengths {
            certificates: &own.certificates,
            alike: own.alike.as_ref(),
            brotli: own.brotli,
        }),
    };
    known.map_err(|what| no_arithmetic(arm, &format!("{what} is no arithmetic")))
}

/// The messages of one full handshake.
fn handshake(arm: &Arm, chain: Sizes<'_>, delivered: &OnWire) -> Result<Exchange, Unknown> {
    let certificate = delivered.certificate;
    check(arm, certificate)?;
    let retries = has_retry(arm);
    let own = OfTransport::of(arm);
    let server = [
        (
            Message::ServerHello,
            server_hello(arm.group.server_share_bytes()) + delivered.server_hello - own.session_id,
        ),
        (
            Message::EncryptedExtensions,
            match arm.transport {
                TransportName::Tcp => chain.encrypted_extensions(),
                // Whatever was seen of a server's own was seen over TCP.
                TransportName::Quic => ENCRYPTED_EXTENSIONS + own.encrypted_extensions,
            } + delivered.encrypted_extensions,
        ),
        (Message::Certificate, certificate),
        (
            Message::CertificateVerify,
            certificate_verify(chain.signature().bytes),
        ),
        (Message::ServerFinished, FINISHED),
    ];
    let hello = client_hello(arm, chain, &arm.key_shares) + delivered.client_hello;
    let retry = [
        (
            Message::HelloRetryRequest,
            hello_retry_request() - own.session_id,
        ),
        (
            Message::SecondClientHello,
            client_hello(arm, chain, &[arm.group]) + delivered.client_hello,
        ),
    ];
    let both = [
        (Message::ClientHello, hello),
        (Message::ClientFinished, FINISHED),
    ];
    let mut handshake = Handshake::default();
    let messages = both.into_iter().chain(server);
    for (message, bytes) in messages.chain(retry.into_iter().filter(|_| retries)) {
        handshake.messages.set(message, Some(number(bytes)));
    }
    let negotiated = Negotiated {
        group: Some(arm.group.code_point()),
        cipher_suite: Some(CIPHER_SUITE),
        signature: chain.scheme(),
        certificates: Some(number(delivered.certificates)),
        signal: delivered.signal,
        hello_digest: delivered.hello_digest,
        ..Negotiated::default()
    };
    if arm.transport == TransportName::Quic {
        // How its flights are on the wire is for datagrams to decide.
        return Ok(Exchange {
            transport: Transport::Quic(own.quic),
            handshake,
            negotiated,
            ..Exchange::default()
        });
    }
    let records = |flight| handshake.in_own_records(flight);
    // Each end sends one change_cipher_spec, as early as it can.
    let [at_once, after_retry] = if retries {
        [0, CHANGE_CIPHER_SPEC]
    } else {
        [CHANGE_CIPHER_SPEC, 0]
    };
    let server = i64::try_from(records(HandshakeFlight::Server) + at_once).unwrap_or(i64::MAX);
    let server = server.saturating_add(chain.besides()).max(0);
    let retried = |flight| retries.then(|| number(records(flight) + after_retry));
    let flights = [
        (
            HandshakeFlight::ClientHello,
            Some(number(records(HandshakeFlight::ClientHello))),
        ),
        (
            HandshakeFlight::HelloRetryRequest,
            retried(HandshakeFlight::HelloRetryRequest),
        ),
        (
            HandshakeFlight::SecondClientHello,
            retried(HandshakeFlight::SecondClientHello),
        ),
        (
            HandshakeFlight::Server,
            Some(u32::try_from(server).unwrap_or(u32::MAX)),
        ),
        (
            HandshakeFlight::ClientFinish,
            Some(number(records(HandshakeFlight::ClientFinish) + at_once)),
        ),
    ];
    handshake.see_all(flights);
    let seen = match chain {
        Sizes::Made(_) => Exchange::default(),
        Sizes::Own(own) => own.seen.clone(),
    };
    handshake.server_writes = seen.handshake.server_writes;
    Ok(Exchange {
        handshake,
        negotiated,
        tickets: seen.tickets,
        response: seen.response,
        ..Exchange::default()
    })
}

/// How long a connection's messages are whose length varies by chance, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByChance {
    /// The CertificateVerify.
    pub verify: u32,
    /// Over QUIC, the ClientHello and the EncryptedExtensions.
    pub reserved: Option<[u32; 2]>,
}

impl ByChance {
    const RESERVED: [Message; 2] = [Message::ClientHello, Message::EncryptedExtensions];

    /// Those of a connection.
    pub fn of(exchange: &Exchange) -> ByChance {
        let reserved = || ByChance::RESERVED.map(|message| exchange.bytes(message));
        ByChance {
            verify: exchange.bytes(Message::CertificateVerify),
            reserved: exchange.transport.quic().map(|_| reserved()),
        }
    }
}

/// What an arm puts on the wire with a Certificate message of so many bytes, whatever chain would have that, and what varies by
/// chance of these lengths, or of the likeliest.
///
/// # Errors
///
/// As [`wire`].
pub fn wire_with(
    arm: &Arm,
    certificate: usize,
    by_chance: Option<ByChance>,
) -> Result<Exchange, Unknown> {
    check(arm, certificate)?;
    let own = wire(arm)?;
    let ByChance { verify, reserved } = by_chance.unwrap_or(ByChance::of(&own));
    let own = with(&own, certificate, verify as usize);
    let reserved = ByChance::RESERVED
        .into_iter()
        .zip(reserved.into_iter().flatten());
    let reserved = reserved.map(|(message, bytes)| (message, Some(bytes as usize)));
    Ok(with_messages(&own, reserved))
}

/// The same with so many bytes of Certificate and CertificateVerify.
pub(super) fn with(exchange: &Exchange, certificate: usize, verify: usize) -> Exchange {
    let sizes = [
        (Message::Certificate, Some(certificate)),
        (Message::CertificateVerify, Some(verify)),
    ];
    with_messages(exchange, sizes)
}

/// The same with all that varies by chance as long as it can be.
pub(super) fn longest(exchange: &Exchange, signature: Signature) -> Exchange {
    let verify = certificate_verify(signature.longest);
    let certificate = exchange.bytes(Message::Certificate) as usize;
    let longest = with(exchange, certificate, verify);
    if exchange.transport.quic().is_none() {
        return longest;
    }
    let (_, more) = quic::RESERVED;
    let reserved = ByChance::RESERVED;
    let reserved = reserved.map(|message| (message, Some(exchange.bytes(message) as usize + more)));
    with_messages(&longest, reserved)
}

/// Whether arithmetic has an arm in a cell, which it has over TCP.
pub(crate) fn check_over(arm: &Arm, cell: &Cell) -> Result<(), Unknown> {
    match arm.transport {
        TransportName::Tcp => Ok(()),
        TransportName::Quic => (cell.check_quic()).map_err(|problem| {
            unknown(
                arm,
                &problem.to_string(),
                "or take the arm over TCP".to_owned(),
            )
        }),
    }
}

/// The handshake without its certificates, near to what a resumed one is: hellos that name a session are some hundred bytes
/// larger, which no flight turns on.
pub(crate) fn without_certificates(exchange: &Exchange) -> Exchange {
    let sizes = [
        (Message::Certificate, None),
        (Message::CertificateVerify, None),
    ];
    with_messages(exchange, sizes)
}

/// The same with other sizes of messages, each in records of its own; none where it is not sent.
pub(crate) fn with_messages(
    exchange: &Exchange,
    sizes: impl IntoIterator<Item = (Message, Option<usize>)>,
) -> Exchange {
    let mut exchange = exchange.clone();
    let records = |message: Message, bytes: Option<usize>| {
        number(bytes.map_or(0, |bytes| message.wire_bytes(bytes)))
    };
    for (message, bytes) in sizes {
        let Some(of) = flight_of(message) else {
            continue;
        };
        let before = exchange.handshake.messages.get(message);
        let before = records(message, before.map(|bytes| bytes as usize));
        let flight = exchange.wire_bytes(of);
        let flight = flight.map(|flight| (flight + records(message, bytes)).saturating_sub(before));
        let handshake = &mut exchange.handshake;
        handshake.messages.set(message, bytes.map(number));
        handshake.see(of, flight);
    }
    exchange
}

fn flight_of(message: Message) -> Option<HandshakeFlight> {
    let mut all = HandshakeFlight::ALL.into_iter();
    all.find(|flight| flight.messages().contains(&message))
}

/// Bytes of the Certificate message.
pub(super) fn certificate_bytes(spec: &ChainSpec) -> usize {
    spec.certificate_bytes
        .unwrap_or_else(|| spec.unpadded_bytes())
}

/// The chain of an arm that arithmetic knows.
pub(super) fn made(arm: &Arm) -> Result<&ChainSpec, Unknown> {
    match &arm.chain {
        ArmChain::Made(spec) => Ok(spec),
        ArmChain::Pem(files) => Err(unknown(
            arm,
            "arithmetic does not read files",
            format!(
                "ask for a chain of its algorithms and of as many bytes as `lastbyte chain show {}` says, such as \
                 ecdsa-p256+rsa-2048:3400B",
                files.chain.display()
            ),
        )),
    }
}

fn check(arm: &Arm, certificate: usize) -> Result<(), Unknown> {
    let stacks = [arm.client_stack, arm.server_stack];
    let other = stacks
        .into_iter()
        .find(|stack| *stack != StackName::OpenSsl);
    let what = match arm {
        _ if let Some(stack) = other => {
            format!("the sizes of {stack}'s messages are no arithmetic")
        }
        Arm {
            client_chain: Some(_),
            ..
        } => "what a client proves itself with is no arithmetic".to_owned(),
        _ if arm.resumption != Resumption::Full => {
            "the size of a session is no arithmetic".to_owned()
        }
        _ if arm.tickets > 0 => "the size of a ticket is no arithmetic".to_owned(),
        _ if arm.flush != Flush::Whole => {
            "the writes of OpenSSL's buffers are no arithmetic".to_owned()
        }
        _ if arm.client_hello_split.is_some() => {
            "a ClientHello that is split is not walked through".to_owned()
        }
        Arm {
            max_cert_list: Some(most),
            ..
        } if certificate > *most => {
            let what = format!(
                "its Certificate message has {certificate} bytes, which max_cert_list= refuses"
            );
            return Err(unknown(arm, &what, format!("allow {certificate}B or more")));
        }
        _ => return Ok(()),
    };
    Err(no_arithmetic(arm, &what))
}

/// That a client of the arm connects twice.
pub(super) fn one_connection(arm: &Arm) -> Unknown {
    unknown(
        arm,
        "its client fails at first and connects anew, and what is explained is one connection",
        "explain it with client=current, or measure it with `lastbyte compare`".to_owned(),
    )
}

fn no_arithmetic(arm: &Arm, what: &str) -> Unknown {
    unknown(arm, what, "measure it with `lastbyte compare`".to_owned())
}

fn unknown(arm: &Arm, what: &str, hint: String) -> Unknown {
    Unknown {
        arm: arm.label.clone(),
        what: what.to_owned(),
        hint,
    }
}

/// Whether its client has no share for the group that its server takes.
fn has_retry(arm: &Arm) -> bool {
    !arm.key_shares.contains(&arm.group)
}

/// What messages have more and less over another transport than TCP, in bytes.
#[derive(Clone, Copy, Default)]
struct OfTransport {
    /// What both hellos don't have.
    session_id: usize,
    client_hello: usize,
    encrypted_extensions: usize,
    /// What there is besides, over QUIC.
    quic: Quic,
}

impl OfTransport {
    fn of(arm: &Arm) -> OfTransport {
        if arm.transport == TransportName::Tcp {
            return OfTransport::default();
        }
        let (token, more) = match arm.address_validation {
            Some(AddressValidation::Retry) => (Some(quic::RETRY_TOKEN), quic::RETRY_PARAMETER),
            Some(AddressValidation::Token) => (Some(quic::NEW_TOKEN), 0),
            None => (None, 0),
        };
        OfTransport {
            session_id: quic::SESSION_ID,
            client_hello: quic::CLIENT_EXTENSIONS,
            encrypted_extensions: quic::SERVER_EXTENSIONS + more,
            quic: Quic {
                address_validation: arm.address_validation,
                token_bytes: token.map(number),
                ..Quic::default()
            },
        }
    }
}

/// An OpenSSL client's hello for the chain's name, with shares for these groups.
fn client_hello(arm: &Arm, chain: Sizes<'_>, shares: &[Group]) -> usize {
    /// Without any name, group, key share, and signature that OpenSSL has no TLS for.
    const REST: usize = 175;
    const POINT_FORMATS: usize = 4 + 1 + 1;
    const CODE_POINT: usize = 2;
    const LENGTH: usize = 2;
    let supported: BTreeSet<Group> = (arm.key_shares.iter().copied())
        .chain([arm.group])
        .collect();
    let has_curve = supported
        .iter()
        .any(|group| matches!(group, Group::Secp256r1 | Group::X25519 | Group::Secp384r1));
    let shares = shares
        .iter()
        .map(|group| CODE_POINT + LENGTH + group.client_share_bytes());
    let own = OfTransport::of(arm);
    REST - own.session_id
        + own.client_hello
        + chain.server_name_bytes()
        + supported.len() * CODE_POINT
        + shares.sum::<usize>()
        + if has_curve { POINT_FORMATS } else { 0 }
        + chain.provided() * CODE_POINT
}

/// How many of the chain's algorithms are offered because the chain has them.
fn provided(spec: &ChainSpec) -> usize {
    let keys = algorithms(spec).into_iter();
    keys.filter(|key| key.provided().is_some()).count()
}

/// What arithmetic needs to know of a chain.
#[derive(Clone, Copy)]
pub(super) enum Sizes<'a> {
    Made(&'a ChainSpec),
    Own(&'a OwnChain),
}

/// The sizes of a user's own chain. All are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnChain {
    /// The DER of each certificate, as they are sent.
    pub certificates: Vec<usize>,
    /// What the end-entity's key makes.
    pub signature: Signature,
    /// The name that a client asks for.
    pub server_name: usize,
    /// How many signature algorithms a client has to offer for it alone.
    pub provided: usize,
    /// A chain of the laboratory's with the end-entity's key and as many names, if those are known: for deliveries that make
    /// a certificate anew.
    pub alike: Option<ChainSpec>,
    /// What brotli leaves of the Certificate message, without headers, if that is known.
    pub brotli: Option<usize>,
    /// What the server's messages have more on the wire than arithmetic has them, or less: other records, another cipher suite.
    pub besides: i64,
    /// What was seen of a connection to a server that sends it, if any was.
    pub seen: Exchange,
}

/// How long signatures of a key are, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// At least, but for one in a hundred.
    pub shortest: usize,
    /// As they most often are.
    pub bytes: usize,
    /// At most.
    pub longest: usize,
}

impl From<KeyAlgorithm> for Signature {
    fn from(key: KeyAlgorithm) -> Signature {
        Signature {
            shortest: key.shortest_signature_bytes(),
            bytes: key.signature_bytes(),
            longest: key.longest_signature_bytes(),
        }
    }
}

impl OwnChain {
    /// Bytes of the Certificate message.
    pub fn certificate_bytes(&self) -> usize {
        framing::certificate_message(self.certificates.iter().copied())
    }
}

impl Sizes<'_> {
    pub(super) fn signature(self) -> Signature {
        match self {
            Sizes::Made(spec) => spec.leaf.into(),
            Sizes::Own(own) => own.signature,
        }
    }

    fn scheme(self) -> Option<u16> {
        match self {
            Sizes::Made(spec) => spec.leaf.signature_schemes().first().copied(),
            Sizes::Own(_) => None,
        }
    }

    fn server_name_bytes(self) -> usize {
        match self {
            Sizes::Made(_) => SERVER_NAME.len(),
            Sizes::Own(own) => own.server_name,
        }
    }

    fn encrypted_extensions(self) -> usize {
        match self {
            Sizes::Made(_) => ENCRYPTED_EXTENSIONS,
            Sizes::Own(own) => {
                let seen = own
                    .seen
                    .handshake
                    .messages
                    .get(Message::EncryptedExtensions);
                seen.map_or(ENCRYPTED_EXTENSIONS, |bytes| bytes as usize)
            }
        }
    }

    fn besides(self) -> i64 {
        match self {
            Sizes::Made(_) => 0,
            Sizes::Own(own) => own.besides,
        }
    }

    fn provided(self) -> usize {
        match self {
            Sizes::Made(spec) => provided(spec),
            Sizes::Own(own) => own.provided,
        }
    }
}

/// The algorithms of a chain's keys, each once.
pub(super) fn algorithms(spec: &ChainSpec) -> BTreeSet<KeyAlgorithm> {
    let intermediates = (spec.intermediates > 0).then_some(spec.ca);
    [spec.leaf, spec.root_key]
        .into_iter()
        .chain(intermediates)
        .collect()
}

fn number(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
