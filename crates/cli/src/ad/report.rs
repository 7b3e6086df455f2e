//! What `fetch` and `check` tell.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use lastbyte::report::json_for_terminal;
use lastbyte_ad::check::Checked;
use lastbyte_ad::client::{Found, Handshake};
use lastbyte_ad::dns::Transport;
use lastbyte_ad::fetch::Fetched;
use lastbyte_ad::http::Url;
use lastbyte_tls::names;
use lastbyte_tls::observer::Message;
use pqtlsad::client::{Fallback, Outcome};
use serde_json::{Map, Value, json};

/// Times as `curl -w` names them; the record's is ours.
fn times(fetched: &Fetched) -> [(&'static str, Option<Duration>); 7] {
    let times = &fetched.handshake.times;
    [
        ("time_namelookup", Some(times.name_lookup)),
        ("time_record", times.record),
        ("time_connect", Some(times.connect)),
        ("time_appconnect", Some(times.app_connect)),
        ("time_pretransfer", Some(fetched.pre_transfer)),
        ("time_starttransfer", Some(fetched.start_transfer)),
        ("time_total", Some(fetched.total)),
    ]
}

/// Sizes in bytes, their headers included.
fn messages(handshake: &Handshake) -> impl Iterator<Item = (Message, Option<usize>)> {
    const SHOWN: [Message; 6] = [
        Message::ClientHello,
        Message::ServerHello,
        Message::EncryptedExtensions,
        Message::Certificate,
        Message::CertificateVerify,
        Message::ServerFinished,
    ];
    let seen = &handshake.observation;
    SHOWN
        .into_iter()
        .map(|message| (message, seen.bytes(message)))
}

fn outcome(handshake: &Handshake) -> (Outcome, Option<String>) {
    match &handshake.result {
        Ok(_) => (Outcome::Used, None),
        Err(fallback) => (fallback.outcome, Some(words(fallback))),
    }
}

/// Why the record was not used, and what to do where the user can do something.
fn words(fallback: &Fallback) -> String {
    let reason = &fallback.reason;
    match fallback.outcome {
        // On loopback and in a LAN, TCP takes less than any question.
        Outcome::Late => format!(
            "{reason}; the ClientHello waits longer for it with --grace, such as --grace 100ms"
        ),
        _ => reason.clone(),
    }
}

pub(super) fn fetched_json(url: &Url, fetched: &Fetched) -> String {
    let mut document = handshake_json(&fetched.handshake, fetched.handshake.found);
    document.insert("url".into(), url.to_string().into());
    document.insert("http_code".into(), fetched.status.into());
    document.insert("size_download".into(), fetched.body_bytes.into());
    for (name, time) in times(fetched) {
        document.insert(name.into(), time.map(|time| time.as_secs_f64()).into());
    }
    pretty(document)
}

pub(super) fn checked_json(name: &str, port: u16, checked: &Checked) -> String {
    let mut document = handshake_json(&checked.with_record, checked.found);
    document.insert("name".into(), name.into());
    document.insert("port".into(), port.into());
    let (part, count) = checked.delivered.unzip();
    document.insert("record_part".into(), part.map(|part| part.name()).into());
    document.insert("record_certificates".into(), count.into());
    document.insert(
        "plain_certificate_bytes".into(),
        checked.plain.observation.bytes(Message::Certificate).into(),
    );
    let sent = checked.plain.sent.len();
    document.insert("plain_certificates".into(), sent.into());
    if let Some(expiry) = &checked.expiry {
        let at = expiry.at.duration_since(SystemTime::UNIX_EPOCH);
        let at = at.unwrap_or_default().as_secs();
        document.insert("expires_unix".into(), at.into());
        document.insert("expires_in_s".into(), expiry.left.as_secs().into());
        document.insert("expires_first".into(), expiry.subject.clone().into());
    }
    let problems = checked.problems.iter().map(ToString::to_string);
    document.insert("problems".into(), problems.collect::<Vec<_>>().into());
    pretty(document)
}

fn handshake_json(handshake: &Handshake, found: Option<Found>) -> Map<String, Value> {
    let (outcome, reason) = outcome(handshake);
    let seen = &handshake.observation;
    let savings = &handshake.savings;
    let mut document = Map::new();
    let mut put = |name: &str, value: Value| document.insert(name.into(), value);
    put("outcome", outcome.name().into());
    put("reason", reason.into());
    put("remote_ip", handshake.address.ip().to_string().into());
    put("remote_port", handshake.address.port().into());
    put("group", seen.group.and_then(names::group).into());
    put(
        "signature",
        seen.signature.and_then(names::signature_scheme).into(),
    );
    for (message, bytes) in messages(handshake) {
        put(message.column(), bytes.into());
    }
    put("server_flight_bytes", savings.flight_bytes.into());
    put("bytes_omitted", savings.bytes_omitted.into());
    put("flights", savings.flights.into());
    put("flights_of_whole_chain", savings.whole_flights.into());
    put("round_trips_saved", savings.round_trips().into());
    put(
        "record",
        found.map_or(Value::Null, |found| {
            json!({
                "ttl_s": found.ttl.as_secs(),
                "chains": found.chains,
                "message_bytes": found.message_bytes,
                "messages": found.messages,
                "transport": transport(found.transport),
            })
        }),
    );
    document
}

pub(super) fn fetched_table(url: &Url, fetched: &Fetched) -> String {
    let handshake = &fetched.handshake;
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = writeln!(
        text,
        "{url}  {}  {} B from {}",
        fetched.status, fetched.body_bytes, handshake.address
    );
    describe(&mut text, handshake, handshake.found);
    for (name, time) in times(fetched) {
        let _ = match time {
            Some(time) => writeln!(text, "{name:<22} {:>10.3} ms", time.as_secs_f64() * 1e3),
            None => writeln!(text, "{name:<22} {:>10}", "-"),
        };
    }
    text
}

pub(super) fn checked_table(name: &str, checked: &Checked) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{name} at {}", checked.with_record.address);
    describe(&mut text, &checked.with_record, checked.found);
    if let Some((part, count)) = checked.delivered {
        let _ = writeln!(
            text,
            "record holds           {count} certificates, down to the {part}"
        );
    }
    let _ = writeln!(
        text,
        "without the record     {} certificates, Certificate of {} B",
        checked.plain.sent.len(),
        checked
            .plain
            .observation
            .bytes(Message::Certificate)
            .unwrap_or_default()
    );
    if let Some(expiry) = &checked.expiry {
        let days = expiry.left.as_secs() / 86_400;
        let _ = writeln!(
            text,
            "first to expire        {} in {days} days",
            expiry.subject
        );
    }
    for problem in &checked.problems {
        let _ = writeln!(text, "problem                {problem}");
    }
    text
}

