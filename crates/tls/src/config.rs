use std::fmt;
use std::str::FromStr;

use lastbyte_pki::Chain;
use pqtlsad::openssl::EndEntity;

use crate::{Group, TlsError};

/// What both sides of a connection are configured with.
#[derive(Debug, Clone)]
pub struct TlsConfig<'a> {
    /// The client's implementation.
    pub client: StackName,
    /// The server's implementation.
    pub server: StackName,
    /// The only group that the server supports.
    pub group: Group,
    /// What the client sends key shares for. The client supports these groups and `group`; without
    /// a share for `group`, the server asks for one with a HelloRetryRequest. An s2n-tls client
    /// says that it supports all other groups of its security policy, too.
    pub key_shares: Vec<Group>,
    /// What the server sends and proves, and what the client trusts.
    pub chain: &'a Chain,
    /// What the client sends and proves, and what the server trusts. Without it, the server does
    /// not ask.
    pub client_chain: Option<&'a Chain>,
    /// What clients do with a session.
    pub resumption: Resumption,
    /// Tickets that the server sends after a handshake.
    pub tickets: u8,
    /// How the client gets the server's chain.
    pub delivery: Delivery,
    /// Bytes of the largest Certificate message that either side takes. Without it, the most that
    /// the implementation can be told to take.
    pub max_certificate_list: Option<usize>,
}

impl<'a> TlsConfig<'a> {
    /// OpenSSL on both sides, a full handshake that only the server proves itself in, no tickets.
    pub fn new(group: Group, chain: &'a Chain) -> Self {
        Self {
            client: StackName::OpenSsl,
            server: StackName::OpenSsl,
            group,
            key_shares: vec![group],
            chain,
            client_chain: None,
            resumption: Resumption::Full,
            tickets: 0,
            delivery: Delivery::Full,
            max_certificate_list: None,
        }
    }

    /// The groups that the client supports: those it sends key shares for, and the server's.
    pub(crate) fn client_groups(&self) -> Vec<Group> {
        let mut groups = self.key_shares.clone();
        if !groups.contains(&self.group) {
            groups.push(self.group);
        }
        groups
    }
}

/// How a client gets a server's chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// From the server, in the handshake.
    #[default]
    Full,
    /// Some or all of it from DNS ([`pqtlsad`]): see
    /// [`Stack::offering_client`](crate::Stack::offering_client). If DNS delivers even the end-entity,
    /// its key is proved like this.
    PqtlsAd(EndEntity),
}

/// What clients do with a session (RFC 8446, 2.2 and 2.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Resumption {
    /// There is none: every handshake is a full one.
    #[default]
    Full,
    /// They resume it with a new key exchange (`psk_dhe_ke`).
    Ticket,
    /// They resume it and send their first request as early data (0-RTT).
    EarlyData,
}

/// An implementation of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StackName {
    /// OpenSSL, with its own TLS and cryptography.
    #[default]
    OpenSsl,
    /// s2n-tls on AWS-LC.
    S2nTls,
    /// rustls on AWS-LC.
    Rustls,
}

impl StackName {
    /// All that there are, built in or not.
    pub const ALL: [StackName; 3] = [StackName::OpenSsl, StackName::S2nTls, StackName::Rustls];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            StackName::OpenSsl => "openssl",
            StackName::S2nTls => "s2n-tls",
            StackName::Rustls => "rustls",
        }
    }

    /// The versions of the libraries it consists of, if it is built in.
    pub fn version(self) -> Option<String> {
        match self {
            StackName::OpenSsl => Some(crate::openssl_version().to_owned()),
            #[cfg(feature = "s2n-tls")]
            StackName::S2nTls => Some(on_aws_lc("s2n-tls", env!("S2N_TLS_VERSION"))),
            #[cfg(feature = "rustls")]
            StackName::Rustls => Some(on_aws_lc("rustls", env!("RUSTLS_VERSION"))),
            #[allow(unreachable_patterns, reason = "all may be built in")]
            _ => None,
        }
    }

    /// That this stack can't do something, and what to do instead.
    pub(crate) fn cannot(self, what: impl Into<String>, mend: impl Into<String>) -> TlsError {
        TlsError::Unsupported {
            stack: self.name(),
            what: what.into(),
            mend: mend.into(),
        }
    }
}

#[cfg(any(feature = "rustls", feature = "s2n-tls"))]
fn on_aws_lc(name: &str, version: &str) -> String {
    format!("{name} {version}, aws-lc-rs {}", env!("AWS_LC_RS_VERSION"))
}

impl fmt::Display for StackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for StackName {
    type Err = UnknownStack;

    fn from_str(text: &str) -> Result<StackName, UnknownStack> {
        let mut all = StackName::ALL.into_iter();
        all.find(|stack| stack.name() == text)
            .ok_or_else(|| UnknownStack {
                text: text.to_owned(),
            })
    }
}

/// The text names no [`StackName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown stack {text:?}: use one of {}", StackName::ALL.map(StackName::name).join(", "))]
pub struct UnknownStack {
    text: String,
}
