//! Arms made ready: their chains and configured stacks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lastbyte_pki::{Chain, ChainRole, PkiError, PublicChain, Store};
use lastbyte_tls::{
    Connection, FailedHandshake, Handshake, Stack, TlsConfig, TlsError, first_attempt,
    handshake_between, stack,
};

use super::delivery::{self, PreparedDelivery};
use super::{LabError, row, sys};
use crate::explain::{OwnChain, Signature};
use crate::results::{DeliveryOutcome, Dns, Exchange, check_wire};
use crate::study::{Arm, ArmChain};

/// An arm with its chain and its stack.
pub struct PreparedArm {
    /// The arm.
    pub arm: Arm,
    /// Its chain: the server's.
    pub chain: Chain,
    /// The sizes of that, if it is the user's own.
    pub own: Option<OwnChain>,
    /// The client's, if it has one.
    pub client_chain: Option<Chain>,
    /// Its stack, configured for both sides.
    pub stack: Arc<dyn Stack>,
    /// What DNS delivers, if it does.
    pub delivery: Option<PreparedDelivery>,
    /// How its clients' first handshakes fail, if they do and something else is tried.
    pub failed: Option<FailedHandshake>,
    trial: OnceLock<Result<Trial, TlsError>>,
}

/// The sizes of a user's own chain.
///
/// # Errors
///
/// When a certificate can't be taken apart, or TLS 1.3 has no signatures of the end-entity's key.
pub fn sizes_of_own(chain: &PublicChain) -> Result<OwnChain, PkiError> {
    let mut certificates = Vec::new();
    for certificate in &chain.certificates {
        certificates.push(certificate.to_der()?.len());
    }
    let [shortest, bytes, longest] = chain.signature_bytes()?;
    Ok(OwnChain {
        certificates,
        signature: Signature {
            shortest,
            bytes,
            longest,
        },
        server_name: chain.server_name.as_ref().map_or(0, String::len),
        provided: chain.provided_signatures()?.len(),
        ..OwnChain::default()
    })
}

/// One handshake in memory.
pub(super) struct Trial {
    /// The CPU time that it took both ends.
    pub(super) cpu: Duration,
    /// What a row would say of it.
    pub(super) exchange: Exchange,
    dns: Dns,
}

impl PreparedArm {
    /// Makes or loads the chain and configures the stack.
    pub fn new(arm: Arm, store: &Store) -> Result<Self, LabError> {
        let load = |chain: &ArmChain, role| match chain {
            ArmChain::Made(spec) => store.chain(spec),
            ArmChain::Pem(files) => store.own(files, role),
        };
        let chain = load(&arm.chain, ChainRole::Server)?;
        let own = match &arm.chain {
            ArmChain::Made(_) => None,
            ArmChain::Pem(files) => Some(sizes_of_own(&store.public(files)?)?),
        };
        let client_chain = arm.client_chain.as_ref();
        let client_chain = client_chain
            .map(|chain| load(chain, ChainRole::Client))
            .transpose()?;
        let refuse = |problem: String| LabError::Arm {
            arm: arm.label.clone(),
            problem,
        };
        let tls = TlsConfig {
            client: arm.client_stack,
            server: arm.server_stack,
            group: arm.group,
            key_shares: arm.key_shares.clone(),
            chain: &chain,
            client_chain: client_chain.as_ref(),
            resumption: arm.resumption,
            tickets: arm.tickets,
            delivery: delivery::configure(&arm, &chain).map_err(refuse)?,
            max_certificate_list: arm.max_cert_list,
        };
        let stack: Arc<dyn Stack> =
            Arc::from(stack(&tls).map_err(|problem| refuse(problem.to_string()))?);
        let delivery = delivery::prepare(&arm, &chain, stack.as_ref()).map_err(refuse)?;
        let failed = if arm.delivery.retries() {
            first_attempt(stack.as_ref()).map_err(|error| {
                refuse(format!(
                    "its first handshake, tried in memory, fails: {error}"
                ))
            })?
        } else {
            None
        };
        Ok(Self {
            arm,
            chain,
            own,
            client_chain,
            stack,
            delivery,
            failed,
            trial: OnceLock::new(),
        })
    }

