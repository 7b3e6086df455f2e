//! `lastbyte probe` over QUIC, against servers of ours over UDP, and whatever else answers there.
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use lastbyte_link::{EcnCodepoint, Time};
use lastbyte_quic::{End, Retries, Settings};
use lastbyte_tls::{Group, PacketSecret, Stack, TlsConfig, stack};

use super::*;

/// A server of HTTPS with this Alt-Svc.
fn serve_with(alt_svc: String) -> String {
    serve(acceptor(&chain(), |_| {}), move |stream| {
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nAlt-Svc: {alt_svc}\r\n\r\nok"
        );
    })
}

/// A server of QUIC at a port of this machine, so far away, for as many clients as come.
fn serve_quic(chain: &Chain, retries: Retries, one_way: Duration) -> u16 {
    let config = TlsConfig::new(Group::X25519MlKem768, chain);
    let stack: Arc<dyn Stack> = Arc::from(stack(&config).unwrap());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || carry_quic(&socket, &stack, retries, one_way));
    port
}

fn carry_quic(socket: &UdpSocket, stack: &Arc<dyn Stack>, retries: Retries, one_way: Duration) {
    let start = Instant::now();
    let mut ends: HashMap<SocketAddr, End> = HashMap::new();
    let (mut coming, mut leaving) = (Vec::new(), Vec::new());
    let mut buffer = [0; 2000];
    loop {
        let now = Time(start.elapsed().as_nanos() as u64);
        for (_, client, datagram) in due(&mut coming, now) {
            let end = ends.entry(client).or_insert_with(|| {
                let settings = Settings::with_window(40, Settings::DATAGRAM);
                End::server(stack.clone(), &settings, retries, 7)
            });
            let datagram: Vec<u8> = datagram;
            if let Some(answer) = end.receive(now, EcnCodepoint::NotEct, &datagram) {
                leaving.push((now + one_way, client, answer));
            }
            take(end, client, now + one_way, now, &mut leaving);
        }
        for (client, end) in &mut ends {
            end.on_time(now);
            take(end, *client, now + one_way, now, &mut leaving);
        }
        for (_, client, datagram) in due(&mut leaving, now) {
            socket.send_to(&datagram, client).unwrap();
        }
        let next = coming.iter().chain(&leaving).map(|(at, ..)| *at);
        let next = next
            .chain(ends.values_mut().filter_map(End::deadline))
            .min();
        let wait = next.map_or(Duration::from_secs(1), |at| at.since(now.min(at)));
        let wait = wait.max(Duration::from_micros(100));
        socket.set_read_timeout(Some(wait)).unwrap();
        if let Ok((length, client)) = socket.recv_from(&mut buffer) {
            let now = Time(start.elapsed().as_nanos() as u64);
            coming.push((now + one_way, client, buffer[..length].to_vec()));
        }
    }
}

type UnderWay = Vec<(Time, SocketAddr, Vec<u8>)>;

fn due(under_way: &mut UnderWay, now: Time) -> UnderWay {
    let is_due = |(at, ..): &(Time, SocketAddr, Vec<u8>)| *at <= now;
    let due = under_way.iter().take_while(|one| is_due(one)).count();
    under_way.drain(..due).collect()
}

fn take(end: &mut End, client: SocketAddr, at: Time, now: Time, leaving: &mut UnderWay) {
    let mut datagram = Vec::new();
    while end.transmit(now, &mut datagram).is_some() {
        leaving.push((at, client, datagram.clone()));
    }
}

/// Something that answers each datagram with others.
fn serve_udp(answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut buffer = [0; 2000];
        while let Ok((length, client)) = socket.recv_from(&mut buffer) {
            for datagram in answer(&buffer[..length]) {
                let _ = socket.send_to(&datagram, client);
            }
        }
    });
    port
}

fn far() -> Duration {
    // Longer than a busy machine has a thread wait.
    Duration::from_millis(60)
}

