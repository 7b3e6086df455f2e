//! OpenSSL behind [`Stack`].

use std::collections::VecDeque;
use std::ffi::c_long;
use std::io::{self, Read, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use lastbyte_pki::Chain;
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{
    self, ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslMode, SslRef,
    SslSessionCacheMode, SslStream, SslVerifyMode, SslVersion,
};
use openssl::x509::X509VerifyResult;
use openssl::x509::store::X509StoreBuilder;

use crate::{Alert, Connection, Group, KeyLog, MAX_PLAINTEXT, Progress, Stack, TlsError};

mod ffi;

/// What both sides of a connection are configured with.
#[derive(Debug, Clone, Copy)]
pub struct TlsConfig<'a> {
    /// The only group that is supported; the client sends its key share at once.
    pub group: Group,
    /// What the server sends and proves, and what the client trusts.
    pub chain: &'a Chain,
}

/// OpenSSL with one configuration: TLS 1.3 alone, full handshakes, no tickets.
#[derive(Debug)]
pub struct OpenSsl {
    client: SslContext,
    server: SslContext,
    server_name: String,
}

impl OpenSsl {
    /// Sets up both sides, which any number of connections then share.
    ///
    /// # Errors
    /// [`TlsError::Setup`] when OpenSSL can't use the group or the chain.
    pub fn new(config: &TlsConfig<'_>) -> Result<OpenSsl, TlsError> {
        let signatures = config.chain.provided_signatures();
        let make = || (client_context(config), server_context(config));
        let (client, server) = lastbyte_providers::offering(&signatures, make).map_err(protocol)?;
        Ok(OpenSsl {
            client: client?.build(),
            server: server?.build(),
            server_name: config.chain.server_name().to_owned(),
        })
    }

    fn new_client(&self) -> Result<OpenSslConnection, ErrorStack> {
        let mut ssl = Ssl::new(&self.client)?;
        ssl.set_hostname(&self.server_name)?;
        ssl.param_mut().set_host(&self.server_name)?;
        ssl.set_connect_state();
        OpenSslConnection::new(ssl)
    }

    fn new_server(&self) -> Result<OpenSslConnection, ErrorStack> {
        let mut ssl = Ssl::new(&self.server)?;
        ssl.set_accept_state();
        OpenSslConnection::new(ssl)
    }
}

impl Stack for OpenSsl {
    fn name(&self) -> &'static str {
        NAME
    }

    fn client(&self) -> Result<Box<dyn Connection>, TlsError> {
        Ok(Box::new(self.new_client().map_err(protocol)?))
    }

    fn server(&self) -> Result<Box<dyn Connection>, TlsError> {
        Ok(Box::new(self.new_server().map_err(protocol)?))
    }
}

const NAME: &str = "openssl";

/// The version of the OpenSSL that is built in, such as `OpenSSL 3.6.3 …`.
pub fn openssl_version() -> &'static str {
    ::openssl::version::version()
}

/// The length field of a handshake message allows no more (RFC 8446, 4).
const MAX_CERTIFICATE_MESSAGE: c_long = (1 << 24) - 1;

fn client_context(config: &TlsConfig<'_>) -> Result<SslContextBuilder, TlsError> {
    let mut context = context(SslMethod::tls_client(), config.group)?;
    let mut roots = X509StoreBuilder::new().map_err(protocol)?;
    roots
        .add_cert(config.chain.root().clone())
        .map_err(setup("the root certificate"))?;
    context.set_cert_store(roots.build());
    context.set_verify(SslVerifyMode::PEER);
    ffi::set_max_cert_list(&mut context, MAX_CERTIFICATE_MESSAGE);
    Ok(context)
}

fn server_context(config: &TlsConfig<'_>) -> Result<SslContextBuilder, TlsError> {
    let mut context = context(SslMethod::tls_server(), config.group)?;
    // Otherwise OpenSSL completes the chain from what it trusts.
    context.set_mode(SslMode::NO_AUTO_CHAIN);
    context.set_num_tickets(0).map_err(protocol)?;
    if let Some((end_entity, issuers)) = config.chain.certificates().split_first() {
        context
            .set_certificate(end_entity)
            .map_err(setup("the end-entity certificate"))?;
        for issuer in issuers {
            context
                .add_extra_chain_cert(issuer.clone())
                .map_err(setup("a CA certificate"))?;
        }
    }
    context
        .set_private_key(config.chain.key())
        .map_err(setup("the private key"))?;
    Ok(context)
}

fn context(method: SslMethod, group: Group) -> Result<SslContextBuilder, TlsError> {
    let mut context = SslContext::builder(method).map_err(protocol)?;
    context
        .set_min_proto_version(Some(SslVersion::TLS1_3))
        .map_err(setup("TLS 1.3"))?;
    context
        .set_max_proto_version(Some(SslVersion::TLS1_3))
        .map_err(setup("TLS 1.3"))?;
    // OpenSSL's own default, whatever the host's openssl.cnf says.
    context.set_security_level(2);
    // OpenSSL knows the groups by their IANA names too.
    context
        .set_groups_list(group.name())
        .map_err(setup(group.name()))?;
    context.set_session_cache_mode(SslSessionCacheMode::OFF);
    let key_log = key_log_index().map_err(protocol)?;
    context.set_keylog_callback(move |ssl, line| {
        if let Some(log) = ssl.ex_data(key_log) {
            log.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_line(line);
        }
    });
    Ok(context)
}

