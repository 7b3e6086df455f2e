//! Rows of one connection, found together by uid in memory of one size.
//!
//! A connection waits from the first of its rows until the table is full and it is the one that
//! came first. Until then a further row of it is known: as what completes it, or as one that
//! repeats.

use std::hint::black_box;
use std::iter;
use std::num::NonZeroI64;

use crate::amount::{Amount, Large, Small};
use crate::cdn::Class;
use crate::row::{Conn, Kind, Ours, State, Transport, Uid};
use crate::servers::Server;
use crate::version::Version;

/// What is known of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    pub(crate) uid: Uid,
    pub(crate) ssl: Option<SslPart>,
    pub(crate) conn: Option<ConnPart>,
    pub(crate) ours: Option<OursPart>,
}

/// What is kept of a row of `ssl.log`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SslPart {
    /// In memory, 1970 is no time.
    pub(crate) time: Option<NonZeroI64>,
    pub(crate) server: Server,
    pub(crate) version: Version,
    pub(crate) class: Class,
    pub(crate) resumed: bool,
    pub(crate) established: bool,
    pub(crate) history: History,
}

/// What is asked of `ssl_history`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum History {
    /// The log has none.
    Absent,
    /// No ServerHello.
    NoServerHello,
    /// Hellos alone, as Zeek writes of QUIC.
    HellosOnly,
    More,
}

impl History {
    pub(crate) fn parse(history: Option<&[u8]>) -> History {
        let Some(history) = history else {
            return History::Absent;
        };
        let is_hello = |letter: &u8| b"Ccjs^".contains(letter);
        if !history.contains(&b's') {
            History::NoServerHello
        } else if history.iter().all(is_hello) {
            History::HellosOnly
        } else {
            History::More
        }
    }
}

/// What is kept of a row of `conn.log`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnPart {
    pub(crate) transport: Transport,
    pub(crate) state: State,
    /// Whether bytes are missing.
    pub(crate) gaps: bool,
    /// Microseconds.
    pub(crate) duration: Option<Large>,
    pub(crate) sent: Option<Large>,
    pub(crate) received: Option<Large>,
}

impl ConnPart {
    pub(crate) fn new(row: &Conn) -> Self {
        ConnPart {
            transport: row.transport,
            state: row.state,
            gaps: row.missed.is_some_and(|missed| missed > 0),
            duration: row.duration.and_then(Amount::new),
            sent: row.sent.and_then(Amount::new),
            received: row.received.and_then(Amount::new),
        }
    }
}

/// What is kept of a row of our script's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OursPart {
    pub(crate) client_bytes: Option<Small>,
    pub(crate) server_bytes: Option<Small>,
    /// Microseconds.
    pub(crate) rtt: Option<Small>,
}

impl OursPart {
    pub(crate) fn new(row: &Ours) -> Self {
        OursPart {
            client_bytes: row.client_bytes.and_then(Amount::new),
            server_bytes: row.server_bytes.and_then(Amount::new),
            rtt: row.rtt.and_then(Amount::new),
        }
    }
}

/// One of its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Ssl(SslPart),
    Conn(ConnPart),
    Ours(OursPart),
}

impl Part {
    /// The log that it is of.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Part::Ssl(_) => Kind::Ssl,
            Part::Conn(_) => Kind::Conn,
            Part::Ours(_) => Kind::Ours,
        }
    }
}

/// What became of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Joined {
    /// It has its place.
    Kept,
    /// It has, and this one had to go for it.
    InPlaceOf(Connection),
    /// The connection has one already.
    Repeats,
    /// It was not to wait, and nothing waited for it.
    Alone,
}

/// Whether a part begins a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Yes,
    No,
}

/// Connections in the order in which they came, found by uid.
pub(crate) struct Table {
    most: usize,
    /// A ring, once it is full.
    connections: Vec<Begun>,
    /// What is known of them besides, as far as there is any: where nobody has given another log,
    /// there is none, and memory that is not touched costs nothing.
    others: Vec<Others>,
    oldest: usize,
    /// Slots, at least twice as many as connections. Each is where its tag has it, or after that
    /// with none free between. As bare zeros, those that are not used take no memory.
    index: Vec<u64>,
}

/// What most connections begin with.
#[derive(Clone, Copy)]
struct Begun {
    uid: Uid,
    ssl: Option<SslPart>,
}

