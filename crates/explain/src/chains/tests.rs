#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::explain;

fn table(text: &str) -> Result<ChainSizes, String> {
    ChainSizes::parse("chains.csv", text.as_bytes()).map_err(|error| error.to_string())
}

fn explained(arm: &str) -> Explanation {
    let cells = [10, 20].map(|initcwnd| Cell {
        initcwnd,
        ..Cell::default()
    });
    explain(&arm.parse().unwrap(), &cells).unwrap()
}

fn share(flights: usize, chains: u64) -> ChainShare {
    ChainShare { flights, chains }
}

/// The edges that an explanation has, plus and minus a byte.
#[test]
fn a_byte_beyond_an_edge_is_another_flight() {
    for arm in [
        "x25519/ecdsa-p256",
        "X25519MLKEM768/ml-dsa-65",
        "X25519MLKEM768/ml-dsa-44/transport=quic",
    ] {
        let explained = explained(arm);
        let edges = explained.windows[0].edges;
        let above = edges.above.unwrap().certificate;
        let sizes = format!("certificate_bytes,count\n{above},3\n{},5\n", above + 1);
        let shares = table(&sizes).unwrap().shares(&explained).unwrap();
        let flights = edges.flights;
        assert_eq!(
            shares.windows[0],
            [share(flights, 3), share(flights + 1, 5)],
            "{arm}"
        );
    }
}

/// Most sizes are not walked through: what that leaves out changes nothing.
#[test]
fn each_size_by_itself_needs_what_its_share_has() {
    for arm in [
        "x25519/rsa-2048",
        "X25519MLKEM768/ecdsa-p256/transport=quic",
    ] {
        let explained = explained(arm);
        let sizes: Vec<usize> = (700..60_000).step_by(331).collect();
        let rows: Vec<String> = sizes.iter().map(usize::to_string).collect();
        let text = format!("certificate_bytes\n{}\n", rows.join("\n"));
        let shares = table(&text).unwrap().shares(&explained).unwrap();
        let verify = explained.exchange.bytes(Message::CertificateVerify) as usize;
        for (window, shares) in explained.windows.iter().zip(shares.windows) {
            let mut each = BTreeMap::new();
            for size in &sizes {
                let with = wire::with(&explained.exchange, *size, verify);
                *each
                    .entry(flights(&explained.arm, &with, &window.cell))
                    .or_default() += 1;
            }
            let each: Vec<ChainShare> = (each.into_iter())
                .map(|(flights, chains)| share(flights, chains))
                .collect();
            assert!(each.len() > 1, "{arm}");
            assert_eq!(shares, each, "{arm}");
        }
    }
}

/// A message without certificates has 8 bytes, and each certificate 5 more.
#[test]
fn chains_are_messages() {
    let chains = table("chain_bytes,certificates,count\n2550,3,2\n100,1,1\n").unwrap();
    let messages = table("certificate_bytes\n2573\n113\n2573\n").unwrap();
    assert_eq!(chains, messages);
    let shares = chains.shares(&explained("x25519/ecdsa-p256")).unwrap();
    assert_eq!(
        (shares.chains, &*shares.windows[0]),
        (3, &[share(1, 3)][..])
    );
}

#[test]
fn tables_say_what_is_wrong() {
    let texts = [
        "",
        "rank,size\n1,2\n",
        "chain_bytes\n1000\n",
        "certificate_bytes,certificate_bytes\n1,2\n",
        "certificate_bytes\n",
        "certificate_bytes,count\n100,0\n",
        "certificate_bytes\n7\n",
        "certificate_bytes\n16777220\n",
        "certificate_bytes\n-5\n",
        "chain_bytes,certificates\n100,0\n",
        "chain_bytes,certificates\n16777216,1\n",
        "chain_bytes,certificates\n1,3355442\n1,3355443\n",
        "certificate_bytes,count\n100,99999999999999999999\n",
        "certificate_bytes,count\n100\n",
    ];
    let errors: Vec<String> = (texts.into_iter())
        .map(|text| table(text).unwrap_err())
        .collect();
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn what_sends_no_chain_has_no_share() {
    let sizes = table("certificate_bytes\n3000\n").unwrap();
    for arm in [
        "x25519/ecdsa-p256/resume=ticket",
        "x25519/ecdsa-p256/delivery=compressed",
    ] {
        let Ok(explained) = explain(&arm.parse().unwrap(), &[Cell::default()]) else {
            continue;
        };
        let error = sizes.shares(&explained).unwrap_err().to_string();
        assert!(error.contains("leave --chain-sizes out"), "{error}");
    }
}

#[test]
fn public_sites_have_a_table() {
    let sizes = ChainSizes::public().unwrap();
    assert_eq!(sizes.sizes.values().sum::<u64>(), 8151);
    assert_eq!(sizes.sizes.first_key_value(), Some((&745, &1)));
    assert_eq!(sizes.sizes.keys().last(), Some(&14_618));
}
