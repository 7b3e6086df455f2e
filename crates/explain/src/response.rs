//! How a server sends its tickets and its responses, as a probe saw it: for arithmetic, for the laboratory, and in words.

use lastbyte_exchange::{Records, Transfer};
use lastbyte_explore::Sent;
use lastbyte_link::Bytes;
use lastbyte_probe::Document;
use lastbyte_sizes::framing::{MAX_PLAINTEXT, MSS, RECORD_OVERHEAD};

use lastbyte_study::exchange::records_over;
use lastbyte_study::{Arm, Parameter, RecordSize, Writes};

/// How a server cuts its responses into records. One that begins with a record of several segments has clients wait for all of
/// them; of others the first segment tells, whatever comes behind it.
fn record_size(document: &Document) -> RecordSize {
    let segment = document.mss.map_or(MSS, |mss| mss as usize);
    let first = document
        .response
        .as_ref()
        .and_then(|response| response.first_record_wire_bytes)
        .filter(|bytes| *bytes > segment)
        .map(|bytes| bytes.saturating_sub(RECORD_OVERHEAD).min(MAX_PLAINTEXT));
    match first.and_then(|payload| u16::try_from(payload).ok()) {
        Some(payload) => RecordSize::Fixed(payload),
        None => RecordSize::FirstSegment,
    }
}

/// What of the response that came is payload, over segments of so many bytes; none where none came.
pub fn payload(document: &Document, mss: usize) -> Option<Bytes> {
    let wire_bytes = document.response.as_ref()?.wire_bytes;
    let Records { first, later } = records_over(record_size(document), mss);
    let first = (first + RECORD_OVERHEAD).min(wire_bytes);
    let rest = wire_bytes - first;
    let records = usize::from(first > 0) + rest.div_ceil(later + RECORD_OVERHEAD);
    let payload = wire_bytes.saturating_sub(records * RECORD_OVERHEAD);
    Some(Bytes(payload as u64))
}

/// The same arm, whose server cuts its responses as this one does.
pub fn answering(document: &Document, arm: Arm) -> Arm {
    Arm {
        record_size: record_size(document),
        ..arm
    }
}

/// How a server sends what it answers, for who has it do the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sends {
    /// What an arm of the laboratory says of it.
    pub arm: Vec<(&'static str, String)>,
    /// How a host of the laboratory sends the response that came; none where that is as usual, or none of a host.
    pub host: Option<HostResponse>,
    /// How it is drawn.
    pub drawn: Sent,
    /// What others don't do, as what the server does.
    pub unusual: Vec<String>,
}

/// How a server sends what it answers.
pub fn sends(document: &Document) -> Sends {
    let records = record_size(document);
    let host = host(document);
    // Where each write has a record, an arm says nothing of records.
    let is_of_arm = host.is_none() && records != RecordSize::default();
    let payload = match records {
        RecordSize::FirstSegment => 0,
        RecordSize::Fixed(payload) => payload,
    };
    Sends {
        arm: Vec::from_iter(is_of_arm.then(|| ("record_size", records.to_string()))),
        host,
        drawn: (document.response.as_ref()).map_or_else(Sent::default, |response| {
            Sent::of(&Transfer::from(response), payload)
        }),
        unusual: unusual(document),
    }
}

/// How a host of the laboratory sends such a response where it has to do otherwise than usual.
#[derive(Clone, Debug, PartialEq)]
pub struct HostResponse {
    /// What the cell says of it. Such a host makes a record of each write, so an arm says nothing of records.
    pub settings: Vec<(Parameter, String)>,
    /// Payload of as many bytes on the wire as came.
    pub data: Bytes,
}

/// How a host of the laboratory sends the response that came; none where that is as usual, or none of a host.
fn host(document: &Document) -> Option<HostResponse> {
    let payload = |bytes: &usize| format!("{}B", bytes.saturating_sub(RECORD_OVERHEAD));
    let writes: Vec<String> = first_writes(document).iter().map(payload).collect();
    let writes: Writes = writes.join("+").parse().ok()?;
    let wire_bytes = document.response.as_ref().map_or(0, |seen| seen.wire_bytes);
    let (mut left, mut records) = (wire_bytes, 0);
    while left > 0 {
        let payload = writes.size(records).map_or(MAX_PLAINTEXT, usize::from);
        left = left.saturating_sub(payload + RECORD_OVERHEAD);
        records += 1;
    }
    Some(HostResponse {
        settings: vec![(Parameter::WRITES, writes.to_string())],
        data: Bytes(wire_bytes.saturating_sub(records * RECORD_OVERHEAD) as u64),
    })
}

