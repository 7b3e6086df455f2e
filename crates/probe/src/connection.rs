//! What happens on one connection.

use std::time::Duration;

/// One connection as its client saw it. Times are since just before `connect()`, and don't fall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Bytes of payload that a full segment has, as far as TCP knows.
    pub segment: usize,
    /// Bytes of an IP header and a TCP header: 52 with timestamps over IPv4.
    pub headers: usize,
    /// What happened, in order.
    pub events: Vec<(Duration, Event)>,
}

/// Something that happens on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// TCP is established.
    Connected,
    /// So many bytes were written: a ClientHello.
    Hello(usize),
    /// So many bytes were written: the client's Finished, and a request with it unless that comes later.
    Finished(usize),
    /// So many bytes were written: a request that did not go with the Finished.
    Request(usize),
    /// Bytes came.
    Arrived(Arrival),
    /// The first byte of the response was decrypted, of what has come so far.
    FirstByte,
    /// The last byte of the response was there, and the server will send no more.
    LastByte,
}

/// Bytes that could be read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// How many.
    pub bytes: usize,
    /// What TCP had counted by then, if the system tells.
    pub counters: Option<Counters>,
}

/// What TCP counts of a connection (`struct tcp_info`), since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments with data that came (`tcpi_data_segs_in`).
    pub segments: u32,
    /// Of those, the ones that came out of order (`tcpi_rcv_ooopack`).
    pub out_of_order: u32,
    /// Segments that were sent again (`tcpi_total_retrans`).
    pub retransmitted: u32,
    /// The least round-trip time (`tcpi_min_rtt`).
    pub min_rtt: Option<Duration>,
    /// The round-trip time that the server's echoes of our timestamps say, smoothed (`tcpi_rcv_rtt`).
    pub receiver_rtt: Option<Duration>,
}

impl Connection {
    /// When TCP was established.
    #[must_use]
    pub fn connected(&self) -> Option<Duration> {
        self.when(|event| matches!(event, Event::Connected))
    }

    /// When the last ClientHello was written.
    #[must_use]
    pub fn hello(&self) -> Option<Duration> {
        let mut events = self.events.iter().rev();
        let hello = events.find(|(_, event)| matches!(event, Event::Hello(_)));
        hello.map(|(at, _)| *at)
    }

    /// How many arrivals were before the last ClientHello was written: of a HelloRetryRequest.
    pub(crate) fn arrivals_before_hello(&self) -> usize {
        let is_hello = |(_, event): &(_, Event)| matches!(event, Event::Hello(_));
        let before = self.events.iter().rposition(is_hello).unwrap_or(0);
        let before = self.events.iter().take(before);
        before
            .filter(|(_, event)| matches!(event, Event::Arrived(_)))
            .count()
    }

    /// From the ClientHello to the first byte that answers it: a round trip, and what the server computes.
    pub(crate) fn answered(&self) -> Option<Duration> {
        let hello = self.when(|event| matches!(event, Event::Hello(_)))?;
        let (first, _) = self.arrivals().find(|(at, _)| *at >= hello)?;
        Some(first.saturating_sub(hello))
    }

    /// When the client's Finished was written.
    #[must_use]
    pub fn finished(&self) -> Option<Duration> {
        self.when(|event| matches!(event, Event::Finished(_)))
    }

    /// When the request was written.
    #[must_use]
    pub fn requested(&self) -> Option<Duration> {
        self.when(|event| matches!(event, Event::Request(_)))
            .or_else(|| self.finished())
    }

    /// When the first byte of the response could be read.
    #[must_use]
    pub fn first_byte(&self) -> Option<Duration> {
        self.when(|event| *event == Event::FirstByte)
    }

    /// When the last byte of the response could be read.
    #[must_use]
    pub fn last_byte(&self) -> Option<Duration> {
        self.when(|event| *event == Event::LastByte)
    }

    /// What came, and when.
    pub fn arrivals(&self) -> impl Iterator<Item = (Duration, Arrival)> {
        self.events.iter().filter_map(|(at, event)| match event {
            Event::Arrived(arrival) => Some((*at, *arrival)),
            _ => None,
        })
    }

    /// What TCP had counted at the end.
    #[must_use]
    pub fn counters(&self) -> Option<Counters> {
        self.arrivals()
            .filter_map(|(_, arrival)| arrival.counters)
            .last()
    }

    pub(crate) fn written(&self, hello: bool) -> usize {
        let bytes = self.events.iter().filter_map(|(_, event)| match event {
            Event::Hello(bytes) if hello => Some(*bytes),
            Event::Finished(bytes) if !hello => Some(*bytes),
            _ => None,
        });
        bytes.fold(0, usize::saturating_add)
    }

    pub(crate) fn hellos(&self) -> usize {
        let hellos = self.events.iter();
        hellos
            .filter(|(_, event)| matches!(event, Event::Hello(_)))
            .count()
    }

    fn when(&self, is: impl Fn(&Event) -> bool) -> Option<Duration> {
        let found = self.events.iter().find(|(_, event)| is(event));
        found.map(|(at, _)| *at)
    }
}
