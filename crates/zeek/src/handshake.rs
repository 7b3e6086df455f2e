//! What distinguishes handshakes.

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
