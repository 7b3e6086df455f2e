//! The keys of arms. One is a line of [`ALL`], or of the keys of a delivery: what it is called, what it takes and does, and
//! how it is set and written.

use std::fmt;

use lastbyte_exchange::AddressValidation;
use lastbyte_link::nearest;
use lastbyte_sizes::framing::MAX_PLAINTEXT;
use lastbyte_sizes::{
    ChainRole, ChainSpec, KeyAlgorithm, LeafExtension, PaddedCertificate, PemFiles, Resumption,
    RootDelivery, StackName,
};

use super::chain::{parse_chain, parse_size};
use super::{ArmProblem, Settings};
use crate::delivery::{Delivery, DeliveryKey, SetError};
use crate::value::{ValueError, one_of, whole};
use crate::{Arm, ArmChain, Client, Flush, RecordSize, Server, Sessions, TransportName};

/// All that there is to know of a key.
struct Spec {
    name: &'static str,
    /// What it can be, for readers.
    takes: &'static str,
    /// What an arm has without it, for readers.
    usual: &'static str,
    /// What it does, for readers.
    doc: &'static str,
    place: Place,
}

/// Where it is in an arm.
enum Place {
    Arm(Access<Arm>),
    /// The same, read before others, whose subject it is.
    Subject(Access<Arm>),
    /// Of the server's chain, or, by another name, of the client's.
    Chain {
        of_client: &'static str,
        made: Option<Access<ChainSpec>>,
        file: Option<Access<PemFiles>>,
        host: Host,
    },
}

/// Whether a key of chains in files can be said of a server's chain, too.
#[derive(PartialEq)]
enum Host {
    Taken,
    Refused,
}

/// How a key is written and set.
struct Access<T> {
    /// As the arm has it; none where that is said by leaving the key out.
    get: fn(&T) -> Option<String>,
    set: fn(&mut T, &str) -> Result<(), Refused>,
}

/// Why a text is not taken.
pub(super) enum Refused {
    /// It is no such value.
    Value(ValueError),
    /// It is a chain, of which something is wrong.
    Chain(ArmProblem),
    /// A server's chain is no client's.
    ServersChain,
}

impl From<ValueError> for Refused {
    fn from(error: ValueError) -> Refused {
        Refused::Value(error)
    }
}

/// The most tickets that a server sends.
pub const MOST_TICKETS: u8 = 10;

/// More than lets any chain leave at once.
const MOST_AMPLIFICATION: u8 = 100;

/// Payload of a record, at most.
const MOST_RECORD: u16 = MAX_PLAINTEXT as u16;

const STACKS: &str = "`openssl`, `rustls` or `s2n-tls`";