#[test]
fn quic_is_followed_where_alt_svc_names_it() {
    let port = serve_quic(&chain(), Retries::Never, far());
    let address = serve_with(format!("h2=\":1\", h3=\":{port}\"; ma=86400"));
    let document = found(&address);
    let quic = &document["quic"];
    assert_eq!(quic["problem"], Value::Null, "{quic}");
    assert_eq!(quic["port"], port);
    assert_eq!(quic["named_by"], "alt-svc");
    assert_eq!(quic["flights"], 1, "{quic}");
    assert_eq!(quic["retry_token_bytes"], Value::Null);
    assert_eq!(quic["first_answer"], "ack-of-part");
    assert_eq!(quic["client_datagrams"][0], 1200);
    assert_eq!(quic["credited_bytes"], 2400);
    assert_eq!(
        quic["certificate_bytes"],
        chain().certificate_message_bytes()
    );
    let rtt = quic["rtt_ms"].as_f64().unwrap();
    assert!(rtt >= 120.0, "{rtt}");
    let sent: u64 = (quic["server_datagrams"].as_array().unwrap().iter())
        .map(|bytes| bytes.as_u64().unwrap())
        .sum();
    assert_eq!(quic["credit_left_bytes"], 7200 - sent);
    // Other chains need what the hello's two datagrams don't give.
    let edges = quic["edges"].as_array().unwrap();
    let flights: Vec<_> = (edges.iter())
        .map(|edge| (edge["chain"].as_str().unwrap(), edge["flights"].clone()))
        .map(|(chain, flights)| (chain, flights.as_u64().unwrap()))
        .collect();
    assert_eq!(
        flights,
        [
            ("today", 1),
            ("ml-dsa-44", 2),
            ("ml-dsa-65", 2),
            ("ml-dsa-87", 2)
        ]
    );
    // The tickets of a connection over QUIC are not those of one over TCP.
    assert_eq!(document["tls"]["tickets"], 2);
    assert_eq!(document["tls"]["max_early_data"], 0);
    assert_eq!(document["notes"], serde_json::json!([]), "{document}");

    let never = probe(&[&address, "--quic", "never"]);
    assert!(!never.stdout.contains("QUIC"), "{}", never.stdout);
}

