//! The words for intermediates that a server leaves out because the client says that it has them.

use lastbyte_link::named;

use crate::framing::{CERTIFICATE_ENTRY, EXTENSION_HEADER, NO_CERTIFICATES};

/// How intermediates are left out, and what the client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Elision {
    /// How the client says that it has them.
    pub signal: Signal,
    /// Whether it has them.
    pub client: Held,
    /// What the server sends to a client with which it has no anchor in common.
    pub fallback: Fallback,
}

/// How a client says that it has intermediates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Signal {
    /// By a flag, that it has all there are (draft-kampanakis-tls-scas-latest-03).
    #[default]
    TlsFlags,
    /// By the id of the one that it trusts as it trusts a root (draft-ietf-tls-trust-anchor-ids-06).
    TrustAnchors,
}

named!(Signal, "signal", { TlsFlags => "tls-flags", TrustAnchors => "trust-anchors" });

/// Whether a client has the intermediates that it says it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Held {
    /// Those of today.
    #[default]
    Current,
    /// Those of before the server's were issued.
    Stale,
}

named!(Held, "client", { Current => "current", Stale => "stale" });

/// What a server sends to a client with which it has no anchor in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// Its chain as it is.
    #[default]
    Whole,
    /// As to those that have the intermediates: who has not connects anew.
    Short,
}

named!(Fallback, "fallback", { Whole => "whole", Short => "short" });

/// The flags extension (draft-ietf-tls-tlsflags-17).
pub mod tls_flags {
    use crate::framing::EXTENSION_HEADER;

    /// Its number.
    pub const EXTENSION: u16 = 62;

    /// The flag that asks to leave certificates of CAs out. No draft assigns it a number: this is our own choice.
    pub const SUPPRESS_CAS: u8 = 0;

    /// What the extension says with that flag alone: the length of the flags, and as few bytes of them as hold it.
    pub const DATA: [u8; 2] = [1, 1 << SUPPRESS_CAS];

    /// Bytes of the extension with that flag alone.
    pub const BYTES: usize = EXTENSION_HEADER + DATA.len();

    /// Whether the flag is set, in what the extension says. None where it says nothing that it can say: flags end
    /// with one that is set.
    pub fn suppresses_cas(data: &[u8]) -> Option<bool> {
        let (length, flags) = data.split_first()?;
        let is_whole = usize::from(*length) == flags.len();
        let is_short = flags.last().is_some_and(|last| *last != 0);
        (is_whole && is_short).then(|| {
            let byte = flags.get(usize::from(SUPPRESS_CAS / 8));
            byte.is_some_and(|byte| byte & (1 << (SUPPRESS_CAS % 8)) != 0)
        })
    }
}

/// What a handshake says because of an elision, and which certificates it leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElidedHandshake {
    /// Bytes more of the ClientHello.
    pub client_hello: usize,
    /// Bytes more of the EncryptedExtensions.
    pub encrypted_extensions: usize,
    /// Bytes more of the Certificate message for what it says itself.
    pub certificate: usize,
    /// What is in it.
    pub sent: SentPath,
}

/// The certificates that a server sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SentPath {
    /// All of its chain, as it is.
    #[default]
    Chain,
    /// Those below the root.
    BelowRoot,
    /// The end-entity's alone.
    EndEntity,
}

impl SentPath {
    /// How many certificates that is of a chain with so many intermediates, and so many certificates as it is.
    pub fn count(self, intermediates: usize, chain: usize) -> usize {
        match self {
            SentPath::Chain => chain,
            SentPath::BelowRoot => chain.min(1 + intermediates),
            SentPath::EndEntity => chain.min(1),
        }
    }
}

impl Elision {
    /// Whether a client's first connection fails, and it tries another one.
    pub fn retries(self) -> bool {
        match (self.client, self.signal, self.fallback) {
            (Held::Current, ..) | (_, Signal::TrustAnchors, Fallback::Whole) => false,
            (Held::Stale, Signal::TlsFlags, _) | (_, _, Fallback::Short) => true,
        }
    }

