//! The DNS client and updates, with servers of the distribution.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{ask, in_own_network, records, resolver_chain};
use lastbyte_ad::dns::{
    Answer, Change, Client, DnsError, First, Name, Rtype, Server, TlsServer, Transport,
    UpdateError, tsig, update, zone_of,
};
use lastbyte_ad::test_servers::{BIND, KEY, OTHER, UNBOUND, UNBOUND_TLS, bind, knot, nsd, unbound};
use lastbyte_pki::test_chains;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

const RECORD: Rtype = Rtype::from_int(65280);

/// The sizes in bytes of the records that the servers hold: those of chains, and the largest that
/// there is room for in an answer.
const SIZES: [usize; 5] = [500, 1_100, 11_000, 36_000, 65_200];

#[test]
fn records_of_all_sizes_come_from_bind() {
    in_own_network(|| bind(&zone()), records_come_from(BIND));
}

#[test]
fn records_of_all_sizes_come_from_knot() {
    in_own_network(|| knot(&zone()), records_come_from(OTHER));
}

#[test]
fn records_of_all_sizes_come_from_nsd() {
    in_own_network(|| nsd(&zone()), records_come_from(OTHER));
}

#[test]
fn records_of_all_sizes_come_from_unbound() {
    let files = resolver_chain();
    in_own_network(
        || (bind(&zone()), unbound(BIND, &files.chain, &files.key)),
        records_come_from(UNBOUND),
    );
}

/// What fits comes by datagram, the rest over one connection.
async fn records_come_from(server: SocketAddr) {
    let client = Client::new([server.into()]);
    for size in SIZES {
        let reply = ask(&client, &name(size), RECORD, First::Udp).await.unwrap();
        assert_eq!(records(&reply).data, [content(size)]);
        assert_eq!(records(&reply).ttl, Duration::from_secs(300));
        let by_datagram = reply.message_bytes <= 1232;
        assert_eq!(by_datagram, size <= 1_100, "{reply:?}");
        let expected = if by_datagram {
            Transport::Udp
        } else {
            Transport::Tcp
        };
        assert_eq!(reply.transport, expected);
    }
    let absent = ask(&client, "absent.example", RECORD, First::Udp)
        .await
        .unwrap();
    assert_eq!(absent.answer, Answer::NoSuchName);
    let other_type = ask(&client, &name(500), Rtype::A, First::Udp)
        .await
        .unwrap();
    assert_eq!(other_type.answer, Answer::NoData);
}

#[test]
fn an_alias_leads_to_its_records_and_bounds_their_ttl() {
    let lines = format!("{}\nalias 60 CNAME second\nsecond 600 CNAME r500\n", zone());
    in_own_network(|| bind(&lines), async {
        let client = Client::new([BIND.into()]);
        let reply = ask(&client, "alias.example", RECORD, First::Udp)
            .await
            .unwrap();
        assert_eq!(records(&reply).data, [content(500)]);
        assert_eq!(records(&reply).ttl, Duration::from_secs(60));
    });
}

