//! What a navigation has come to: a row, and what the browser reported of the load.

use std::time::Duration;

use lastbyte_exchange::{HandshakeFlight, Quic, Transport};
use lastbyte_link::Time;
use lastbyte_page::cdp::Load;
use lastbyte_tls::KeyLog;

use super::Navigation;
use super::turns::{of_network, passages};
use super::wire::{Handshake, ObservedPacket, ended, had, handshakes};
use crate::lab::programs::{FIRST, Origin};
use crate::results::{
    Cause, Dns, Exchange, Lateness, Loaded, Measurement, Outcome, PageLoad, Row, SeenConnection,
    Times, TransportStats, check_page_wire,
};
use crate::study::{Arm, Cache, TransportName};

fn failed(cause: Cause, reason: &str) -> Outcome {
    Outcome::Failed {
        cause,
        reason: reason.to_owned(),
    }
}

/// Reads what navigations have left.
#[derive(Clone, Copy)]
pub(in crate::lab) struct Reader<'a> {
    pub(super) arm: &'a Arm,
    pub(super) cache: Cache,
    pub(super) origins: &'a [Origin],
}

impl Reader<'_> {
    /// What a navigation has come to, of which these packets were seen, and these secrets were
    /// written. No packet is missing at the client unless some were `unseen`; where none is seen at
    /// the server, computing takes no time.
    pub(in crate::lab) fn read(
        &self,
        index: u32,
        block: u32,
        navigation: Navigation,
        packets: &[ObservedPacket<'_>],
        unseen: u64,
        keys: &KeyLog,
    ) -> (Row, Loaded) {
        let Navigation { load, cpu } = navigation;
        let found = handshakes(packets, keys);
        let first = found.first().map_or(Time(0), |first| first.began);
        let name = |handshake: &Handshake| {
            let mut origins = self.origins.iter();
            let origin = origins.find(|origin| origin.address == handshake.server());
            origin.map_or_else(String::new, |origin| origin.name.clone())
        };
        let ended = ended(&found);
        let of_document = ended.iter().find(|handshake| handshake.server() == FIRST);
        let transport = self.arm.transport;
        let none = || Exchange {
            transport: match transport {
                TransportName::Tcp => Transport::default(),
                TransportName::Quic => Transport::Quic(Quic::default()),
            },
            ..Exchange::default()
        };
        let exchange = of_document.map_or_else(none, |handshake| handshake.exchange.clone());
        let mut numbered = ended.iter().enumerate();
        let checked = numbered.try_for_each(|(number, handshake)| {
            let before = ended.get(..number).unwrap_or_default();
            let cache = had(self.cache, before, handshake.server());
            check_page_wire(self.arm, cache, &handshake.exchange)
                .map_err(|problem| format!("the connection to {} {problem}", name(handshake)))
        });
        let connections = found.iter().map(|handshake| SeenConnection {
            name: name(handshake),
            began_ns: handshake.began.0.saturating_sub(first.0),
            group: handshake.exchange.negotiated.group,
            signature: handshake.exchange.negotiated.signature,
            cipher_suite: handshake.exchange.negotiated.cipher_suite,
            certificates: handshake.exchange.negotiated.certificate_count(),
            certificate_bytes: handshake.exchange.certificate_bytes(),
            resumed: handshake.exchange.negotiated.resumption
                == crate::results::Resumption::Resumed,
            client_hello_wire_bytes: handshake.exchange.sent(HandshakeFlight::ClientHello),
            server_flight_wire_bytes: handshake.exchange.sent(HandshakeFlight::Server),
        });
        let connections: Vec<SeenConnection> = connections.collect();
        let missing = load.as_ref().ok().and_then(|load| {
            let request = load.failures().next()?;
            let why = request.failure.as_deref().unwrap_or("no response");
            Some(format!("{} was not had: {why}", request.url))
        });
        let outcome = match (&load, &missing, &checked) {
            (Err(reason), ..) => failed(Cause::PageLoad, reason),
            (_, Some(reason), _) => failed(Cause::PageResource, reason),
            (.., Err(reason)) => failed(Cause::PageHandshake, reason),
            (Ok(_), None, Ok(())) => Outcome::Completed,
        };
        let load = load.ok();
        let times = load.as_ref().map_or_else(Times::default, |load| Times {
            connect: load.connect,
            handshake: load.handshake,
            server_handshake: None,
            ttfb: Some(load.ttfb),
            ttlb: None,
        });
        let mut page = load
            .as_ref()
            .map_or_else(PageLoad::default, |load| PageLoad {
                ttfb_computing: of_document
                    .filter(|_| answers_at_once(load))
                    .and_then(|document| network_time(packets, document))
                    .map(|network| load.ttfb.saturating_sub(network)),
                fcp: Some(load.fcp),
                lcp: load.lcp,
                load: Some(load.load),
                speed_index: load.speed_index,
                fcp_cpu: load.computing.map(|computing| computing.fcp),
                lcp_cpu: load.computing.and_then(|computing| computing.lcp),
                load_cpu: load.computing.map(|computing| computing.load),
                programs_cpu: cpu,
                bytes: u32::try_from(load.wire().0).ok(),
                connections: None,
                requests: u32::try_from(load.from_network().count()).ok(),
            });
        if unseen == 0 {
            page.connections = u32::try_from(connections.len()).ok();
        }
        let row = Row {
            index,
            block,
            outcome,
            times,
            exchange,
            dns: Dns::default(),
            measurement: Measurement::Load(page),
            transport: match transport {
                TransportName::Tcp => TransportStats::default(),
                TransportName::Quic => TransportStats::Quic {
                    client: None,
                    server: None,
                },
            },
            lateness: Lateness::default(),
        };
        let loaded = Loaded {
            index,
            load,
            connections,
        };
        (row, loaded)
    }
}

/// Whether the document is what was asked for first, and not where that has sent the browser to.
fn answers_at_once(load: &Load) -> bool {
    let first = load.requests.first();
    first.is_some_and(|first| first.first_byte == Some(load.ttfb))
}

/// How much of the time up to a connection's first response the network took, where packets were
/// seen on both sides of it.
fn network_time(packets: &[ObservedPacket<'_>], connection: &Handshake) -> Option<Duration> {
    if packets.iter().all(ObservedPacket::is_at_client) {
        return None;
    }
    let of_it = |packet: &&ObservedPacket<'_>| packet.ends() == Some(connection.ends);
    let packets: Vec<ObservedPacket<'_>> = packets.iter().filter(of_it).copied().collect();
    of_network(&passages(&packets), connection.responded()?)
}
