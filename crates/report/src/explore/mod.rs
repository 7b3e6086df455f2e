//! A page on which two connections are compared by moving sliders: the arithmetic itself, compiled for browsers.
//!
//! Sizes are those of `lastbyte explain`, in a table of the page; times are those of [`lastbyte_explore`]. What is
//! drawn of them, and in which words, are `model.js`, which touches no document, and `page.js`.

mod probe;
mod sizes;
#[cfg(test)]
mod tests;

use base64::prelude::*;
use lastbyte_exchange::Writes;
use lastbyte_explore::Sent;
use lastbyte_flights::Reason;
use lastbyte_sizes::{KeyAlgorithm, PemFiles, framing};
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

pub use probe::{HelloRetry, Probe, ProbeProblem};

use self::sizes::{Sizes, supposed_name};
use super::document::{Head, document};
use lastbyte_explain::Unknown;
use lastbyte_study::exchange::REQUEST;
use lastbyte_study::{Arm, ArmChain, COMPRESSED_WITHIN};

const STYLE: &str = include_str!("page.css");
const MODEL: &str = include_str!("model.js");
const PAGE: &str = include_str!("page.js");

const TITLE: &str = "What does a post-quantum certificate do to your connection?";
const ABOUT: &str = "Two TLS connections side by side, packet by packet: what larger certificates cost, and why, by the \
                     arithmetic of TCP's slow start and QUIC's credit.";

/// The keys that a site's chain is compared with at first.
const AGAINST: KeyAlgorithm = KeyAlgorithm::MlDsa65;

/// What a page begins with, in the words of options.
#[derive(Clone, Debug, Serialize)]
struct Start {
    baseline: String,
    against: String,
    /// Milliseconds.
    rtt: f64,
    /// Mbit/s; 0 is without a limit.
    rate: f64,
    initcwnd: u32,
    /// Bytes.
    data: u64,
}

impl Default for Start {
    fn default() -> Start {
        Start {
            baseline: "x25519/ecdsa-p256".to_owned(),
            against: "X25519MLKEM768/ml-dsa-65".to_owned(),
            rtt: 35.0,
            rate: 1000.0,
            initcwnd: 10,
            data: 50 << 10,
        }
    }
}

/// What sliders run over. Whatever else an address or a probe says is added.
#[derive(Debug, Serialize)]
struct Scales {
    rtt: &'static [f64],
    rate: &'static [f64],
    initcwnd: &'static [f64],
    /// KiB.
    data: &'static [f64],
}

const SCALES: Scales = Scales {
    rtt: &[
        1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 60.0,
        70.0, 80.0, 90.0, 100.0, 120.0, 150.0, 180.0, 200.0, 250.0, 300.0, 400.0, 500.0, 600.0,
        800.0,
    ],
    rate: &[
        0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 300.0, 500.0,
        1000.0, 0.0,
    ],
    initcwnd: &[
        1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0,
        18.0, 20.0, 22.0, 24.0, 26.0, 28.0, 30.0, 32.0, 36.0, 40.0, 48.0, 64.0, 100.0,
    ],
    data: &[
        0.0, 1.0, 2.0, 5.0, 8.0, 10.0, 12.0, 15.0, 18.0, 20.0, 25.0, 30.0, 35.0, 40.0, 50.0, 60.0,
        75.0, 100.0, 125.0, 150.0, 200.0, 250.0, 300.0, 400.0, 500.0, 750.0, 1024.0,
    ],
};

