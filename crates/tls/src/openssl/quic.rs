//! OpenSSL behind [`QuicTls`].

use std::collections::VecDeque;

use openssl::error::ErrorStack;
use openssl::ssl::Ssl;
use openssl::x509::X509VerifyResult;

use super::ffi::quic::{Direction, OnTransport, Transport};
use super::{SessionDer, failed, ffi, key_log};
use crate::protection::PacketSecret;
use crate::quic::{Level, QuicOutput, QuicTls};
use crate::{Alert, KeyLog, Progress, Session, TlsError};

/// One side on a QUIC transport.
pub(super) struct OpenSslQuic {
    tls: OnTransport<Queues>,
    progress: Progress,
}

/// What waits between TLS and its transport.
#[derive(Default)]
struct Queues {
    /// Each part stays where it is until all of it is taken.
    incoming: VecDeque<Vec<u8>>,
    /// How much of the first part was taken.
    taken: usize,
    outgoing: VecDeque<QuicOutput>,
    opening: [Option<PacketSecret>; 2],
    early: Option<PacketSecret>,
    parameters: Option<Vec<u8>>,
    alert: Option<u8>,
}

/// What a side does with 0-RTT packets.
pub(super) enum EarlyPackets {
    /// There are none.
    None,
    /// A server takes them.
    Taken,
    /// A client may send them, by these transport parameters of the server's, if its session allows it.
    Sent(Vec<u8>),
}

impl OpenSslQuic {
    /// `ssl` knows which side it is.
    pub(super) fn new(
        mut ssl: Ssl,
        parameters: &[u8],
        early: EarlyPackets,
    ) -> Result<OpenSslQuic, ErrorStack> {
        key_log::start(&mut ssl)?;
        let mut tls = OnTransport::new(ssl, Queues::default(), parameters)?;
        match early {
            EarlyPackets::None => {}
            EarlyPackets::Taken => {
                tls.enable_early_data();
            }
            EarlyPackets::Sent(remembered) => {
                if tls.enable_early_data() {
                    tls.with(|queues| queues.parameters = Some(remembered));
                }
            }
        }
        Ok(OpenSslQuic {
            tls,
            progress: Progress::Handshaking,
        })
    }

    fn failure(&self, stack: &ErrorStack) -> TlsError {
        match failed(self.tls.ssl(), stack) {
            // A verification that fails is the whole of it.
            TlsError::Protocol { reason }
                if self.tls.ssl().verify_result() != X509VerifyResult::OK =>
            {
                TlsError::Certificate { reason }
            }
            error => error,
        }
    }
}

impl QuicTls for OpenSslQuic {
    fn receive(&mut self, crypto: &[u8]) {
        if !crypto.is_empty() {
            self.tls
                .with(|queues| queues.incoming.push_back(crypto.to_vec()));
        }
    }

    fn advance(&mut self) -> Result<Progress, TlsError> {
        let advanced = match self.progress {
            Progress::Handshaking => self.tls.do_handshake().map(|is_complete| {
                if is_complete {
                    self.progress = Progress::Established;
                }
            }),
            Progress::Established if self.tls.with(|queues| queues.incoming.is_empty()) => Ok(()),
            Progress::Established => self.tls.read(),
        };
        match advanced {
            Ok(()) => Ok(self.progress),
            Err(stack) => Err(self.failure(&stack)),
        }
    }

    fn next(&mut self) -> Option<QuicOutput> {
        self.tls.with(|queues| queues.outgoing.pop_front())
    }

    fn opening_secret(&self, level: Level) -> Option<PacketSecret> {
        self.tls
            .with(|queues| queues.opening[level as usize].clone())
    }

    fn early_secret(&self) -> Option<PacketSecret> {
        self.tls.with(|queues| queues.early.clone())
    }

    fn is_early_data_accepted(&self) -> bool {
        ffi::is_early_data_accepted(self.tls.ssl())
    }

    fn session(&self) -> Option<Session> {
        SessionDer::of(self.tls.ssl(), self.peer_parameters()).map(Session::new)
    }

    fn peer_parameters(&self) -> Option<Vec<u8>> {
        self.tls.with(|queues| queues.parameters.clone())
    }

    fn alert(&self) -> Option<Alert> {
        self.tls.with(|queues| queues.alert).map(Alert)
    }

    fn key_log(&self) -> KeyLog {
        key_log::of(self.tls.ssl())
    }
}

impl Transport for Queues {
    fn send(&mut self, crypto: &[u8]) {
        match self.outgoing.back_mut() {
            Some(QuicOutput::Crypto(bytes)) => bytes.extend_from_slice(crypto),
            _ => self.outgoing.push_back(QuicOutput::Crypto(crypto.to_vec())),
        }
    }

    fn incoming(&self) -> &[u8] {
        let first = self.incoming.front();
        first
            .and_then(|bytes| bytes.get(self.taken..))
            .unwrap_or_default()
    }

    fn release(&mut self, bytes: usize) {
        self.taken += bytes;
        if self
            .incoming
            .front()
            .is_some_and(|first| self.taken >= first.len())
        {
            self.incoming.pop_front();
            self.taken = 0;
        }
    }

    fn secret(&mut self, level: u32, direction: Direction, cipher_suite: u16, secret: &[u8]) {
        let secret = PacketSecret {
            cipher_suite,
            secret: secret.to_vec(),
        };
        // OSSL_RECORD_PROTECTION_LEVEL (openssl/core_dispatch.h).
        let level = match level {
            // A client writes with it, a server reads.
            1 => {
                self.early = Some(secret);
                return;
            }
            2 => Level::Handshake,
            3 => Level::Application,
            _ => return,
        };
        match direction {
            Direction::Read => self.opening[level as usize] = Some(secret),
            Direction::Write => self.outgoing.push_back(QuicOutput::Level(level, secret)),
        }
    }

    fn parameters(&mut self, parameters: &[u8]) {
        self.parameters = Some(parameters.to_vec());
    }

    fn alert(&mut self, alert: u8) {
        self.alert = Some(alert);
    }
}