/// Where a connection keeps its key log.
fn key_log_index() -> Result<Index<Ssl, Mutex<KeyLog>>, ErrorStack> {
    static INDEX: OnceLock<Index<Ssl, Mutex<KeyLog>>> = OnceLock::new();
    match INDEX.get() {
        Some(index) => Ok(*index),
        None => {
            let index = Ssl::new_ex_index()?;
            Ok(*INDEX.get_or_init(|| index))
        }
    }
}

struct OpenSslConnection {
    stream: SslStream<Memory>,
    progress: Progress,
}

impl OpenSslConnection {
    fn new(mut ssl: Ssl) -> Result<OpenSslConnection, ErrorStack> {
        ssl.set_ex_data(key_log_index()?, Mutex::default());
        let stream = SslStream::new(ssl, Memory::default())?;
        Ok(OpenSslConnection {
            stream,
            progress: Progress::Handshaking,
        })
    }
}

impl Connection for OpenSslConnection {
    fn receive(&mut self, bytes: &[u8]) {
        self.stream.get_mut().incoming.extend(bytes);
    }

    fn advance(&mut self) -> Result<Progress, TlsError> {
        if self.progress == Progress::Handshaking {
            match self.stream.do_handshake() {
                Ok(()) => self.progress = Progress::Established,
                Err(error) if error.code() == ErrorCode::WANT_READ => {}
                Err(error) => return Err(failure(self.stream.ssl(), &error)),
            }
        }
        Ok(self.progress)
    }

    fn transmit(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.stream.get_mut().outgoing);
    }

    fn write_record(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        if !(1..=MAX_PLAINTEXT).contains(&plaintext.len()) {
            return Err(TlsError::RecordLength(plaintext.len()));
        }
        if self.progress == Progress::Handshaking {
            return Err(TlsError::NotEstablished);
        }
        match self.stream.ssl_write(plaintext) {
            Ok(_) => Ok(()),
            Err(error) => Err(failure(self.stream.ssl(), &error)),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TlsError> {
        if self.progress == Progress::Handshaking {
            return Ok(0);
        }
        match self.stream.ssl_read(buffer) {
            Ok(length) => Ok(length),
            Err(error) if error.code() == ErrorCode::WANT_READ => Ok(0),
            Err(error) => Err(failure(self.stream.ssl(), &error)),
        }
    }

    fn key_log(&self) -> KeyLog {
        key_log_index()
            .ok()
            .and_then(|index| self.stream.ssl().ex_data(index))
            .map(|log| log.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default()
    }
}

/// The two ends of what would be a socket.
#[derive(Default)]
struct Memory {
    incoming: VecDeque<u8>,
    outgoing: Vec<u8>,
}

impl Read for Memory {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.incoming.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.incoming.read(buffer)
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failure(ssl: &SslRef, error: &ssl::Error) -> TlsError {
    let Some(stack) = error.ssl_error() else {
        return match error.code() {
            ErrorCode::ZERO_RETURN => TlsError::Closed,
            _ => TlsError::Protocol {
                reason: error.to_string(),
            },
        };
    };
    if let Some(alert) = stack.errors().iter().find_map(received_alert) {
        return TlsError::Refused(alert);
    }
    match ssl.verify_result() {
        X509VerifyResult::OK => TlsError::Protocol {
            reason: reason(stack),
        },
        result => TlsError::Certificate {
            reason: result.error_string().to_owned(),
        },
    }
}

/// OpenSSL reports an alert as the reason 1000 + its number.
fn received_alert(error: &openssl::error::Error) -> Option<Alert> {
    const ERR_LIB_SSL: i32 = 20;
    const SSL_AD_REASON_OFFSET: i32 = 1000;
    (error.library_code() == ERR_LIB_SSL).then_some(())?;
    u8::try_from(error.reason_code() - SSL_AD_REASON_OFFSET)
        .ok()
        .map(Alert)
}

fn setup(what: &str) -> impl FnOnce(ErrorStack) -> TlsError {
    let what = what.to_owned();
    move |stack| TlsError::Setup {
        stack: NAME,
        what,
        reason: reason(&stack),
    }
}

fn protocol(stack: ErrorStack) -> TlsError {
    TlsError::Protocol {
        reason: reason(&stack),
    }
}

/// The reasons on one line, the outermost first.
fn reason(stack: &ErrorStack) -> String {
    let mut reasons: Vec<&str> = stack
        .errors()
        .iter()
        .rev()
        .filter_map(|e| e.reason())
        .collect();
    reasons.dedup();
    if reasons.is_empty() {
        "OpenSSL gives no reason".to_owned()
    } else {
        reasons.join(": ")
    }
}

#[cfg(test)]
mod tests;