/// All but those of deliveries, which have their own, in the order in which they are told.
static ALL: [Spec; 26] = [
    Spec {
        name: "intermediates",
        takes: "0 to 3",
        usual: "1",
        doc: "certificates between the root and the end-entity",
        place: made(
            "client_intermediates",
            Access {
                get: |spec| Some(spec.intermediates.to_string()),
                set: |spec, text| {
                    spec.intermediates = whole(text, 0, ChainSpec::MAX_INTERMEDIATES)?;
                    Ok(())
                },
            },
        ),
    },
    Spec {
        name: "root",
        takes: "`omitted` or `sent`",
        usual: "omitted",
        doc: "whether the root is sent",
        place: Place::Chain {
            of_client: "client_root",
            made: Some(Access {
                get: |spec| Some(root(spec.root).to_owned()),
                set: |spec, text| {
                    spec.root = parse_root(text)?;
                    Ok(())
                },
            }),
            file: Some(Access {
                get: |files| Some(root(files.root).to_owned()),
                set: |files, text| {
                    files.root = parse_root(text)?;
                    Ok(())
                },
            }),
            host: Host::Refused,
        },
    },
    Spec {
        name: "padding",
        takes: "`end-entity` or `last`",
        usual: "end-entity",
        doc: "which certificate is padded where the chain has a size",
        place: made(
            "client_padding",
            Access {
                get: |spec| Some(padding(spec.padding).to_owned()),
                set: |spec, text| {
                    spec.padding = match PADDED.iter().find(|padded| padding(**padded) == text) {
                        Some(padded) => *padded,
                        None => return Err(unlisted(text, PADDED.map(padding)).into()),
                    };
                    Ok(())
                },
            },
        ),
    },
    Spec {
        name: "scts",
        takes: "0 to 3",
        usual: "0",
        doc: "Signed Certificate Timestamps in the end-entity's certificate",
        place: made(
            "client_scts",
            Access {
                get: |spec| Some(spec.scts.to_string()),
                set: |spec, text| {
                    spec.scts = whole(text, 0, ChainSpec::MAX_SCTS)?;
                    Ok(())
                },
            },
        ),
    },
    Spec {
        name: "sct_algorithm",
        takes: "an algorithm",
        usual: "ecdsa-p256",
        doc: "what logs sign timestamps with",
        place: made(
            "client_sct_algorithm",
            Access {
                get: |spec| Some(spec.sct_algorithm.to_string()),
                set: |spec, text| {
                    spec.sct_algorithm = one_of(text, KeyAlgorithm::ALL.map(KeyAlgorithm::name))?;
                    Ok(())
                },
            },
        ),
    },
    Spec {
        name: "names",
        takes: "1 to 100",
        usual: "2",
        doc: "names in the end-entity's certificate",
        place: made(
            "client_names",
            Access {
                get: |spec| Some(spec.names.to_string()),
                set: |spec, text| {
                    spec.names = whole(text, 1, ChainSpec::MAX_NAMES)?;
                    Ok(())
                },
            },
        ),
    },
    Spec {
        name: "leaf_without",
        takes: "`policies`, `aia` or `crl`, or several as `policies+aia`",
        usual: "",
        doc: "what the end-entity's certificate does not say",
        place: made(
            "client_leaf_without",
            Access {
                get: |spec| {
                    let names = spec.leaf_without.iter().map(|left| left.name());
                    let names: Vec<_> = names.collect();
                    (!names.is_empty()).then(|| names.join("+"))
                },
                set: |spec, text| {
                    spec.leaf_without = parse_left(text)?;
                    Ok(())
                },
            },
        ),
    },
    Spec {
        name: "key",
        takes: "a PEM file",
        usual: "",
        doc: "the private key of a chain in a file, where it is neither in that nor beside it",
        place: file(
            "client_key",
            Access {
                get: |files| Some(files.key.as_ref()?.to_str()?.to_owned()),
                set: |files, text| {
                    files.key = Some(not_empty(text)?.into());
                    Ok(())
                },
            },
        ),
    },
    Spec {
        name: "ca",
        takes: "a PEM file",
        usual: "",
        doc: "the trust anchors of a chain in a file, where they are neither in that nor beside it",
        place: file(
            "client_ca",
            Access {
                get: |files| Some(files.ca.as_ref()?.to_str()?.to_owned()),
                set: |files, text| {
                    files.ca = Some(not_empty(text)?.into());
                    Ok(())
                },
            },
        ),
    },
    Spec {
        name: "record_size",
        takes: "1 to 16384, or `auto`",
        usual: "auto",
        doc: "payload of each record; `auto` has the first fit a segment, and 16 KiB in later ones",
        place: Place::Arm(Access {
            get: |arm| Some(arm.record_size.to_string()),
            set: |arm, text| {
                arm.record_size = match text.parse() {
                    _ if text == "auto" => RecordSize::FirstSegment,
                    Ok(bytes @ 1..=MOST_RECORD) => RecordSize::Fixed(bytes),
                    _ => return Err(ValueError::RecordSize { most: MOST_RECORD }.into()),
                };
                Ok(())
            },
        }),
    },
    Spec {
        name: "stack",
        takes: STACKS,
        usual: "openssl",
        doc: "the TLS implementation of both sides",
        place: Place::Arm(Access {
            get: |arm| Some(arm.server_stack.to_string()),
            set: |arm, text| {
                arm.server_stack = one_of(text, StackName::ALL.map(StackName::name))?;
                Ok(())
            },
        }),
    },
    Spec {
        name: "client_stack",
        takes: STACKS,
        usual: "openssl",
        doc: "the client's, where it is another",
        place: Place::Arm(Access {
            get: |arm| Some(arm.client_stack.to_string()),
            set: |arm, text| {
                arm.client_stack = one_of(text, StackName::ALL.map(StackName::name))?;
                Ok(())
            },
        }),
    },
    Spec {
        name: "key_share",
        takes: "groups, as `X25519MLKEM768+x25519`",
        usual: "",
        doc: "what the client sends key shares for, where that is not the arm's group",
        place: Place::Arm(Access {
            get: |arm| {
                let names: Vec<_> = arm.key_shares.iter().map(|group| group.name()).collect();
                (arm.key_shares != [arm.group]).then(|| names.join("+"))
            },
            set: |arm, text| {
                let groups = text
                    .split('+')
                    .map(|group| group.parse().map_err(ValueError::Group));
                arm.key_shares = groups.collect::<Result<_, _>>()?;
                Ok(())
            },
        }),
    },
    Spec {
        name: "mutual",
        takes: "`CHAIN[:BYTESB]`",
        usual: "",
        doc: "has the client prove itself with a chain, whose keys have `client_` in front",
        place: Place::Subject(Access {
            get: |arm| Some(chain_as_written(arm.client_chain.as_ref()?)),
            set: |arm, text| {
                let mut chain = parse_chain(text).map_err(Refused::Chain)?;
                match &mut chain {
                    ArmChain::Made(spec) => spec.role = ChainRole::Client,
                    ArmChain::Pem(files) if files.host().is_some() => {
                        return Err(Refused::ServersChain);
                    }
                    ArmChain::Pem(_) => {}
                }
                arm.client_chain = Some(chain);
                Ok(())
            },
        }),
    },
    Spec {
        name: "resume",
        takes: "`no`, `ticket` or `0rtt`, or a share of a population's connections",
        usual: "",
        doc: "whether the client resumes a session; without it, as a population says, or not",
        place: Place::Arm(Access {
            get: |arm| match arm.sessions {
                Sessions::Population => None,
                Sessions::Fixed => Some(arm.resumption.to_string()),
                Sessions::Share { resumes, .. } => Some(resumes.to_string()),
            },
            set: |arm, text| {
                if text.ends_with('%') {
                    let (_, early_data) = arm.sessions.shares();
                    let resumes = text.parse().map_err(|_| ValueError::Share)?;
                    arm.sessions = Sessions::Share {
                        resumes,
                        early_data,
                    };
                } else {
                    arm.resumption = one_of(text, Resumption::ALL.map(Resumption::name))?;
                    arm.sessions = Sessions::Fixed;
                }
                Ok(())
            },
        }),
    },
    Spec {
        name: "early_data",
        takes: "a share",
        usual: "",
        doc: "how many of those that resume send early data, where `resume=` is a share",
        place: Place::Arm(Access {
            get: |arm| match arm.sessions {
                Sessions::Share { early_data, .. } => Some(early_data.to_string()),
                Sessions::Population | Sessions::Fixed => None,
            },
            set: |arm, text| {
                let (resumes, _) = arm.sessions.shares();
                let early_data = text.parse().map_err(|_| ValueError::Share)?;
                arm.sessions = Sessions::Share {
                    resumes,
                    early_data,
                };
                Ok(())
            },
        }),
    },
    Spec {
        name: "tickets",
        takes: "0 to 10",
        usual: "0",
        doc: "tickets that the server sends after its handshake",
        place: Place::Arm(Access {
            get: |arm| Some(arm.tickets.to_string()),
            set: |arm, text| {
                arm.tickets = whole(text, 0, MOST_TICKETS)?;
                Ok(())
            },
        }),
    },
    Spec {
        name: "max_cert_list",
        takes: "a size",
        usual: "",
        doc: "the largest Certificate message that either side takes, where that is not the stack's",
        place: Place::Arm(Access {
            get: |arm| Some(format!("{}B", arm.max_cert_list?)),
            set: |arm, text| {
                arm.max_cert_list = Some(parse_size(text).map_err(ValueError::Size)?);
                Ok(())
            },
        }),
    },
    Spec {
        name: "flush",
        takes: "`whole` or `native`",
        usual: "whole",
        doc: "what leaves in one `write`",
        place: Place::Arm(Access {
            get: |arm| Some(arm.flush.to_string()),
            set: |arm, text| {
                arm.flush = one_of(text, Flush::ALL.map(Flush::name))?;
                Ok(())
            },
        }),
    },
    Spec {
        name: "client_hello_split",
        takes: "1B to 65535B",
        usual: "",
        doc: "so many bytes of the ClientHello leave first, in a segment of their own",
        place: Place::Arm(Access {
            get: |arm| Some(format!("{}B", arm.client_hello_split?)),
            set: |arm, text| {
                let bytes = u16::try_from(parse_size(text).map_err(ValueError::Size)?).ok();
                let bytes = bytes.filter(|bytes| *bytes > 0);
                let wrong = || ValueError::HelloSplit { most: u16::MAX };
                arm.client_hello_split = Some(bytes.ok_or_else(wrong)?);
                Ok(())
            },
        }),
    },
    Spec {
        name: "delivery",
        takes: "`full`, or one of those below",
        usual: "full",
        doc: "how the client gets the server's chain",
        place: Place::Subject(Access {
            get: |arm| Some(arm.delivery.name().to_owned()),
            set: |arm, text| {
                arm.delivery = Delivery::named(text)?;
                Ok(())
            },
        }),
    },
    Spec {
        name: "server",
        takes: "`lastbyte`; over TCP `node`, `nginx`, `go` or `caddy`; over QUIC `quic-go`, `s2n-quic`, `caddy` or `quiche`",
        usual: "lastbyte",
        doc: "whose server answers",
        place: Place::Arm(Access {
            get: |arm| Some(arm.server.to_string()),
            set: |arm, text| {
                arm.server = one_of(text, Server::ALL.map(Server::name))?;
                Ok(())
            },
        }),
    },
    Spec {
        name: "client_program",
        takes: "`lastbyte`; over QUIC `quic-go`, `curl` or `chromium`",
        usual: "lastbyte",
        doc: "whose client connects",
        place: Place::Arm(Access {
            get: |arm| Some(arm.client.to_string()),
            set: |arm, text| {
                arm.client = one_of(text, Client::ALL.map(Client::name))?;
                Ok(())
            },
        }),
    },
    Spec {
        name: "transport",
        takes: "`tcp` or `quic`",
        usual: "tcp",
        doc: "what carries its connections",
        place: Place::Arm(Access {
            get: |arm| Some(arm.transport.to_string()),
            set: |arm, text| {
                arm.transport = one_of(text, TransportName::ALL.map(TransportName::name))?;
                Ok(())
            },
        }),
    },
    Spec {
        name: "address_validation",
        takes: "`retry` or `token`",
        usual: "",
        doc: "how a server knows its client's address before the handshake shows it, with `transport=quic`: by a Retry packet, or by a token of a connection before; without it, it does not, and may send three times what has come",
        place: Place::Arm(Access {
            get: |arm| arm.address_validation.map(|one| one.to_string()),
            set: |arm, text| {
                let one = one_of(text, AddressValidation::ALL.map(AddressValidation::name))?;
                arm.address_validation = Some(one);
                Ok(())
            },
        }),
    },
    Spec {
        name: "amplification",
        takes: "1 to 100",
        usual: "",
        doc: "how many times what has come a server sends over QUIC before it knows its client's address, with `server=quiche`; without it, three times",
        place: Place::Arm(Access {
            get: |arm| arm.amplification.map(|factor| factor.to_string()),
            set: |arm, text| {
                arm.amplification = Some(whole(text, 1, MOST_AMPLIFICATION)?);
                Ok(())
            },
        }),
    },
];