/// A question worth asking: what the address says, and in words.
const TRIES: [(&str, &str); 10] = [
    (
        "baseline=x25519/ecdsa-p256&against=X25519MLKEM768/ml-dsa-65&rtt=35ms&rate=1gbit&initcwnd=10&data=50KiB",
        "ML-DSA-65, one intermediate, and a usual window",
    ),
    (
        "baseline=x25519/ecdsa-p256&against=X25519MLKEM768/ml-dsa-65&rtt=35ms&rate=1gbit&initcwnd=12&data=50KiB",
        "… and two segments more",
    ),
    (
        "baseline=x25519/ecdsa-p256&against=X25519MLKEM768/ml-dsa-44&rtt=35ms&rate=1gbit&initcwnd=10&data=50KiB",
        "ML-DSA-44, one intermediate, just fits",
    ),
    (
        "baseline=X25519MLKEM768/ml-dsa-44&against=X25519MLKEM768/ml-dsa-44:12658B&rtt=35ms&rate=1gbit&initcwnd=10&data=50KiB",
        "… and 4 KB more do not",
    ),
    (
        "baseline=X25519MLKEM768/ml-dsa-44/delivery=mtc-landmark&against=X25519MLKEM768/ml-dsa-44&rtt=35ms&rate=1gbit&initcwnd=10&data=20KiB",
        "More handshake, a sooner last byte",
    ),
    (
        "baseline=X25519MLKEM768/ml-dsa-65&against=X25519MLKEM768/ml-dsa-65/delivery=elide&rtt=100ms&rate=1gbit&initcwnd=10&data=10KiB",
        "Leave the intermediate out",
    ),
    (
        "baseline=X25519MLKEM768/ml-dsa-65&against=X25519MLKEM768/ml-dsa-65/delivery=abridged&rtt=100ms&rate=1gbit&initcwnd=10&data=10KiB",
        "… or abridge it",
    ),
    (
        "baseline=x25519/ecdsa-p256&against=X25519MLKEM768/slh-dsa-sha2-128s&rtt=35ms&rate=100mbit&initcwnd=10&data=50KiB",
        "Hash-based signatures",
    ),
    (
        "baseline=x25519/ecdsa-p256&against=X25519MLKEM768/ml-dsa-65&rtt=200ms&rate=1mbit&initcwnd=10&data=50KiB",
        "A slow link",
    ),
    (
        "baseline=X25519MLKEM768/ml-dsa-44&against=X25519MLKEM768/ml-dsa-44/transport=quic&rtt=100ms&rate=1gbit&initcwnd=10&data=1KiB",
        "ML-DSA-44 over TCP and over QUIC",
    ),
];

/// All that the scripts know, besides what is in their module.
#[derive(Debug, Serialize)]
struct Data<'a> {
    layout: Vec<(&'static str, Vec<&'static str>)>,
    /// Why arithmetic can go no further, as the module counts them.
    reasons: Vec<String>,
    sizes: Sizes,
    /// Bytes of the request on the wire.
    request: usize,
    mss: u32,
    /// What `--mtu` has to say, if anything.
    mtu: Option<u32>,
    /// Of the site's server, with any chain.
    site: Site,
    /// Whether arms come over QUIC: what a site's server does was seen over TCP.
    quic: bool,
    scales: Scales,
    start: &'a Start,
}

