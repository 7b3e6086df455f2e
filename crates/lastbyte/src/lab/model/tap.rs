//! Sees the model's datagrams where they are sent and delivered, in the packets that would have carried them.

use std::net::SocketAddrV4;
use std::time::Duration;

use lastbyte_capture::{Datagram, Fate, Point, encode};
use lastbyte_link::{EcnCodepoint, Side, Time};

use crate::lab::inspection::{Fates, ObservedBlock};
use crate::lab::socket::{Attempt, client_endpoint, server_endpoint};
use crate::lab::surroundings::{SERVER, client_address};

/// Notes the packets of the connections that it is shown, one connection after the other.
pub(super) struct Tap {
    notes: Vec<u8>,
    /// When the model's clock began, since 1970.
    since: Duration,
    /// When the connection began that is shown, on the clock of the capture.
    begin: Time,
    /// When the latest packet was noted.
    latest: Time,
    client: SocketAddrV4,
    server: SocketAddrV4,
    unseen: u64,
}

impl Tap {
    /// The most that it keeps, in bytes.
    const MOST: usize = 64 << 20;
    /// Bytes that notes have of a packet besides its own, at most.
    const BESIDES: usize = 64;
    /// Between the end of a connection and the next one.
    const PAUSE: Duration = Duration::from_secs(1);

    /// One whose clock begins at this time, since 1970.
    pub(super) fn new(since: Duration) -> Tap {
        Tap {
            notes: Vec::new(),
            since,
            begin: Time(0),
            latest: Time(0),
            client: client_endpoint(client_address(0), Attempt::First),
            server: server_endpoint(SERVER),
            unseen: 0,
        }
    }

    /// What comes is of the connection in this slot.
    pub(super) fn begins(&mut self, slot: u32) {
        self.client = client_endpoint(client_address(slot), Attempt::First);
        if self.latest > Time(0) {
            self.begin = self.latest + Self::PAUSE;
        }
    }

    /// A datagram that was sent at this time of its connection, and arrives or not; with what its packet says about
    /// congestion then.
    pub(super) fn note(
        &mut self,
        sender: Side,
        (sent, ecn): (Time, EcnCodepoint),
        payload: &[u8],
        arrives: Result<(Time, EcnCodepoint), Fate>,
    ) {
        let (source, destination) = match sender {
            Side::Client => (self.client, self.server),
            Side::Server => (self.server, self.client),
        };
        let datagram = Datagram {
            source,
            destination,
            ecn,
            payload,
        };
        // Windows end far below what no packet can hold.
        let packet = |datagram: Datagram<'_>| datagram.packet().unwrap_or_default();
        let toward = sender.other();
        let fate = arrives.err().unwrap_or_default();
        self.packet(sent, Point::sent(toward), fate, &packet(datagram));
        if let Ok((at, ecn)) = arrives {
            let datagram = Datagram { ecn, ..datagram };
            self.packet(
                at,
                Point::delivered(toward),
                Fate::Carried,
                &packet(datagram),
            );
        }
    }

    fn packet(&mut self, at: Time, point: Point, fate: Fate, packet: &[u8]) {
        let at = self.begin + at.since(Time(0));
        self.latest = self.latest.max(at);
        let length = self.notes.len();
        // What is there shall have no gaps.
        if self.unseen > 0 || length + packet.len() > Self::MOST {
            self.unseen += 1;
            return;
        }
        self.notes.resize(length + packet.len() + Self::BESIDES, 0);
        let original = packet.len() as u32;
        let notes = &mut self.notes;
        let noted = encode(notes, length, at, point, fate, packet, original);
        self.notes.truncate(noted.unwrap_or(length));
    }

    /// What it has seen, and these secrets.
    pub(super) fn close(self, secrets: Vec<(u32, String)>) -> ObservedBlock {
        ObservedBlock {
            notes: self.notes,
            since: u64::try_from(self.since.as_nanos()).unwrap_or(0),
            closed: self.latest.0,
            unseen: self.unseen,
            fates: Fates::Reported,
            secrets,
        }
    }
}