    /// What its first handshake, and the one after that if there is one, say of a chain with so many intermediates.
    pub fn handshakes(self, intermediates: usize) -> Vec<ElidedHandshake> {
        let flag = ElidedHandshake {
            client_hello: tls_flags::BYTES,
            sent: SentPath::EndEntity,
            ..ElidedHandshake::default()
        };
        let anchors = |certificate, sent| ElidedHandshake {
            client_hello: trust_anchors_bytes(1),
            // Of the issuing CA, and of the root if that is another one.
            encrypted_extensions: trust_anchors_bytes(1 + usize::from(intermediates > 0)),
            certificate,
            sent,
        };
        const MATCHED: usize = EXTENSION_HEADER;
        match (self.signal, self.client, self.fallback) {
            (Signal::TlsFlags, Held::Current, _) => vec![flag],
            (Signal::TlsFlags, Held::Stale, _) => vec![flag, ElidedHandshake::default()],
            (Signal::TrustAnchors, Held::Current, _) => {
                vec![anchors(MATCHED, SentPath::EndEntity)]
            }
            (Signal::TrustAnchors, Held::Stale, Fallback::Whole) => {
                vec![anchors(0, SentPath::Chain)]
            }
            (Signal::TrustAnchors, Held::Stale, Fallback::Short) => vec![
                anchors(0, SentPath::EndEntity),
                anchors(MATCHED, SentPath::BelowRoot),
            ],
        }
    }
}

impl ElidedHandshake {
    /// Bytes of its Certificate message, of a chain with so many intermediates whose certificates, as it is, have
    /// these lengths in DER.
    pub fn certificate_bytes(&self, intermediates: usize, chain: &[usize]) -> usize {
        let count = self.sent.count(intermediates, chain.len());
        let entries = chain.iter().take(count);
        let entries = entries.map(|der| CERTIFICATE_ENTRY + der);
        NO_CERTIFICATES + self.certificate + entries.sum::<usize>()
    }
}

/// Bytes of what a CA of a chain that is made is called as a trust anchor (draft-ietf-tls-trust-anchor-ids-06).
pub const ANCHOR_BYTES: usize = 5;

/// Bytes of the whole extension with a list of so many of these.
fn trust_anchors_bytes(count: usize) -> usize {
    EXTENSION_HEADER + 2 + count * (1 + ANCHOR_BYTES)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn flags_end_with_one_that_is_set() {
        assert_eq!(tls_flags::suppresses_cas(&tls_flags::DATA), Some(true));
        assert_eq!(tls_flags::suppresses_cas(&[1, 2]), Some(false));
        assert_eq!(tls_flags::suppresses_cas(&[2, 1, 0x80]), Some(true));
        for data in [&[][..], &[0], &[1, 0], &[2, 1, 0], &[2, 1], &[1, 1, 1]] {
            assert_eq!(tls_flags::suppresses_cas(data), None, "{data:?}");
        }
    }

    #[test]
    fn only_stale_clients_that_get_a_short_path_connect_anew() {
        for signal in Signal::ALL {
            for client in Held::ALL {
                for fallback in Fallback::ALL {
                    let elision = Elision {
                        signal,
                        client,
                        fallback,
                    };
                    let handshakes = elision.handshakes(1);
                    assert_eq!(handshakes.len(), 1 + usize::from(elision.retries()));
                    let last = handshakes.last().unwrap();
                    let is_short = last.sent == SentPath::EndEntity;
                    assert_eq!(is_short, client == Held::Current, "{elision:?}");
                }
            }
        }
    }

    #[test]
    fn a_path_that_an_anchor_ends_has_no_root() {
        let chain = [1000, 800, 700];
        let bytes = |handshake: &ElidedHandshake| handshake.certificate_bytes(1, &chain);
        let stale = Elision {
            signal: Signal::TrustAnchors,
            client: Held::Stale,
            fallback: Fallback::Short,
        };
        let handshakes = stale.handshakes(1);
        let bytes: Vec<_> = handshakes.iter().map(bytes).collect();
        assert_eq!(bytes, [8 + 1005, 8 + 1005 + 805 + 4]);
    }
}