#[test]
fn quic_is_reported_for_people_monitoring_and_prometheus() {
    let folder = TempDir::new().unwrap();
    let metrics = at(&folder, "site.prom");
    let port = serve_quic(&chain(), Retries::Never, far());
    let address = serve_with(format!("h3=\":{port}\""));
    let textfile = metrics.to_str().unwrap();
    let ended = probe(&[&address, "--textfile", textfile]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let sentence = format!(
        "Over QUIC at UDP port {port}, which its Alt-Svc names, a handshake takes 1 round trip (2) as it is, 2 round trips (2) with \
         ml-dsa-44, 2 round trips (3) with ml-dsa-65, 2 round trips (3) with ml-dsa-87, in brackets what it takes over TCP, connect() \
         included (by arithmetic)."
    );
    let expected = [
        &*sentence,
        &format!("QUIC               UDP port {port}, as its Alt-Svc says: handshake "),
        "in 1 flight of the server",
        "QUIC answer        an acknowledgement of a part of the ClientHello",
        "no Retry",
        "for 2400 B received",
        "over QUIC          Certificate round trips over TCP  to the next edge",
        " B of chain are left",
    ];
    for line in expected {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    assert!(ended.stderr.contains("one over QUIC if it names that"));
    let metrics = fs::read_to_string(metrics).unwrap();
    for (name, value) in [
        ("success", "1"),
        ("server_flights", "1"),
        ("bytes_left", ""),
        ("handshake_seconds", ""),
        ("amplification_ratio", ""),
    ] {
        let line = format!("lastbyte_probe_quic_{name}{{host=\"{address}\"}} {value}");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    let line = probe(&[&address, "--format", "line"]).stdout;
    assert!(
        line.contains(" quic=complete quic_flights=1 quic_left="),
        "{line}"
    );
    // What was seen is read again.
    let json = probe(&[&address, "--format", "json"]).stdout;
    let file = at(&folder, "site.json");
    fs::write(&file, json).unwrap();
    let again = probe(&["--from", file.to_str().unwrap()]);
    assert!(again.stdout.contains(&sentence), "{}", again.stdout);
}

#[test]
fn credit_and_retries_are_read_off_the_wire() {
    let large = store()
        .chain(&ChainSpec::new(KeyAlgorithm::MlDsa65))
        .unwrap();
    let port = serve_quic(&large, Retries::Never, far());
    let document = found(&serve_with(format!("h3=\":{port}\"")));
    let quic = &document["quic"];
    assert_eq!(quic["flights"], 2, "{quic}");
    let [sent, received] =
        ["unvalidated_bytes", "credited_bytes"].map(|key| quic[key].as_f64().unwrap());
    assert!((3.0..3.5).contains(&(sent / received)), "{quic}");
    assert_eq!(quic["credit_left_bytes"], Value::Null);
    // Another chain than over TCP.
    let note = document["notes"][0].as_str().unwrap();
    assert!(
        note.starts_with("over QUIC its Certificate message has"),
        "{note}"
    );

    let port = serve_quic(&large, Retries::Always, far());
    let document = found(&serve_with(format!("h3=\":{port}\"")));
    let quic = &document["quic"];
    assert_eq!(quic["retry_token_bytes"], 57, "{quic}");
}

#[test]
fn quic_is_asked_for_without_alt_svc() {
    // Both at one port.
    let port = serve_quic(&chain(), Retries::Never, Duration::ZERO);
    let acceptor = acceptor(&chain(), |_| {});
    let address = listen_at(&format!("127.0.0.1:{port}"), move |socket| {
        if let Ok(mut stream) = acceptor.accept(socket) {
            request(&mut stream);
            let _ = write!(stream, "HTTP/1.1 204 No Content\r\n\r\n");
            let _ = stream.shutdown();
        }
    });
    let usual = found(&address);
    assert_eq!(usual["quic"], Value::Null);
    let ended = probe(&[&address, "--quic", "always", "--format", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_fits(&document, JSON_SCHEMA);
    let quic = &document["quic"];
    assert_eq!(
        (&quic["port"], &quic["problem"]),
        (&port.into(), &Value::Null)
    );
    assert_eq!(quic["named_by"], "asked");
    assert!(quic["handshake_ms"].is_number());
}

/// A CONNECTION_CLOSE of QUIC's own in an Initial packet, with CONNECTION_REFUSED.
fn refusal(hello: &[u8]) -> Vec<u8> {
    let vector = |at: usize| &hello[at + 1..][..usize::from(hello[at])];
    let destination = vector(5);
    let source = vector(6 + destination.len());
    let [_, secret] = PacketSecret::initial(destination).unwrap();
    let mut payload = b"\x1c\x02\x00\x04busy".to_vec();
    let mut packet = vec![0xc0, 0, 0, 0, 1, source.len() as u8];
    packet.extend(source);
    packet.extend([8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    packet.push((1 + payload.len() + 16) as u8);
    let number_at = packet.len();
    packet.push(0);
    let tag = secret.sealing().unwrap().seal(0, &packet, &mut payload);
    packet.extend([&payload[..], &tag.unwrap()].concat());
    let sample = packet[number_at + 4..].first_chunk().unwrap();
    let [mask, number, ..] = secret.header().unwrap().mask(*sample).unwrap();
    packet[0] ^= mask & 0x0f;
    packet[number_at] ^= number;
    packet
}

/// All bits but the first of its first byte are the server's to choose (RFC 9000, 17.2.1).
fn negotiation(first: u8, hello: &[u8]) -> Vec<u8> {
    let vector = |at: usize| &hello[at..][..1 + usize::from(hello[at])];
    let destination = vector(5);
    let source = vector(5 + destination.len());
    [&[first, 0, 0, 0, 0], source, destination, &[0, 0, 0, 7]].concat()
}

/// Each is one line, in little time, and what was found over TCP stays.
#[test]
fn what_is_wrong_over_quic_is_reported_beside_what_is_found_over_tcp() {
    // Its datagrams pile up.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let cases = [
        (
            silent.local_addr().unwrap().port(),
            "nothing answers within",
        ),
        (
            serve_udp(|_| vec![vec![0xff; 1200], vec![0x40; 40], vec![1]]),
            "is no QUIC",
        ),
        (
            serve_udp(|hello| vec![negotiation(0xc0, hello)]),
            "other versions of QUIC than 1",
        ),
        (
            serve_udp(|hello| vec![negotiation(0x80, hello)]),
            "other versions of QUIC than 1",
        ),
        (
            serve_udp(|hello| vec![refusal(hello)]),
            "the connection is ended: aborted by peer",
        ),
    ];
    // Last, so that nobody here has the port again once it is closed.
    let closed = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        (socket.local_addr().unwrap().port(), "nothing listens there")
    };
    for (port, expected) in cases.into_iter().chain([closed]) {
        let address = serve_with(format!("h3=\":{port}\""));
        let began = Instant::now();
        let ended = probe(&[&address, "--timeout", "900ms", "--connections", "1"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{expected}");
        let mut rows = ended.stdout.lines().filter(|line| line.contains(expected));
        let row = rows.next().unwrap_or_default();
        let begin = format!("QUIC               UDP port {port}, as its Alt-Svc says: ");
        assert!(
            row.starts_with(&begin) && rows.next().is_none(),
            "{expected}: {ended:?}"
        );
        assert!(ended.stdout.contains("status 200"), "{ended:?}");
        assert!(!ended.stdout.contains("Over QUIC at"), "{ended:?}");
        assert!(ended.stderr.lines().count() <= 1, "{ended:?}");
    }
}

#[test]
fn an_alt_svc_that_is_not_followed_is_reported() {
    for (field, expected) in [
        (
            "h3=\"alt.example:443\"",
            "probe alt.example:443, if it is yours",
        ),
        (
            "h3=:443",
            "its Alt-Svc has no \"[HOST]:PORT\" in quotation marks at byte 3, and is not followed",
        ),
        ("h3=\":0\"", "a port from 1 to 65535 at byte 3"),
    ] {
        let document = found(&serve_with(field.to_owned()));
        let note = document["notes"][0].as_str().unwrap_or_default();
        assert!(note.contains(expected), "{field}: {note}");
        assert_eq!(document["quic"], Value::Null);
    }
    for nothing in ["clear", "h2=\":443\"", "%683=\":443\"", "h3-29=\":443\""] {
        let document = found(&serve_with(nothing.to_owned()));
        assert_eq!(document["quic"], Value::Null, "{nothing}");
        assert_eq!(document["notes"], serde_json::json!([]), "{nothing}");
    }
}
