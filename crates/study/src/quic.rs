//! How both ends of QUIC are set.

use std::time::Duration;

/// How both ends of QUIC are set, besides their windows and congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quic {
    /// UDP payload of the client's datagrams, in bytes.
    pub client_datagram: u16,
    /// Of the server's.
    pub server_datagram: u16,
    /// The round-trip time before one is measured.
    pub initial_rtt: Duration,
}

impl Quic {
    /// What every path carries (RFC 9000, 14).
    pub const LEAST_DATAGRAM: u16 = 1200;
    /// What an Ethernet frame holds over IPv4.
    pub const MOST_DATAGRAM: u16 = 1500 - 20 - 8;
}

impl Default for Quic {
    /// As quinn has it, and RFC 9002, 6.2.2.
    fn default() -> Quic {
        Quic {
            client_datagram: Quic::LEAST_DATAGRAM,
            server_datagram: Quic::LEAST_DATAGRAM,
            initial_rtt: Duration::from_millis(333),
        }
    }
}
