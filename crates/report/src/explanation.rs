//! What arithmetic says of arms, as text, as JSON and drawn.

mod drawing;

pub use drawing::svg as explanation_svg;

use std::time::Duration;

use lastbyte_exchange::HandshakeFlight;
use lastbyte_flights::Reason;
use lastbyte_flights::quic::Hold;
use lastbyte_link::counted;
use lastbyte_sizes::{Message, quic};
use serde_json::{Value, json};

use super::assumed;
use super::layout::{Field, Line, Role, Screen, set};
use crate::thresholds::WHOLE_TRIP;
use lastbyte_explain::chains::{ChainShare, ChainShares};
use lastbyte_explain::{
    Edge, Explanation, HelloEdge, SERVER_MESSAGES, Signature, Window, message_on_wire,
};
use lastbyte_results::number::{milliseconds, percent};
use lastbyte_results::stats::Percent;
use lastbyte_study::{ArmChain, Cell, TransportName, distinctions};

/// What arithmetic says, for people.
pub fn explanation(explained: &[Explanation], screen: Screen) -> String {
    let arms = explained.iter().map(|explained| arm(explained, screen));
    let arms: Vec<String> = arms.collect();
    let mut times = explained.iter().flat_map(|explained| &explained.times);
    let measured = if times.any(|(_, times)| times.beyond(times.ttlb).is_some()) {
        "`lastbyte compare` measures what is not."
    } else {
        "`lastbyte compare` measures the same."
    };
    let has = |transport| {
        let mut arms = explained.iter();
        arms.any(|explained| explained.arm.transport == transport)
    };
    let what = match (has(TransportName::Tcp), has(TransportName::Quic)) {
        (true, true) => "TCP's slow start, and QUIC's credit, window and pacer as quinn has them,",
        (false, true) => "QUIC's credit, window and pacer, as quinn has them,",
        (_, false) => "TCP's slow start",
    };
    let note = format!(
        "By arithmetic: {what} over a network that loses nothing, with ends that compute in no time. Sizes are those of \
         OpenSSL. {measured}"
    );
    format!("{}\n{}\n", arms.join("\n"), screen.wrap(&note, 0))
}

fn arm(explained: &Explanation, screen: Screen) -> String {
    let name = screen.paint(Role::Heading, &explained.arm.name);
    let windows = window_names(explained);
    let answer = round_trips(explained, &windows, screen) + &turns(explained, screen);
    let mut parts = vec![
        format!("{name}\n{answer}"),
        set(&messages(explained, &windows), screen),
        set(&edges(explained, &windows), screen),
    ];
    if !explained.cuts.is_empty() {
        parts.push(set(&cuts(explained, &windows), screen));
    }
    if !explained.supposed.is_empty() {
        parts.push(set(&supposed(explained, &windows), screen));
    }
    if let Some(shares) = &explained.chain_shares {
        parts.push(of_chains(shares, &windows, screen));
    }
    parts.push(set(&times(explained), screen));
    parts.push(drawing::text(explained));
    parts.push(assumed::text(&explained.arm, &cells(explained), screen));
    parts.join("\n")
}

/// Where it was asked.
fn cells(explained: &Explanation) -> Vec<Cell> {
    let cells = explained.times.iter();
    cells.map(|(cell, _)| cell.clone()).collect()
}

/// What would turn the answer.
fn turns(explained: &Explanation, screen: Screen) -> String {
    let windows = explained.windows.iter();
    let (own, cells): (Vec<usize>, Vec<Cell>) = windows
        .map(|window| (window.edges.flights, window.cell.clone()))
        .unzip();
    let sentence = match explained.arm.chain {
        ArmChain::Pem(_) => other_keys(explained),
        ArmChain::Made(_) => assumed::turned(&own, &explained.supposed, &cells),
    };
    sentence.map_or_else(String::new, |sentence| screen.wrap(&sentence, 2) + "\n")
}

