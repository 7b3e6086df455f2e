//! How both ends' hosts are set, whatever lies between them.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use lastbyte_exchange::Writes as KnownWrites;
use lastbyte_link::{Bytes, named};
use lastbyte_sizes::framing::MAX_PLAINTEXT;
use serde::{Deserialize, Serialize};

use super::value::HostsError;
use super::{Cell, EngineName, Preset};

/// How the hosts of a cell are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The longest IP packet.
    pub mtu: Mtu,
    /// TCP timestamps.
    pub timestamps: Timestamps,
    /// Whether clients ask for ECN.
    pub ecn: Ecn,
    /// TCP's buffers.
    pub buffers: Buffers,
    /// What the client asks for its receive buffer.
    pub receive_buffer: ReceiveBuffer,
    /// Who cuts super-packets up.
    pub tso: Tso,
    /// How the server writes a response.
    pub writes: Writes,
}

impl Hosts {
    /// What goes with a preset.
    pub fn of(preset: Preset) -> Hosts {
        let network = Hosts {
            mtu: Mtu::ETHERNET,
            timestamps: Timestamps::On,
            ecn: Ecn::Off,
            buffers: Buffers::Auto,
            receive_buffer: ReceiveBuffer::Unset,
            tso: Tso::On,
            writes: Writes::WHOLE,
        };
        match preset {
            Preset::Network => network,
            Preset::Published2024 => Hosts {
                buffers: Buffers::Linux,
                tso: Tso::Off,
                writes: Writes::PUBLISHED_2024,
                ..network
            },
        }
    }

    /// Bytes of payload that fit one segment.
    pub fn mss(&self) -> usize {
        usize::from(self.mtu.0) - self.headers()
    }

    /// Bytes of an IPv4 header and a TCP header with its usual options.
    pub fn headers(&self) -> usize {
        match self.timestamps {
            Timestamps::On => 20 + 32,
            Timestamps::Off => 20 + 20,
        }
    }
}

impl Default for Hosts {
    fn default() -> Hosts {
        Hosts::of(Preset::default())
    }
}

/// The longest IP packet, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mtu(u16);

impl Mtu {
    /// What an Ethernet frame holds.
    pub const ETHERNET: Mtu = Mtu(1500);
    /// What every host must take (RFC 1122, section 3.3.2).
    pub const LEAST: Mtu = Mtu(576);
    /// A jumbo frame.
    pub const MOST: Mtu = Mtu(9000);

    /// In bytes.
    pub fn bytes(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Mtu {
    type Err = HostsError;

    fn from_str(text: &str) -> Result<Mtu, HostsError> {
        let digits = text.strip_suffix('B').unwrap_or(text);
        match digits.parse().map(Mtu) {
            Ok(mtu) if (Mtu::LEAST..=Mtu::MOST).contains(&mtu) => Ok(mtu),
            _ => Err(HostsError::Mtu {
                text: text.to_owned(),
                least: Mtu::LEAST.0,
                most: Mtu::MOST.0,
            }),
        }
    }
}

/// Whether segments have TCP timestamps (RFC 7323).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timestamps {
    /// They do not.
    Off,
    /// They do, as Linux has it.
    On,
}

named!(Timestamps, "setting of timestamps", { Off => "off", On => "on" });

/// Whether connections use Explicit Congestion Notification (RFC 3168; RFC 9000, 13.4), so that queues can mark their packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Clients of TCP do not ask for it, as Linux has it; servers would take it. Ends of QUIC neither send nor see it.
    Off,
    /// They do.
    On,
}

named!(Ecn, "setting of ECN", { Off => "off", On => "on" });

/// Buffers of TCP's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Buffers {
    /// As the engine can have them without noise: see [`Cell::buffers`].
    Auto,
    /// Those of Linux: the receive window begins at 64 KiB, the send buffer with the initial window, and both
    /// grow.
    Linux,
    /// The largest of Linux from the start, so that neither binds.
    // What parts had that don't say it.
    #[default]
    Large,
}

named!(Buffers, "buffers", { Auto => "auto", Linux => "linux", Large => "large" });

impl Buffers {
    /// Whose [`Buffers::Linux`] are, on whatever kernel: since 6.16 a receive buffer grows to 32 MiB, and not to 6.
    pub const LINUX_SERIES: &str = "6.12";

    /// How large they are; where no engine has a say, as Linux has them.
    pub fn sizes(self) -> lastbyte_flights::Buffers {
        match self {
            Buffers::Auto | Buffers::Linux => lastbyte_flights::Buffers::LINUX,
            Buffers::Large => lastbyte_flights::Buffers::LARGE,
        }
    }

    /// These, or where they are left to the engine, those that it had.
    #[must_use]
    pub fn or(self, had: Buffers) -> Buffers {
        match self {
            Buffers::Auto => had,
            Buffers::Linux | Buffers::Large => self,
        }
    }
}

impl Cell {
    /// Whose buffers its hosts have on an engine, [`Buffers::Linux`] or [`Buffers::Large`].
    ///
    /// Where it doesn't say, they are Linux's own, as servers and clients have them. Only transfers in real time have
    /// large ones: with Linux's own, a receiver acknowledges, and a sender sends, depending on how soon its process
    /// runs, which there is the machine's noise. Pages are loaded and served by programs that are as they are, in
    /// real time, too. So is a client that sets its receive buffer: what the SYN promises of a large one would outlast
    /// that.
    pub fn buffers(&self, engine: EngineName) -> Buffers {
        let is_usual = self.page.is_none() && self.hosts.receive_buffer == ReceiveBuffer::Unset;
        self.hosts.buffers.or(match engine {
            EngineName::Live if is_usual => Buffers::Large,
            EngineName::Live | EngineName::Virtual => Buffers::Linux,
        })
    }

