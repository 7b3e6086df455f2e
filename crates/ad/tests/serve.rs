//! Servers and clients, with a DNS server between them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Files, NAME, in_own_network, with_root};
use lastbyte_ad::client::{Connector, Settings, Use};
use lastbyte_ad::dns::{Client, tsig};
use lastbyte_ad::fetch::{Fetched, fetch};
use lastbyte_ad::http::Url;
use lastbyte_ad::publish::{Event, Publication, Source, Watch, watch};
use lastbyte_ad::serve::{ChainFiles, Config, Limits, Order, Server};
use lastbyte_ad::test_servers::{BIND, KEY, bind};
use lastbyte_pki::{Chain, test_chains};
use openssl::ssl::{SslContext, SslMethod, SslVersion};
use pqtlsad::Part;
use pqtlsad::client::Outcome;
use pqtlsad::extension::ExtensionType;
use pqtlsad::flight::InitialWindow;
use pqtlsad::openssl::EndEntity;
use pqtlsad::record::RecordType;
use pqtlsad::server::PublicChain;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const TTL: Duration = Duration::from_secs(300);

/// Where the TLS server listens; DNS says so.
const SERVER: &str = "127.0.0.9:443";

const ZONE: &str = "server A 127.0.0.9";

#[test]
fn what_dns_delivers_is_left_out() {
    for (algorithm, count) in [("ml-dsa-65", 1), ("ml-dsa-65", 2), ("slh-dsa-sha2-192f", 2)] {
        let chain = with_root(algorithm);
        let files = Files::new(&chain);
        in_own_network(|| bind(ZONE), async {
            let running = Running::start(&[&files]).await;
            publish(&chain, count).await;
            for record_type in [EndEntity::RawPublicKey, EndEntity::Carrier] {
                let fetched = get(&files, |settings| settings.end_entity = record_type).await;
                let handshake = &fetched.handshake;
                let offer = handshake.result.as_ref().unwrap();
                assert_eq!(offer.certificates().len(), count);
                let omitted: usize = chain
                    .certificates()
                    .iter()
                    .rev()
                    .take(count)
                    .map(|certificate| certificate.to_der().unwrap().len() + 5)
                    .sum();
                if count == 1 {
                    assert_eq!(handshake.savings.bytes_omitted, omitted);
                    assert_eq!(handshake.savings.round_trips(), 1);
                } else {
                    assert!(handshake.savings.bytes_omitted < omitted);
                    assert!(handshake.savings.bytes_omitted > omitted / 2);
                }
                assert!(handshake.times.connect >= handshake.times.name_lookup);
                assert!(handshake.times.app_connect > handshake.times.connect);
            }
            let plain = get_with(&files, Use::Nothing, |_| {}).await;
            assert_eq!(outcome(&plain), Outcome::NoRecord);
            let served = running.stop().await;
            assert_eq!(served.served().handshakes.load(Ordering::Relaxed), 3);
            assert_eq!(served.served().shortened.load(Ordering::Relaxed), 2);
        });
    }
}

#[test]
fn a_record_is_kept_for_its_ttl() {
    let chain = with_root("ecdsa-p256");
    let files = Files::new(&chain);
    in_own_network(|| bind(ZONE), async {
        let running = Running::start(&[&files]).await;
        let chains = [(&public(&chain), 1)];
        let ttl = Duration::from_secs(2);
        let publication = Publication::new(NAME, chains, RecordType::DEFAULT, ttl).unwrap();
        let key = tsig::key(KEY).unwrap();
        publication.send(BIND, Some(&key)).await.unwrap();
        let connector = connector(&files, |_| {});
        let again = async || {
            let fetched = fetch(&connector, &url(), Use::Record, TTL, &mut Vec::new()).await;
            let fetched = fetched.unwrap();
            assert_eq!(outcome(&fetched), Outcome::Used);
            fetched.handshake.times.record
        };
        assert!(again().await.is_some());
        // Nobody was asked.
        assert_eq!(again().await, None);
        tokio::time::sleep(ttl).await;
        assert!(again().await.is_some());
        running.stop().await;
    });
}

#[test]
fn every_failure_of_dns_ends_in_plain_tls() {
    let chain = with_root("ecdsa-p256");
    let files = Files::new(&chain);
    let other = test_chains::for_name(NAME).unwrap();
    in_own_network(|| bind(ZONE), async {
        let running = Running::start(&[&files]).await;
        let fetched = get(&files, |_| {}).await;
        assert_eq!(outcome(&fetched), Outcome::NoRecord);

        publish(&other, 1).await;
        let fetched = get(&files, |_| {}).await;
        assert_eq!(outcome(&fetched), Outcome::Invalid, "of another CA");

        publish(&chain, 2).await;
        let fetched = get(&files, |settings| settings.extension = ExtensionType(65)).await;
        assert_eq!(outcome(&fetched), Outcome::RefusedByServer);

        running.stop().await;
    });
}

