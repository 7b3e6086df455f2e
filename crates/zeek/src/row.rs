//! What is wanted of a row of a log, and no more.

use crate::time::Micros;
use crate::version::Version;

/// A row, by the fields that its log has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Row<'a> {
    Ssl(Ssl<'a>),
    Conn(Conn),
    Ours(Ours),
    /// Of a connection that still lasts: it comes again when that is over.
    Interim,
    /// Of a log that is not read here.
    Other,
}

/// When a log's rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// When what they say is over.
    AtTheEnd,
    /// Also while a connection lasts, with the fields of the log of those that are over.
    InBetween,
}

impl Written {
    /// By a log's name: `conn_long` (zeek-long-connections) and `open_conn`, `open_ssl`
    /// (zeek-open-connections).
    pub(crate) fn of(log: &[u8]) -> Written {
        let log = log.to_ascii_lowercase();
        let is_long = memchr::memmem::find(&log, b"long").is_some();
        if is_long || log.starts_with(b"open_") || log.starts_with(b"open-") {
            Written::InBetween
        } else {
            Written::AtTheEnd
        }
    }
}

/// A kind of log that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ssl,
    Conn,
    Ours,
}

/// What Zeek knows of a connection besides what is written of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Uid(pub(crate) u64);

impl Uid {
    pub(crate) fn of(text: &[u8]) -> Uid {
        Uid(digest(text))
    }
}

/// A row of `ssl.log`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ssl<'a> {
    pub(crate) uid: Uid,
    pub(crate) time: Option<Micros>,
    pub(crate) version: Version,
    pub(crate) is_draft: bool,
    pub(crate) resumed: bool,
    pub(crate) established: bool,
    /// Absent where the log has no such column.
    pub(crate) history: Option<&'a [u8]>,
    /// Empty where the client named none.
    pub(crate) server: &'a [u8],
    pub(crate) address: &'a [u8],
}

/// A row of `conn.log`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conn {
    pub(crate) uid: Uid,
    pub(crate) time: Option<Micros>,
    pub(crate) transport: Transport,
    /// Whether Zeek saw TLS, DTLS or QUIC in it, or does not say what it saw.
    pub(crate) has_tls: bool,
    pub(crate) duration: Option<u64>,
    pub(crate) sent: Option<u64>,
    pub(crate) received: Option<u64>,
    pub(crate) missed: Option<u64>,
    pub(crate) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
    Unknown,
}

/// How a connection began and ended (`conn_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Unknown,
    S0,
    S1,
    S2,
    S3,
    Sf,
    Rej,
    Rsto,
    Rstr,
    Rstos0,
    Rstrh,
    Sh,
    Shr,
    Oth,
}

/// A row of the log of our own script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ours {
    pub(crate) uid: Uid,
    pub(crate) time: Option<Micros>,
    pub(crate) client_bytes: Option<u64>,
    pub(crate) server_bytes: Option<u64>,
    /// Microseconds.
    pub(crate) rtt: Option<u64>,
}

impl Row<'_> {
    /// About when it was written.
    pub(crate) fn written(&self) -> Option<Micros> {
        match self {
            Row::Ssl(row) => row.time,
            // It begins with when the connection began.
            Row::Conn(row) => {
                let duration = i64::try_from(row.duration.unwrap_or(0)).ok()?;
                row.time?.checked_add(duration)
            }
            Row::Ours(row) => row.time,
            Row::Interim | Row::Other => None,
        }
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Row::Ssl(_) => Some(Kind::Ssl),
            Row::Conn(_) => Some(Kind::Conn),
            Row::Ours(_) => Some(Kind::Ours),
            Row::Interim | Row::Other => None,
        }
    }
}

impl Transport {
    pub(crate) fn parse(text: &[u8]) -> Transport {
        match text {
            b"tcp" => Transport::Tcp,
            b"udp" => Transport::Udp,
            _ => Transport::Unknown,
        }
    }
}

