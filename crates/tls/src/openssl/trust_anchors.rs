//! `trust_anchors` (draft-ietf-tls-trust-anchor-ids-06) on OpenSSL, by its custom extensions: a server that chooses
//! among paths, and a client that names anchors and learns which the server has.

use std::sync::{Arc, OnceLock};

use lastbyte_mtc::TrustAnchorId;
use lastbyte_mtc::trust_anchors::{EXTENSION, list, parse_list};
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{ExtensionContext, Ssl, SslAlert, SslContextBuilder, SslRef};

use super::credentials::{Credentials, index};

/// The paths that a server has.
pub(super) struct Paths {
    /// The preferred one first.
    pub(super) anchored: Vec<Path>,
    /// What it sends where the client named none of those, or nothing at all.
    pub(super) fallback: Arc<Credentials>,
}

/// A path that anchors of clients end.
pub(super) struct Path {
    /// What the server calls it.
    pub(super) id: TrustAnchorId,
    /// Whether a client that names this gets it.
    pub(super) answers: Box<dyn Fn(&TrustAnchorId) -> bool + Send + Sync>,
    pub(super) credentials: Arc<Credentials>,
}

impl Path {
    /// For clients that name just this.
    pub(super) fn exactly(id: TrustAnchorId, credentials: Credentials) -> Path {
        let own = id.clone();
        Path {
            id,
            answers: Box::new(move |named| *named == own),
            credentials: Arc::new(credentials),
        }
    }
}

/// Which of its paths a server sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chosen {
    Anchored,
    Fallback,
}

static CHOSEN: OnceLock<Index<Ssl, Chosen>> = OnceLock::new();

/// Has a server's handshakes answer clients that name anchors. The fallback is what a connection sends until then.
///
/// It takes the context's custom extension of that number.
pub(super) fn install_server(
    context: &mut SslContextBuilder,
    paths: Arc<Paths>,
) -> Result<(), ErrorStack> {
    let chosen = index(&CHOSEN)?;
    let available: Vec<_> = paths.anchored.iter().map(|path| path.id.clone()).collect();
    let available = list(&available);
    context.add_custom_ext(
        EXTENSION,
        messages(),
        move |ssl, message, certificate| {
            if message.contains(ExtensionContext::TLS1_3_ENCRYPTED_EXTENSIONS) {
                return Ok(Some(available.clone()));
            }
            let is_first = certificate.is_some_and(|(place, _)| place == 0);
            let is_matched = ssl.ex_data(chosen) == Some(&Chosen::Anchored);
            Ok((is_first && is_matched).then(Vec::new))
        },
        move |ssl, _, data, _| {
            let requested = parse_list(data).ok_or(SslAlert::DECODE_ERROR)?;
            let mut anchored = paths.anchored.iter();
            let found = anchored.find(|path| requested.iter().any(|id| (path.answers)(id)));
            let (what, credentials) = match found {
                Some(path) => (Chosen::Anchored, path.credentials.as_ref()),
                None => (Chosen::Fallback, paths.fallback.as_ref()),
            };
            ssl.set_ex_data(chosen, what);
            (credentials.give(ssl)).map_err(|_| SslAlert::INTERNAL_ERROR)
        },
    )
}

/// What a client names, and what it learns.
struct Named {
    requested: Vec<TrustAnchorId>,
    /// Those that the server has paths for, in its order.
    available: Vec<TrustAnchorId>,
}

static NAMED: OnceLock<Index<Ssl, Named>> = OnceLock::new();

/// Prepares a client for [`name`]. Connections that name nothing are plain TLS.
///
/// It takes the context's custom extension of that number.
pub(super) fn install_client(context: &mut SslContextBuilder) -> Result<(), ErrorStack> {
    let named = index(&NAMED)?;
    context.add_custom_ext(
        EXTENSION,
        messages(),
        move |ssl, _, _| Ok(ssl.ex_data(named).map(|named| list(&named.requested))),
        move |ssl, message, data, certificate| {
            if message.contains(ExtensionContext::TLS1_3_ENCRYPTED_EXTENSIONS) {
                let ids = parse_list(data).filter(|ids| !ids.is_empty());
                let ids = ids.ok_or(SslAlert::DECODE_ERROR)?;
                if let Some(named) = ssl.ex_data_mut(named) {
                    named.available = ids;
                }
                return Ok(());
            }
            // It says nothing but that it is there, of the first certificate alone.
            match (certificate, data) {
                (Some((0, _)), []) => Ok(()),
                _ => Err(SslAlert::ILLEGAL_PARAMETER),
            }
        },
    )
}

/// Has this connection's ClientHello name these anchors.
pub(super) fn name(ssl: &mut SslRef, requested: Vec<TrustAnchorId>) -> Result<(), ErrorStack> {
    let named = Named {
        requested,
        available: Vec::new(),
    };
    ssl.set_ex_data(index(&NAMED)?, named);
    Ok(())
}

/// The first of the server's anchors that is among `trusted` and was not named: what a client whose handshake has
/// failed names next.
pub(super) fn not_named(ssl: &SslRef, trusted: &[TrustAnchorId]) -> Option<TrustAnchorId> {
    let named = ssl.ex_data(*NAMED.get()?)?;
    let mut available = named.available.iter();
    let found = available.find(|id| trusted.contains(id) && !named.requested.contains(id));
    found.cloned()
}

fn messages() -> ExtensionContext {
    ExtensionContext::CLIENT_HELLO
        | ExtensionContext::TLS1_3_ENCRYPTED_EXTENSIONS
        | ExtensionContext::TLS1_3_CERTIFICATE
        | ExtensionContext::TLS1_3_ONLY
}
