//! Intermediates that a server leaves out for clients that have them, on OpenSSL: for a flag of the
//! ClientHello (draft-kampanakis-tls-scas-latest-03), or for an anchor that it names.

use std::sync::{Arc, OnceLock};

use lastbyte_mtc::TrustAnchorId;
use lastbyte_pki::Chain;
use lastbyte_sizes::{Elision, Fallback, Held, Signal, tls_flags};
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{ExtensionContext, Ssl, SslAlert, SslContextBuilder, SslMode, SslRef};
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::verify::X509VerifyFlags;
use openssl::x509::{X509, X509VerifyResult};

use super::credentials::{Credentials, index};
use super::trust_anchors::{self, Path, Paths};
use crate::anchors;
use crate::stack::Retry;

/// Has a server leave intermediates out. Gives what each of its connections sends until its client
/// has sent something.
pub(super) fn install_server(
    context: &mut SslContextBuilder,
    chain: &Chain,
    elision: Elision,
) -> Result<Arc<Credentials>, ErrorStack> {
    // Otherwise OpenSSL completes the chain from what it trusts.
    context.set_mode(SslMode::NO_AUTO_CHAIN);
    let first = |count: usize| Credentials {
        certificates: chain.certificates().iter().take(count).cloned().collect(),
        key: chain.key().clone(),
    };
    let below_root = 1 + intermediates(chain)?.len();
    let whole = Arc::new(first(usize::MAX));
    match elision.signal {
        Signal::TlsFlags => {
            let short = first(1);
            context.add_custom_ext(
                tls_flags::EXTENSION,
                client_hello(),
                |_, _, _| Ok(None::<Vec<u8>>),
                move |ssl, _, data, _| match tls_flags::suppresses_cas(data) {
                    Some(true) => short.give(ssl).map_err(|_| SslAlert::INTERNAL_ERROR),
                    Some(false) => Ok(()),
                    None => Err(SslAlert::ILLEGAL_PARAMETER),
                },
            )?;
            Ok(whole)
        }
        Signal::TrustAnchors => {
            let fallback = match elision.fallback {
                Fallback::Whole => whole.clone(),
                Fallback::Short => Arc::new(first(1)),
            };
            let paths = Paths {
                anchored: vec![
                    Path::exactly(anchors::of_level(below_root - 1), first(1)),
                    Path::exactly(anchors::of_level(0), first(below_root)),
                ],
                fallback,
            };
            trust_anchors::install_server(context, Arc::new(paths))?;
            // Of a client that does not know the extension, nothing is known.
            Ok(whole)
        }
    }
}

/// What a client has, says and tries.
#[derive(Debug)]
pub(super) struct Client {
    signal: Signal,
    /// The anchors that it trusts, and that it names.
    trusted: Vec<TrustAnchorId>,
    named: Vec<TrustAnchorId>,
}

static FLAGS: OnceLock<Index<Ssl, [u8; 2]>> = OnceLock::new();

impl Client {
    pub(super) fn install(
        context: &mut SslContextBuilder,
        chain: &Chain,
        elision: Elision,
    ) -> Result<Client, ErrorStack> {
        match elision.signal {
            Signal::TlsFlags => {
                let flags = index(&FLAGS)?;
                context.add_custom_ext(
                    tls_flags::EXTENSION,
                    client_hello(),
                    move |ssl, _, _| Ok(ssl.ex_data(flags).copied()),
                    |_, _, _, _| Err(SslAlert::ILLEGAL_PARAMETER),
                )?;
            }
            Signal::TrustAnchors => trust_anchors::install_client(context)?,
        }
        let level = intermediates(chain)?.len();
        let issuing = match elision.client {
            Held::Current => anchors::of_level(level),
            Held::Stale => anchors::of_earlier(level),
        };
        Ok(Client {
            signal: elision.signal,
            trusted: vec![issuing.clone(), anchors::of_level(0)],
            named: vec![issuing],
        })
    }

    /// One that names anchors, and may name another one that it trusts.
    pub(super) fn naming(
        context: &mut SslContextBuilder,
        named: Vec<TrustAnchorId>,
        trusted: Vec<TrustAnchorId>,
    ) -> Result<Client, ErrorStack> {
        trust_anchors::install_client(context)?;
        Ok(Client {
            signal: Signal::TrustAnchors,
            trusted,
            named,
        })
    }

    /// Has a connection say what a client says that has never failed, or one whose connection
    /// before this one has.
    pub(super) fn begin(&self, ssl: &mut SslRef, retry: Option<&Retry>) -> Result<(), ErrorStack> {
        match (self.signal, retry) {
            (_, Some(Retry::Whole)) => Ok(()),
            (_, Some(Retry::Anchor(id))) => trust_anchors::name(ssl, vec![id.clone()]),
            (Signal::TrustAnchors, None) => trust_anchors::name(ssl, self.named.clone()),
            (Signal::TlsFlags, None) => {
                ssl.set_ex_data(index(&FLAGS)?, tls_flags::DATA);
                Ok(())
            }
        }
    }

    /// What else to try when the handshake of a first connection has failed.
    pub(super) fn next_try(&self) -> NextTry {
        match self.signal {
            Signal::TlsFlags => NextTry::Whole,
            Signal::TrustAnchors => NextTry::Anchor(self.trusted.clone()),
        }
    }
}

/// What a client tries when a connection has failed.
#[derive(Debug)]
pub(super) enum NextTry {
    /// Without the flag.
    Whole,
    /// One of these that the server has declared a path for.
    Anchor(Vec<TrustAnchorId>),
}

impl NextTry {
    /// After the handshake of this connection has failed.
    pub(super) fn after(&self, ssl: &SslRef) -> Option<Retry> {
        match self {
            NextTry::Whole => (ssl.verify_result() != X509VerifyResult::OK).then_some(Retry::Whole),
            NextTry::Anchor(trusted) => trust_anchors::not_named(ssl, trusted).map(Retry::Anchor),
        }
    }
}

/// Has a client hold the intermediates that it holds: to build paths of, or as anchors that end
/// them.
pub(super) fn hold(
    store: &mut X509StoreBuilder,
    chain: &Chain,
    elision: Elision,
) -> Result<(), ErrorStack> {
    let held = match elision.client {
        Held::Current => intermediates(chain)?,
        Held::Stale => Vec::new(),
    };
    match elision.signal {
        Signal::TlsFlags => {}
        Signal::TrustAnchors => store.set_flags(X509VerifyFlags::PARTIAL_CHAIN)?,
    }
    held.into_iter()
        .try_for_each(|intermediate| store.add_cert(intermediate))
}

/// The certificates between the end-entity's and the root.
fn intermediates(chain: &Chain) -> Result<Vec<X509>, ErrorStack> {
    let root = chain.root().to_der()?;
    let mut all = Vec::new();
    for certificate in chain.certificates().iter().skip(1) {
        if certificate.to_der()? != root {
            all.push(certificate.clone());
        }
    }
    Ok(all)
}

fn client_hello() -> ExtensionContext {
    ExtensionContext::CLIENT_HELLO | ExtensionContext::TLS1_3_ONLY
}
