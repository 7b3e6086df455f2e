//! TLS for the connections of a probe: one context, and the sessions that its servers give.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openssl::error::ErrorStack;
use openssl::ssl::{
    Ssl, SslContext, SslMethod, SslOptions, SslSession, SslSessionCacheMode, SslVerifyMode,
    SslVersion, StatusType,
};

use openssl::x509::X509VerifyResult;

use super::target::Target;
use lastbyte_tls::key_log;

/// `X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE`: the issuer's certificate is missing, and that was told.
const UNVERIFIED_LEAF: i32 = 21;

/// What connections to one server share.
pub(super) struct Tls {
    context: SslContext,
    tickets: Arc<Mutex<Tickets>>,
    problems: Arc<Mutex<Vec<X509VerifyResult>>>,
}

/// What servers have given.
#[derive(Default)]
pub(super) struct Tickets {
    pub(super) count: u32,
    /// Bytes of early data that any of them allows.
    pub(super) early: u32,
    last: Option<SslSession>,
}

/// What a connection offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// HTTP/1.1, in full.
    Request,
    /// HTTP/2 and HTTP/1.1, and to resume the last session.
    Resume,
    /// HTTP/3, in full, as messages that have no records.
    Quic,
}

impl Tls {
    /// Of whatever strength a server's keys are: they are measured, not relied upon. What is wrong with its chain is
    /// told, and measured all the same.
    pub(super) fn new(target: &Target) -> Result<Tls, ErrorStack> {
        let mut context = SslContext::builder(SslMethod::tls_client())?;
        context.set_security_level(0);
        context.set_min_proto_version(Some(SslVersion::TLS1_2))?;
        context.set_options(SslOptions::IGNORE_UNEXPECTED_EOF | SslOptions::NO_RENEGOTIATION);
        let problems: Arc<Mutex<Vec<X509VerifyResult>>> = Arc::default();
        let noted = Arc::clone(&problems);
        // Whatever is wrong, what else is wrong is worth knowing.
        context.set_verify_callback(SslVerifyMode::NONE, move |is_right, chain| {
            let problem = chain.error();
            // That follows from another one, and says no more.
            if problem.as_raw() == UNVERIFIED_LEAF {
                return true;
            }
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            if !is_right && !noted.contains(&problem) {
                noted.push(problem);
            }
            true
        });
        match target.ca.clone().or_else(crate::own::roots_of_machine) {
            Some(file) => context.set_ca_file(file)?,
            None => context.set_default_verify_paths()?,
        }
        let mode = SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL;
        context.set_session_cache_mode(mode);
        let tickets: Arc<Mutex<Tickets>> = Arc::default();
        let kept = Arc::clone(&tickets);
        context.set_new_session_callback(move |_, session| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.count = kept.count.saturating_add(1);
            kept.early = kept.early.max(session.max_early_data());
            // One is enough, however many a server sends.
            kept.last = Some(session);
        });
        key_log::install(&mut context)?;
        Ok(Tls {
            context: context.build(),
            tickets,
            problems,
        })
    }

    /// A connection that is not begun.
    pub(super) fn ssl(&self, target: &Target, offer: Offer) -> Result<Ssl, ErrorStack> {
        let mut ssl = Ssl::new(&self.context)?;
        ssl.set_alpn_protos(match offer {
            Offer::Request => b"\x08http/1.1",
            Offer::Resume => b"\x02h2\x08http/1.1",
            Offer::Quic => b"\x02h3",
        })?;
        // As browsers do.
        ssl.set_status_type(StatusType::OCSP)?;
        match target.host.name.parse() {
            Ok(address) => ssl.param_mut().set_ip(address)?,
            Err(_) => {
                ssl.set_hostname(&target.host.name)?;
                ssl.param_mut().set_host(&target.host.name)?;
            }
        }
        if let (Offer::Resume, Some(session)) = (offer, &self.tickets().last) {
            // SAFETY: the session was made by a connection of this context.
            unsafe { ssl.set_session(session) }?;
        }
        key_log::start(&mut ssl)?;
        Ok(ssl)
    }

    /// What was wrong with chains since that was last asked, each once, in the order in which it was found.
    pub(super) fn take_problems(&self) -> Vec<X509VerifyResult> {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *problems)
    }

    pub(super) fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
