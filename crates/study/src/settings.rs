//! What can be chosen besides arms and numbers.

use lastbyte_link::named;
use serde::{Deserialize, Serialize};

use super::{Arm, Server};

/// Congestion control of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// Linux's default.
    #[default]
    Cubic,
    /// NewReno.
    Reno,
    /// BBR, as the host's kernel has it.
    Bbr,
}

named!(Congestion, "congestion control", {
    Cubic => "cubic",
    Reno => "reno",
    Bbr => "bbr",
});

/// What carries an arm's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TransportName {
    /// TLS records in a stream of TCP.
    #[default]
    Tcp,
    /// QUIC, which has TLS's messages in frames of its own (RFC 9001).
    Quic,
}

named!(TransportName, "transport", { Tcp => "tcp", Quic => "quic" });

impl TransportName {
    /// As standards write it: `TCP`, `QUIC`.
    #[must_use]
    pub fn protocol(self) -> &'static str {
        match self {
            TransportName::Tcp => "TCP",
            TransportName::Quic => "QUIC",
        }
    }

    /// What it sends at once: `segment`, `datagram`.
    #[must_use]
    pub fn packet(self) -> &'static str {
        match self {
            TransportName::Tcp => "segment",
            TransportName::Quic => "datagram",
        }
    }
}

/// Whether the link sees TCP's super-packets (generic segmentation offload).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gso {
    /// Each packet meets its own luck, as in a network.
    #[default]
    Off,
    /// Up to 64 KiB are lost, delayed and counted as one packet.
    On,
}

named!(Gso, "GSO setting", { Off => "off", On => "on" });

/// A named set of link, socket and TCP settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// What a network does.
    #[default]
    Network,
    /// What the harness of the time-to-last-byte paper does (2024).
    Published2024,
}

named!(Preset, "preset", {
    Network => "network",
    Published2024 => "published-2024",
});

impl Preset {
    /// What goes with it unless it is chosen apart, besides [`Hosts::of`](super::Hosts::of).
    pub fn gso(self) -> Gso {
        match self {
            Preset::Network => Gso::Off,
            Preset::Published2024 => Gso::On,
        }
    }
}

/// The engine that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// The best that this machine has.
    #[default]
    Auto,
    /// Real time, the host's TCP.
    Live,
    /// Virtual time, the TCP of a kernel of our own.
    Virtual,
}

named!(EngineChoice, "engine", {
    Auto => "auto",
    Live => "live",
    Virtual => "virtual",
});

/// The engine that carried the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// Real time, the host's TCP.
    #[default]
    Live,
    /// Virtual time, the TCP of a kernel of our own.
    Virtual,
}

named!(EngineName, "engine", {
    Live => "live",
    Virtual => "virtual",
});

/// What the answer of a study's page begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leads {
    /// What comes later than the baseline.
    #[default]
    Later,
    /// What comes sooner: the study asks what wins time back.
    Sooner,
}

named!(Leads, "lead", {
    Later => "later",
    Sooner => "sooner",
});

/// What the virtual engine emulates the link with. The live engine always has the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emulation {
    /// Linux's own `sch_netem`.
    #[default]
    Netem,
    /// The same emulator in user space that the live engine has.
    Link,
}

named!(Emulation, "emulation", { Netem => "netem", Link => "link" });

/// What carries arms over QUIC where the virtual engine measures. The live engine always has sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuicIn {
    /// A model in this process: the emulator in user space moves the datagrams in memory, without any kernel.
    #[default]
    Model,
    /// The guest, by its sockets of UDP, over the link that TCP has there.
    Guest,
}

named!(QuicIn, "place of QUIC", { Model => "model", Guest => "guest" });

/// Whether an arm is measured by the model of QUIC, whichever engine measures the others, unless that is the live one.
pub fn is_modelled(arm: &Arm, quic_in: QuicIn) -> bool {
    arm.transport == TransportName::Quic
        && quic_in == QuicIn::Model
        && !arm.is_of_programs_over_quic()
}

/// Where computing is in what the virtual engine tells. In the live engine, it takes what it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuTime {
    /// Nowhere: what is left is the network's.
    None,
    /// Beside the network's times, which are the same everywhere: what this machine takes for a handshake in memory
    /// is measured apart, and told with them and in their sum.
    #[default]
    Beside,
    /// In the clock: each step of a handshake takes what `lastbyte calibrate` measured on this machine.
    Calibrated,
    /// In the clock, of programs that people run, as on a laptop ([`CpuTime::profile`]): the same on every machine.
    Laptop,
    /// The same, with a browser on a phone.
    Phone,
}

named!(CpuTime, "CPU time", {
    None => "none",
    Beside => "beside",
    Calibrated => "calibrated",
    Laptop => "laptop",
    Phone => "phone",
});

impl CpuTime {
    /// Where it is in the virtual clock, whatever is told beside that.
    #[must_use]
    pub fn in_clock(self) -> CpuTime {
        match self {
            CpuTime::None | CpuTime::Beside => CpuTime::None,
            CpuTime::Calibrated | CpuTime::Laptop | CpuTime::Phone => self,
        }
    }

    /// The same where this server answers: Lastbyte's own ends have no profile.
    #[must_use]
    pub fn in_clock_of(self, server: Server) -> CpuTime {
        match self.in_clock() {
            CpuTime::Laptop | CpuTime::Phone if !server.is_foreign() => CpuTime::None,
            cpu => cpu,
        }
    }
}