const fn made(of_client: &'static str, access: Access<ChainSpec>) -> Place {
    Place::Chain {
        of_client,
        made: Some(access),
        file: None,
        host: Host::Refused,
    }
}

const fn file(of_client: &'static str, access: Access<PemFiles>) -> Place {
    Place::Chain {
        of_client,
        made: None,
        file: Some(access),
        host: Host::Taken,
    }
}

/// What can follow the chain of an arm.
#[derive(Clone, Copy)]
pub struct Key(Kind);

#[derive(Clone, Copy)]
enum Kind {
    Own(&'static Spec),
    /// The same of the client's chain, by that name.
    OfClient(&'static Spec, &'static str),
    OfDelivery(&'static DeliveryKey),
}

impl Key {
    /// All that there are, in the order in which they are told. One that several deliveries have is there for each.
    pub(crate) fn all() -> impl Iterator<Item = Key> + Clone {
        let of_chain = |spec: &&Spec| matches!(spec.place, Place::Chain { .. });
        let own = ALL.iter().map(|spec| Key(Kind::Own(spec)));
        let deliveries = Delivery::keys().map(|key| Key(Kind::OfDelivery(key)));
        let clients = ALL.iter().filter(of_chain).map(|spec| match spec.place {
            Place::Chain { of_client, .. } => Key(Kind::OfClient(spec, of_client)),
            Place::Arm(_) | Place::Subject(_) => Key(Kind::Own(spec)),
        });
        own.chain(deliveries).chain(clients)
    }

    pub(super) fn parse(text: &str) -> Result<Key, ArmProblem> {
        let found = Key::all().find(|key| key.name() == text);
        found.ok_or_else(|| ArmProblem::UnknownKey {
            key: text.to_owned(),
            hint: nearest(text, Key::all().map(Key::name)),
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            Kind::Own(spec) => spec.name,
            Kind::OfClient(_, name) => name,
            Kind::OfDelivery(key) => key.name,
        }
    }

    /// What it can be, for readers.
    pub(crate) fn takes(self) -> &'static str {
        match self.0 {
            Kind::Own(spec) | Kind::OfClient(spec, _) => spec.takes,
            Kind::OfDelivery(key) => key.takes,
        }
    }

    /// What an arm has without it; empty where its document says that in words.
    pub(crate) fn usual(self) -> &'static str {
        match self.0 {
            Kind::Own(spec) | Kind::OfClient(spec, _) => spec.usual,
            Kind::OfDelivery(key) => key.usual,
        }
    }

    /// What it does, for readers.
    pub(crate) fn doc(self) -> &'static str {
        match self.0 {
            Kind::Own(spec) | Kind::OfClient(spec, _) => spec.doc,
            Kind::OfDelivery(key) => key.doc,
        }
    }

