//! What carries an exchange, and what that makes of it.

use lastbyte_link::named;

use crate::{Cut, Records, Transfer, Unit, Writes};

/// What carries a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TLS records in a stream of TCP.
    Tcp(Tcp),
    /// Messages in CRYPTO frames, and streams, in QUIC's packets (RFC 9000, RFC 9001).
    Quic(Quic),
}

/// What was seen of TCP besides what it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Segments that the client's first flight takes; none if its MSS is not known.
    pub client_hello_segments: Option<u32>,
}

/// What was seen of QUIC besides what it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quic {
    /// Datagrams that the client's first flight takes; none if that was not seen.
    pub client_hello_datagrams: Option<u32>,
    /// How the server knew the client's address before the handshake, if it did.
    pub address_validation: Option<AddressValidation>,
    /// The token that the client showed, in bytes.
    pub token_bytes: Option<u32>,
}

/// How a server knows that a client's address is true before its handshake shows that (RFC 9000, 8.1), so that it may send more
/// than three times what it has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressValidation {
    /// It sends a Retry packet, whose token comes back (8.1.2).
    Retry,
    /// The client has a token of a NEW_TOKEN frame of a connection before (8.1.3).
    Token,
}

named!(AddressValidation, "address validation", { Retry => "retry", Token => "token" });

impl Default for Transport {
    fn default() -> Transport {
        Transport::Tcp(Tcp::default())
    }
}

/// Something as it is on the wire, in bytes of what packets carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Framed {
    /// All of it.
    pub bytes: usize,
    /// What has to be there before anything of it can be read: its first record.
    pub first: usize,
    /// The writes that it leaves in; none where they are not known.
    pub writes: Vec<usize>,
}

impl Transport {
    /// TCP, if it is that.
    pub fn tcp(self) -> Option<Tcp> {
        match self {
            Transport::Tcp(tcp) => Some(tcp),
            Transport::Quic(_) => None,
        }
    }

    /// QUIC, if it is that.
    pub fn quic(self) -> Option<Quic> {
        match self {
            Transport::Quic(quic) => Some(quic),
            Transport::Tcp(_) => None,
        }
    }

    /// What a transfer is on the wire.
    #[must_use]
    pub fn framed(self, transfer: &Transfer) -> Framed {
        match self {
            Transport::Tcp(_) => in_records(transfer),
            Transport::Quic(_) => in_frames(transfer),
        }
    }
}

/// Payload as it is: frames and packets are for the walk to make, and no write ends a packet.
fn in_frames(transfer: &Transfer) -> Framed {
    let around = match transfer.cut {
        Cut::Records(_) => 0,
        Cut::Around(around) => around,
    };
    let bytes = transfer.payload + around;
    Framed {
        bytes,
        first: bytes.min(1),
        writes: Vec::new(),
    }
}

fn in_records(transfer: &Transfer) -> Framed {
    let Transfer {
        payload,
        cut,
        writes,
    } = transfer;
    match (cut, writes) {
        (Cut::Records(records), Some(writes)) if writes.unit() == Unit::Payload => {
            written(*payload, *records, writes)
        }
        (cut, writes) => {
            let (bytes, first) = match cut {
                Cut::Records(records) => {
                    let bytes = records.wire_bytes(*payload);
                    (bytes, records.first_wire_bytes(*payload))
                }
                Cut::Around(around) => (payload + around, payload + around),
            };
            let writes = (writes.as_ref()).map_or_else(Vec::new, |writes| writes.of(bytes));
            // No record ends behind the write that it begins in.
            let first = writes.first().map_or(first, |write| first.min(*write));
            Framed {
                bytes,
                first,
                writes,
            }
        }
    }
}

/// Writes that begin a record each, all of them as large as later ones.
fn written(payload: usize, records: Records, writes: &Writes) -> Framed {
    let records = Records {
        first: records.later,
        ..records
    };
    let parts = writes.of(payload);
    let first = parts.first().copied().unwrap_or_default();
    let writes: Vec<usize> = parts.iter().map(|part| records.wire_bytes(*part)).collect();
    Framed {
        bytes: writes.iter().sum(),
        first: records.first_wire_bytes(first),
        writes,
    }
}
