//! What happens to connections of `ad serve`: who waits for whom, how they end, what is told of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use common::{Files, NAME, with_root};
use lastbyte_ad::serve::{
    AccessLogTo, ChainFiles, ClientAddress, Config, Limits, Order, Server, UnknownNames,
};
use openssl::ssl::{Ssl, SslContext, SslMethod, SslVerifyMode};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_openssl::SslStream;

/// Runs a test on one thread: what computes there keeps all others waiting.
fn on_one_thread<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bounded = async { tokio::time::timeout(Duration::from_secs(200), test).await };
    runtime.block_on(bounded).unwrap()
}

#[test]
fn what_is_established_does_not_wait_for_signatures() {
    let files = Files::new(&with_root("slh-dsa-sha2-128s"));
    on_one_thread(async {
        let running = Running::start(&files, echo().await, |_| {}).await;
        let mut established = running.connect("127.0.0.1").await.unwrap();
        let signed = running.many("127.0.0.1", 6).await;
        assert_eq!(ping(&mut established).await, "ping");
        // One takes a hundred times as long as this.
        let signed = signed.load(Ordering::Relaxed);
        assert!(signed < 3, "{signed} signatures came first");
    });
}

#[test]
fn an_address_with_many_handshakes_delays_others_by_the_one_under_way() {
    let files = Files::new(&with_root("slh-dsa-sha2-128s"));
    on_one_thread(async {
        let running = Running::start(&files, echo().await, |_| {}).await;
        let signed = running.many("127.0.0.1", 8).await;
        let mut other = running.connect("127.0.0.2").await.unwrap();
        let signed = signed.load(Ordering::Relaxed);
        // As many at a time as there are threads, and the one that is told late.
        let threads = std::thread::available_parallelism()
            .unwrap()
            .get()
            .saturating_sub(1)
            .max(1);
        assert!(signed <= 2 * threads + 1, "{signed} signatures came first");
        assert_eq!(ping(&mut other).await, "ping");
    });
}

#[test]
fn silent_clients_of_one_address_keep_nobody_else_out() {
    let files = Files::new(&with_root("ecdsa-p256"));
    on_one_thread(async {
        let backend = echo().await;
        let running = Running::start(&files, backend, |config| {
            config.limits = Limits {
                connections: 20,
                of_one: Some(10),
                ..config.limits
            };
        })
        .await;
        let mut silent = Vec::new();
        for _ in 0..50 {
            silent.push(running.tcp("127.0.0.1").await.unwrap());
        }
        // Long before their time is over.
        let mut other = running.connect("127.0.0.2").await.unwrap();
        assert_eq!(ping(&mut other).await, "ping");
        let mut own = running.connect("127.0.0.1").await.unwrap();
        assert_eq!(ping(&mut own).await, "ping", "the oldest ones give way");
        let mut first = silent.swap_remove(0);
        assert_eq!(first.read(&mut [0]).await.unwrap_or(0), 0, "it is closed");
    });
}

/// Two addresses have their handshakes done, and say nothing then.
#[test]
fn sessions_without_a_request_keep_nobody_out() {
    let files = Files::new(&with_root("ecdsa-p256"));
    on_one_thread(async {
        let running = Running::start(&files, echo().await, |config| {
            config.limits = Limits {
                connections: 20,
                of_one: Some(10),
                ..config.limits
            };
        })
        .await;
        let mut used = running.connect("127.0.0.3").await.unwrap();
        assert_eq!(ping(&mut used).await, "ping");
        let mut silent = Vec::new();
        for _ in 0..10 {
            for address in ["127.0.0.1", "127.0.0.2"] {
                silent.push(running.connect(address).await.unwrap());
            }
        }
        for address in ["127.0.0.4", "127.0.0.3", "127.0.0.1"] {
            let mut other = running.connect(address).await.unwrap();
            assert_eq!(ping(&mut other).await, "ping", "{address}");
        }
        assert_eq!(ping(&mut used).await, "ping", "who has asked stays");
    });
}