#[test]
fn a_record_that_comes_after_tcp_is_late_unless_it_is_waited_for() {
    let chain = with_root("ml-dsa-65");
    let files = Files::new(&chain);
    in_own_network(|| bind(ZONE), async {
        let running = Running::start(&[&files]).await;
        publish(&chain, 1).await;
        let slow = slow_relay(BIND, Duration::from_millis(300)).await;
        let get = async |grace| {
            let settings = Settings {
                ca: Some(files.root.clone()),
                connect: Some(SERVER.parse().unwrap()),
                grace,
                ..Settings::default()
            };
            let dns = Arc::new(Client::new([slow.into()]));
            let connector = Connector::new(dns, settings).unwrap();
            let url = url();
            fetch(&connector, &url, Use::Record, TTL, &mut Vec::new())
                .await
                .unwrap()
        };
        let late = get(Duration::ZERO).await;
        assert_eq!(outcome(&late), Outcome::Late);
        assert_eq!(late.handshake.times.record, None);
        assert!(
            late.total < Duration::from_millis(300),
            "it waits for nothing"
        );
        let waited = get(Duration::from_secs(10)).await;
        assert_eq!(outcome(&waited), Outcome::Used);
        assert!(waited.handshake.times.record.unwrap() >= Duration::from_millis(300));
        let too_late = get(Duration::from_millis(50)).await;
        assert_eq!(outcome(&too_late), Outcome::Late);
        running.stop().await;
    });
}

#[test]
fn a_renewed_chain_replaces_the_old_one_without_a_failure() {
    let old = test_chains::for_name(NAME).unwrap();
    let new = test_chains::for_name(NAME).unwrap();
    let files = Files::new(&old);
    // Clients trust both roots.
    let both = [&old, &new]
        .map(|chain| chain.root().to_pem().unwrap())
        .concat();
    let roots = files.folder.path().join("roots.pem");
    std::fs::write(&roots, both).unwrap();
    let trusting = |settings: &mut Settings| settings.ca = Some(roots.clone());
    in_own_network(|| bind(ZONE), async {
        let running = Running::start(&[&files]).await;
        let (source, to) = watched(&files);
        let events = Arc::new(Mutex::new(Vec::new()));
        let said = Arc::clone(&events);
        let watching = tokio::spawn(async move {
            watch(&source, &to, |event| said.lock().unwrap().push(event)).await
        });
        let published = |times| {
            let events = Arc::clone(&events);
            until(move || {
                let events = events.lock().unwrap();
                let published = events
                    .iter()
                    .filter(|event| matches!(event, Event::Published { .. }));
                published.count() >= times
            })
        };
        published(1).await;
        let connector = connector(&files, trusting);
        let cached = connector.look_up(NAME).await.unwrap();
        assert_eq!(outcome(&get(&files, trusting).await), Outcome::Used);

        files.write(&new);
        published(2).await;
        let fetched = get(&files, trusting).await;
        let digest = |chain: &Chain| public(chain).digest();
        assert_eq!(*fetched.handshake.result.unwrap().digest(), digest(&new));
        // What a resolver still holds is good, for the TTL: what has expired goes within a second.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let fetched = fetch(
            &connector,
            &url(),
            Use::Looked(cached),
            TTL,
            &mut Vec::new(),
        )
        .await;
        let fetched = fetched.unwrap();
        assert_eq!(*fetched.handshake.result.unwrap().digest(), digest(&old));
        // Who has no record gets the new one.
        let plain = get_with(&files, Use::Nothing, trusting).await;
        let sent = plain.handshake.sent[0].to_der().unwrap();
        assert_eq!(sent, new.certificates()[0].to_der().unwrap());
        watching.abort();
        running.stop().await;
    });
}

