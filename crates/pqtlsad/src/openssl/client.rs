//! The client's side.

use std::sync::{Mutex, OnceLock, PoisonError};

use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{Ssl, SslAlert, SslContextBuilder, SslRef};
use openssl::stack::Stack;
use openssl::x509::{X509StoreContext, X509StoreContextRef, X509VerifyResult};

use super::{EndEntity, certificate_type, ffi, hellos};
use crate::Digest;
use crate::client::{Answer, Fallback};
use crate::extension::ExtensionType;
use crate::validate::Offer;

/// What this connection offers, and what it got.
struct Offered {
    digest: Digest,
    /// What is behind the digest, if anything is.
    certificates: Option<(Offer, EndEntity)>,
    answer: Mutex<Answer>,
}

impl Offered {
    fn answer(&self) -> Answer {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server leaves out just what was offered.
    fn is_echoed(&self) -> bool {
        self.answer() == Answer::Digest(self.digest)
    }
}

static OFFERED: OnceLock<Index<Ssl, Offered>> = OnceLock::new();

/// Prepares a client for [`offer`]. Connections without an offer are plain TLS.
///
/// It takes the context's custom extension and its certificate verification callback, which verifies as
/// OpenSSL itself does, with the delivered certificates to build a chain of. Set the verify mode to
/// [`PEER`](openssl::ssl::SslVerifyMode::PEER).
///
/// # Errors
/// OpenSSL's, if it has the extension itself.
pub fn install(context: &mut SslContextBuilder, number: ExtensionType) -> Result<(), ErrorStack> {
    let index = super::index(&OFFERED)?;
    ffi::set_verify_callback(context, verify);
    context.add_custom_ext(
        number.0,
        hellos(),
        move |ssl, _, _| Ok(ssl.ex_data(index).map(|offered| offered.digest)),
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

/// Has this connection's ClientHello say what DNS delivered. If that is the whole chain, `end_entity` is how
/// the server is to prove its key.
///
/// # Errors
/// OpenSSL's.
pub fn offer(ssl: &mut SslRef, offer: Offer, end_entity: EndEntity) -> Result<(), ErrorStack> {
    if offer.end_entity().is_some() && end_entity == EndEntity::RawPublicKey {
        // X.509 for the case that the server has another chain.
        let types = [certificate_type::RAW_PUBLIC_KEY, certificate_type::X509];
        ffi::set_server_certificate_types(ssl, &types)?;
    }
    let digest = *offer.digest();
    say(ssl, digest, Some((offer, end_entity)))
}

/// Has this connection's ClientHello say a digest without having what it stands for: to learn what the
/// server answers. Where the server leaves it out, the chain can't be verified.
///
/// # Errors
/// OpenSSL's.
pub fn ask(ssl: &mut SslRef, digest: Digest) -> Result<(), ErrorStack> {
    say(ssl, digest, None)
}

fn say(
    ssl: &mut SslRef,
    digest: Digest,
    certificates: Option<(Offer, EndEntity)>,
) -> Result<(), ErrorStack> {
    let offered = Offered {
        digest,
        certificates,
        answer: Mutex::new(Answer::None),
    };
    ssl.set_ex_data(super::index(&OFFERED)?, offered);
    Ok(())
}

/// What the ServerHello has answered so far. None if nothing was said.
pub fn answer(ssl: &SslRef) -> Option<Answer> {
    Some(ssl.ex_data(*OFFERED.get()?)?.answer())
}

/// What became of the offer, once the handshake has succeeded. None if there was no offer.
pub fn outcome(ssl: &SslRef) -> Option<Result<(), Fallback>> {
    let offered = ssl.ex_data(*OFFERED.get()?)?;
    Some(offered.answer().outcome(&offered.digest))
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
        offered.certificates.clone().filter(|_| offered.is_echoed())
    });
    let Some((offer, end_entity)) = offered else {
        // A raw public key that nothing vouches for is refused here.
        return context.verify_cert();
    };
    if ffi::raw_public_key(context).is_some() {
        return verify_raw_key(context, &offer);
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

/// The key is that of the delivered end-entity, which is verified as if the server had sent it.
fn verify_raw_key(context: &mut X509StoreContextRef, offer: &Offer) -> Result<bool, ErrorStack> {
    let refused = |context: &mut X509StoreContextRef, why| {
        context.set_error(why);
        Ok(false)
    };
    let Some(end_entity) = offer.end_entity() else {
        return refused(context, X509VerifyResult::APPLICATION_VERIFICATION);
    };
    let delivered = end_entity.public_key()?;
    let is_same = ffi::raw_public_key(context).is_some_and(|key| key.public_eq(&delivered));
    let mut untrusted = Stack::new()?;
    for certificate in offer.certificates() {
        untrusted.push(certificate.clone())?;
    }
    let result = match ffi::anchors(context) {
        Some(anchors) if is_same => {
            let copied = &*context;
            X509StoreContext::new()?.init(anchors, end_entity, &untrusted, |verification| {
                ffi::copy_parameters(verification, copied)?;
                Ok(match verification.verify_cert()? {
                    true => X509VerifyResult::OK,
                    false => verification.error(),
                })
            })?
        }
        _ => X509VerifyResult::APPLICATION_VERIFICATION,
    };
    context.set_error(result);
    Ok(result == X509VerifyResult::OK)
}

/// Whether the server's certificate carries the digest of `end_entity`.
fn is_carrier(context: &X509StoreContextRef, end_entity: &[u8]) -> Result<bool, ErrorStack> {
    let Some(sent) = ffi::certificate(context) else {
        return Ok(false);
    };
    let carried = super::server::carried(end_entity)?;
    Ok(sent.public_key().is_ok_and(|key| key.public_eq(&carried)))
}
