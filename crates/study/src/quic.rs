//! How both ends of QUIC are set, and what of a cell they can't have.

use std::time::Duration;

use lastbyte_link::named;
use thiserror::Error;

use crate::{Cell, Gso, Mtu, Preset, ReceiveBuffer, Writes};

/// Something of a cell that arms over QUIC can't have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotOverQuic {
    /// All of it is TCP's.
    #[error("the preset {0} is of TCP: leave it out")]
    Preset(Preset),
    /// A parameter of TCP's.
    #[error("{0} is TCP's, and transport=quic has none of it: leave it out")]
    Parameter(&'static str),
    /// A window that lets no datagram leave.
    #[error(
        "a window of 1 lets no full datagram leave over QUIC, as quinn sends while less than all of it is under way: \
         use 2 or more (--initcwnd, --client-initcwnd)"
    )]
    Window,
    /// Datagrams that don't fit a packet.
    #[error(
        "an mtu of {mtu} holds no QUIC datagram of {datagram} bytes: {packet} does, 1200 are the least (RFC 9000, 14), and \
         quic_mtu_discovery=on begins with more than a path holds"
    )]
    Datagram {
        /// What packets may have.
        mtu: Mtu,
        /// UDP payload, in bytes.
        datagram: u16,
        /// With the headers of IPv4 and UDP.
        packet: u16,
    },
}

impl Cell {
    /// Whether arms over QUIC can be had in it.
    ///
    /// # Errors
    ///
    /// What they can't have, with the hint.
    pub fn check_quic(&self) -> Result<(), NotOverQuic> {
        let largest = match self.quic.mtu_discovery {
            MtuDiscovery::Off => self.quic.largest_datagram(),
            // What they begin with may be too large.
            MtuDiscovery::On => Quic::LEAST_DATAGRAM,
        };
        let packet = Quic::packet(largest);
        let problem = match self {
            _ if self.preset == Preset::Published2024 => NotOverQuic::Preset(self.preset),
            _ if self.gso == Gso::On => NotOverQuic::Parameter("gso"),
            _ if self.hosts.receive_buffer != ReceiveBuffer::Unset => {
                NotOverQuic::Parameter("receive_buffer")
            }
            _ if self.hosts.writes != Writes::WHOLE => NotOverQuic::Parameter("writes"),
            // A browser and its server have windows of their own.
            _ if self.page.is_none() && self.initcwnd.min(self.client_initcwnd) < 2 => {
                NotOverQuic::Window
            }
            _ if self.hosts.mtu.bytes() < packet => NotOverQuic::Datagram {
                mtu: self.hosts.mtu,
                datagram: largest,
                packet,
            },
            _ => return Ok(()),
        };
        Err(problem)
    }
}

/// How both ends of QUIC are set, besides their windows and congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quic {
    /// UDP payload of the client's datagrams, in bytes.
    pub client_datagram: u16,
    /// Of the server's.
    pub server_datagram: u16,
    /// The round-trip time before one is measured.
    pub initial_rtt: Duration,
    /// How long each end waits at most before it acknowledges (`max_ack_delay`).
    pub ack_delay: Duration,
    /// Whether datagrams keep their sizes.
    pub mtu_discovery: MtuDiscovery,
}

/// Whether both ends search for the largest datagrams that a path holds (RFC 8899).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuDiscovery {
    /// Datagrams have one size.
    #[default]
    Off,
    /// They begin with that size, are padded to [`Quic::LEAST_DATAGRAM`] where they must be padded, and have no more where larger
    /// ones are lost. What a path doesn't hold it drops.
    On,
}

named!(MtuDiscovery, "setting of MTU discovery", { Off => "off", On => "on" });

impl Quic {
    /// What every path carries (RFC 9000, 14).
    pub const LEAST_DATAGRAM: u16 = 1200;
    /// What a jumbo frame holds over IPv4.
    pub const MOST_DATAGRAM: u16 = 9000 - Quic::HEADERS;
    /// Those of IPv4 and of UDP, in bytes.
    pub const HEADERS: u16 = 20 + 8;
    /// What ends wait that say nothing else (RFC 9000, 18.2).
    pub const ACK_DELAY: Duration = Duration::from_millis(25);

    /// The IP packet of a datagram, in bytes.
    pub const fn packet(datagram: u16) -> u16 {
        datagram + Quic::HEADERS
    }

    /// The larger datagrams of both ends, in bytes.
    pub fn largest_datagram(&self) -> u16 {
        self.client_datagram.max(self.server_datagram)
    }
}

impl Default for Quic {
    /// As quinn has it, and RFC 9002, 6.2.2.
    fn default() -> Quic {
        Quic {
            client_datagram: Quic::LEAST_DATAGRAM,
            server_datagram: Quic::LEAST_DATAGRAM,
            initial_rtt: Duration::from_millis(333),
            ack_delay: Quic::ACK_DELAY,
            mtu_discovery: MtuDiscovery::Off,
        }
    }
}
