//! Records reach real DNS servers, and are replaced there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{NAME, delivered, in_own_network, records, with_root};
use lastbyte_ad::dns::{Client, First, Rtype, tsig};
use lastbyte_ad::publish::{Publication, PublishError};
use lastbyte_ad::test_servers::{BIND, KEY, OTHER, bind, knot, nsd};
use pqtlsad::Part;
use pqtlsad::record::RecordType;
use pqtlsad::server::PublicChain;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

const TYPES: [RecordType; 2] = [RecordType::DEFAULT, RecordType::Tlsa];

#[test]
fn bind_serves_zone_lines() {
    let lines = zone_lines();
    in_own_network(|| bind(&lines), async {
        for record_type in TYPES {
            let delivered = delivered(BIND, record_type).await;
            assert_eq!(delivered.len(), 1);
            assert_eq!(
                delivered[0].list,
                chain("slh-dsa-sha2-192f").topmost(2).unwrap()
            );
            assert_eq!(delivered[0].part, Part::EndEntity);
        }
    });
}

#[test]
fn knot_serves_zone_lines() {
    let lines = zone_lines();
    in_own_network(|| knot(&lines), async {
        for record_type in TYPES {
            assert_eq!(delivered(OTHER, record_type).await.len(), 1);
        }
    });
}

#[test]
fn nsd_serves_zone_lines() {
    let lines = zone_lines();
    in_own_network(|| nsd(&lines), async {
        for record_type in TYPES {
            assert_eq!(delivered(OTHER, record_type).await.len(), 1);
        }
    });
}

/// Records of 72 KB, in two fragments, of each type.
fn zone_lines() -> String {
    let chain = chain("slh-dsa-sha2-192f");
    let lines = TYPES.map(|record_type| publication(&[(&chain, 2)], record_type).zone_lines());
    lines.concat()
}

#[test]
fn updates_replace_records_whatever_their_sizes() {
    let [small, large, other] = ["ml-dsa-65", "slh-dsa-sha2-192f", "ecdsa-p256"].map(chain);
    let key = tsig::key(KEY).unwrap();
    in_own_network(|| bind(""), async {
        for record_type in TYPES {
            for chains in [
                vec![(&small, 1)],
                vec![(&large, 2)],
                vec![(&large, 1), (&small, 1)],
                vec![(&large, 2), (&small, 2)],
                vec![(&other, 2), (&small, 2)],
            ] {
                let publication = publication(&chains, record_type);
                publication.send(BIND, Some(&key)).await.unwrap();
                let mut found: Vec<_> = (delivered(BIND, record_type).await.iter())
                    .map(|delivered| delivered.list.digest())
                    .collect();
                let expected = |(chain, count): &(&PublicChain, usize)| {
                    chain.topmost(*count).unwrap().digest()
                };
                let mut expected: Vec<_> = chains.iter().map(expected).collect();
                for digests in [&mut found, &mut expected] {
                    digests.sort_by_key(|digest| *digest.as_bytes());
                }
                assert_eq!(found, expected, "{record_type}");
            }
        }
        let client = Client::new([BIND.into()]);
        let gone = common::ask(&client, "_1._pqtlsad.server.example", TLSA, First::Tcp);
        assert_eq!(
            gone.await.unwrap().answer,
            lastbyte_ad::dns::Answer::NoSuchName
        );
        let kept = common::ask(&client, NAME, TLSA, First::Tcp).await.unwrap();
        assert_eq!(records(&kept).ttl, Duration::from_secs(600));
    });
}

const TLSA: Rtype = Rtype::TLSA;

#[test]
fn records_of_another_kind_are_left_alone() {
    let lines =
        "server TLSA 3 1 1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    let key = tsig::key(KEY).unwrap();
    in_own_network(|| bind(lines), async {
        let publication = publication(&[(&chain("ecdsa-p256"), 1)], RecordType::Tlsa);
        let refused = publication.send(BIND, Some(&key)).await.unwrap_err();
        assert!(matches!(refused, PublishError::Foreign { .. }), "{refused}");
        let unsigned = publication.send(BIND, None).await.unwrap_err();
        assert!(
            matches!(unsigned, PublishError::Foreign { .. }),
            "{unsigned}"
        );
    });
}

#[test]
fn an_alias_is_refused_as_nothing_could_be_published_there() {
    let key = tsig::key(KEY).unwrap();
    in_own_network(
        || bind("server CNAME elsewhere\nelsewhere A 127.0.0.9"),
        async {
            let publication = publication(&[(&chain("ecdsa-p256"), 1)], RecordType::DEFAULT);
            let refused = publication.send(BIND, Some(&key)).await.unwrap_err();
            assert_eq!(
                refused.to_string(),
                "server.example is an alias (CNAME), which has no other records: publish at the name that it stands for"
            );
        },
    );
}

#[test]
fn what_the_server_does_not_have_afterwards_is_not_published() {
    let key = tsig::key(KEY).unwrap();
    in_own_network(|| bind(""), async {
        let [before, wanted] =
            [1, 2].map(|count| publication(&[(&chain("ecdsa-p256"), count)], RecordType::DEFAULT));
        before.send(BIND, Some(&key)).await.unwrap();
        let server = deaf_to_updates(BIND).await;
        let refused = wanted.send(server, None).await.unwrap_err();
        assert!(
            matches!(&refused, PublishError::NotKept { owner, .. } if owner.to_string() == NAME),
            "{refused}"
        );
        // What is there already need not be heard.
        before.send(server, None).await.unwrap();
    });
}

/// A server that says that it has done each update, and has another answer the rest.
async fn deaf_to_updates(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.7:53").await.unwrap();
    let address = listener.local_addr().unwrap();
    let datagrams = UdpSocket::bind(address).await.unwrap();
    tokio::spawn(async move {
        let mut query = [0; 512];
        loop {
            let (length, client) = datagrams.recv_from(&mut query).await.unwrap();
            let upstream = UdpSocket::bind("127.0.0.7:0").await.unwrap();
            upstream.connect(server).await.unwrap();
            upstream.send(&query[..length]).await.unwrap();
            let mut answer = [0; 2000];
            let length = upstream.recv(&mut answer).await.unwrap();
            datagrams.send_to(&answer[..length], client).await.unwrap();
        }
    });
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut upstream = TcpStream::connect(server).await.unwrap();
                while let Ok(length) = client.read_u16().await {
                    let mut query = vec![0; length.into()];
                    client.read_exact(&mut query).await.unwrap();
                    let is_update = query[2] >> 3 & 15 == 5;
                    let answer = if is_update {
                        [&query[..2], &[5 << 3 | 0x80, 0], &[0; 8]].concat()
                    } else {
                        upstream.write_u16(length).await.unwrap();
                        upstream.write_all(&query).await.unwrap();
                        let length = upstream.read_u16().await.unwrap();
                        let mut answer = vec![0; length.into()];
                        upstream.read_exact(&mut answer).await.unwrap();
                        answer
                    };
                    let length = u16::try_from(answer.len()).unwrap();
                    client.write_u16(length).await.unwrap();
                    client.write_all(&answer).await.unwrap();
                }
            });
        }
    });
    address
}

fn chain(algorithm: &str) -> PublicChain {
    PublicChain::new(with_root(algorithm).certificates().to_vec()).unwrap()
}

fn publication(chains: &[(&PublicChain, usize)], record_type: RecordType) -> Publication {
    let ttl = Duration::from_secs(600);
    Publication::new(NAME, chains.iter().copied(), record_type, ttl).unwrap()
}