fn describe(text: &mut String, handshake: &Handshake, found: Option<Found>) {
    let (outcome, reason) = outcome(handshake);
    let seen = &handshake.observation;
    let savings = &handshake.savings;
    let _ = match reason {
        Some(reason) => writeln!(text, "outcome                {outcome}: {reason}"),
        None => writeln!(text, "outcome                {outcome}"),
    };
    if let Some(found) = found {
        let _ = writeln!(
            text,
            "record                 {} B over {}, TTL {} s",
            found.message_bytes,
            transport(found.transport),
            found.ttl.as_secs()
        );
    }
    let name = |code: Option<u16>, name: fn(u16) -> Option<&'static str>| {
        code.and_then(name).unwrap_or("unknown")
    };
    let _ = writeln!(
        text,
        "handshake              {}, {}",
        name(seen.group, names::group),
        name(seen.signature, names::signature_scheme)
    );
    for (message, bytes) in messages(handshake) {
        if let Some(bytes) = bytes {
            let _ = writeln!(text, "{:<22} {bytes:>10} B", message.name());
        }
    }
    let _ = writeln!(
        text,
        "bytes omitted          {:>10} B",
        savings.bytes_omitted
    );
    let _ = writeln!(
        text,
        "round trips saved      {:>10}   by arithmetic: flights of the server {}, with the whole chain {}",
        savings.round_trips(),
        savings.flights,
        savings.whole_flights
    );
}

fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::Tls => "tls",
    }
}

fn pretty(document: Map<String, Value>) -> String {
    let text = format!("{:#}\n", Value::Object(document));
    json_for_terminal(&text)
}

#[cfg(test)]
mod tests {
    use super::{Fallback, Outcome, words};

    #[test]
    fn who_is_late_is_told_how_to_wait() {
        let late = Fallback::new(Outcome::Late, "not there when TCP was established");
        let hint = "; the ClientHello waits longer for it with --grace, such as --grace 100ms";
        assert_eq!(words(&late), format!("{}{hint}", late.reason));
        let none = Fallback::new(Outcome::NoRecord, "the name has none");
        assert_eq!(words(&none), none.reason);
    }
}
