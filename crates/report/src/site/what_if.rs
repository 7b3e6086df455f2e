//! The same site with other chains: what changes for its users.

use std::cmp::Ordering;
use std::time::Duration;

use lastbyte_explain::site::{self, Chain, PathRate, UserTimes, Users};
use lastbyte_explain::{Explanation, response};
use lastbyte_link::{counted, visible};
use lastbyte_probe::{Document, Edge, Left};
use lastbyte_sizes::Message;
use lastbyte_study::Cell;

use super::lead::{lead, supposed};
use super::{table as lines, users};
use crate::thresholds::{NOTHING_MS, WORTH_MS};

/// What arithmetic says of chains over some networks.
pub struct Answer<'a> {
    /// What the probe saw.
    pub document: &'a Document,
    /// Today's chain first.
    pub explained: Vec<(&'a Chain, Explanation)>,
    /// A population, if one was asked for, and what each of the chains is to it.
    pub users: Option<(&'a Users, Vec<UserTimes>)>,
    /// The measured path, and networks by name.
    pub cells: Vec<Cell>,
    /// Of the measured path.
    pub rate: PathRate,
}

impl Answer<'_> {
    /// What is read first: a sentence of each chain that was asked for; where none was, of those that everybody asks for.
    pub fn lead(&self) -> String {
        if self.explained.is_empty() {
            lead(self.document)
        } else {
            let conclusions = conclusions(self.document, &self.explained);
            format!("{conclusions}{}\n", supposed(self.document))
        }
    }

    /// For people.
    pub fn table(&self) -> String {
        if self.explained.is_empty() {
            String::new()
        } else {
            table(self)
        }
    }

    /// The probe's document, with the answer in it if there is one.
    pub fn json(&self) -> String {
        let Ok(serde_json::Value::Object(mut document)) = serde_json::to_value(self.document)
        else {
            return self.document.write();
        };
        if !self.explained.is_empty() {
            document.insert("what_if".to_owned(), json(self));
            let notes = document
                .get_mut("notes")
                .and_then(|notes| notes.as_array_mut());
            let otherwise = sends_otherwise(self).map(serde_json::Value::from);
            // An earlier answer may have it already.
            if let (Some(notes), Some(otherwise)) = (notes, otherwise)
                && !notes.contains(&otherwise)
            {
                notes.push(otherwise);
            }
        }
        // All of it is numbers and texts.
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }
}

/// Handshake, first and last byte.
type Times = [Option<Duration>; 3];

/// Those of a chain in one cell, as far as they are modelled.
fn times(explanation: &Explanation, cell: usize) -> Times {
    let Some((_, timeline)) = explanation.times.get(cell) else {
        return Times::default();
    };
    let times = [Some(timeline.handshake), timeline.ttfb, Some(timeline.ttlb)];
    times.map(|time| timeline.modelled(time?))
}