/// What a site's server does whatever chain it has.
#[derive(Debug, Default, Serialize)]
struct Site {
    /// Its tickets before its response, and how that leaves, as questions have them.
    tickets: Vec<f64>,
    response: Vec<f64>,
    /// What an arm of the laboratory has for all of that.
    words: String,
    /// What hosts of the laboratory have besides.
    hosts: Vec<(&'static str, String)>,
}

impl Site {
    fn of(probe: &Probe) -> Site {
        let sends = &probe.sends;
        let words = sends.arm.iter();
        let words = words.map(|(key, value)| format!("/{key}={value}"));
        let tickets = Some(probe.tickets).filter(|tickets| *tickets > 0);
        let tickets = tickets.map(|tickets| format!("/tickets={tickets}"));
        let hosts = sends.host.iter().flat_map(|host| &host.settings);
        let of_tickets = probe.chain.seen.tickets.as_ref();
        let of_tickets = of_tickets.map_or_else(Sent::default, |tickets| Sent::of(tickets, 0));
        Site {
            tickets: of_tickets.numbers(),
            response: sends.drawn.numbers(),
            words: words.chain(tickets).collect(),
            hosts: hosts
                .map(|(parameter, value)| (parameter.name(), value.clone()))
                .collect(),
        }
    }
}

/// The page. What was seen of a server, if anything, is what it begins with.
///
/// # Errors
///
/// [`Unknown`] where arithmetic does not know what such a server sends.
pub fn page(probe: Option<&Probe>) -> Result<String, Unknown> {
    let mut sizes = Sizes::new(probe);
    let mut start = Start::default();
    let usual = framing::MSS as u32;
    let mut mss = usual;
    if let Some(probe) = probe {
        let name = format!("{}/{}", probe.group, probe.host);
        let chain = ArmChain::Pem(PemFiles::new(&probe.host));
        let arm = Arm::of(probe.group, chain).map_err(|problem| Unknown {
            arm: name.clone(),
            what: format!("arm {name:?}: {problem}"),
            hint: "name another host".to_owned(),
        })?;
        sizes.add(probe, &probe.as_seen(arm))?;
        let supposed = probe.supposed.iter().map(|(key, _)| *key);
        let against = supposed.max_by_key(|key| *key == AGAINST);
        let against = against.map_or_else(
            || AGAINST.to_string(),
            |key| supposed_name(&probe.host, key),
        );
        mss = probe.mss.unwrap_or(usual);
        start = Start {
            baseline: name,
            against: format!("{}/{against}", probe.group),
            rtt: probe.rtt_ms.unwrap_or(start.rtt),
            rate: probe.rate_mbit,
            initcwnd: probe.initial_window.unwrap_or(start.initcwnd),
            data: probe.response.unwrap_or(start.data),
        };
    }
    let data = Data {
        layout: lastbyte_explore::layout().to_vec(),
        reasons: Reason::ALL.iter().map(Reason::to_string).collect(),
        request: REQUEST.len() + framing::RECORD_OVERHEAD,
        mss,
        mtu: (mss != usual).then(|| mss + (1500 - usual)),
        scales: SCALES,
        quic: probe.is_none(),
        site: probe.map(Site::of).unwrap_or_default(),
        start: &start,
        sizes,
    };
    let body = body(&data, probe);
    let head = Head {
        title: TITLE,
        about: Some(ABOUT),
        url: None,
    };
    Ok(document(&head, STYLE, &body))
}

/// The sizes of writes, as far as they are known.
fn sizes_of(writes: Option<&Writes>) -> Vec<u32> {
    writes.map_or_else(Vec::new, |writes| writes.sizes().to_vec())
}

fn body(data: &Data<'_>, probe: Option<&Probe>) -> Markup {
    html! {
        (header(probe))
        (controls(data))
        // Beside the form, so that it stays at the edge of the screen along the whole page.
        (network())
        (budget())
        (packets(data))
        (stairs())
        (difference())
        (command())
        (ends(probe))
        script type="application/json" #known { (PreEscaped(inline(data))) }
        script type="application/wasm" #engine { (BASE64_STANDARD.encode(lastbyte_explore::WASM)) }
        script { (PreEscaped(MODEL)) (PreEscaped(PAGE)) }
    }
}

fn header(probe: Option<&Probe>) -> Markup {
    html! {
        header {
            @match probe {
                None => p.kicker { "Lastbyte, the explorer" },
                Some(probe) => p.kicker { "Lastbyte, the explorer: " (probe.host) " as it was seen" },
            }
            h1 { (TITLE) }
            @for note in probe.into_iter().flat_map(|probe| &probe.notes) { p.warning { (note) } }
            p.warning #misread hidden {}
            p.verdict #verdict { "Two TLS connections side by side, by the arithmetic of TCP's slow start." }
            p #because {}
            @if let Some(besides) = probe.map(Probe::besides).filter(|besides| !besides.is_empty()) { p.mut { (besides) } }
            p #spoken .unseen role="status" {}
            noscript { p.warning { "This page calculates in your browser: allow it to run its scripts. It asks no network for anything." } }
        }
    }
}

fn controls(data: &Data<'_>) -> Markup {
    html! {
        form #controls autocomplete="off" {
            div.arms {
                (arm(data, 0, "One connection", &data.start.baseline))
                (arm(data, 1, "The other", &data.start.against))
            }
            nav aria-label="Questions worth asking" {
                span.mut { "Try: " }
                @for (address, words) in TRIES { a href={ "#" (address) } { (words) } " " }
            }
        }
    }
}

fn network() -> Markup {
    html! {
        fieldset.network {
            legend.unseen { "The network, and the response" }
            (slider("rtt", "Round trip"))
            (slider("rate", "Rate"))
            (slider("initcwnd", "Window"))
            (slider("data", "Response"))
            p #brief {}
        }
    }
}