    /// The same with another stack.
    #[must_use]
    pub fn with_stack(self, stack: Arc<dyn Stack>) -> Self {
        Self {
            stack,
            trial: OnceLock::new(),
            ..self
        }
    }

    /// A client that has all that DNS delivers, and has failed before if its first handshake does.
    ///
    /// # Errors
    ///
    /// Those of its stack.
    pub(crate) fn client(&self) -> Result<Box<dyn Connection>, TlsError> {
        match (&self.delivery, &self.failed) {
            (Some(delivery), _) => self.stack.offering_client(delivery.offer()),
            (None, Some(failed)) => self.stack.retrying_client(&failed.retry),
            (None, None) => self.stack.client(),
        }
    }

    /// What a row would say of such a handshake.
    pub(crate) fn exchange(&self, handshake: &Handshake) -> Exchange {
        let failed = self.failed.as_ref();
        Exchange {
            failed: failed.map(|failed| row::failed_attempt(&failed.observer, &failed.keys)),
            ..row::exchange(&handshake.observer, &handshake.client.key_log(), None)
        }
    }

    /// A handshake in memory, of such a client.
    ///
    /// # Errors
    ///
    /// Those of [`handshake_between`].
    pub(crate) fn handshake(&self) -> Result<Handshake, TlsError> {
        handshake_between(self.client()?, self.stack.server()?)
    }

    /// The first such handshake, which nobody has twice: signatures of some algorithms take a second.
    pub(super) fn trial(&self) -> Result<&Trial, &TlsError> {
        let first = self.trial.get_or_init(|| {
            let start = sys::thread_cpu_time();
            let handshake = self.handshake()?;
            Ok(Trial {
                cpu: sys::thread_cpu_time().saturating_sub(start),
                exchange: self.exchange(&handshake),
                dns: self.dns(handshake.client.as_ref()),
            })
        });
        first.as_ref()
    }

    /// What a row would say of the DNS of such a handshake.
    fn dns(&self, client: &dyn Connection) -> Dns {
        let Some(delivery) = &self.delivery else {
            return Dns::default();
        };
        let outcome = match client.delivery() {
            Some(Err(fallback)) => fallback.outcome,
            _ => DeliveryOutcome::Used,
        };
        Dns {
            outcome: Some(outcome),
            certificate_bytes: Some(delivery.certificate_bytes(outcome)),
            ..Dns::default()
        }
    }

    /// SHA-256 of the server's certificates as sent, with the client's after a plus sign.
    pub fn digest(&self) -> String {
        let digests: Vec<_> = self.chains().map(Chain::digest).collect();
        digests.join("+")
    }

    /// From when on all certificates are valid, since 1970.
    pub fn valid_from(&self) -> Duration {
        let from = self.chains().map(Chain::valid_from);
        from.max().unwrap_or_default()
    }

    fn chains(&self) -> impl Iterator<Item = &Chain> {
        [&self.chain].into_iter().chain(&self.client_chain)
    }

    /// Tries one handshake in memory, so that what can't be is reported before anything is
    /// measured.
    ///
    /// # Errors
    ///
    /// [`LabError::Arm`] when it fails, or does not do what the arm says.
    pub fn tried(self) -> Result<Self, LabError> {
        let tried = self.trial().map_err(|error| format!("fails: {error}"));
        let problem = tried.and_then(|tried| check_wire(&self.arm, &tried.exchange, &tried.dns));
        match problem {
            Ok(()) => Ok(self),
            Err(problem) => Err(LabError::Arm {
                arm: self.arm.label,
                problem: format!("its handshake, tried in memory, {problem}"),
            }),
        }
    }
}