    /// Whether it is of the client's chain, as another key is of the server's.
    pub(crate) fn is_of_client_chain(self) -> bool {
        matches!(self.0, Kind::OfClient(..))
    }

    /// Whether others are of what it says, so that it is set before them.
    pub(super) fn is_subject(self) -> bool {
        matches!(self.0, Kind::Own(spec) if matches!(spec.place, Place::Subject(_)))
    }

    /// Whether it is of the server's chain.
    pub(super) fn is_of_chain(self) -> bool {
        matches!(self.0, Kind::Own(spec) if matches!(spec.place, Place::Chain { .. }))
    }

    /// How an arm has it, as it would be written; none where that is said by leaving it out.
    pub(crate) fn get(self, arm: &Arm) -> Option<String> {
        match self.0 {
            Kind::OfDelivery(key) => arm.delivery.get(key.name),
            Kind::OfClient(spec, _) => spec.place.get(arm.client_chain.as_ref()?),
            Kind::Own(spec) => match &spec.place {
                Place::Arm(access) | Place::Subject(access) => (access.get)(arm),
                Place::Chain { .. } => spec.place.get(&arm.chain),
            },
        }
    }

    /// Has an arm have it as a text says.
    pub(super) fn set(self, arm: &mut Arm, text: &str) -> Result<(), ArmProblem> {
        let set = match self.0 {
            Kind::OfDelivery(key) => match arm.delivery.set(key.name, text) {
                Ok(()) => return Ok(()),
                Err(SetError::Value(error)) => Err(error.into()),
                Err(SetError::NotIts { subject, name }) => {
                    return Err(ArmProblem::OtherDelivery {
                        key: self.name(),
                        subject,
                        name,
                    });
                }
            },
            Kind::OfClient(spec, name) => {
                let chain = arm.client_chain.as_mut();
                let chain = chain.ok_or(ArmProblem::NotMutual(name))?;
                spec.place.set(self, chain, text)?
            }
            Kind::Own(spec) => match &spec.place {
                Place::Arm(access) | Place::Subject(access) => (access.set)(arm, text),
                Place::Chain { .. } => spec.place.set(self, &mut arm.chain, text)?,
            },
        };
        set.map_err(|refused| match refused {
            // These say themselves which text they are of.
            Refused::Value(ValueError::Group(unknown)) => ArmProblem::Group(unknown),
            Refused::Value(ValueError::Size(error)) => ArmProblem::Size(error),
            Refused::Value(error) => ArmProblem::Value {
                key: self.name(),
                value: text.to_owned(),
                error: Box::new(error),
            },
            Refused::Chain(problem) => problem,
            Refused::ServersChain => ArmProblem::ServersChain {
                key: self.name(),
                value: text.to_owned(),
            },
        })
    }
}

