//! rustls, on AWS-LC or on OpenSSL.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
    WebPkiServerVerifier,
};
use rustls::crypto::{CryptoProvider, KeyProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier};
use rustls::sign::SigningKey;
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, CommonState, ConnectionCommon, HandshakeKind, NamedGroup,
    RootCertStore, ServerConfig, ServerConnection, SideData,
};

use crate::{Case, Ends, Failed, Mode, SERVER_NAME, SUITE, expect, ml_dsa, tickets, timed};

pub struct Library {
    provider: CryptoProvider,
    ticketer: Arc<dyn ProducesTickets>,
}

/// A provider and its tickets, by the name of the stack.
pub fn provider(stack: &str) -> Result<Library, Failed> {
    match stack {
        "rustls-aws-lc" => Ok(Library {
            provider: aws_lc_rs::default_provider(),
            ticketer: aws_lc_rs::Ticketer::new()?,
        }),
        "rustls-openssl" => {
            let theirs = rustls_openssl::SUPPORTED_SIG_ALGS;
            let provider = CryptoProvider {
                kx_groups: rustls_openssl::kx_group::ALL_KX_GROUPS.to_vec(),
                signature_verification_algorithms: WebPkiSupportedAlgorithms {
                    all: [theirs.all, &ml_dsa::VERIFICATION].concat().leak(),
                    mapping: [theirs.mapping, &ml_dsa::SCHEMES].concat().leak(),
                },
                key_provider: &OpensslKeys,
                ..rustls_openssl::default_provider()
            };
            Ok(Library {
                provider,
                ticketer: tickets::ticketer()?,
            })
        }
        other => Err(format!("no stack {other}").into()),
    }
}

#[derive(Debug)]
struct OpensslKeys;

impl KeyProvider for OpensslKeys {
    fn load_private_key(
        &self,
        key: PrivateKeyDer<'static>,
    ) -> Result<Arc<dyn SigningKey>, rustls::Error> {
        match ml_dsa::signing_key(&key) {
            Some(key) => Ok(key),
            None => rustls_openssl::KeyProvider.load_private_key(key),
        }
    }
}

/// The newest session, which is offered next.
#[derive(Debug, Default)]
struct Kept(Mutex<Option<Tls13ClientSessionValue>>);

impl ClientSessionStore for Kept {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }
    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}
    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }
    fn remove_tls12_session(&self, _: &ServerName<'static>) {}
    fn insert_tls13_ticket(&self, _: ServerName<'static>, session: Tls13ClientSessionValue) {
        if let Ok(mut kept) = self.0.lock() {
            *kept = Some(session);
        }
    }
    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.lock().ok()?.take()
    }
}

pub struct Rustls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    group: String,
    mode: Mode,
    first: bool,
}

fn chain(
    case: &Case,
    suffix: &str,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Failed> {
    let certificates = CertificateDer::pem_slice_iter(&case.file(suffix, "chain.pem")?)
        .collect::<Result<_, _>>()?;
    Ok((
        certificates,
        PrivateKeyDer::from_pem_slice(&case.file(suffix, "key.pem")?)?,
    ))
}

fn roots(case: &Case, suffix: &str) -> Result<Arc<RootCertStore>, Failed> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(
        &case.file(suffix, "root.pem")?,
    )?)?;
    Ok(Arc::new(roots))
}

impl Rustls {
    pub fn new(library: Library, case: &Case) -> Result<Self, Failed> {
        let Library {
            mut provider,
            ticketer,
        } = library;
        provider
            .kx_groups
            .retain(|group| format!("{:?}", group.name()).eq_ignore_ascii_case(&case.group));
        provider
            .cipher_suites
            .retain(|suite| format!("{:?}", suite.suite()).replace("TLS13_", "TLS_") == SUITE);
        let provider = Arc::new(provider);
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots(case, "")?, provider.clone())
                .build()?;
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_webpki_verifier(verifier);
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?;
        let (mut client, server) = if case.mode == Mode::Mutual {
            let (certificates, key) = chain(case, "-client")?;
            let verifier = WebPkiClientVerifier::builder_with_provider(
                roots(case, "-client")?,
                provider.clone(),
            )
            .build()?;
            (
                client.with_client_auth_cert(certificates, key)?,
                server.with_client_cert_verifier(verifier),
            )
        } else {
            (client.with_no_client_auth(), server.with_no_client_auth())
        };
        let (certificates, key) = chain(case, "")?;
        let mut server = server.with_single_cert(certificates, key)?;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        if case.mode == Mode::Resumed {
            client.resumption = Resumption::store(Arc::new(Kept::default()));
            server.ticketer = ticketer;
            server.send_tls13_tickets = 1;
        } else {
            client.resumption = Resumption::disabled();
            server.send_tls13_tickets = 0;
        }
        Ok(Self {
            client: Arc::new(client),
            server: Arc::new(server),
            group: case.group.clone(),
            mode: case.mode,
            first: true,
        })
    }
}

/// Takes what came, of which an end has room for some at once, and writes what there is to send.
fn turn<D: SideData>(
    end: &mut ConnectionCommon<D>,
    mut incoming: &[u8],
    outgoing: &mut Vec<u8>,
) -> Result<(), Failed> {
    while !incoming.is_empty() {
        end.read_tls(&mut incoming)?;
        end.process_new_packets()?;
    }
    outgoing.clear();
    while end.wants_write() {
        end.write_tls(outgoing)?;
    }
    Ok(())
}

impl Ends for Rustls {
    fn handshake(&mut self) -> Result<[Duration; 2], Failed> {
        let [mut at_client, mut at_server] = [Duration::ZERO; 2];
        let name = ServerName::try_from(SERVER_NAME)?;
        let mut client = timed(&mut at_client, || {
            ClientConnection::new(self.client.clone(), name)
        })?;
        let mut server = timed(&mut at_server, || {
            ServerConnection::new(self.server.clone())
        })?;
        let (mut up, mut down) = (Vec::new(), Vec::new());
        loop {
            timed(&mut at_client, || turn(&mut client, &down, &mut up))?;
            if up.is_empty() {
                break;
            }
            timed(&mut at_server, || turn(&mut server, &up, &mut down))?;
        }
        if client.is_handshaking() || server.is_handshaking() {
            return Err("a handshake has no end".into());
        }
        self.check(&client)?;
        self.first = false;
        timed(&mut at_client, || drop(client));
        timed(&mut at_server, || drop(server));
        Ok([at_client, at_server])
    }
}

impl Rustls {
    fn check(&self, client: &CommonState) -> Result<(), Failed> {
        let suite = client
            .negotiated_cipher_suite()
            .map(|suite| format!("{:?}", suite.suite()));
        let group = client
            .negotiated_key_exchange_group()
            .map(|group| format!("{:?}", group.name()));
        let resumed = client.handshake_kind() == Some(HandshakeKind::Resumed);
        let suite = suite.unwrap_or_default().replace("TLS13_", "TLS_");
        expect(
            &suite,
            &group.unwrap_or_default(),
            resumed,
            (&self.group, self.mode),
            self.first,
        )
    }
}
