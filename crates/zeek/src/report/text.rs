//! For people: what counts first.

use std::fmt::Write;

use super::{ByServer, ENOUGH, largest};
use crate::cdn::Class;
use crate::handshake::Carrier;
use crate::handshake::Handshake;
use crate::share::Share;
use crate::sketch::Sketch;
use crate::survey::Survey;
use crate::version::Version;

/// What a survey says, with so many servers by name if names were kept.
pub fn text(survey: &Survey, servers: usize) -> String {
    let mut out = String::new();
    resumption(&mut out, survey);
    by_server(&mut out, survey, servers);
    over_quic(&mut out, survey, servers);
    amounts(&mut out, survey);
    joining(&mut out, survey);
    trouble(&mut out, survey);
    out
}

/// A line. To a String, nothing fails.
macro_rules! say {
    ($out:expr, $($text:tt)*) => { let _ = writeln!($out, $($text)*); };
}

fn resumption(out: &mut String, survey: &Survey) {
    let tally = &survey.tally;
    say!(
        out,
        "{:<24}{:>9}   {:<18}{:>14}",
        "Resumed",
        "share",
        "95 %",
        "handshakes"
    );
    for version in Version::ALL {
        let counts = tally.of_version(version);
        if counts.resumed.of > 0 {
            share(out, version.name(), counts.resumed);
        }
    }
    share(out, "QUIC", tally.quic.resumed);
    for class in Class::ALL {
        let of = |carrier| tally.of_class(class, carrier);
        share(out, &format!("{}, TLS", name(class)), of(Carrier::Tls));
        share(out, &format!("{}, QUIC", name(class)), of(Carrier::Quic));
    }
}

fn name(class: Class) -> &'static str {
    match class {
        Class::Cdn => "CDNs",
        Class::Other => "others",
    }
}

fn share(out: &mut String, name: &str, share: Share) {
    let (value, interval) = match share.value().zip(share.interval()) {
        Some((value, [low, high])) => (
            format!("{:.1} %", value * 100.0),
            format!("{:.1} to {:.1} %", low * 100.0, high * 100.0),
        ),
        None => ("-".to_owned(), String::new()),
    };
    say!(
        out,
        "  {name:<22}{value:>9}   {interval:<18}{:>14}",
        share.of
    );
}

fn by_server(out: &mut String, survey: &Survey, count: usize) {
    let servers = ByServer::new(survey);
    let percent = |at| {
        servers
            .share(at)
            .map(|share| format!("{:.0} %", share * 100.0))
    };
    if let (Some(low), Some(middle), Some(high)) = (percent(25), percent(50), percent(75)) {
        say!(
            out,
            "\nOf {} servers, {} have {ENOUGH} handshakes or more. Resumed there: median {middle}, quartiles {low} and {high}.",
            servers.known,
            servers.shares.len()
        );
    }
    for server in largest(survey, count) {
        share(out, server.name, server.resumed);
    }
}

fn over_quic(out: &mut String, survey: &Survey, count: usize) {
    let tally = &survey.tally;
    say!(
        out,
        "\n{:<24}{:>9}   {:<18}{:>14}",
        "Over QUIC",
        "share",
        "95 %",
        "handshakes"
    );
    share(out, "all", tally.all_over_quic());
    for class in Class::ALL {
        share(out, name(class), tally.over_quic(class));
    }
    for server in largest(survey, count) {
        share(out, server.name, server.over_quic);
    }
}

fn amounts(out: &mut String, survey: &Survey) {
    let tally = &survey.tally;
    say!(
        out,
        "\n{:<24}{:>12}{:>12}{:>12}{:>14}",
        "Bytes per connection",
        "p25",
        "p50",
        "p75",
        "connections"
    );
    for class in Class::ALL {
        for kind in Handshake::ALL {
            let sketch = &tally.amounts(class, kind).received;
            row(
                out,
                &format!("{}, {}", name(class), kind.name()),
                sketch,
                |bytes| bytes.to_string(),
            );
        }
    }
    say!(out, "{:<24}", "Duration");
    for class in Class::ALL {
        for kind in Handshake::ALL {
            let sketch = &tally.amounts(class, kind).duration;
            row(
                out,
                &format!("{}, {}", name(class), kind.name()),
                sketch,
                seconds,
            );
        }
    }
    if survey.ours.rows > 0 {
        say!(out, "{:<24}", "TCP's RTT");
        row(out, "all", &tally.rtt, seconds);
        say!(out, "{:<24}", "Server's handshake, bytes");
        for kind in Handshake::ALL {
            row(out, kind.name(), tally.handshake_bytes(kind), |bytes| {
                bytes.to_string()
            });
        }
    }
}

fn row(out: &mut String, name: &str, sketch: &Sketch, unit: impl Fn(u64) -> String) {
    let at = |percent| sketch.percentile(percent).map_or("-".to_owned(), &unit);
    say!(
        out,
        "  {name:<22}{:>12}{:>12}{:>12}{:>14}",
        at(25),
        at(50),
        at(75),
        sketch.count()
    );
}

fn seconds(micros: u64) -> String {
    match micros {
        0..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

fn joining(out: &mut String, survey: &Survey) {
    let tally = &survey.tally;
    say!(
        out,
        "\nssl.log: {} rows; conn.log: {}; lastbyte.log: {}. Joined by uid: {}.",
        survey.ssl.rows,
        survey.conn.rows,
        survey.ours.rows,
        tally.joined
    );
    say!(
        out,
        "Rows of ssl.log without one of conn.log: {}, and {} had to go before one came (--join-rows {}).",
        tally.unmatched,
        tally.expired,
        survey.options.join_rows
    );
    let unusable = tally.unusable;
    say!(
        out,
        "Joined handshakes whose bytes say nothing: {} by conn_state, {} with missed bytes, {} without bytes.",
        unusable.state,
        unusable.missed_bytes,
        unusable.no_bytes
    );
    let none = tally.of_version(Version::None).rows;
    say!(
        out,
        "Rows of ssl.log without a ServerHello: {none}, and {} of QUIC; repeats: {}; of drafts of TLS 1.3: {}.",
        tally.quic.without_server_hello,
        survey.ssl.repeats,
        survey.drafts
    );
    if tally.quic.told_by_history > 0 {
        say!(
            out,
            "Without a row of conn.log, {} rows are taken for QUIC by their history of hellos alone.",
            tally.quic.told_by_history
        );
    }
}

fn trouble(out: &mut String, survey: &Survey) {
    if survey.all_unreadable() > 0 {
        say!(
            out,
            "\nLines that could not be read: {}. The first:",
            survey.all_unreadable()
        );
        for example in &survey.examples {
            say!(out, "  {example}");
        }
    }
    for told in &survey.told {
        say!(out, "{told}");
    }
}