/// What other keys in a file's chain would change: also where that is nothing, as that is what its owner asks.
fn other_keys(explained: &Explanation) -> Option<String> {
    let told = explained.supposed.iter().map(|supposition| {
        let flights = supposition.flights.iter().zip(&explained.windows);
        let flights = flights.map(|(then, window)| {
            let more = match then.checked_sub(window.edges.flights) {
                Some(0) => "no round trip more".to_owned(),
                Some(more) => format!("{} more", counted(more, "round trip")),
                None => format!(
                    "{} less",
                    counted(window.edges.flights - then, "round trip")
                ),
            };
            match explained.windows.len() {
                1 => more,
                _ => format!("{more} with initcwnd {}", window.cell.initcwnd),
            }
        });
        let flights: Vec<String> = flights.collect();
        format!("if {}, {}", supposition.what, flights.join(" and "))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("{} (by arithmetic).", assumed::capital(&told.join("; "))))
}

fn row(label: impl Into<String>, cells: impl IntoIterator<Item = String>) -> Line {
    let cells = cells.into_iter().map(|cell| Field::new(Role::Normal, cell));
    let label = format!("  {}", label.into());
    Line::Fields(Field::new(Role::Normal, label), cells.collect())
}

/// What the columns are: these, and one for each window.
fn title(text: &str, columns: &[&str], windows: &[String]) -> Line {
    let windows = windows.iter().map(String::as_str);
    let columns = columns.iter().copied().chain(windows);
    let columns = columns.map(|text| Field::new(Role::Dim, text));
    Line::Fields(Field::new(Role::Dim, text), columns.collect())
}

/// What tells the windows apart.
fn window_names(explained: &Explanation) -> Vec<String> {
    let windows = explained.windows.iter();
    let cells: Vec<Cell> = windows.map(|window| window.cell.clone()).collect();
    let names = distinctions(&cells).into_iter().zip(&cells);
    let names = names.map(|(name, cell)| match name.contains("initcwnd") {
        true => name,
        false if name.is_empty() => format!("initcwnd {}", cell.initcwnd),
        false => format!("initcwnd {}, {name}", cell.initcwnd),
    });
    names.collect()
}

/// How large each message is, and where it ends.
fn messages(explained: &Explanation, windows: &[String]) -> Vec<Line> {
    let wire = &explained.exchange;
    let is_quic = explained.arm.transport == TransportName::Quic;
    let line = |message: Message, on_wire: u32| {
        let bytes = wire.bytes(message);
        let span = match message {
            Message::CertificateVerify => format!("{bytes}{}", spread(explained.signature)),
            Message::ClientHello | Message::EncryptedExtensions if is_quic => {
                let (less, more) = quic::RESERVED;
                format!("{bytes} -{less} +{more}")
            }
            _ => bytes.to_string(),
        };
        let places = explained.windows.iter();
        let places = places.map(|window| place(explained.arm.transport, window, message, on_wire));
        let (mut segments, flights): (Vec<usize>, Vec<String>) = places.unzip();
        segments.dedup();
        let segments: Vec<String> = segments.iter().map(usize::to_string).collect();
        let on_wire = (!is_quic).then(|| on_wire.to_string());
        let cells = [Some(span), on_wire, Some(segments.join("/"))];
        let cells = cells.into_iter().flatten();
        let flights = flights.into_iter().filter(|flight| !flight.is_empty());
        let cells = cells.chain(flights);
        (bytes > 0).then(|| row(message.title(), cells))
    };
    let columns: &[&str] = match explained.arm.transport {
        TransportName::Tcp => &["alone", "on the wire", "ends in segment"],
        TransportName::Quic => &["alone", "ends in datagram"],
    };
    let mut lines = vec![title("message, bytes", columns, windows)];
    let before = [
        (
            Message::ClientHello,
            wire.carried(HandshakeFlight::ClientHello),
        ),
        (
            Message::HelloRetryRequest,
            wire.carried(HandshakeFlight::HelloRetryRequest),
        ),
        (
            Message::SecondClientHello,
            wire.carried(HandshakeFlight::SecondClientHello),
        ),
    ];
    let server = SERVER_MESSAGES.map(|message| (message, message_on_wire(wire, message)));
    let after = (
        Message::ClientFinished,
        wire.carried(HandshakeFlight::ClientFinish),
    );
    let all = before.into_iter().chain(server).chain([after]);
    lines.extend(all.filter_map(|(message, on_wire)| line(message, on_wire)));
    lines
}

/// The segment that a message ends in, counted from 1 in what leaves with it, and its flight, if it is the server's.
fn place(
    transport: TransportName,
    window: &Window,
    message: Message,
    on_wire: u32,
) -> (usize, String) {
    let mut flights = (1..).zip(&window.flights);
    let found = flights.find_map(|(number, flight)| {
        let mut messages = flight.messages.iter();
        let (_, segment) = messages.find(|(ended, _)| *ended == message)?;
        Some((*segment, format!("flight {number}")))
    });
    let here = match (transport, message) {
        (TransportName::Quic, Message::ClientHello) => window.client_hello.segments,
        // The client's last ones are no more than one datagram holds.
        (TransportName::Quic, _) => 1,
        (TransportName::Tcp, _) => (on_wire as usize).div_ceil(window.cell.hosts.mss()),
    };
    found.unwrap_or_else(|| (here, String::new()))
}

/// How much shorter and longer signatures are than they most often are; nothing of those that have one length.
fn spread(signature: Signature) -> String {
    let Signature {
        shortest,
        bytes,
        longest,
    } = signature;
    match (
        bytes.saturating_sub(shortest),
        longest.saturating_sub(bytes),
    ) {
        (0, 0) => String::new(),
        (less, more) if less == more => format!(" ±{more}"),
        (0, more) => format!(" +{more}"),
        (less, 0) => format!(" -{less}"),
        (less, more) => format!(" -{less} +{more}"),
    }
}

/// How many flights there are, and how far the edges are.
fn edges(explained: &Explanation, windows: &[String]) -> Vec<Line> {
    let of = |label: &str, text: &dyn Fn(&Window) -> String| {
        row(label, explained.windows.iter().map(text))
    };
    let certificate = |edge: Option<Edge>, sign| {
        edge.map_or_else(
            || "-".to_owned(),
            |edge| {
                let held = edge
                    .held
                    .map_or_else(String::new, |held| format!(", {}", held.name()));
                format!(
                    "{} ({sign}{}{held})",
                    edge.certificate, edge.certificate_distance
                )
            },
        )
    };
    let on_wire = |edge: Option<Edge>, sign| {
        edge.map_or_else(
            || "-".to_owned(),
            |edge| {
                format!(
                    "{} ({sign}{})",
                    edge.server_flight, edge.server_flight_distance
                )
            },
        )
    };
    let hello = |window: &Window| {
        let HelloEdge {
            segments,
            room,
            excess,
        } = window.client_hello;
        match excess {
            Some(excess) => format!("{segments}, -{excess} for {}", segments - 1),
            None => format!("{segments} (+{room})"),
        }
    };
    let sent = |flight| explained.exchange.carried(flight).to_string();
    let Words {
        bytes,
        hellos,
        all,
        by_chance,
    } = Words::of(explained.arm.transport);
    let mut lines = vec![
        title("client, ClientHello", &[], windows),
        of(bytes, &|_| sent(HandshakeFlight::ClientHello)),
        of(hellos, &hello),
        title("server, ServerHello to Finished", &[], windows),
        of(bytes, &|_| sent(HandshakeFlight::Server)),
        of("flights", &|window| window.edges.flights.to_string()),
    ];
    if explained.arm.transport == TransportName::Quic {
        // Who knows the client's address beforehand needs none.
        if explained.arm.address_validation.is_none() {
            let credit = of("credit that they give, bytes", &|window| {
                let datagram = usize::from(window.cell.quic.client_datagram);
                (3 * window.client_hello.segments * datagram).to_string()
            });
            lines.insert(3, credit);
        }
        lines.push(of("datagrams of each, and what ends it", &datagrams));
    }
    let differs = |window: &Window| window.most_flights != window.edges.flights;
    if explained.windows.iter().any(differs) {
        let more = explained
            .signature
            .longest
            .saturating_sub(explained.signature.bytes);
        let label = match more {
            _ if by_chance => "flights, if all is as long as it can be".to_owned(),
            1 => "flights, if the signature is a byte longer".to_owned(),
            _ => format!("flights, if the signature is {more} bytes longer"),
        };
        lines.push(of(&label, &|window| window.most_flights.to_string()));
    }
    lines.extend([
        of(
            "no flight more, if the Certificate has at most",
            &|window| certificate(window.edges.above, '+'),
        ),
        of(all, &|window| on_wire(window.edges.above, '+')),
    ]);
    let below = |window: &Window| window.edges.below.is_some();
    if explained.windows.iter().any(below) {
        lines.extend([
            of("a flight less, if the Certificate has at most", &|window| {
                certificate(window.edges.below, '-')
            }),
            of(all, &|window| on_wire(window.edges.below, '-')),
        ]);
    }
    lines
}

/// What is named otherwise over another transport.
struct Words {
    bytes: &'static str,
    hellos: &'static str,
    all: &'static str,
    /// Whether more than the signature varies by chance.
    by_chance: bool,
}

impl Words {
    fn of(transport: TransportName) -> Words {
        match transport {
            TransportName::Tcp => Words {
                bytes: "bytes on the wire",
                hellos: "segments, and bytes to the next edge",
                all: "  and all of it, on the wire",
                by_chance: false,
            },
            TransportName::Quic => Words {
                bytes: "bytes of messages",
                hellos: "Initials, and bytes to the next edge",
                all: "  and all messages",
                by_chance: true,
            },
        }
    }
}

/// `6 credit, 4`: the datagrams of each of the server's flights, and what ends it.
fn datagrams(window: &Window) -> String {
    let flights = window.flights.iter().map(|flight| {
        let held = flight
            .held
            .map_or_else(String::new, |held| format!(" {}", held.name()));
        format!("{}{held}", flight.segments)
    });
    flights.collect::<Vec<_>>().join(", ")
}

/// What would save a round trip, or how far the next one is: a sentence for each window.
fn round_trips(explained: &Explanation, windows: &[String], screen: Screen) -> String {
    let sentences = explained.windows.iter().zip(windows).map(|(window, name)| {
        let cut = window.edges.below.map(|below| {
            format!(
                "cut {} of the chain",
                counted(below.certificate_distance, "byte")
            )
        });
        let start = (window.larger_window).map(|window| format!("start with a window of {window}"));
        let ways: Vec<String> = cut.into_iter().chain(start).collect();
        let sentence = match (window.edges.flights, window.edges.above) {
            (flights @ 2.., _) => {
                let what = if ways.is_empty() {
                    "no chain and no window saves a round trip".to_owned()
                } else {
                    format!(
                        "{}, to save {}",
                        ways.join(", or "),
                        saved(explained.arm.transport, window)
                    )
                };
                let ends = ends(window);
                format!("the server's handshake takes {flights} flights{ends}: {what}")
            }
            (_, Some(above)) => {
                let bytes = above.certificate_distance;
                let verb = if bytes == 1 { "is" } else { "are" };
                let bytes = counted(bytes, "byte");
                let held = above.held.map_or_else(String::new, |held| {
                    format!(", before {} ends it", held.name())
                });
                format!("it fits one flight, and {bytes} {verb} left for the chain{held}")
            }
            (_, None) => "it fits one flight, as any chain does".to_owned(),
        };
        screen.wrap(&format!("{name}: {sentence}"), 2)
    });
    sentences.map(|sentence| sentence + "\n").collect()
}

/// `, as credit ends the first`: what ends the last of the server's flights but one, over QUIC.
fn ends(window: &Window) -> String {
    let [.., before, _] = &*window.flights else {
        return String::new();
    };
    before.held.map_or_else(String::new, |held| {
        let nth = match window.flights.len() {
            2 => "the first",
            _ => "the last but one",
        };
        format!(", as {} ends {nth}", held.name())
    })
}

/// What a flight less saves: a round trip, unless the link is slow, and sends all the while.
fn saved(transport: TransportName, window: &Window) -> String {
    let is_whole =
        |(saved, rtt): &(Duration, Duration)| saved.as_secs_f64() >= WHOLE_TRIP * rtt.as_secs_f64();
    let saved = window.saved.iter().map(|(saved, _)| *saved);
    match (saved.clone().min(), saved.max()) {
        (Some(least), Some(most)) if !window.saved.iter().all(is_whole) => {
            let time = match (milliseconds(least), milliseconds(most)) {
                (least, most) if least == most => most,
                (least, most) => format!("{least} to {most}"),
            };
            let why = match transport {
                TransportName::Tcp => "the link is busy sending",
                TransportName::Quic => "the server paces what it sends",
            };
            format!("a flight, which is {time} here: {why}")
        }
        _ if window.edges.flights == 2 => "the round trip".to_owned(),
        _ => "a round trip".to_owned(),
    }
}

/// What is less or more of a handshake, in two columns.
fn of_chain(transport: TransportName) -> [&'static str; 2] {
    match transport {
        TransportName::Tcp => ["Certificate", "on the wire"],
        TransportName::Quic => ["Certificate", "all messages"],
    }
}

/// What each cut buys.
fn cuts(explained: &Explanation, windows: &[String]) -> Vec<Line> {
    let columns = of_chain(explained.arm.transport);
    let mut lines = vec![title("cut, and flights with it", &columns, windows)];
    for cut in &explained.cuts {
        let flights = cut.flights.iter().zip(&explained.windows);
        let flights = flights.map(|(left, window)| match window.edges.flights {
            now if *left < now => format!("{now} → {left}"),
            now => now.to_string(),
        });
        let bytes = [cut.certificate, cut.server_flight].map(|bytes| format!("-{bytes}"));
        lines.push(row(&cut.what, bytes.into_iter().chain(flights)));
    }
    lines
}

/// What each thing that could be otherwise comes to.
fn supposed(explained: &Explanation, windows: &[String]) -> Vec<Line> {
    let columns = of_chain(explained.arm.transport);
    let mut lines = vec![title("if, and flights then", &columns, windows)];
    let own = &explained.exchange;
    let own = [
        own.bytes(Message::Certificate),
        own.carried(HandshakeFlight::Server),
    ];
    for supposition in &explained.supposed {
        let flights = supposition.flights.iter().zip(&explained.windows);
        let flights = flights.map(|(then, window)| match window.edges.flights {
            now if *then != now => format!("{now} → {then}"),
            now => now.to_string(),
        });
        let then = [supposition.certificate, supposition.server_flight];
        let bytes =
            then.into_iter()
                .zip(own)
                .map(|(then, now)| match then.checked_sub(now as usize) {
                    Some(more) => format!("+{more}"),
                    None => format!("-{}", now as usize - then),
                });
        lines.push(row(&supposition.what, bytes.chain(flights)));
    }
    lines
}

/// Which share of a table's chains needs how many flights.
fn of_chains(shares: &ChainShares, windows: &[String], screen: Screen) -> String {
    let share = |chains: u64| percent(Percent(100.0 * chains as f64 / shares.chains as f64));
    let sentences = shares.windows.iter().zip(windows).map(|(of_window, window)| {
        let more = of_window.iter().filter(|share| share.flights > 1);
        let more: u64 = more.map(|share| share.chains).sum();
        let need = match more {
            0 => "none needs".to_owned(),
            _ => format!("{} need", share(more)),
        };
        let sentence = format!(
            "{window}: of {} in {}, {need} more than one flight, with the hello and the signature of this arm",
            counted(shares.chains, "chain"),
            shares.file
        );
        screen.wrap(&sentence, 2) + "\n"
    });
    let most = shares.windows.iter().flatten().map(|share| share.flights);
    let mut lines = vec![title("chains that need", &[], windows)];
    for flights in 1..=most.max().unwrap_or(0) {
        let needing = shares.windows.iter().map(|of_window| {
            let mut shares = of_window.iter();
            let found = shares.find(|share| share.flights == flights);
            found.map_or_else(|| "-".to_owned(), |found| share(found.chains))
        });
        let needing: Vec<String> = needing.collect();
        if needing.iter().any(|share| share != "-") {
            lines.push(row(counted(flights, "flight"), needing));
        }
    }
    sentences.collect::<String>() + &set(&lines, screen)
}

/// When what happens in each cell.
fn times(explained: &Explanation) -> Vec<Line> {
    let mut lines = vec![title(
        "time",
        &["handshake", "first byte", "last byte"],
        &[],
    )];
    for (cell, times) in &explained.times {
        let time = |time| match times.modelled(time) {
            Some(time) => milliseconds(time),
            None => "not by arithmetic".to_owned(),
        };
        let first = times.ttfb.map_or_else(|| "-".to_owned(), time);
        let cells = [time(times.handshake), first, time(times.ttlb)];
        lines.push(row(cell.to_string(), cells));
        if let Some(reason) = times.beyond(times.ttlb) {
            lines.push(Line::Text(
                Role::Warning,
                format!("    {reason}: measure it"),
            ));
        }
    }
    lines
}

/// The JSON Schema of [`explanation_json`].
pub const EXPLANATION_SCHEMA: &str = include_str!("../schemas/explain-1.schema.json");

/// What arithmetic says, for programs, as [`EXPLANATION_SCHEMA`] has it. Times are in nanoseconds, all else in bytes, segments and flights.
pub fn explanation_json(explained: &[Explanation]) -> String {
    let arms: Vec<Value> = explained.iter().map(document).collect();
    format!(
        "{:#}\n",
        json!({ "schema": "lastbyte.explain/1", "arms": arms })
    )
}

fn document(explained: &Explanation) -> Value {
    let wire = &explained.exchange;
    let sizes = Message::all().filter_map(|message| {
        Some((
            message.column().to_owned(),
            json!(wire.handshake.messages.get(message)?),
        ))
    });
    let windows = (0..).zip(&explained.windows).map(|(index, window)| {
        json!({
            "initcwnd": window.cell.initcwnd,
            "client_initcwnd": window.cell.client_initcwnd,
            "mss": match explained.arm.transport {
                TransportName::Tcp => window.cell.hosts.mss(),
                TransportName::Quic => window.cell.quic.server_datagram.into(),
            },
            "client_hello": {
                "segments": window.client_hello.segments,
                "room": window.client_hello.room,
                "excess": window.client_hello.excess,
            },
            "server_flights": window.edges.flights,
            "server_flights_most": window.most_flights,
            "flights": window.flights.iter().map(|flight| json!({
                "segments": flight.segments,
                "bytes": flight.bytes,
                "ended_by": flight.held.map(Hold::name),
                "messages": flight.messages.iter().map(|(message, segment)| json!({
                    "message": message.name(),
                    "segment": segment,
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "larger_initcwnd": window.larger_window.map(|window| window.at_once),
            "room": window.edges.above.map(edge),
            "excess": window.edges.below.map(edge),
            "chains": explained.chain_shares.as_ref().and_then(|shares| shares.windows.get(index)).map(
                |shares: &Vec<ChainShare>| shares.iter().map(|share| json!({
                    "server_flights": share.flights,
                    "chains": share.chains,
                })).collect::<Vec<_>>()
            ),
        })
    });
    let cuts = explained.cuts.iter().map(|cut| {
        json!({
            "what": cut.what,
            "certificate_bytes": cut.certificate,
            "server_flight_wire_bytes": cut.server_flight,
            "server_flights": cut.flights,
        })
    });
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let times = explained.times.iter().map(|(cell, times)| {
        let modelled = |time| times.modelled(time).map(nanoseconds);
        let reason = times.beyond(times.ttlb);
        json!({
            "cell": cell.to_string(),
            "overflows": reason == Some(Reason::QueueOverflow),
            "limit": reason.zip(times.limit).map(|(reason, limit)| json!({
                "until_ns": nanoseconds(limit.until),
                "reason": reason.name(),
            })),
            "connect_ns": times.connect.map(nanoseconds),
            "handshake_ns": modelled(times.handshake),
            "ttfb_ns": times.ttfb.and_then(modelled),
            "ttlb_ns": modelled(times.ttlb),
        })
    });
    json!({
        "arm": explained.arm.label,
        "name": explained.arm.name,
        "transport": explained.arm.transport.name(),
        "messages": sizes.collect::<serde_json::Map<_, _>>(),
        "client_hello_wire_bytes": wire.carried(HandshakeFlight::ClientHello),
        "hello_retry_request_wire_bytes": wire.carried(HandshakeFlight::HelloRetryRequest),
        "second_client_hello_wire_bytes": wire.carried(HandshakeFlight::SecondClientHello),
        "server_flight_wire_bytes": wire.carried(HandshakeFlight::Server),
        "client_finish_wire_bytes": wire.carried(HandshakeFlight::ClientFinish),
        "windows": windows.collect::<Vec<_>>(),
        "cuts": cuts.collect::<Vec<_>>(),
        "supposed": assumed::supposed_json(&explained.supposed),
        "assumptions": assumed::json(&explained.arm, &cells(explained)),
        "times": times.collect::<Vec<_>>(),
    })
}

fn edge(edge: Edge) -> Value {
    json!({
        "certificate_bytes": edge.certificate,
        "certificate_distance": edge.certificate_distance,
        "server_flight_wire_bytes": edge.server_flight,
        "server_flight_distance": edge.server_flight_distance,
        "ended_by": edge.held.map(Hold::name),
    })
}
