//! What clients do about servers, and about DNS servers, that are not as they should be.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Files, NAME, ask, in_own_network};
use lastbyte_ad::client::{Connector, Settings, Use};
use lastbyte_ad::dns::{Answer, Client, DnsError, First, Rtype, Server, TlsServer, tsig};
use lastbyte_ad::fetch::fetch;
use lastbyte_ad::publish::{Event, Publication, Source, Watch, watch};
use lastbyte_ad::test_servers::{BIND, KEY, bind};
use lastbyte_pki::{Chain, test_chains};
use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::ssl::{ExtensionContext, Ssl, SslContext, SslContextBuilder, SslMethod, SslVersion};
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Builder, X509Name};
use pqtlsad::Part;
use pqtlsad::client::Outcome;
use pqtlsad::extension::ExtensionType;
use pqtlsad::flight::InitialWindow;
use pqtlsad::openssl::{EndEntity, server};
use pqtlsad::record::RecordType;
use pqtlsad::server::{Chains, PublicChain, SharedChains};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_openssl::SslStream;

#[test]
fn a_handshake_that_fails_with_the_record_is_tried_once_without_it() {
    let chain = test_chains::for_name(NAME).unwrap();
    let files = Files::new(&chain);
    in_own_network(|| bind("server A 127.0.0.9"), async {
        publish(&chain, 2).await;
        let server = serve(server_of(&chain)).await;
        let (relay, seen) = breaking_relay(server, |hello| hello.windows(4).any(EXTENSION)).await;
        let connector = connector(&files, relay);
        for times in 1..=2 {
            let made = connector.connect(NAME, 443, Use::Record).await.unwrap();
            let fallback = made.handshake.result.unwrap_err();
            assert_eq!(fallback.outcome, Outcome::Invalid);
            let begins = "the handshake with it failed: 127.0.0.1:";
            assert!(fallback.reason.starts_with(begins), "{fallback:?}");
            // With the record, and without it; and the record is asked for anew.
            assert_eq!(seen.load(Ordering::Relaxed), 2 * times);
            assert!(made.handshake.found.is_some());
        }
        let (relay, seen) = breaking_relay(server, |_| true).await;
        let connector = self::connector(&files, relay);
        connector.connect(NAME, 443, Use::Record).await.unwrap_err();
        assert_eq!(seen.load(Ordering::Relaxed), 2);
    });
}

/// The extension begins so in a hello, its type included.
const EXTENSION: fn(&[u8]) -> bool = |window| window == [0, 64, 0, 32];

#[test]
fn a_common_name_is_no_name_and_a_wildcard_is_a_whole_label() {
    const HOST: &str = "ab.server.example";
    for (common_name, alternative, is_good) in [
        ("nobody", Some(HOST), true),
        ("nobody", Some("*.server.example"), true),
        ("nobody", Some("a*.server.example"), false),
        (HOST, None, false),
    ] {
        let (certificate, key, root) = issue(common_name, alternative);
        let folder = tempfile::TempDir::new().unwrap();
        let ca = folder.path().join("root.pem");
        std::fs::write(&ca, root.to_pem().unwrap()).unwrap();
        in_own_network(|| (), async {
            let mut context = server_context();
            context.set_certificate(&certificate).unwrap();
            context.set_private_key(&key).unwrap();
            let address = serve(context).await;
            let settings = Settings {
                ca: Some(ca.clone()),
                connect: Some(address),
                ..Settings::default()
            };
            let dns = Arc::new(Client::new([]));
            let connector = Connector::new(dns, settings).unwrap();
            let made = connector.connect(HOST, 443, Use::Nothing).await;
            let refused = made.err().map(|error| error.to_string());
            let tls = Some(TlsServer::new(HOST, Some(&ca)).unwrap());
            let dns = Client::new([Server { address, tls }]);
            let asked = ask(&dns, NAME, Rtype::A, First::Tcp).await.unwrap_err();
            // It is no DNS server.
            let asked = match asked {
                DnsError::Tls { reason, .. } => Some(reason),
                _ => None,
            };
            for refused in [refused, asked] {
                match refused {
                    None => assert!(is_good, "{common_name} {alternative:?}"),
                    Some(reason) => {
                        assert!(!is_good, "{common_name} {alternative:?}");
                        assert!(reason.contains("hostname mismatch"), "{reason}");
                    }
                }
            }
        });
    }
}