#[test]
fn silent_clients_are_held_and_are_no_handshakes() {
    const HANDSHAKES: usize = 3;
    let files = Files::new(&with_root("ecdsa-p256"));
    on_one_thread(async {
        let running = Running::start(&files, echo().await, |config| {
            config.limits = Limits {
                connections: 100,
                of_one: Some(50),
                handshakes: HANDSHAKES,
                ..config.limits
            };
        })
        .await;
        let mut silent = Vec::new();
        // Those that say nothing, a byte, a header, and less of a record than it tells.
        for said in [
            &[][..],
            &[0x16],
            &[0x16, 3, 1, 2, 0],
            &[0x16, 3, 1, 2, 0, 1],
        ] {
            for _ in 0..3 * HANDSHAKES {
                let mut stream = running.tcp("127.0.0.1").await.unwrap();
                stream.write_all(said).await.unwrap();
                silent.push(stream);
            }
        }
        let mut speaking = Vec::new();
        for _ in 0..=HANDSHAKES {
            let mut stream = running.tcp("127.0.0.1").await.unwrap();
            // The first record of a ClientHello, of two bytes: there is more to come.
            stream.write_all(&[0x16, 3, 1, 0, 2, 1, 0]).await.unwrap();
            speaking.push(stream);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let read = speaking[0].read(&mut [0]).await;
        assert_eq!(read.unwrap_or(0), 0, "the oldest handshake gives way");
        let mut other = running.connect("127.0.0.2").await.unwrap();
        assert_eq!(ping(&mut other).await, "ping");
        for (number, stream) in silent.iter().enumerate() {
            let read = stream.try_read(&mut [0]);
            let error = read.expect_err(&format!("the silent one {number} is closed"));
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
        // Who says no more is answered by TLS, whatever was said.
        for stream in &mut silent[3 * HANDSHAKES..] {
            stream.shutdown().await.unwrap();
            let read = stream.read(&mut [0; 100]).await;
            assert!(read.is_ok_and(|length| length < 100));
        }
    });
}

#[test]
fn a_hello_that_comes_byte_by_byte_is_one() {
    let files = Files::new(&with_root("ecdsa-p256"));
    on_one_thread(async {
        let running = Running::start(&files, echo().await, |_| {}).await;
        let stream = Trickling(running.tcp("127.0.0.1").await.unwrap());
        let mut client = handshake(&running.context, stream).await.unwrap();
        assert_eq!(ping(&mut client).await, "ping");
    });
}

/// Sends a byte at a time.
struct Trickling(TcpStream);

impl AsyncRead for Trickling {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Trickling {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write(context, &bytes[..bytes.len().min(1)]);
        // The server looks at it between two of them.
        std::thread::yield_now();
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[test]
fn an_answer_comes_to_a_client_that_still_sends() {
    const ANSWER: usize = 200_000;
    /// What has left a backend at least when it closes: what it has not sent yet is lost then, whoever asks.
    const SENT: usize = 1 << 14;
    let files = Files::new(&with_root("ecdsa-p256"));
    on_one_thread(async {
        // It answers after the first byte, and closes without reading the others: the system resets the connection.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let backend = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    stream.read_exact(&mut [0]).await.unwrap();
                    let _ = stream.write_all(&[b'x'; ANSWER]).await;
                });
            }
        });
        let running = Running::start(&files, backend, |_| {}).await;
        for _ in 0..12 {
            let client = running.connect("127.0.0.1").await.unwrap();
            let (mut reader, mut writer) = tokio::io::split(client);
            let uploading =
                tokio::spawn(async move { while writer.write_all(&[7; 1 << 14]).await.is_ok() {} });
            let mut answer = Vec::new();
            let ended = reader.read_to_end(&mut answer).await;
            assert!(answer.len() >= SENT, "{} bytes: {ended:?}", answer.len());
            uploading.abort();
        }
    });
}

#[test]
fn a_client_that_has_sent_all_gets_its_answer() {
    let files = Files::new(&with_root("ecdsa-p256"));
    on_one_thread(async {
        // It answers when it has all.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let backend = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                stream.read_to_end(&mut request).await.unwrap();
                request.reverse();
                stream.write_all(&request).await.unwrap();
            }
        });
        let running = Running::start(&files, backend, |_| {}).await;
        for goodbye in [Goodbye::OfTls, Goodbye::OfTcp] {
            let mut client = running.connect("127.0.0.1").await.unwrap();
            client.write_all(b"abc").await.unwrap();
            match goodbye {
                Goodbye::OfTls => client.shutdown().await.unwrap(),
                Goodbye::OfTcp => client.get_mut().shutdown().await.unwrap(),
            }
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, b"cba", "{goodbye:?}");
        }
    });
}

#[derive(Clone, Copy, Debug)]
enum Goodbye {
    OfTls,
    OfTcp,
}