impl Place {
    fn get(&self, chain: &ArmChain) -> Option<String> {
        match (self, chain) {
            (Place::Chain { made, .. }, ArmChain::Made(spec)) => (made.as_ref()?.get)(spec),
            (Place::Chain { file, .. }, ArmChain::Pem(files)) => (file.as_ref()?.get)(files),
            (Place::Arm(_) | Place::Subject(_), _) => None,
        }
    }

    /// The first error is of the key, the second of the text.
    fn set(
        &self,
        key: Key,
        chain: &mut ArmChain,
        text: &str,
    ) -> Result<Result<(), Refused>, ArmProblem> {
        let Place::Chain {
            made, file, host, ..
        } = self
        else {
            return Ok(Ok(()));
        };
        match (chain, made, file) {
            (ArmChain::Made(spec), Some(made), _) => Ok((made.set)(spec, text)),
            (ArmChain::Made(spec), None, _) => {
                let spec = ChainSpec {
                    role: ChainRole::Server,
                    ..spec.clone()
                };
                Err(ArmProblem::OnlyForFiles {
                    key: key.name(),
                    chain: spec.to_string(),
                })
            }
            (ArmChain::Pem(files), _, Some(file))
                if *host == Host::Taken || files.host().is_none() =>
            {
                Ok((file.set)(files, text))
            }
            (ArmChain::Pem(files), ..) => Err(ArmProblem::NotForFiles {
                part: format!("{}=", key.name()),
                path: files.chain.clone(),
            }),
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for RecordSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordSize::FirstSegment => f.pad("auto"),
            RecordSize::Fixed(bytes) => bytes.fmt(f),
        }
    }
}

