//! The client's side.

use std::sync::{Mutex, OnceLock, PoisonError};

use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{Ssl, SslAlert, SslContextBuilder, SslRef};
use openssl::x509::{X509, X509StoreContext, X509StoreContextRef, X509VerifyResult};

use super::{EndEntity, certificate_type, hellos};
use crate::Digest;
use crate::client::{Answer, Fallback};
use crate::extension::ExtensionType;
use crate::ffi;
use crate::validate::Offer;

/// What this connection offers, and what it got.
struct Offered {
    offer: Offer,
    end_entity: EndEntity,
    answer: Mutex<Answer>,
    /// What was verified in the place of a raw public key, the end-entity first.
    verified: OnceLock<Vec<X509>>,
}

impl Offered {
    fn answer(&self) -> Answer {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server leaves out just what was offered.
    fn is_echoed(&self) -> bool {
        self.answer() == Answer::Digest(*self.offer.digest())
    }
}

static OFFERED: OnceLock<Index<Ssl, Offered>> = OnceLock::new();

/// Prepares a client for [`offer`]. Connections without an offer are plain TLS.
///
/// It takes the context's custom extension and its certificate verification callback, which verifies as
/// OpenSSL itself does, with the delivered certificates to build a chain of. Set the verify mode to
/// [`PEER`](openssl::ssl::SslVerifyMode::PEER); the callback that goes with the mode is called for each certificate,
/// whether the server sent it or DNS.
///
/// A server whose whole chain DNS delivered may prove its key as a raw public key. OpenSSL knows no
/// certificate of such a peer: `SSL_get0_peer_certificate` is empty, and its Certificate
/// Transparency callback is not called. What looks at either is to look at [`verified_chain`],
/// which has the chain in every mode.
///
/// Sessions are OpenSSL's: keep them by the server's name. OpenSSL's servers accept a ticket of one
/// of their names for another.
///
/// # Errors
/// OpenSSL's, if it has the extension itself.
pub fn install(context: &mut SslContextBuilder, number: ExtensionType) -> Result<(), ErrorStack> {
    let index = super::index(&OFFERED)?;
    ffi::set_verify_callback(context, verify);
    context.add_custom_ext(
        number.0,
        hellos(),
        move |ssl, _, _| Ok(ssl.ex_data(index).map(|offered| *offered.offer.digest())),
        move |ssl, _, data, _| {
            let digest = Digest::from_bytes(data).ok_or(SslAlert::DECODE_ERROR)?;
            if let Some(offered) = ssl.ex_data(index) {
                let mut answer = offered
                    .answer
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *answer = Answer::Digest(digest);
            }
            Ok(())
        },
    )
}

/// Has this connection's ClientHello say what DNS delivered. If that is the whole chain,
/// `end_entity` is how the server is to prove its key.
///
/// # Errors
/// OpenSSL's.
pub fn offer(ssl: &mut SslRef, offer: Offer, end_entity: EndEntity) -> Result<(), ErrorStack> {
    if offer.end_entity().is_some() && end_entity == EndEntity::RawPublicKey {
        // X.509 for the case that the server has another chain.
        let types = [certificate_type::RAW_PUBLIC_KEY, certificate_type::X509];
        ffi::set_server_certificate_types(ssl, &types)?;
    }
    let offered = Offered {
        offer,
        end_entity,
        answer: Mutex::new(Answer::None),
        verified: OnceLock::new(),
    };
    ssl.set_ex_data(super::index(&OFFERED)?, offered);
    Ok(())
}

/// What the ServerHello has answered so far. None if nothing was answered.
pub fn answer(ssl: &SslRef) -> Option<Answer> {
    Some(ssl.ex_data(*OFFERED.get()?)?.answer())
}

/// What became of the offer, once the handshake has succeeded. None if there was no offer, or if a
/// session was resumed: there are no certificates then, and the server does not answer.
pub fn outcome(ssl: &SslRef) -> Option<Result<(), Fallback>> {
    let offered = ssl.ex_data(*OFFERED.get()?)?;
    (!ssl.session_reused()).then(|| offered.answer().outcome(offered.offer.digest()))
}

/// The chain that was verified in this handshake, the end-entity first and the anchor last; none if
/// a session was resumed. It is what OpenSSL's `SSL_get0_verified_chain` says, and there too where
/// that is silent: of a server that proved itself with a raw public key, as OpenSSL's peer
/// certificate and chain are absent then.
pub fn verified_chain(ssl: &SslRef) -> Option<Vec<X509>> {
    let offered = OFFERED.get().and_then(|index| ssl.ex_data(*index));
    let instead = offered.and_then(|offered| offered.verified.get());
    instead.cloned().or_else(|| {
        let chain = ssl.verified_chain()?;
        Some(chain.iter().map(ToOwned::to_owned).collect())
    })
}

/// Verifies what the server sent, with what DNS delivered if that is what the server left out.
fn verify(context: &mut X509StoreContextRef) -> bool {
    let verified = verify_whole(context);
    match verified {
        Ok(verified) => verified,
        Err(_) => {
            context.set_error(X509VerifyResult::APPLICATION_VERIFICATION);
            false
        }
    }
}

fn verify_whole(context: &mut X509StoreContextRef) -> Result<bool, ErrorStack> {
    let ssl = X509StoreContext::ssl_idx()?;
    let offered = OFFERED.get().and_then(|index| {
        let offered = context.ex_data(ssl)?.ex_data(*index)?;
        let certificates = (offered.offer.clone(), offered.end_entity);
        offered.is_echoed().then_some(certificates)
    });
    let Some((offer, end_entity)) = offered else {
        // A raw public key that nothing vouches for is refused here.
        return context.verify_cert();
    };
    if ffi::raw_public_key(context).is_some() {
        return verify_raw_key(context, ssl, &offer);
    }
    if end_entity == EndEntity::Carrier
        && let Some(delivered) = offer.end_entity()
        && is_carrier(context, &delivered.to_der()?)?
        && !ffi::replace_end_entity(context, delivered)
    {
        return Ok(false);
    }
    ffi::verify_with(context, offer.certificates())
}

/// The key is that of the delivered end-entity, which is verified as if the server had sent it: the
/// verification callback of the application sees each certificate.
fn verify_raw_key(
    context: &mut X509StoreContextRef,
    ssl: Index<X509StoreContext, SslRef>,
    offer: &Offer,
) -> Result<bool, ErrorStack> {
    let Some(end_entity) = offer.end_entity() else {
        context.set_error(X509VerifyResult::APPLICATION_VERIFICATION);
        return Ok(false);
    };
    let delivered = end_entity.public_key()?;
    if !ffi::raw_public_key(context).is_some_and(|key| key.public_eq(&delivered)) {
        context.set_error(X509VerifyResult::APPLICATION_VERIFICATION);
        return Ok(false);
    }
    let verified = ffi::verify_instead(context, end_entity, offer.certificates())?;
    // OpenSSL itself keeps no chain of a raw public key.
    if verified && let Some(chain) = context.chain() {
        let chain = chain.iter().map(ToOwned::to_owned).collect();
        let offered = context.ex_data(ssl).zip(OFFERED.get());
        if let Some(offered) = offered.and_then(|(ssl, index)| ssl.ex_data(*index)) {
            // It is verified once.
            let _ = offered.verified.set(chain);
        }
    }
    Ok(verified)
}

/// Whether the server's certificate carries the digest of `end_entity`.
fn is_carrier(context: &X509StoreContextRef, end_entity: &[u8]) -> Result<bool, ErrorStack> {
    let Some(sent) = ffi::certificate(context) else {
        return Ok(false);
    };
    let carried = super::server::carried(end_entity)?;
    Ok(sent.public_key().is_ok_and(|key| key.public_eq(&carried)))
}