#[test]
fn each_connection_is_a_line_of_the_access_log() {
    let files = Files::new(&with_root("ecdsa-p256"));
    let path = files.folder.path().join("access.log");
    on_one_thread(async {
        let running = Running::start(&files, echo().await, |config| {
            config.access_log = Some(AccessLogTo::File(path.clone()));
        })
        .await;
        let mut client = running.connect("127.0.0.3").await.unwrap();
        assert_eq!(ping(&mut client).await, "ping");
        client.shutdown().await.unwrap();
        client.read_to_end(&mut Vec::new()).await.unwrap();
        drop(client);
        // This one speaks no TLS.
        let mut stream = running.tcp("127.0.0.4").await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
        running.stop().await;
    });
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    let [served, failed] = &lines[..] else {
        panic!()
    };
    assert!(served["client"].as_str().unwrap().starts_with("127.0.0.3:"));
    assert_eq!(served["name"], NAME);
    assert_eq!(served["group"], "X25519MLKEM768");
    assert_eq!(served["protocol"], Value::Null);
    assert_eq!(served["delivery"], "whole");
    assert_eq!(served["bytes_sent"], 4);
    assert_eq!(served["bytes_received"], 4);
    assert_eq!(served["bytes_omitted"], 0);
    assert_eq!(served["end"], "complete");
    let seconds = |name: &str| served[name].as_f64().unwrap();
    assert!(seconds("handshake_s") > 0.0 && seconds("handshake_s") <= seconds("duration_s"));
    assert_eq!(failed["end"], "failed");
    assert_eq!(failed["reason"], "the handshake failed: http request");
    assert_eq!(failed["group"], Value::Null);
}

#[test]
fn a_name_that_no_chain_is_for_is_told_with_its_refusal() {
    let files = Files::new(&with_root("ecdsa-p256"));
    let path = files.folder.path().join("access.log");
    let said = on_one_thread(async {
        let running = Running::start(&files, echo().await, |config| {
            config.access_log = Some(AccessLogTo::File(path.clone()));
            config.unknown_names = UnknownNames::Refused;
        })
        .await;
        for name in ["other.example", "third.example", ""] {
            let mut ssl = Ssl::new(&running.context).unwrap();
            if !name.is_empty() {
                ssl.set_hostname(name).unwrap();
            }
            let stream = running.tcp("127.0.0.5").await.unwrap();
            let mut client = SslStream::new(ssl, stream).unwrap();
            assert!(Pin::new(&mut client).connect().await.is_err());
        }
        running.connect("127.0.0.5").await.unwrap();
        running.stop().await
    });
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (name, reason) in [
        (
            "other.example".into(),
            "no chain is for the name that it asks for",
        ),
        (
            "third.example".into(),
            "no chain is for the name that it asks for",
        ),
        (Value::Null, "it asks for no name"),
    ] {
        let reason = format!("the handshake failed: {reason}");
        let is_told = |line: &Value| line["name"] == name && line["reason"] == reason;
        assert!(lines.iter().any(is_told), "{text}");
    }
    // Clients choose names: those don't tell causes apart.
    let refusals = said.iter().filter(|line| line.contains("no chain is for"));
    assert_eq!(refusals.count(), 1, "{said:?}");
}

#[test]
fn a_connection_can_change_to_a_websocket() {
    let files = Files::new(&with_root("ecdsa-p256"));
    on_one_thread(async {
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let (backend, mut heads) = http(answer).await;
        let running = Running::start(&files, backend, |config| {
            config.clients = ClientAddress::Forwarded;
        })
        .await;
        let mut client = running.connect("127.0.0.3").await.unwrap();
        let request = format!(
            "GET /chat HTTP/1.1\r\nHost: {NAME}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let head = head(&mut client).await.to_lowercase();
        assert!(head.starts_with("http/1.1 101"), "{head}");
        assert!(head.contains("upgrade: websocket"), "{head}");
        let told = heads.recv().await.unwrap().to_lowercase();
        assert!(told.contains("x-forwarded-for: 127.0.0.3\r\n"), "{told}");
        assert!(told.contains("connection: upgrade\r\n"), "{told}");
        for _ in 0..2 {
            assert_eq!(ping(&mut client).await, "ping");
        }
        client.shutdown().await.unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"");
    });
}