/// What comes of another log.
#[derive(Clone, Copy, Default)]
struct Others {
    conn: Option<ConnPart>,
    ours: Option<OursPart>,
}

/// Where a connection is, without looking there: that would wait for memory.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The lower half of its uid.
    tag: u32,
    /// Its place in the ring plus one; 0 for none.
    place: u32,
}

impl Table {
    /// Holds as many as `most` connections, at least one.
    pub(crate) fn new(most: u32) -> Self {
        Table {
            most: most.max(1) as usize,
            connections: Vec::new(),
            others: Vec::new(),
            oldest: 0,
            index: vec![0; (most.max(1) as usize * 2).next_power_of_two()],
        }
    }

    /// Has what [`Table::join`] will look at be at hand. To wait for memory is most of a join, and
    /// what is looked at here for many is waited for at once.
    pub(crate) fn look_ahead(&self, uids: impl Iterator<Item = Uid> + Clone) {
        let slots = uids.clone().map(|uid| (uid, self.slot(uid.tag() as usize)));
        // Nothing is made of it, which the compiler is not to know.
        black_box(slots.clone().filter(|(_, slot)| slot.is_some()).count());
        let found = slots.filter_map(|(uid, slot)| {
            let slot = slot.filter(|slot| slot.tag == uid.tag())?;
            let place = slot.place as usize - 1;
            let has_conn = (self.others.get(place)).is_some_and(|others| others.conn.is_some());
            Some(self.connections.get(place)?.uid.0 ^ u64::from(has_conn))
        });
        black_box(found.fold(0, |all, one| all ^ one));
    }

    pub(crate) fn join(&mut self, uid: Uid, part: Part, waits: Waits) -> Joined {
        if let Some(place) = self.find(uid) {
            return (self.add(place, part)).map_or(Joined::Repeats, |()| Joined::Kept);
        }
        if waits == Waits::No {
            return Joined::Alone;
        }
        let begun = Begun { uid, ssl: None };
        if self.connections.len() < self.most {
            let place = self.connections.len();
            self.connections.push(begun);
            self.add(place, part);
            self.enter(uid, place);
            return Joined::Kept;
        }
        let place = self.oldest;
        self.oldest = (place + 1) % self.most;
        let Some(before) = self.connections.get_mut(place) else {
            return Joined::Alone;
        };
        let before = std::mem::replace(before, begun);
        let others = self.others.get_mut(place).map(std::mem::take);
        self.leave(before.uid, place);
        self.add(place, part);
        self.enter(uid, place);
        Joined::InPlaceOf(before.with(others))
    }

    /// Adds what is new of a connection.
    fn add(&mut self, place: usize, part: Part) -> Option<()> {
        if let Part::Ssl(part) = part {
            return put(&mut self.connections.get_mut(place)?.ssl, part);
        }
        if self.others.len() <= place {
            self.others.resize(place + 1, Others::default());
        }
        let others = self.others.get_mut(place)?;
        match part {
            Part::Ssl(_) => None,
            Part::Conn(part) => put_longest(&mut others.conn, part),
            Part::Ours(part) => put(&mut others.ours, part),
        }
    }