#[test]
fn a_resolver_whose_certificate_is_not_accepted_is_connected_to_once() {
    let chain = test_chains::for_name("resolver.example").unwrap();
    let files = Files::new(&test_chains::for_name(NAME).unwrap());
    in_own_network(|| (), async {
        let resolver = serve(server_of(&chain)).await;
        let (address, seen) = breaking_relay(resolver, |_| false).await;
        // Of another CA.
        let tls = TlsServer::new("resolver.example", Some(&files.root)).unwrap();
        let dns = Client::new([Server {
            address,
            tls: Some(tls),
        }]);
        let connector = Connector::new(Arc::new(dns), Settings::default()).unwrap();
        let refused = connector.connect(NAME, 443, Use::Record).await.unwrap_err();
        let words = "DNS over TLS failed: its certificate is not accepted";
        assert!(refused.to_string().contains(words), "{refused}");
        assert_eq!(seen.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_dns_server_that_floods_is_left() {
    in_own_network(|| (), async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                // Empty messages, for as long as anybody listens.
                tokio::spawn(async move { while stream.write_all(&[0; 4096]).await.is_ok() {} });
            }
        });
        let client = Client::new([address.into()]);
        let asked = ask(&client, NAME, Rtype::A, First::Tcp).await.unwrap_err();
        assert!(matches!(asked, DnsError::Io { .. }), "{asked}");
        assert_eq!(accepted.load(Ordering::Relaxed), 4);
    });
}

#[test]
fn nothing_is_published_on_the_word_of_somebody_else() {
    let files = Files::new(&test_chains::for_name(NAME).unwrap());
    let impostor = test_chains::for_name(NAME).unwrap();
    in_own_network(|| bind("server A 127.0.0.9"), async {
        let source = Source {
            name: NAME.to_owned(),
            files: vec![files.chain.clone()],
            part: Some(Part::Intermediate),
            window: InitialWindow::default(),
            record_type: RecordType::DEFAULT,
            ttl: Duration::from_secs(300),
        };
        let to = Watch {
            dns: BIND,
            key: Some(tsig::key(KEY).unwrap()),
            tls: serve(echoing(&impostor)).await,
            extension: ExtensionType::DEFAULT,
        };
        let mut events = Vec::new();
        let watched = watch(&source, &to, |event| events.push(event));
        let watched = tokio::time::timeout(Duration::from_millis(1500), watched).await;
        assert!(watched.is_err());
        let [Event::Failed(error)] = &events[..] else {
            panic!("{events:?}");
        };
        let words = "the TLS handshake failed: the server's certificate is not accepted";
        assert!(error.to_string().contains(words), "{error}");
        let dns = Client::new([BIND.into()]);
        let asked = ask(&dns, NAME, Rtype::from_int(65_280), First::Tcp).await;
        assert_eq!(asked.unwrap().answer, Answer::NoData);
    });
}

#[test]
fn a_response_that_only_ends_with_tcp_may_be_cut() {
    const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf of it";
    let chain = test_chains::for_name(NAME).unwrap();
    let files = Files::new(&chain);
    let url = format!("https://{NAME}/").parse().unwrap();
    in_own_network(|| (), async {
        for (response, goodbye, is_whole) in [
            ("HTTP/1.1 200 OK\r\n\r\nhalf of it", Goodbye::Said, true),
            ("HTTP/1.1 200 OK\r\n\r\nhalf of it", Goodbye::Left, false),
            ("HTTP/1.0 200 OK\r\n\r\nhalf of it", Goodbye::Left, false),
            (LENGTH, Goodbye::Left, true),
        ] {
            let connector = connector(&files, answer(&chain, response, goodbye).await);
            let mut body = Vec::new();
            let patience = Duration::from_secs(60);
            let fetched = fetch(&connector, &url, Use::Nothing, patience, &mut body).await;
            assert_eq!(body, b"half of it", "{response:?}");
            match fetched {
                Ok(_) => assert!(is_whole, "{response:?}"),
                Err(error) => {
                    assert!(!is_whole, "{response:?}: {error}");
                    assert!(error.to_string().contains("may be cut short"), "{error}");
                }
            }
        }
    });
}

/// Whether a server says by TLS that it has sent all (close_notify).
#[derive(Clone, Copy)]
enum Goodbye {
    Said,
    Left,
}