/// Why there are times that are not modelled, by network.
fn limits(explained: &[(&Chain, Explanation)]) -> String {
    let cells = explained.iter().flat_map(|(_, arm)| &arm.times);
    let mut lines: Vec<String> = Vec::new();
    for (cell, times) in cells {
        if let Some(reason) = times.beyond(times.ttlb) {
            let line = format!(
                "times that are missing over {} are not by arithmetic: {reason}\n",
                name(cell)
            );
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines.concat()
}

fn name(cell: &Cell) -> String {
    let network = cell.link_name.clone();
    network.unwrap_or_else(|| "the measured path".to_owned())
}

fn table(answer: &Answer<'_>) -> String {
    let Answer {
        document,
        explained,
        users,
        cells,
        rate,
    } = answer;
    // A name can be long, and columns stay below each other.
    let names = explained.iter().map(|(chain, _)| visible(&chain.name));
    let width = names.map(|name| name.chars().count()).fold(28, usize::max);
    let mut text = format!(
        "\n{:<width$} {:>11} {:>11} {:>7}  {:<20} {:>10} {:>10} {:>10}\n",
        "chain",
        "Certificate",
        "on the wire",
        "flights",
        "network",
        "handshake",
        "first byte",
        "last byte"
    );
    for (number, (chain, explanation)) in explained.iter().enumerate() {
        let edge = site::edge_of(document, chain, explanation).unwrap_or_default();
        for (index, cell) in cells.iter().enumerate() {
            let own = times(explanation, index);
            let today = explained.first().map(|(_, today)| times(today, index));
            let columns = own.iter().zip(today.unwrap_or_default());
            let columns = columns.map(|(own, today)| lines::later(*own, today));
            let columns: Vec<String> = columns.collect();
            let head = match index {
                0 => format!(
                    "{:<width$} {:>11} {:>11} {:>7}",
                    visible(&chain.name),
                    edge.certificate_bytes,
                    edge.server_flight_wire_bytes,
                    edge.flights
                ),
                _ => " ".repeat(width + 32),
            };
            text += &format!("{head}  {:<20} {}\n", name(cell), columns.join(" "));
        }
        if let (Some(over), true) = (edge.over, number > 0) {
            text += &format!("{:<width$} cut {over} B of it to save a flight\n", "");
        }
    }
    text += "by arithmetic, without loss, jitter and computing: every percentile is the same; --measure has networks with their luck\n";
    text += &limits(explained);
    if let PathRate::Supposed(rate) = rate {
        let least = document.path.rate_at_least_mbit;
        let least = least.map_or_else(String::new, |least| {
            format!(", only {least:.1} Mbit/s at least")
        });
        text += &format!(
            "the measured path is supposed to carry {rate}: what it does was not seen{least}; say it with --rate\n"
        );
    }
    text += &response::supposed(document);
    if let Some(otherwise) = sends_otherwise(answer) {
        text += &format!("{otherwise}\n");
    }
    let mut others = explained.iter().skip(1);
    if others.any(|(chain, explanation)| is_at_most(document, chain, explanation)) {
        text += "flights are at least that: this server writes its handshake in pieces, and where those of another chain would end is not known\n";
    }
    let users = users.iter();
    let users = users.map(|(population, times)| users::table(population, explained, times));
    text + &users.collect::<String>()
}

/// What it comes to over the measured path: a sentence of each chain that is supposed.
fn conclusions(document: &Document, explained: &[(&Chain, Explanation)]) -> String {
    let Some((first, others)) = explained.split_first() else {
        return String::new();
    };
    let of = |(chain, explanation): &(&Chain, Explanation)| {
        let edge = site::edge_of(document, chain, explanation).unwrap_or_default();
        (edge, times(explanation, 0))
    };
    let today = of(first);
    let sentences = others.iter().map(|other| {
        let supposed = of(other);
        format!(
            "{}: {}\n",
            visible(&other.0.name),
            conclusion(&today, &supposed)
        )
    });
    sentences.collect()
}

/// How a chain differs from today's, and why.
fn conclusion((today, before): &(Edge, Times), (edge, after): &(Edge, Times)) -> String {
    let flights = match edge.flights.cmp(&today.flights) {
        Ordering::Equal => "as many flights".to_owned(),
        Ordering::Greater => format!("{} more", counted(edge.flights - today.flights, "flight")),
        Ordering::Less => format!("{} less", counted(today.flights - edge.flights, "flight")),
    };
    let [handshake, first, last] = [0, 1, 2].map(|of| later_by(before[of], after[of]));
    let mut text = flights;
    let (what, begins) = match first {
        Some(_) => ("first byte", first),
        None => ("handshake", handshake),
    };
    if let Some(begins) = begins {
        text += &format!(", the {what} {}", in_words(begins));
    }
    if let Some(last) = last.filter(|last| begins.map(in_words) != Some(in_words(*last))) {
        text += &format!(", the last byte {}", in_words(last));
    }
    // Each segment of a handshake that is acknowledged lets the response have another one.
    let is_larger = edge.server_flight_wire_bytes > today.server_flight_wire_bytes;
    let gained = |time: Option<f64>| Some(handshake? - time?).filter(|ms| *ms >= WORTH_MS);
    let gained = [("first", gained(first)), ("last", gained(last))];
    let gained = gained
        .into_iter()
        .filter_map(|(which, ms)| Some((which, ms?)));
    let gained = gained.map(|(which, ms)| format!("the {which} byte by {ms:.1} ms"));
    let gained = gained.collect::<Vec<_>>().join(", ");
    if is_larger && !gained.is_empty() {
        text += &format!(
            ": the larger handshake has opened the window further, which brings forward {gained}"
        );
    }
    text
}

/// Milliseconds; below 0 is sooner.
fn later_by(before: Option<Duration>, after: Option<Duration>) -> Option<f64> {
    Some((after?.as_secs_f64() - before?.as_secs_f64()) * 1e3)
}

fn in_words(ms: f64) -> String {
    match ms {
        ms if ms.abs() < NOTHING_MS => "at the same time".to_owned(),
        ms if ms > 0.0 => format!("{ms:.1} ms later"),
        ms => format!("{:.1} ms sooner", -ms),
    }
}

/// Whether more flights can be needed than are told, as nobody knows where writes would end.
fn is_at_most(document: &Document, chain: &Chain, explanation: &Explanation) -> bool {
    let edge = site::edge_of(document, chain, explanation);
    let is_in_pieces = (document.tls.writes.as_ref())
        .is_some_and(|writes| !writes.first.is_empty() || !writes.is_certain);
    is_in_pieces && edge.is_some_and(|edge| edge.left_is == Some(Left::AtMost))
}

/// That the server sends otherwise than is supposed, where that was seen. BBR's window grows while it is not full, too, and has
/// already what a larger handshake would bring; with Nagle's algorithm or a small send buffer, writes wait.
fn sends_otherwise(answer: &Answer<'_>) -> Option<String> {
    let document = answer.document;
    let (_, today) = answer.explained.first()?;
    let [handshake, first, last] = times(today, 0).map(|time| Some(time?.as_secs_f64() * 1e3));
    // Of shorter ones, computing is a part that counts.
    let half = document.rtt_ms.filter(|rtt| *rtt >= 1.0)? / 2.0;
    let first_seen = document.times.first_byte_ms?;
    let begins = (
        first? - handshake?,
        first_seen - lines::handshake_ms(document)?,
    );
    let ends = (last? - first?, document.times.last_byte_ms? - first_seen);
    let is_paced = document.window.as_ref().is_some_and(|window| window.paced);
    let seen = |what: &str, after: &str, (supposed, seen): (f64, f64)| {
        format!(
            "the {what} was seen {seen:.1} ms after the {after}, and arithmetic has it {supposed:.1} ms after it: this server"
        )
    };
    let what = match is_paced {
        // It may think before it answers, so later says nothing.
        _ if begins.1 + half < begins.0 => seen("first byte", "handshake", begins),
        _ if (ends.1 - ends.0).abs() > half => seen("last byte", "first one", ends),
        true => "this server paces what it sends, as BBR does: it".to_owned(),
        false => return None,
    };
    Some(format!(
        "{what} may send otherwise than is supposed here, and what is told of windows and flights is as unsure with other chains"
    ))
}

fn json(answer: &Answer<'_>) -> serde_json::Value {
    let Answer {
        explained,
        users,
        cells,
        ..
    } = answer;
    let chains = explained
        .iter()
        .enumerate()
        .map(|(number, (chain, explanation))| {
            let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
            let networks = cells.iter().enumerate().map(|(index, cell)| {
                let [handshake, first, last] = times(explanation, index);
                let rate = cell.link.backward.rate;
                serde_json::json!({
                    "network": name(cell),
                    "rate_mbit": rate.map(|rate| rate.bits_per_second() as f64 / 1e6),
                    "rate_from": match cell.link_name {
                        None => answer.rate.name(),
                        Some(_) => "network",
                    },
                    "handshake_ms": ms(handshake),
                    "first_byte_ms": ms(first),
                    "last_byte_ms": ms(last),
                })
            });
            let edge = site::edge_of(answer.document, chain, explanation).unwrap_or_default();
            let mut entry = serde_json::json!({
                "chain": chain.name,
                "certificates": chain.shown.certificates,
                "certificate_bytes": explanation.exchange.bytes(Message::Certificate),
                "server_flight_wire_bytes": edge.server_flight_wire_bytes,
                "flights": edge.flights,
                "left": edge.left,
                "left_is": edge.left_is,
                "over": edge.over,
                "times": networks.collect::<Vec<_>>(),
            });
            let times_of_users =
                (users.as_ref()).and_then(|(users, times)| Some((users, times.get(number)?)));
            if let (Some((users, times)), Some(entry)) = (times_of_users, entry.as_object_mut()) {
                entry.insert("users".to_owned(), users::json(users, times));
            }
            entry
        });
    chains.collect()
}