    /// All that are left, in the order in which they came.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Connection> + use<> {
        self.index.fill(0);
        let oldest = std::mem::take(&mut self.oldest);
        let mut begun = std::mem::take(&mut self.connections);
        let mut others = std::mem::take(&mut self.others);
        // A ring that has come around is full.
        if oldest > 0 {
            others.resize(begun.len(), Others::default());
            others.rotate_left(oldest);
        }
        begun.rotate_left(oldest);
        let others = others.into_iter().map(Some).chain(iter::repeat(None));
        let both = begun.into_iter().zip(others);
        both.map(|(begun, others)| begun.with(others))
    }

    fn mask(&self) -> usize {
        self.index.len() - 1
    }

    /// What is at `at`, unless it is free.
    fn slot(&self, at: usize) -> Option<Slot> {
        let slot = *self.index.get(at & self.mask())?;
        (slot > 0).then_some(Slot {
            tag: (slot >> 32) as u32,
            place: slot as u32,
        })
    }

    fn find(&self, uid: Uid) -> Option<usize> {
        let mut at = uid.tag() as usize;
        while let Some(slot) = self.slot(at) {
            let place = slot.place as usize - 1;
            if slot.tag == uid.tag() && (self.connections.get(place)?).uid == uid {
                return Some(place);
            }
            at += 1;
        }
        None
    }

    fn enter(&mut self, uid: Uid, place: usize) {
        let slot = Slot {
            tag: uid.tag(),
            place: place as u32 + 1,
        };
        let mut at = slot.tag as usize;
        while self.slot(at).is_some() {
            at += 1;
        }
        self.set(at, slot);
    }

    fn set(&mut self, at: usize, slot: Slot) {
        let at = at & self.mask();
        if let Some(stored) = self.index.get_mut(at) {
            *stored = u64::from(slot.tag) << 32 | u64::from(slot.place);
        }
    }

    /// Takes a connection out, and moves those after it that would not be found any more.
    fn leave(&mut self, uid: Uid, place: usize) {
        let mut hole = uid.tag() as usize;
        while let Some(slot) = self.slot(hole) {
            if slot.place as usize == place + 1 {
                break;
            }
            hole += 1;
        }
        let mut at = hole + 1;
        while let Some(slot) = self.slot(at) {
            // How far each is from where it belongs, around the end.
            let far = |from: usize| at.wrapping_sub(from) & self.mask();
            if far(slot.tag as usize) >= far(hole) {
                self.set(hole, slot);
                hole = at;
            }
            at += 1;
        }
        self.set(hole, Slot::default());
    }
}

impl Uid {
    /// The low bits of a digest are as good as any.
    fn tag(self) -> u32 {
        self.0 as u32
    }
}

impl Begun {
    fn with(self, others: Option<Others>) -> Connection {
        let Others { conn, ours } = others.unwrap_or_default();
        Connection {
            uid: self.uid,
            ssl: self.ssl,
            conn,
            ours,
        }
    }
}

/// The one that was written last counts: of a connection that lasts, there may be several without
/// their log's name.
fn put_longest(place: &mut Option<ConnPart>, part: ConnPart) -> Option<()> {
    let duration = |part: &ConnPart| part.duration.map(|duration| duration.get());
    match place {
        Some(before) => {
            if duration(&part) > duration(before) {
                *before = part;
            }
            None
        }
        None => put(place, part),
    }
}

/// The first counts.
fn put<T>(place: &mut Option<T>, part: T) -> Option<()> {
    match place {
        Some(_) => None,
        None => {
            *place = Some(part);
            Some(())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn ours(bytes: u32) -> Part {
        Part::Ours(OursPart {
            client_bytes: Amount::new(bytes.into()),
            server_bytes: None,
            rtt: None,
        })
    }

    proptest! {
            /// As a queue does that is searched from end to end.
            #[test]
            fn as_a_queue_does(most in 1u32..600, uids in prop::collection::vec(prop_oneof![0u64..400, (0u64..200).prop_map(|uid| uid << 40)], 0..3000)) {
                let mut table = Table::new(most);
                let mut queue: VecDeque<u64> = VecDeque::new();
                for (number, uid) in (0..).zip(uids) {
                    let expected = if queue.contains(&uid) {
    None
    } else {
    queue.push_back(uid);
                            Some((queue.len() > most as usize).then(|| queue.pop_front().unwrap()))
    };
                    let found = match table.join(Uid(uid), ours(number), Waits::Yes) {
                        Joined::Repeats => None,
                        Joined::Kept => Some(None),
                        Joined::InPlaceOf(before) => Some(Some(before.uid.0)),
                        Joined::Alone => panic!(),
                    };
                    prop_assert_eq!(found, expected);
                }
                let left: Vec<u64> = table.drain().map(|connection| connection.uid.0).collect();
                prop_assert_eq!(left, Vec::from(queue));
            }
        }

    #[test]
    fn a_connection_is_small() {
        let sizes = [size_of::<Begun>(), size_of::<Others>()];
        assert!(sizes[0] <= 32 && sizes[1] <= 48, "{sizes:?}");
    }

    #[test]
    fn histories() {
        for (history, expected) in [
            (None, History::Absent),
            (Some(&b""[..]), History::NoServerHello),
            (Some(b"Cl"), History::NoServerHello),
            (Some(b"Cs"), History::HellosOnly),
            (Some(b"CCs"), History::HellosOnly),
            (Some(b"CsiI"), History::More),
        ] {
            assert_eq!(History::parse(history), expected, "{history:?}");
        }
    }
}