#[test]
fn a_request_ends_where_this_server_says_that_it_does() {
    let files = Files::new(&with_root("ecdsa-p256"));
    on_one_thread(async {
        let (backend, mut heads) = http("HTTP/1.1 204 No Content\r\n\r\n").await;
        let running = Running::start(&files, backend, |config| {
            config.clients = ClientAddress::Forwarded;
        })
        .await;
        // Whoever reads the length takes what follows for a request of its own, which nobody has sent.
        let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n";
        let length = hidden.len();
        for framing in [
            format!(
                "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
                length + 5
            ),
            format!("Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{hidden}"),
            format!("Transfer-Encoding : chunked\r\nContent-Length: {length}\r\n\r\n{hidden}"),
            format!("Transfer-Encoding: xchunked\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        ] {
            let mut client = running.connect("127.0.0.3").await.unwrap();
            let request = format!("POST / HTTP/1.1\r\nHost: {NAME}\r\n{framing}");
            client.write_all(request.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let _ = client.read_to_end(&mut Vec::new()).await;
            while let Ok(head) = heads.try_recv() {
                assert!(!head.contains("6.6.6.6"), "{framing:?}: {head}");
                let framings = ["content-length:", "transfer-encoding:"];
                let lower = head.to_lowercase();
                let framings = framings.iter().filter(|name| lower.contains(*name));
                assert!(framings.count() <= 1, "{framing:?}: {head}");
            }
        }
    });
}

/// A backend that answers each head with this, tells what the head was, and sends back what comes after it.
async fn http(answer: &'static str) -> (SocketAddr, UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, heads) = unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let sender = sender.clone();
            tokio::spawn(async move {
                sender.send(head(&mut stream).await).unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
                let (mut reader, mut writer) = stream.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
        }
    });
    (address, heads)
}

/// The next head of HTTP.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// A server that runs.
struct Running {
    address: SocketAddr,
    context: SslContext,
    orders: UnboundedSender<Order>,
    task: tokio::task::JoinHandle<()>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Running {
    async fn start(
        files: &Files,
        backend: SocketAddr,
        change: impl FnOnce(&mut Config),
    ) -> Running {
        let chains = vec![ChainFiles {
            chain: files.chain.clone(),
            key: files.key.clone(),
        }];
        let mut config = Config::new(chains, &backend.to_string());
        change(&mut config);
        let server = Arc::new(Server::new(config).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (orders, received) = unbounded_channel();
        let said = Arc::<Mutex<Vec<String>>>::default();
        let lines = Arc::clone(&said);
        let say = move |line: &str| lines.lock().unwrap().push(line.to_owned());
        let task = tokio::spawn(server.run(listener, received, say));
        Running {
            address,
            context: client(files),
            orders,
            task,
            said,
        }
    }

    /// Connects from this address.
    async fn tcp(&self, from: &str) -> io::Result<TcpStream> {
        tcp(self.address, from).await
    }

    async fn connect(&self, from: &str) -> Result<SslStream<TcpStream>, String> {
        let stream = self.tcp(from).await.map_err(|error| error.to_string())?;
        handshake(&self.context, stream).await
    }

    /// Begins handshakes, each of which is counted when it is done, and comes back when all have sent their ClientHello.
    async fn many(&self, from: &str, count: usize) -> Arc<AtomicUsize> {
        let done = Arc::<AtomicUsize>::default();
        for _ in 0..count {
            let stream = self.tcp(from).await.unwrap();
            let context = self.context.clone();
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                if let Ok(client) = handshake(&context, stream).await {
                    done.fetch_add(1, Ordering::Relaxed);
                    // It stays.
                    std::future::pending::<()>().await;
                    drop(client);
                }
            });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        done
    }

    async fn stop(self) -> Vec<String> {
        let _ = self.orders.send(Order::Stop);
        self.task.await.unwrap();
        self.said.lock().unwrap().clone()
    }
}

async fn tcp(to: SocketAddr, from: &str) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0))?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn handshake<S: AsyncRead + AsyncWrite>(
    context: &SslContext,
    stream: S,
) -> Result<SslStream<S>, String>
where
    SslStream<S>: Unpin,
{
    let mut ssl = Ssl::new(context).unwrap();
    ssl.set_hostname(NAME).unwrap();
    ssl.param_mut().set_host(NAME).unwrap();
    let mut stream = SslStream::new(ssl, stream).unwrap();
    let connected = Pin::new(&mut stream).connect().await;
    connected.map_err(|error| error.to_string())?;
    Ok(stream)
}

/// What clients know, who know all signatures.
fn client(files: &Files) -> SslContext {
    let signatures: Vec<_> = lastbyte_providers::signatures().collect();
    let context = || SslContext::builder(SslMethod::tls_client());
    let mut context = lastbyte_providers::offering(&signatures, context)
        .unwrap()
        .unwrap();
    context.set_ca_file(&files.root).unwrap();
    context.set_verify(SslVerifyMode::PEER);
    context.build()
}

/// A backend that sends back what it gets.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
        }
    });
    address
}

async fn ping(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    stream.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await.unwrap();
    String::from_utf8(answer.to_vec()).unwrap()
}