/// Answers one request so, and closes TCP.
async fn answer(chain: &Chain, response: &'static str, goodbye: Goodbye) -> SocketAddr {
    let mut context = server_context();
    context.set_certificate(&chain.certificates()[0]).unwrap();
    for issuer in &chain.certificates()[1..] {
        context.add_extra_chain_cert(issuer.clone()).unwrap();
    }
    context.set_private_key(chain.key()).unwrap();
    let ssl = Ssl::new(&context.build()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = SslStream::new(ssl, stream).unwrap();
        Pin::new(&mut stream).accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(response.as_bytes()).await.unwrap();
        match goodbye {
            Goodbye::Said => stream.shutdown().await.unwrap(),
            Goodbye::Left => stream.get_mut().shutdown().await.unwrap(),
        }
        // Until the client has gone, too: what it still says would be answered by a reset.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    address
}

/// A server that says whatever digest it hears, and sends this chain's end-entity.
fn echoing(chain: &Chain) -> SslContextBuilder {
    let mut context = server_context();
    context.set_certificate(&chain.certificates()[0]).unwrap();
    context.set_private_key(chain.key()).unwrap();
    let heard = Ssl::new_ex_index::<Vec<u8>>().unwrap();
    let hellos = ExtensionContext::CLIENT_HELLO
        | ExtensionContext::TLS1_3_SERVER_HELLO
        | ExtensionContext::TLS1_3_ONLY;
    context
        .add_custom_ext(
            64,
            hellos,
            move |ssl, _, _| Ok(ssl.ex_data(heard).cloned()),
            move |ssl, _, data, _| {
                ssl.set_ex_data(heard, data.to_vec());
                Ok(())
            },
        )
        .unwrap();
    context
}

/// Relays to `server`, but for connections whose first bytes are to be `broken`; and counts all.
async fn breaking_relay(
    server: SocketAddr,
    broken: fn(&[u8]) -> bool,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut hello = vec![0; 1 << 16];
                let length = client.read(&mut hello).await.unwrap();
                if broken(&hello[..length]) {
                    return;
                }
                let mut server = TcpStream::connect(server).await.unwrap();
                server.write_all(&hello[..length]).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, seen)
}

/// Does handshakes, and nothing after them.
async fn serve(context: SslContextBuilder) -> SocketAddr {
    let context = context.build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let ssl = Ssl::new(&context).unwrap();
            tokio::spawn(async move {
                let mut stream = SslStream::new(ssl, stream).unwrap();
                let _ = Pin::new(&mut stream).accept().await;
            });
        }
    });
    address
}

/// With the mechanism.
fn server_of(chain: &Chain) -> SslContextBuilder {
    let certificates = chain.certificates().to_vec();
    let own = pqtlsad::server::Chain::new(certificates, chain.key().clone()).unwrap();
    let chains = Arc::new(SharedChains::new(Chains::new(vec![own])));
    let mut context = server_context();
    let number = ExtensionType::DEFAULT;
    server::install(&mut context, chains, number, EndEntity::default()).unwrap();
    context
}

fn server_context() -> SslContextBuilder {
    let mut context = SslContext::builder(SslMethod::tls_server()).unwrap();
    let version = Some(SslVersion::TLS1_3);
    context.set_min_proto_version(version).unwrap();
    context
}

fn connector(files: &Files, address: SocketAddr) -> Connector {
    let settings = Settings {
        ca: Some(files.root.clone()),
        connect: Some(address),
        // Without it, a test on a busy machine would tell nothing.
        grace: Duration::from_secs(10),
        ..Settings::default()
    };
    Connector::new(Arc::new(Client::new([BIND.into()])), settings).unwrap()
}

async fn publish(chain: &Chain, count: usize) {
    let public = PublicChain::new(chain.certificates().to_vec()).unwrap();
    let ttl = Duration::from_secs(300);
    let chains = [(&public, count)];
    let publication = Publication::new(NAME, chains, RecordType::DEFAULT, ttl).unwrap();
    let key = tsig::key(KEY).unwrap();
    publication.send(BIND, Some(&key)).await.unwrap();
}

/// An end-entity of these names, its key, and the root that issued it.
fn issue(common_name: &str, alternative: Option<&str>) -> (X509, PKey<Private>, X509) {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = || PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let name = |text| {
        let mut name = X509Name::builder().unwrap();
        name.append_entry_by_text("CN", text).unwrap();
        name.build()
    };
    let [root_key, end_key] = [key(), key()];
    let begin = |subject, key: &PKey<Private>| {
        let mut certificate = X509Builder::new().unwrap();
        certificate.set_version(2).unwrap();
        certificate.set_subject_name(&name(subject)).unwrap();
        certificate.set_issuer_name(&name("root")).unwrap();
        let [from, until] = [0, 9].map(|days| Asn1Time::days_from_now(days).unwrap());
        certificate.set_not_before(&from).unwrap();
        certificate.set_not_after(&until).unwrap();
        certificate.set_pubkey(key).unwrap();
        certificate
    };
    let mut root = begin("root", &root_key);
    let ca = BasicConstraints::new().critical().ca().build().unwrap();
    root.append_extension(ca).unwrap();
    root.sign(&root_key, MessageDigest::sha256()).unwrap();
    let root = root.build();
    let mut end = begin(common_name, &end_key);
    if let Some(alternative) = alternative {
        let names = SubjectAlternativeName::new()
            .dns(alternative)
            .build(&end.x509v3_context(Some(&root), None))
            .unwrap();
        end.append_extension(names).unwrap();
    }
    end.sign(&root_key, MessageDigest::sha256()).unwrap();
    (end.build(), end_key, root)
}