#[test]
fn the_record_of_a_chain_that_the_server_lacks_is_not_published() {
    let old = test_chains::for_name(NAME).unwrap();
    let new = Files::new(&test_chains::for_name(NAME).unwrap());
    let files = Files::new(&old);
    in_own_network(|| bind(ZONE), async {
        let running = Running::start(&[&files]).await;
        publish(&old, 2).await;
        let (source, to) = watched(&new);
        let mut events = Vec::new();
        let watched = watch(&source, &to, |event| events.push(event));
        assert!(
            tokio::time::timeout(Duration::from_secs(3), watched)
                .await
                .is_err()
        );
        assert!(matches!(events[..], [Event::Waiting]), "{events:?}");
        assert_eq!(outcome(&get(&files, |_| {}).await), Outcome::Used);
        running.stop().await;
    });
}

#[test]
fn chains_are_chosen_by_name_and_by_algorithm() {
    let ml_dsa = with_root("ml-dsa-65");
    let ecdsa = with_root("ecdsa-p256");
    let other = test_chains::for_name("other.example").unwrap();
    let files = [&ml_dsa, &ecdsa, &other].map(Files::new);
    in_own_network(|| bind("server A 127.0.0.9\nother A 127.0.0.9"), async {
        let running = Running::start(&[&files[0], &files[1], &files[2]]).await;
        let chains = [(&public(&ml_dsa), 1), (&public(&ecdsa), 1)];
        let publication = Publication::new(NAME, chains, RecordType::DEFAULT, TTL).unwrap();
        publication
            .send(BIND, Some(&tsig::key(KEY).unwrap()))
            .await
            .unwrap();
        for (files, chain) in [(&files[0], &ml_dsa), (&files[1], &ecdsa)] {
            let fetched = get(files, |_| {}).await;
            let offer = fetched.handshake.result.unwrap();
            assert_eq!(*offer.digest(), public(chain).topmost(1).unwrap().digest());
        }
        let connector = connector(&files[2], |_| {});
        let url: Url = "https://other.example/".parse().unwrap();
        let fetched = fetch(&connector, &url, Use::Record, TTL, &mut Vec::new())
            .await
            .unwrap();
        assert_eq!(outcome(&fetched), Outcome::NoRecord);
        running.stop().await;
    });
}

#[test]
fn connections_are_bounded_in_number_and_in_time() {
    let files = Files::new(&with_root("ecdsa-p256"));
    in_own_network(|| bind(ZONE), async {
        let limits = Limits {
            connections: 2,
            // All clients here have one address, which would have half of them.
            of_one: Some(2),
            handshake: Duration::from_millis(500),
            idle: Duration::from_millis(500),
            drain: Duration::from_millis(200),
            ..Limits::default()
        };
        let running = Running::start_with(&[&files], limits).await;
        // Two clients that say nothing take all the room, and give way.
        let mut silent = Vec::new();
        for _ in 0..2 {
            silent.push(TcpStream::connect(SERVER).await.unwrap());
        }
        get(&files, |_| {}).await;
        for mut stream in silent {
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "it is closed");
        }
        // A connection over which nothing goes is closed.
        let connector = connector(&files, |_| {});
        let idle = connector.connect(NAME, 443, Use::Nothing).await;
        let mut idle = idle.unwrap().stream;
        let start = tokio::time::Instant::now();
        let _ = idle.read(&mut [0]).await;
        assert!(
            start.elapsed() >= Duration::from_millis(400),
            "{:?}",
            start.elapsed()
        );

        let said = Arc::clone(&running.said);
        running.stop().await;
        let said = said.lock().unwrap();
        let timeouts = said.iter().filter(|line| line.contains("not done in time"));
        assert_eq!(timeouts.count(), 1, "one line for a cause: {said:?}");
    });
}