/// What of the tickets and the response the laboratory's host does otherwise: a line each.
pub fn otherwise(document: &Document) -> String {
    let host = host(document);
    let tickets = &document.tls.tickets_seen;
    let of_tickets = tickets.wire_bytes.filter(|bytes| *bytes > 0);
    let of_tickets = of_tickets.map_or_else(String::new, |bytes| {
        let alone = if tickets.writes.is_empty() {
""
} else {
" in segments of their own"
};
        let together = match &host {
            None => "go on in the response's first segment",
            Some(_) => "have segments of their own, but one write",
        };
        format!(
            "tickets: this site's are {bytes} B{alone}; the laboratory's are as many, some 255 B each, and {together}\n"
        )
    });
    let of_response = match (first_writes(document), &host) {
        ([], _) | (_, Some(_)) => String::new(),
        (sizes, None) => format!(
            "response: this site's leaves{}; the laboratory's server makes writes of one record, and here one of all\n",
            in_first_writes(sizes)
        ),
    };
    of_tickets + &of_response
}

/// How the tickets left: ` of 510 B on the wire before the response in 2 segments`.
pub fn manner_of_tickets(document: &Document) -> String {
    let tickets = &document.tls.tickets_seen;
    let bytes = tickets.wire_bytes.filter(|bytes| *bytes > 0);
    bytes.map_or_else(String::new, |bytes| match tickets.writes.len() {
        0 => format!(" of {bytes} B on the wire"),
        1 => format!(" of {bytes} B on the wire before the response"),
        writes => format!(" of {bytes} B on the wire before the response in {writes} segments"),
    })
}

/// How the response left, behind how many bytes it has: ` in writes of 1208, 2394 B, of which 1208 B are the first record`.
pub fn manner(document: &Document) -> String {
    let Some(response) = &document.response else {
        return String::new();
    };
    let writes = response.writes.as_ref();
    let writes = writes.map_or_else(String::new, |writes| {
        in_first_writes(&writes.first) + about(writes.is_certain)
    });
    let whole = if response.is_whole {
        ""
    } else {
        ", as far as it was read"
    };
    let record = match response.first_record_wire_bytes {
        Some(bytes) => format!(", of which {bytes} B are the first record"),
        None => String::new(),
    };
    format!("{writes}{whole}{record}")
}

/// What is supposed of the response, a line each: of its first record, which its first byte waits for, and of its writes, each of
/// which can end with a segment that is not full.
pub fn supposed(document: &Document) -> String {
    let Some(response) = &document.response else {
        return String::new();
    };
    let record = match (response.first_record_wire_bytes, record_size(document)) {
        (Some(bytes), RecordSize::Fixed(_)) => format!(
            "the first byte waits for all of the first record, which was seen to have {bytes} B\n"
        ),
        (Some(_), RecordSize::FirstSegment) => String::new(),
        (None, _) => "the first record is supposed to fit a segment, as its length was not seen: probe again, as the \
                      first byte waits for all of it\n"
            .to_owned(),
    };
    let writes = match &response.writes {
        Some(writes) if writes.is_certain => "",
        Some(writes) if !writes.first.is_empty() => {
            "in which writes the response leaves is not sure: others fit what came as well, and each can need a segment more or less\n"
        }
        _ => {
            "the response is supposed to leave in one write, as no others were seen: each that there is can need a segment more\n"
        }
    };
    record + writes
}

/// What a server does with its response that others don't, as what it `does`.
fn unusual(document: &Document) -> Vec<String> {
    let mut does = Vec::new();
    if let RecordSize::Fixed(payload) = record_size(document) {
        let bytes = usize::from(payload) + RECORD_OVERHEAD;
        does.push(format!(
            "begins its response with a record of {bytes} bytes, for all of which the first byte waits"
        ));
    }
    let writes = first_writes(document);
    let writes: Vec<String> = writes.iter().map(usize::to_string).collect();
    if !writes.is_empty() {
        does.push(format!(
            "writes its response in pieces, the last size again and again ({} bytes), each of which can end with a segment that is not full",
            writes.join(", ")
        ));
    }
    does
}

/// The first writes of the response, of which the last repeats; none where it is one, or where that is not known.
fn first_writes(document: &Document) -> &[usize] {
    let response = document.response.as_ref();
    let writes = response.and_then(|response| response.writes.as_ref());
    writes.map_or(&[], |writes| &writes.first)
}

/// That something leaves in writes of these sizes.
pub fn in_writes(sizes: &[usize]) -> String {
    match sizes {
        [] | [_] => " in one write".to_owned(),
        sizes => {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            format!(" in writes of {} B", sizes.join(", "))
        }
    }
}

/// That something leaves so, of which the last size repeats.
fn in_first_writes(sizes: &[usize]) -> String {
    match sizes {
        [size] => format!(" in writes of {size} B each"),
        sizes => in_writes(sizes),
    }
}

/// How sure that is.
pub fn about(is_certain: bool) -> &'static str {
    if is_certain { "" } else { ", as it seems" }
}