/// Whether a list of services names TLS in some form. `None` says nothing.
pub(crate) fn names_tls(services: Option<&[u8]>) -> bool {
    services.is_none_or(|services| {
        let services = services.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        services
            .into_iter()
            .any(|service| matches!(service, b"ssl" | b"tls" | b"dtls" | b"quic"))
    })
}

impl State {
    const NAMES: [(&'static str, State); 13] = [
        ("SF", State::Sf),
        ("S0", State::S0),
        ("S1", State::S1),
        ("S2", State::S2),
        ("S3", State::S3),
        ("REJ", State::Rej),
        ("RSTO", State::Rsto),
        ("RSTR", State::Rstr),
        ("RSTOS0", State::Rstos0),
        ("RSTRH", State::Rstrh),
        ("SH", State::Sh),
        ("SHR", State::Shr),
        ("OTH", State::Oth),
    ];

    pub(crate) fn parse(text: &[u8]) -> State {
        let mut names = State::NAMES.iter();
        let found = names.find(|(name, _)| name.as_bytes() == text);
        found.map_or(State::Unknown, |(_, state)| *state)
    }

    pub(crate) fn name(self) -> Option<&'static str> {
        let mut names = State::NAMES.iter();
        names
            .find(|(_, state)| *state == self)
            .map(|(name, _)| *name)
    }

    /// Whether both ends spoke, and the beginning was seen, so that bytes and durations say
    /// something.
    pub(crate) fn is_whole(self) -> bool {
        matches!(
            self,
            State::Sf | State::S1 | State::S2 | State::S3 | State::Rsto | State::Rstr
        )
    }
}

/// 64 bits that tell texts apart, the same in every run: no defence against who wants two to
/// collide.
pub(crate) fn digest(text: &[u8]) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ (text.len() as u64);
    let (eights, rest) = text.as_chunks::<8>();
    for eight in eights {
        state = mix(state ^ u64::from_le_bytes(*eight));
    }
    mix(mix(state ^ little(rest)) ^ 0xd6e8_feb8_6659_fd93)
}

/// Fewer than eight bytes as a number, the first the lowest.
fn little(rest: &[u8]) -> u64 {
    let (fours, rest) = rest.as_chunks::<4>();
    let (twos, ones) = rest.as_chunks::<2>();
    let high = ones.iter().fold(0, |_, one| u64::from(*one));
    let middle = twos.iter().fold(high, |high, two| {
        high << 16 | u64::from(u16::from_le_bytes(*two))
    });
    fours.iter().fold(middle, |middle, four| {
        middle << 32 | u64::from(u32::from_le_bytes(*four))
    })
}

/// The two halves of a product, folded.
fn mix(value: u64) -> u64 {
    let product = u128::from(value) * u128::from(0xa076_1d64_78bd_642f_u64);
    (product as u64) ^ ((product >> 64) as u64) ^ value.rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_that_are_tls() {
        for (services, expected) in [
            (None, true),
            (Some(&b""[..]), false),
            (Some(b"ssl"), true),
            (Some(b"quic,ssl"), true),
            (Some(b"ssl,http"), true),
            (Some(b"dns"), false),
            (Some(b"-ssl"), true),
        ] {
            assert_eq!(names_tls(services), expected, "{services:?}");
        }
    }

    #[test]
    fn fewer_than_eight_bytes_as_a_number() {
        let text = [1, 2, 3, 4, 5, 6, 7];
        for count in 0..8 {
            let mut eight = [0; 8];
            eight[..count].copy_from_slice(&text[..count]);
            assert_eq!(little(&text[..count]), u64::from_le_bytes(eight));
        }
    }

    #[test]
    fn digests_differ() {
        let texts = (0..100_000).map(|index| format!("C{index}mVm5giqnMf4h"));
        let digests: std::collections::HashSet<u64> =
            texts.map(|text| digest(text.as_bytes())).collect();
        assert_eq!(digests.len(), 100_000);
    }
}