fn budget() -> Markup {
    html! {
        section aria-labelledby="h-budget" {
            h2 #h-budget { "What fits the first flight" }
            p { "The server may send as much as its initial window holds, and over QUIC three times what it has received. Then it has to wait for the
                    client, a round trip away." }
            figure #budget {}
            p.caption #left {}
        }
    }
}

fn packets(data: &Data<'_>) -> Markup {
    let response = match data.site.tickets.first() {
        Some(bytes) if *bytes > 0.0 => "tickets, response",
        _ => "response",
    };
    html! {
        section aria-labelledby="h-packets" {
            h2 #h-packets { "Packet by packet" }
            p { "The client on the left, the server on the right, time going down. Where the server has to wait, its side is filled." }
            div.ladders {
                figure { h3 #name-0 {} div #packets-0 {} }
                figure { h3 #name-1 {} div #packets-1 {} }
            }
            p.caption { "Lines are packets; thin ones are acknowledgements. Those that leave together would be one line, and are drawn side by side."
                span.keys {
                    i.k-chain {} "Certificate" i.k-other {} "other messages of the server" i.k-response {} (response) i.k-waits {} "the server waits"
                } }
            table #numbers {}
        }
    }
}

fn stairs() -> Markup {
    html! {
        section aria-labelledby="h-stairs" {
            h2 #h-stairs { "Chains grow, and time steps" }
            p { "The first byte for every size of Certificate message, everything else as above. What counts is the distance to the next step." }
            figure #stairs {}
            p.caption #steps {}
        }
    }
}

fn difference() -> Markup {
    html! {
        section aria-labelledby="h-difference" {
            h2 #h-difference { "The surprise: a larger handshake opens the window" }
            p { "How much later the last byte comes, for every size of response. What the server sends of its handshake, once acknowledged,
                    opens its congestion window; so the response may need a flight less, and come sooner." }
            figure #difference {}
            p.caption #sooner {}
        }
    }
}

fn command() -> Markup {
    html! {
        section aria-labelledby="h-command" {
            h2 #h-command { "Measure it" }
            p { "Lastbyte does, with real OpenSSL, real certificates and Linux's own TCP over this network: so this page can be wrong, and be
                    found out." }
            div.command { pre #command tabindex="0" role="group" aria-label="The command" {} button #copy type="button" { "Copy" } }
            p.caption #measured {}
            p.caption { "The address of this page holds all that is chosen: share it." }
        }
    }
}

fn ends(probe: Option<&Probe>) -> Markup {
    let no_retry = match probe.map(|probe| probe.hello_retry) {
        Some(HelloRetry::Yes) => "",
        Some(HelloRetry::No) | None => ", no HelloRetryRequest",
    };
    html! {
        section aria-labelledby="h-ends" {
            h2 #h-ends { "Where the arithmetic ends" }
            ul {
                li { b { "Nothing is lost." } " With loss, jitter or a queue that overflows, each packet more is one more that luck can strike: measure." }
                li { b { "Nobody computes." } " Signing and verifying ML-DSA take fractions of a millisecond more; "
                    code { "lastbyte compare" } " measures them on your machine." }
                li { b { "Linux's TCP." } " Initial windows, slow start and acknowledgements are those of Linux 6.12, with buffers that are large
                    from the start. What a segment takes of the receiver's memory (tcp_grow_window) is a driver's choice, slow start never ends
                    (no HyStart, no ssthresh), and packets are neither paced nor merged (GSO, GRO). Where Linux would send a packet
                    twice without need, the page says so." }
                li { b { "OpenSSL's sizes." } " Another client's hello is larger or smaller, and so is a real CA's certificate. Where an ECDSA
                        signature is now and then a byte longer or shorter, this is the likeliest length." }
                li { b { "Full handshakes." } " No resumption, no early data, no client certificate" (no_retry) ", one request." }
                li { b { "Certificates of ours." } " What brotli leaves of names and extensions is told of such, to within "
                    (COMPRESSED_WITHIN) " bytes; it is measured with rustls, whose messages are some bytes smaller. What DNS delivers was asked for
                        before, by a resolver that is as near as its client." }
                li { b { "QUIC is quinn's." } " Datagrams of 1200 bytes, a window of as many of them, and a pacer that begins with an RTT of 333 ms: so
                    credit, window and flights are those of one stack, up to the first byte." }
            }
        }
    }
}

fn arm(data: &Data<'_>, index: usize, name: &str, start: &str) -> Markup {
    let id = |what: &str| format!("{what}-{index}");
    let sizes = &data.sizes;
    let mut kinds: Vec<&str> = sizes.chains.iter().map(|chain| chain.kind).collect();
    kinds.dedup();
    html! {
        fieldset.arm {
            legend { span.swatch {} (name) }
            p { label for=(id("group")) { "Key exchange" }
                select id=(id("group")) { @for group in &sizes.groups { option { (group.name) } } } }
            p { label for=(id("chain")) { "Certificates" }
                select id=(id("chain")) {
                    @for kind in kinds {
                        optgroup label=(kind) {
                            @for chain in sizes.chains.iter().filter(|chain| chain.kind == kind) {
                                option value=[chain.words.as_ref().map(|_| &chain.name)] { (chain.words.as_ref().unwrap_or(&chain.name)) }
                            }
                        }
                    }
                } }
            p { label for=(id("transport")) { "Transport" }
                select id=(id("transport")) { option { "TCP" } option { "QUIC" } } }
            p { label for=(id("way")) { "Delivery" }
                select id=(id("way")) {
                    @for way in &sizes.ways { option { (way.words) } }
                } }
            p { label for=(id("bytes")) { "Certificate message" }
                span.size {
                    input id=(id("bytes")) type="range" min="0" max="1000" step="1";
                    output id=(id("size")) for=(id("bytes")) {}
                } }
            p.what id=(id("label")) { (start) }
        }
    }
}

fn slider(id: &str, words: &str) -> Markup {
    html! {
        p { label for=(id) { (words) } output id={ "told-" (id) } for=(id) {} input id=(id) type="range" min="0" max="1" step="1"; }
    }
}

/// JSON that can stand in a page: nothing in it ends a script.
fn inline(data: &Data<'_>) -> String {
    // Serialising plain structures to memory cannot fail.
    let json = serde_json::to_string(data).unwrap_or_default();
    json.replace('<', "\\u003c")
}
