//! Chains, and handshakes in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery, Store};
use openssl::ssl::{
    ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslRef, SslStream, SslVerifyMode,
    SslVersion,
};
use openssl::x509::X509;
use openssl::x509::store::{X509Store, X509StoreBuilder};

use crate::client::Fallback;
use crate::extension::ExtensionType;
use crate::openssl::{EndEntity, client, server};
use crate::record::Delivered;
use crate::server::{Chain, Chains, SharedChains};
use crate::validate::{Algorithms, Offer, Trust, validate};

pub(crate) const NAME: &str = "server.example";

/// Chains are kept from one test run to the next.
pub(crate) fn pki(spec: &ChainSpec) -> lastbyte_pki::Chain {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let kept = Store::open(target.join("test-chains"));
    kept.chain(spec).unwrap()
}

/// With one intermediate, the root sent.
pub(crate) fn spec(algorithm: KeyAlgorithm) -> ChainSpec {
    ChainSpec {
        root: RootDelivery::Sent,
        ..ChainSpec::new(algorithm)
    }
}

pub(crate) fn chain(spec: &ChainSpec) -> (Chain, X509) {
    of_pki(&pki(spec))
}

pub(crate) fn of_pki(chain: &lastbyte_pki::Chain) -> (Chain, X509) {
    let own = Chain::new(chain.certificates().to_vec(), chain.key().clone());
    (own.unwrap(), chain.root().clone())
}

pub(crate) fn anchors(root: &X509) -> X509Store {
    let mut anchors = X509StoreBuilder::new().unwrap();
    anchors.add_cert(root.clone()).unwrap();
    anchors.build()
}

pub(crate) fn delivered(chain: &Chain, count: usize) -> Delivered {
    Delivered {
        part: chain.part(count),
        list: chain.topmost(count).unwrap(),
    }
}

pub(crate) fn checked(delivered: Delivered, root: &X509) -> Result<Offer, Fallback> {
    validate(
        delivered,
        NAME,
        &Trust {
            anchors: &anchors(root),
            at: SystemTime::now(),
            algorithms: Algorithms::All,
        },
    )
}

pub(crate) fn shared(chains: Vec<Chain>) -> Arc<SharedChains> {
    Arc::new(SharedChains::new(Chains::new(chains)))
}

pub(crate) fn server(chains: &Arc<SharedChains>, end_entity: EndEntity) -> SslContextBuilder {
    let mut context = context(SslMethod::tls_server());
    let number = ExtensionType::DEFAULT;
    server::install(&mut context, Arc::clone(chains), number, end_entity).unwrap();
    context
}

pub(crate) fn client(root: &X509) -> SslContextBuilder {
    let mut context = plain_client(root);
    client::install(&mut context, ExtensionType::DEFAULT).unwrap();
    context
}

pub(crate) fn plain_client(root: &X509) -> SslContextBuilder {
    let mut context = context(SslMethod::tls_client());
    context.set_cert_store(anchors(root));
    context.set_verify(SslVerifyMode::PEER);
    context
}

fn context(method: SslMethod) -> SslContextBuilder {
    let mut context = SslContext::builder(method).unwrap();
    let version = Some(SslVersion::TLS1_3);
    context.set_min_proto_version(version).unwrap();
    context
}

/// A handshake that succeeded.
pub(crate) struct Done {
    pub(crate) client: SslStream<Pipe>,
    pub(crate) server: SslStream<Pipe>,
    /// Bytes that the server sent.
    pub(crate) from_server: usize,
}

impl Done {
    /// Has the client take what came after the handshake.
    pub(crate) fn read_at_client(&mut self) {
        let nothing = self.client.ssl_read(&mut [0]).map_err(|error| error.code());
        assert_eq!(nothing, Err(ErrorCode::WANT_READ));
    }
}

/// What may be changed on the way: the sender and the bytes.
pub(crate) type Tamper<'a> = &'a mut dyn FnMut(Sender, &mut Vec<u8>);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    Server,
}

pub(crate) fn connect(
    client: SslContextBuilder,
    server: SslContextBuilder,
    offer: Option<(Offer, EndEntity)>,
) -> Result<Done, String> {
    let (client, server) = (client.build(), server.build());
    connect_over(&client, &server, NAME, offer, &mut |_, _| {})
}

pub(crate) fn connect_over(
    client: &SslContext,
    server: &SslContext,
    name: &str,
    offer: Option<(Offer, EndEntity)>,
    tamper: Tamper<'_>,
) -> Result<Done, String> {
    let prepare = |ssl: &mut SslRef| {
        ssl.set_hostname(name).unwrap();
        ssl.param_mut().set_host(name).unwrap();
        if let Some((offer, end_entity)) = offer {
            client::offer(ssl, offer, end_entity).unwrap();
        }
    };
    connect_prepared(client, server, prepare, tamper)
}

/// A connection to [`NAME`], which `prepare` may change.
pub(crate) fn connect_prepared(
    client: &SslContext,
    server: &SslContext,
    prepare: impl FnOnce(&mut SslRef),
    tamper: Tamper<'_>,
) -> Result<Done, String> {
    let (to_server, to_client) = (Buffer::default(), Buffer::default());
    let mut ssl = Ssl::new(client).unwrap();
    ssl.set_hostname(NAME).unwrap();
    ssl.param_mut().set_host(NAME).unwrap();
    prepare(&mut ssl);
    let pipe = |incoming: &Buffer| Pipe {
        incoming: Rc::clone(incoming),
        outgoing: Vec::new(),
    };
    let mut client = SslStream::new(ssl, pipe(&to_client)).unwrap();
    let mut server = SslStream::new(Ssl::new(server).unwrap(), pipe(&to_server)).unwrap();
    let mut from_server = 0;
    for _ in 0..10 {
        let step = |sender: Sender, stream: &mut SslStream<Pipe>| {
            let done = match sender {
                Sender::Client => stream.connect(),
                Sender::Server => stream.accept(),
            };
            match done {
                Ok(()) => Ok(true),
                Err(error) if error.code() == ErrorCode::WANT_READ => Ok(false),
                Err(error) => Err(error.to_string()),
            }
        };
        let client_done = step(Sender::Client, &mut client).map_err(|e| format!("client: {e}"));
        let mut sent = std::mem::take(&mut client.get_mut().outgoing);
        tamper(Sender::Client, &mut sent);
        to_server.borrow_mut().extend(sent);
        let client_done = client_done?;
        let server_done = step(Sender::Server, &mut server).map_err(|e| format!("server: {e}"));
        let mut sent = std::mem::take(&mut server.get_mut().outgoing);
        tamper(Sender::Server, &mut sent);
        if !client_done {
            from_server += sent.len();
        }
        to_client.borrow_mut().extend(sent);
        if server_done? && client_done {
            return Ok(Done {
                client,
                server,
                from_server,
            });
        }
    }
    Err("it stalls".to_owned())
}

type Buffer = Rc<RefCell<VecDeque<u8>>>;

pub(crate) struct Pipe {
    incoming: Buffer,
    outgoing: Vec<u8>,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut incoming = self.incoming.borrow_mut();
        if incoming.is_empty() {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            incoming.read(buffer)
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
