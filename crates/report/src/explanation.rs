//! What arithmetic says of arms, as text, as JSON and drawn.

mod drawing;

pub use drawing::svg as explanation_svg;

use std::time::Duration;

use lastbyte_exchange::HandshakeFlight;
use lastbyte_flights::Reason;
use lastbyte_link::counted;
use lastbyte_sizes::Message;
use serde_json::{Value, json};

use super::assumed;
use super::layout::{Field, Line, Role, Screen, set};
use crate::thresholds::WHOLE_TRIP;
use lastbyte_explain::{
    Edge, Explanation, HelloEdge, SERVER_MESSAGES, Signature, Window, message_on_wire,
};
use lastbyte_results::number::milliseconds;
use lastbyte_study::{ArmChain, Cell, distinctions};

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
    let note = screen.wrap(&format!("{NOTE} {measured}"), 0);
    format!("{}\n{note}\n", arms.join("\n"))
}

const NOTE: &str = "By arithmetic: TCP's slow start over a network that loses nothing, with ends that compute in no \
     time. Sizes are those of OpenSSL.";

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
    let line = |message: Message, on_wire: u32| {
        let bytes = wire.bytes(message);
        let span = match message {
            Message::CertificateVerify => format!("{bytes}{}", spread(explained.signature)),
            _ => bytes.to_string(),
        };
        let places = explained.windows.iter();
        let places = places.map(|window| place(window, message, on_wire));
        let (mut segments, flights): (Vec<usize>, Vec<String>) = places.unzip();
        segments.dedup();
        let segments: Vec<String> = segments.iter().map(usize::to_string).collect();
        let cells = [span, on_wire.to_string(), segments.join("/")];
        let flights = flights.into_iter().filter(|flight| !flight.is_empty());
        let cells = cells.into_iter().chain(flights);
        (bytes > 0).then(|| row(message.title(), cells))
    };
    let mut lines = vec![title(
        "message, bytes",
        &["alone", "on the wire", "ends in segment"],
        windows,
    )];
    let before = [
        (
            Message::ClientHello,
            wire.sent(HandshakeFlight::ClientHello),
        ),
        (
            Message::HelloRetryRequest,
            wire.sent(HandshakeFlight::HelloRetryRequest),
        ),
        (
            Message::SecondClientHello,
            wire.sent(HandshakeFlight::SecondClientHello),
        ),
    ];
    let server = SERVER_MESSAGES.map(|message| (message, message_on_wire(wire, message)));
    let after = (
        Message::ClientFinished,
        wire.sent(HandshakeFlight::ClientFinish),
    );
    let all = before.into_iter().chain(server).chain([after]);
    lines.extend(all.filter_map(|(message, on_wire)| line(message, on_wire)));
    lines
}

/// The segment that a message ends in, counted from 1 in what leaves with it, and its flight, if it is the server's.
fn place(window: &Window, message: Message, on_wire: u32) -> (usize, String) {
    let mut flights = (1..).zip(&window.flights);
    let found = flights.find_map(|(number, flight)| {
        let mut messages = flight.messages.iter();
        let (_, segment) = messages.find(|(ended, _)| *ended == message)?;
        Some((*segment, format!("flight {number}")))
    });
    let mss = window.cell.hosts.mss();
    found.unwrap_or_else(|| ((on_wire as usize).div_ceil(mss), String::new()))
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
            |edge| format!("{} ({sign}{})", edge.certificate, edge.certificate_distance),
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
    let mut lines = vec![
        title("client, ClientHello", &[], windows),
        of("bytes on the wire", &|_| {
            explained
                .exchange
                .sent(HandshakeFlight::ClientHello)
                .to_string()
        }),
        of("segments, and bytes to the next edge", &hello),
        title("server, ServerHello to Finished", &[], windows),
        of("bytes on the wire", &|_| {
            explained.exchange.sent(HandshakeFlight::Server).to_string()
        }),
        of("flights", &|window| window.edges.flights.to_string()),
    ];
    let differs = |window: &Window| window.most_flights != window.edges.flights;
    if explained.windows.iter().any(differs) {
        let more = explained
            .signature
            .longest
            .saturating_sub(explained.signature.bytes);
        let label = match more {
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
        of("  and all of it, on the wire", &|window| {
            on_wire(window.edges.above, '+')
        }),
    ]);
    let below = |window: &Window| window.edges.below.is_some();
    if explained.windows.iter().any(below) {
        lines.extend([
            of("a flight less, if the Certificate has at most", &|window| {
                certificate(window.edges.below, '-')
            }),
            of("  and all of it, on the wire", &|window| {
                on_wire(window.edges.below, '-')
            }),
        ]);
    }
    lines
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
                    format!("{}, to save {}", ways.join(", or "), saved(window))
                };
                format!("the server's handshake takes {flights} flights: {what}")
            }
            (_, Some(above)) => {
                let bytes = above.certificate_distance;
                let verb = if bytes == 1 { "is" } else { "are" };
                let bytes = counted(bytes, "byte");
                format!("it fits one flight, and {bytes} {verb} left for the chain")
            }
            (_, None) => "it fits one flight, as any chain does".to_owned(),
        };
        screen.wrap(&format!("{name}: {sentence}"), 2)
    });
    sentences.map(|sentence| sentence + "\n").collect()
}

/// What a flight less saves: a round trip, unless the link is slow, and sends all the while.
fn saved(window: &Window) -> String {
    let is_whole =
        |(saved, rtt): &(Duration, Duration)| saved.as_secs_f64() >= WHOLE_TRIP * rtt.as_secs_f64();
    let saved = window.saved.iter().map(|(saved, _)| *saved);
    match (saved.clone().min(), saved.max()) {
        (Some(least), Some(most)) if !window.saved.iter().all(is_whole) => {
            let time = match (milliseconds(least), milliseconds(most)) {
                (least, most) if least == most => most,
                (least, most) => format!("{least} to {most}"),
            };
            format!("a flight, which is {time} here: the link is busy sending")
        }
        _ if window.edges.flights == 2 => "the round trip".to_owned(),
        _ => "a round trip".to_owned(),
    }
}

/// What each cut buys.
fn cuts(explained: &Explanation, windows: &[String]) -> Vec<Line> {
    let columns = ["Certificate", "on the wire"];
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
    let columns = ["Certificate", "on the wire"];
    let mut lines = vec![title("if, and flights then", &columns, windows)];
    let own = &explained.exchange;
    let own = [
        own.bytes(Message::Certificate),
        own.sent(HandshakeFlight::Server),
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
    let windows = explained.windows.iter().map(|window| {
        json!({
            "initcwnd": window.cell.initcwnd,
            "client_initcwnd": window.cell.client_initcwnd,
            "mss": window.cell.hosts.mss(),
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
                "messages": flight.messages.iter().map(|(message, segment)| json!({
                    "message": message.name(),
                    "segment": segment,
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "larger_initcwnd": window.larger_window.map(|window| window.at_once),
            "room": window.edges.above.map(edge),
            "excess": window.edges.below.map(edge),
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
        "messages": sizes.collect::<serde_json::Map<_, _>>(),
        "client_hello_wire_bytes": wire.sent(HandshakeFlight::ClientHello),
        "hello_retry_request_wire_bytes": wire.sent(HandshakeFlight::HelloRetryRequest),
        "second_client_hello_wire_bytes": wire.sent(HandshakeFlight::SecondClientHello),
        "server_flight_wire_bytes": wire.sent(HandshakeFlight::Server),
        "client_finish_wire_bytes": wire.sent(HandshakeFlight::ClientFinish),
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
    })
}