#[test]
fn a_connection_is_kept_and_shared() {
    in_own_network(|| bind(&zone()), async {
        let (address, accepted) = counting_relay(BIND).await;
        let client = Client::new([address.into()]);
        let names = SIZES.map(name);
        let asked = names
            .each_ref()
            .map(|name| ask(&client, name, RECORD, First::Tcp));
        let [a, b, c, d, e] = asked;
        let (a, b, c, d, e) = tokio::join!(a, b, c, d, e);
        for (reply, size) in [a, b, c, d, e].into_iter().zip(SIZES) {
            let reply = reply.unwrap();
            assert_eq!(records(&reply).data, [content(size)]);
            assert_eq!(reply.transport, Transport::Tcp);
        }
        assert_eq!(accepted.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_connection_that_the_server_closed_is_made_again() {
    in_own_network(|| (), async {
        // Answers one question for each connection.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut query = vec![0; stream.read_u16().await.unwrap().into()];
                stream.read_exact(&mut query).await.unwrap();
                query[2] |= 0x80;
                stream.write_u16(query.len() as u16).await.unwrap();
                stream.write_all(&query).await.unwrap();
            }
        });
        let client = Client::new([address.into()]);
        for _ in 0..3 {
            let reply = ask(&client, "example", RECORD, First::Tcp).await.unwrap();
            assert_eq!(reply.answer, Answer::NoData);
        }
    });
}

#[test]
fn answers_come_over_tls_from_the_server_that_was_meant() {
    let files = resolver_chain();
    let other = test_chains::for_name("resolver.example").unwrap();
    let other_root = files.folder.path().join("other.pem");
    fs::write(&other_root, other.root().to_pem().unwrap()).unwrap();
    in_own_network(
        || (bind(&zone()), unbound(BIND, &files.chain, &files.key)),
        async {
            let over_tls = |identity: &str, ca| {
                Client::new([Server {
                    address: UNBOUND_TLS,
                    tls: Some(TlsServer::new(identity, Some(ca)).unwrap()),
                }])
            };
            let client = over_tls("resolver.example", &files.root);
            for size in SIZES {
                let reply = ask(&client, &name(size), RECORD, First::Udp).await.unwrap();
                assert_eq!(records(&reply).data, [content(size)]);
                assert_eq!(reply.transport, Transport::Tls);
            }
            for (client, reason) in [
                (over_tls("other.example", &files.root), "hostname mismatch"),
                (over_tls("127.0.0.3", &files.root), "IP address mismatch"),
                (over_tls("resolver.example", &other_root), "certificate"),
            ] {
                let refused = ask(&client, &name(500), RECORD, First::Udp)
                    .await
                    .unwrap_err();
                let DnsError::Tls { reason: said, .. } = &refused else {
                    panic!("{refused}");
                };
                assert!(said.contains(reason), "{said}");
            }
        },
    );
}

#[test]
fn failures_of_servers_are_told_apart() {
    in_own_network(|| bind(&zone()), async {
        let client = |server: SocketAddr| {
            Client::new([server.into()]).with_patience(Duration::from_millis(100))
        };
        let refused = ask(&client(BIND), "elsewhere.test", RECORD, First::Udp).await;
        let refused = refused.unwrap_err().to_string();
        assert_eq!(refused, "127.0.0.1:53: the server answers REFUSED");

        let closed = ask(&client(OTHER), "example", RECORD, First::Udp)
            .await
            .unwrap_err();
        assert!(matches!(closed, DnsError::Io { .. }), "{closed}");

        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap();
        let late = ask(&client(address), "example", RECORD, First::Udp)
            .await
            .unwrap_err();
        assert!(
            matches!(late, DnsError::Timeout { attempts: 2, .. }),
            "{late}"
        );

        let both = Client::new([address.into(), BIND.into()]);
        let both = both.with_patience(Duration::from_millis(500));
        let reply = ask(&both, &name(500), RECORD, First::Udp).await.unwrap();
        assert_eq!(
            records(&reply).data,
            [content(500)],
            "the next server is asked"
        );
    });
}

#[test]
fn forged_datagrams_are_ignored() {
    in_own_network(|| (), async {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            let mut query = [0; 512];
            let (length, client) = server.recv_from(&mut query).await.unwrap();
            let answer = |change: fn(&mut [u8])| {
                let mut answer = query[..length].to_vec();
                answer[2] |= 0x80;
                change(&mut answer);
                answer
            };
            for forged in [
                answer(|answer| answer[0] ^= 1),
                answer(|answer| answer[13] ^= 1),
                answer(|answer| answer[2] &= 0x7f),
                answer(|answer| answer[5] = 0),
            ] {
                server.send_to(&forged, client).await.unwrap();
            }
            // NXDOMAIN, to tell it from the others.
            let true_answer = answer(|answer| answer[3] |= 3);
            server.send_to(&true_answer, client).await.unwrap();
        });
        let client = Client::new([address.into()]);
        let reply = ask(&client, "example", RECORD, First::Udp).await.unwrap();
        assert_eq!(reply.answer, Answer::NoSuchName);
    });
}

#[test]
fn bind_takes_signed_updates_and_no_others() {
    in_own_network(|| bind(""), async {
        let zone = zone_of(BIND, &name(500).parse().unwrap()).await.unwrap();
        assert_eq!(zone.to_string(), "example");
        let key = tsig::key(KEY).unwrap();
        let client = Client::new([BIND.into()]);
        let owner: Name = "new.example".parse().unwrap();
        let add = |size| Change::Add {
            name: owner.clone(),
            rtype: RECORD,
            ttl: Duration::from_secs(77),
            data: content(size),
        };
        let remove = Change::Remove {
            name: owner.clone(),
            rtype: RECORD,
        };
        for size in [36_000, 65_000, 600] {
            let changes = [remove.clone(), add(size)];
            update(BIND, &zone, &changes, Some(&key)).await.unwrap();
            let reply = ask(&client, "new.example", RECORD, First::Tcp)
                .await
                .unwrap();
            assert_eq!(
                records(&reply).data,
                [content(size)],
                "the old record is gone"
            );
            assert_eq!(records(&reply).ttl, Duration::from_secs(77));
        }
        update(BIND, &zone, &[remove], Some(&key)).await.unwrap();
        let reply = ask(&client, "new.example", RECORD, First::Tcp)
            .await
            .unwrap();
        assert_eq!(reply.answer, Answer::NoSuchName);

        let unsigned = update(BIND, &zone, &[add(9)], None).await.unwrap_err();
        assert!(
            unsigned.to_string().contains("REFUSED: sign it with a key"),
            "{unsigned}"
        );
        let stranger = KEY.replace("bGFz", "aGFz");
        let stranger = tsig::key(&stranger).unwrap();
        let refused = update(BIND, &zone, &[add(9)], Some(&stranger))
            .await
            .unwrap_err();
        assert!(
            refused.to_string().contains("NOTAUTH: the key"),
            "{refused}"
        );
        let two = [add(40_000), add(40_001)];
        let long = update(BIND, &zone, &two, Some(&key)).await.unwrap_err();
        assert!(matches!(long, UpdateError::TooLong), "{long}");
        let elsewhere = zone_of(BIND, &"elsewhere.test".parse().unwrap())
            .await
            .unwrap_err();
        assert!(
            matches!(elsewhere, UpdateError::NoZone { .. }),
            "{elsewhere}"
        );
    });
}

/// Zone lines for a record of each size.
fn zone() -> String {
    let line = |size: usize| {
        let hex = hex::encode(content(size));
        format!("r{size} TYPE65280 \\# {size} {hex}\n")
    };
    SIZES.map(line).concat()
}

fn name(size: usize) -> String {
    format!("r{size}.example")
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index * 7 + size) as u8).collect()
}

/// Relays connections to `server`, and counts them.
async fn counting_relay(server: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = accepted.clone();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut server = TcpStream::connect(server).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, accepted)
}
