//! What distinguishes handshakes, and what carries them.

/// How a handshake went, if it says anything of resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    Full,
    Resumed,
}

impl Handshake {
    pub(crate) const ALL: [Handshake; 2] = [Handshake::Full, Handshake::Resumed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Handshake::Full => "full",
            Handshake::Resumed => "resumed",
        }
    }
}

/// What carries TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// TCP.
    Tls,
    /// UDP, of which rows are counted by their version and for nothing else: it carries calls and
    /// tunnels.
    Dtls,
    /// QUIC, of which Zeek sees the hellos alone.
    Quic,
}