    /// The cell with these buffers where it leaves them to the engine.
    #[must_use]
    pub fn with_buffers(&self, had: Buffers) -> Cow<'_, Cell> {
        let buffers = self.hosts.buffers.or(had);
        if buffers == self.hosts.buffers {
            return Cow::Borrowed(self);
        }
        let mut cell = self.clone();
        cell.hosts.buffers = buffers;
        Cow::Owned(cell)
    }
}

/// What a client asks for its receive buffer once it is connected (`SO_RCVBUF`, socket(7)).
///
/// Linux doubles that for its own bookkeeping, and no longer lets the buffer grow. The window scale was chosen before,
/// and what the SYN promised of the window holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveBuffer {
    /// Nothing.
    #[default]
    Unset,
    /// So much, from [`ReceiveBuffer::LEAST`] to [`ReceiveBuffer::MOST`].
    Set(Bytes),
}

impl ReceiveBuffer {
    /// With less, a window closes as soon as a segment waits to be read.
    pub const LEAST: Bytes = Bytes(4 << 10);
    /// From here on, flight arithmetic walks through it. With less, single segments wait for an acknowledgement again and
    /// again, and each time for longer (`icsk_ack.ato`).
    pub const LEAST_WALKED: Bytes = Bytes(48 << 10);
    /// `net.core.rmem_max`, as Linux has it: more than that is not granted.
    pub const MOST: Bytes = Bytes(212_992);

    /// Whether flight arithmetic walks through it.
    pub fn is_walked(self) -> bool {
        self.bytes()
            .is_none_or(|bytes| bytes >= ReceiveBuffer::LEAST_WALKED)
    }

    /// How much is asked for, if anything is.
    pub fn bytes(self) -> Option<Bytes> {
        match self {
            ReceiveBuffer::Unset => None,
            ReceiveBuffer::Set(bytes) => Some(bytes),
        }
    }
}

impl fmt::Display for ReceiveBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiveBuffer::Unset => f.pad("unset"),
            ReceiveBuffer::Set(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for ReceiveBuffer {
    type Err = HostsError;

    fn from_str(text: &str) -> Result<ReceiveBuffer, HostsError> {
        if text == "unset" {
            return Ok(ReceiveBuffer::Unset);
        }
        match text.parse() {
            Ok(bytes) if (ReceiveBuffer::LEAST..=ReceiveBuffer::MOST).contains(&bytes) => {
                Ok(ReceiveBuffer::Set(bytes))
            }
            _ => Err(HostsError::ReceiveBuffer {
                text: text.to_owned(),
                least: ReceiveBuffer::LEAST,
                most: ReceiveBuffer::MOST,
            }),
        }
    }
}

/// Who cuts super-packets up (TCP segmentation offload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tso {
    /// The sender, behind the queue of its device: the link sees one packet, the receiver many.
    Off,
    /// Nobody: the receiver gets them whole, and acknowledges them so.
    On,
}

named!(Tso, "TSO setting", { Off => "off", On => "on" });

/// How a server writes a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writes {
    /// Payload of the first writes; the last one that is not zero repeats.
    sizes: [u16; Writes::MOST],
}

impl Writes {
    /// Sizes that differ, at most.
    pub const MOST: usize = KnownWrites::MOST;
    /// All that waits is one write.
    pub const WHOLE: Writes = Writes {
        sizes: [0; Writes::MOST],
    };
    /// Those of the server of the time-to-last-byte paper: three of headers, then the response's payload.
    pub const PUBLISHED_2024: Writes = Writes {
        sizes: [17, 26, 2, 8087, 0, 0, 0, 0, 0, 0, 0, 0],
    };
    /// Payload of a record, at most.
    const RECORD: u16 = MAX_PLAINTEXT as u16;

    /// Payload of the writes that are known, the last of which repeats; none if all is one write.
    pub fn sizes(self) -> impl Iterator<Item = u16> {
        self.sizes.into_iter().take_while(|size| *size > 0)
    }

    /// Payload of the write of this number, which is one record if the arm says nothing else; `None` if all
    /// is one write.
    pub fn size(self, number: usize) -> Option<u16> {
        let sizes = self.sizes.iter().take_while(|size| **size > 0);
        let last = sizes.clone().count().checked_sub(1)?;
        self.sizes.get(number.min(last)).copied()
    }
}

impl fmt::Display for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.sizes.iter().take_while(|size| **size > 0);
        let sizes: Vec<String> = sizes.map(|size| format!("{size}B")).collect();
        if sizes.is_empty() {
            f.pad("whole")
        } else {
            f.pad(&sizes.join("+"))
        }
    }
}

impl FromStr for Writes {
    type Err = HostsError;

    fn from_str(text: &str) -> Result<Writes, HostsError> {
        if text == "whole" {
            return Ok(Writes::WHOLE);
        }
        let (count, most) = (Writes::MOST, Writes::RECORD);
        let mut writes = Writes::WHOLE;
        let mut places = writes.sizes.iter_mut();
        for size in text.split('+') {
            let known = size.strip_suffix('B').and_then(|size| size.parse().ok());
            let known = known.filter(|size| (1..=Writes::RECORD).contains(size));
            match (known, places.next()) {
                (None, _) => {
                    let size = size.to_owned();
                    return Err(HostsError::Write { size, count, most });
                }
                (_, None) => {
                    let text = text.to_owned();
                    return Err(HostsError::TooManyWrites { text, count, most });
                }
                (Some(size), Some(place)) => *place = size,
            }
        }
        Ok(writes)
    }
}