#[test]
fn a_server_that_stops_lets_connections_end() {
    let files = Files::new(&with_root("ecdsa-p256"));
    in_own_network(|| bind(ZONE), async {
        let running = Running::start(&[&files]).await;
        let connector = connector(&files, |_| {});
        let connection = connector.connect(NAME, 443, Use::Nothing).await.unwrap();
        let mut stream = connection.stream;
        let stopping = tokio::spawn(running.stop());
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(
            TcpStream::connect(SERVER).await.is_err(),
            "it accepts no more"
        );
        let request = format!("GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(
            answer.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
        drop(stream);
        stopping.await.unwrap();
    });
}

#[test]
fn clients_of_plain_tls_get_the_whole_chain() {
    let chain = with_root("ecdsa-p256");
    let files = Files::new(&chain);
    in_own_network(|| bind(ZONE), async {
        let running = Running::start(&[&files]).await;
        let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
        context.set_ca_file(&files.root).unwrap();
        context.set_verify(openssl::ssl::SslVerifyMode::PEER);
        context
            .set_max_proto_version(Some(SslVersion::TLS1_3))
            .unwrap();
        let mut ssl = openssl::ssl::Ssl::new(&context.build()).unwrap();
        ssl.param_mut().set_host(NAME).unwrap();
        let stream = TcpStream::connect(SERVER).await.unwrap();
        let mut stream = tokio_openssl::SslStream::new(ssl, stream).unwrap();
        std::pin::Pin::new(&mut stream).connect().await.unwrap();
        assert_eq!(stream.ssl().peer_cert_chain().unwrap().len(), 2);
        running.stop().await;
    });
}

/// A server that runs, and its backend.
struct Running {
    server: Arc<Server>,
    orders: mpsc::UnboundedSender<Order>,
    task: tokio::task::JoinHandle<()>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Running {
    async fn start(files: &[&Files]) -> Running {
        Running::start_with(files, Limits::default()).await
    }

    async fn start_with(files: &[&Files], limits: Limits) -> Running {
        let backend = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = backend.local_addr().unwrap();
        tokio::spawn(greet(backend));
        let chain_files = |files: &&Files| ChainFiles {
            chain: files.chain.clone(),
            key: files.key.clone(),
        };
        let chains = files.iter().map(chain_files).collect();
        let server = Server::new(Config {
            ttl: TTL,
            end_entity: EndEntity::Carrier,
            limits,
            ..Config::new(chains, &address.to_string())
        });
        let server = Arc::new(server.unwrap());
        let listener = TcpListener::bind(SERVER).await.unwrap();
        let (orders, received) = mpsc::unbounded_channel();
        let said = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&said);
        let task = tokio::spawn(Arc::clone(&server).run(listener, received, move |line| {
            lines.lock().unwrap().push(line.to_owned())
        }));
        Running {
            server,
            orders,
            task,
            said,
        }
    }

    async fn stop(self) -> Arc<Server> {
        let _ = self.orders.send(Order::Stop);
        self.task.await.unwrap();
        self.server
    }
}

/// Answers each request with a greeting.
async fn greet(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut request = vec![0; 4096];
            if stream.read(&mut request).await.unwrap_or(0) > 0 {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
                let _ = stream.write_all(answer).await;
            }
        });
    }
}

/// Relays to a DNS server over TCP, and holds its answers back.
async fn slow_relay(server: SocketAddr, delay: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                let mut server = TcpStream::connect(server).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    address
}

fn public(chain: &Chain) -> PublicChain {
    PublicChain::new(chain.certificates().to_vec()).unwrap()
}

async fn publish(chain: &Chain, count: usize) {
    let chains = [(&public(chain), count)];
    let publication = Publication::new(NAME, chains, RecordType::DEFAULT, TTL).unwrap();
    let key = tsig::key(KEY).unwrap();
    publication.send(BIND, Some(&key)).await.unwrap();
}

/// What is published of a chain, whole, and where.
fn watched(files: &Files) -> (Source, Watch) {
    let source = Source {
        name: NAME.to_owned(),
        files: vec![files.chain.clone()],
        part: Some(Part::EndEntity),
        window: InitialWindow::default(),
        record_type: RecordType::DEFAULT,
        ttl: TTL,
    };
    let to = Watch {
        dns: BIND,
        key: Some(tsig::key(KEY).unwrap()),
        tls: SERVER.parse().unwrap(),
        extension: ExtensionType::DEFAULT,
    };
    (source, to)
}

fn connector(files: &Files, change: impl FnOnce(&mut Settings)) -> Connector {
    let mut settings = Settings {
        ca: Some(files.root.clone()),
        // Without it, a test on a busy machine would tell nothing.
        grace: Duration::from_secs(10),
        ..Settings::default()
    };
    change(&mut settings);
    Connector::new(Arc::new(Client::new([BIND.into()])), settings).unwrap()
}

fn url() -> Url {
    format!("https://{NAME}/").parse().unwrap()
}

async fn get(files: &Files, change: impl FnOnce(&mut Settings)) -> Fetched {
    get_with(files, Use::Record, change).await
}

async fn get_with(files: &Files, how: Use, change: impl FnOnce(&mut Settings)) -> Fetched {
    let connector = connector(files, change);
    let mut body = Vec::new();
    let fetched = fetch(&connector, &url(), how, TTL, &mut body)
        .await
        .unwrap();
    assert_eq!(fetched.status, 200);
    assert_eq!(body, b"hello");
    fetched
}

fn outcome(fetched: &Fetched) -> Outcome {
    match &fetched.handshake.result {
        Ok(_) => Outcome::Used,
        Err(fallback) => fallback.outcome,
    }
}

async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