/// A chain without what its keys say, as an arm begins with it.
pub(crate) fn chain_as_written(chain: &ArmChain) -> String {
    match chain {
        ArmChain::Made(spec) => Settings::chain_of(spec),
        ArmChain::Pem(files) => files.chain.display().to_string(),
    }
}

fn unlisted(text: &str, known: impl IntoIterator<Item = &'static str>) -> ValueError {
    ValueError::Unlisted {
        text: text.to_owned(),
        known: known.into_iter().collect(),
    }
}

fn not_empty(path: &str) -> Result<&str, ValueError> {
    match path {
        "" => Err(ValueError::NoFile),
        path => Ok(path),
    }
}

const ROOTS: [RootDelivery; 2] = [RootDelivery::Sent, RootDelivery::Omitted];

fn root(delivery: RootDelivery) -> &'static str {
    match delivery {
        RootDelivery::Sent => "sent",
        RootDelivery::Omitted => "omitted",
    }
}

fn parse_root(text: &str) -> Result<RootDelivery, ValueError> {
    let found = ROOTS.iter().find(|delivery| root(**delivery) == text);
    found
        .copied()
        .ok_or_else(|| unlisted(text, ROOTS.map(root)))
}

const PADDED: [PaddedCertificate; 2] = [PaddedCertificate::EndEntity, PaddedCertificate::Last];

fn padding(padded: PaddedCertificate) -> &'static str {
    match padded {
        PaddedCertificate::EndEntity => "end-entity",
        PaddedCertificate::Last => "last",
    }
}

fn parse_left(text: &str) -> Result<Vec<LeafExtension>, ValueError> {
    let mut left = Vec::new();
    for word in text.split('+') {
        let extension: LeafExtension = one_of(word, LeafExtension::ALL.map(LeafExtension::name))?;
        if left.contains(&extension) {
            return Err(ValueError::Twice(extension.name()));
        }
        left.push(extension);
    }
    left.sort_unstable();
    Ok(left)
}
