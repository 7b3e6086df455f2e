//! The frames of an opened packet (RFC 9000, 19).

use std::ops::RangeInclusive;

use super::varint;
use crate::observer::cursor::Cursor;

/// A frame of a packet, without the data that it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// PADDING: so many bytes in a row.
    Padding(usize),
    /// PING.
    Ping,
    /// ACK.
    Ack {
        /// The packets that have come, the latest first.
        ranges: Vec<RangeInclusive<u64>>,
        /// The delay as it is written: in units of the sender's own, 8 µs unless it has said otherwise.
        delay: u64,
    },
    /// RESET_STREAM.
    ResetStream {
        /// Which stream.
        id: u64,
        /// The application's error.
        code: u64,
        /// How long the stream is, in bytes.
        size: u64,
    },
    /// STOP_SENDING.
    StopSending {
        /// Which stream.
        id: u64,
        /// The application's error.
        code: u64,
    },
    /// CRYPTO: some of the handshake's messages, of one level.
    Crypto {
        /// Where they begin among all of that level.
        offset: u64,
        /// In bytes.
        length: u64,
    },
    /// NEW_TOKEN, of a token of so many bytes.
    NewToken(u64),
    /// STREAM.
    Stream {
        /// Of which stream.
        id: u64,
        /// Where its data begins in that.
        offset: u64,
        /// In bytes.
        length: u64,
        /// Whether the stream ends with it.
        is_last: bool,
    },
    /// MAX_DATA: so many bytes of all streams.
    MaxData(u64),
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// Of which stream.
        id: u64,
        /// In bytes.
        most: u64,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// Whether of those that both ends send on.
        is_bidirectional: bool,
        /// How many in all.
        most: u64,
    },
    /// DATA_BLOCKED at so many bytes.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// Which stream.
        id: u64,
        /// At how many bytes.
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// Whether of those that both ends send on.
        is_bidirectional: bool,
        /// At how many.
        limit: u64,
    },
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// Its number.
        sequence: u64,
        /// Those before this number are used no more.
        retire_prior_to: u64,
        /// The connection ID.
        id: Vec<u8>,
    },
    /// RETIRE_CONNECTION_ID of this number.
    RetireConnectionId(u64),
    /// PATH_CHALLENGE.
    PathChallenge,
    /// PATH_RESPONSE.
    PathResponse,
    /// CONNECTION_CLOSE.
    ConnectionClose {
        /// Who says so.
        by: Layer,
        /// The error.
        code: u64,
    },
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// A frame of an extension, by its type. What it has inside is skipped if it is ACK_FREQUENCY or IMMEDIATE_ACK
    /// (draft-ietf-quic-ack-frequency) or DATAGRAM (RFC 9221); behind others nothing can be read.
    Other(u64),
}

/// What closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// QUIC itself.
    Transport,
    /// What is carried in it.
    Application,
}

impl Frame {
    /// Whether its packet is to be acknowledged, and counts as in flight (RFC 9002, 2).
    #[must_use]
    pub fn is_ack_eliciting(&self) -> bool {
        !matches!(
            self,
            Frame::Padding(_) | Frame::Ack { .. } | Frame::ConnectionClose { .. }
        )
    }
}

/// The frames of a payload, up to the first that can't be read. CRYPTO frames come with their data.
pub(super) fn frames(payload: &[u8]) -> impl Iterator<Item = (Frame, &[u8])> {
    let mut cursor = Cursor(payload);
    std::iter::from_fn(move || frame(&mut cursor))
}

fn frame<'a>(cursor: &mut Cursor<'a>) -> Option<(Frame, &'a [u8])> {
    let kind = varint(cursor)?;
    let mut data: &[u8] = &[];
    let frame = match kind {
        0x00 => {
            let more = cursor.0.iter().take_while(|byte| **byte == 0).count();
            cursor.bytes(more)?;
            Frame::Padding(1 + more)
        }
        0x01 => Frame::Ping,
        0x02 | 0x03 => ack(cursor, kind == 0x03)?,
        0x04 => Frame::ResetStream {
            id: varint(cursor)?,
            code: varint(cursor)?,
            size: varint(cursor)?,
        },
        0x05 => Frame::StopSending {
            id: varint(cursor)?,
            code: varint(cursor)?,
        },
        0x06 => {
            let offset = varint(cursor)?;
            data = vector(cursor)?;
            let length = data.len() as u64;
            Frame::Crypto { offset, length }
        }
        0x07 => Frame::NewToken(vector(cursor)?.len() as u64),
        0x08..=0x0f => {
            let id = varint(cursor)?;
            let offset = if kind & 0x04 != 0 { varint(cursor)? } else { 0 };
            let data = if kind & 0x02 != 0 {
                vector(cursor)?
            } else {
                cursor.bytes(cursor.0.len())?
            };
            Frame::Stream {
                id,
                offset,
                length: data.len() as u64,
                is_last: kind & 0x01 != 0,
            }
        }
        0x10 => Frame::MaxData(varint(cursor)?),
        0x11 => Frame::MaxStreamData {
            id: varint(cursor)?,
            most: varint(cursor)?,
        },
        0x12 | 0x13 => Frame::MaxStreams {
            is_bidirectional: kind == 0x12,
            most: varint(cursor)?,
        },
        0x14 => Frame::DataBlocked(varint(cursor)?),
        0x15 => Frame::StreamDataBlocked {
            id: varint(cursor)?,
            limit: varint(cursor)?,
        },
        0x16 | 0x17 => Frame::StreamsBlocked {
            is_bidirectional: kind == 0x16,
            limit: varint(cursor)?,
        },
        0x18 => {
            const RESET_TOKEN: usize = 16;
            let sequence = varint(cursor)?;
            let retire_prior_to = varint(cursor)?;
            let id = cursor.vector(1)?.0.to_vec();
            cursor.bytes(RESET_TOKEN)?;
            Frame::NewConnectionId {
                sequence,
                retire_prior_to,
                id,
            }
        }
        0x19 => Frame::RetireConnectionId(varint(cursor)?),
        0x1a | 0x1b => {
            cursor.bytes(8)?;
            match kind {
                0x1a => Frame::PathChallenge,
                _ => Frame::PathResponse,
            }
        }
        0x1c | 0x1d => {
            let code = varint(cursor)?;
            let by = match kind {
                0x1c => {
                    let _frame = varint(cursor)?;
                    Layer::Transport
                }
                _ => Layer::Application,
            };
            let _reason = vector(cursor)?;
            Frame::ConnectionClose { by, code }
        }
        0x1e => Frame::HandshakeDone,
        // IMMEDIATE_ACK
        0x1f => Frame::Other(kind),
        0x30 => {
            cursor.bytes(cursor.0.len())?;
            Frame::Other(kind)
        }
        0x31 => {
            vector(cursor)?;
            Frame::Other(kind)
        }
        // ACK_FREQUENCY
        0xaf => {
            for _ in 0..4 {
                varint(cursor)?;
            }
            Frame::Other(kind)
        }
        _ => {
            cursor.bytes(cursor.0.len())?;
            Frame::Other(kind)
        }
    };
    Some((frame, data))
}

fn ack(cursor: &mut Cursor<'_>, has_counts: bool) -> Option<Frame> {
    let largest = varint(cursor)?;
    let delay = varint(cursor)?;
    let more = varint(cursor)?;
    let mut smallest = largest.checked_sub(varint(cursor)?)?;
    let mut ranges = vec![smallest..=largest];
    for _ in 0..more {
        let largest = smallest.checked_sub(varint(cursor)?)?.checked_sub(2)?;
        smallest = largest.checked_sub(varint(cursor)?)?;
        ranges.push(smallest..=largest);
    }
    if has_counts {
        for _ in 0..3 {
            varint(cursor)?;
        }
    }
    Some(Frame::Ack { ranges, delay })
}

/// Bytes whose length stands before them.
fn vector<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(varint(cursor)?).ok()?;
    cursor.bytes(length)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn read(payload: &str) -> Vec<Frame> {
        let payload = hex::decode(payload.replace(' ', "")).unwrap();
        frames(&payload).map(|(frame, _)| frame).collect()
    }

    #[test]
    fn frames_follow_each_other() {
        let read = read(
            "000000 01 02 0a 05 01 02 01 03 06 05 02 abcd 0b 04 01 ff 0a 08 01 ee 12 40ff 40af 01 02 03 04 1e 1c 0a 00 00",
        );
        assert_eq!(
            read,
            [
                Frame::Padding(3),
                Frame::Ping,
                Frame::Ack {
                    ranges: vec![8..=10, 2..=5],
                    delay: 5,
                },
                Frame::Crypto {
                    offset: 5,
                    length: 2,
                },
                Frame::Stream {
                    id: 4,
                    offset: 0,
                    length: 1,
                    is_last: true,
                },
                Frame::Stream {
                    id: 8,
                    offset: 0,
                    length: 1,
                    is_last: false,
                },
                Frame::MaxStreams {
                    is_bidirectional: true,
                    most: 255,
                },
                Frame::Other(0xaf),
                Frame::HandshakeDone,
                Frame::ConnectionClose {
                    by: Layer::Transport,
                    code: 10,
                },
            ]
        );
    }

    #[test]
    fn what_acknowledges_packets_below_the_first_is_no_frame() {
        assert_eq!(read("01 02 02 00 01 01 00 01"), [Frame::Ping]);
        assert_eq!(read("02 02 00 00 03"), []);
        // As many ranges as a number can say, and none there.
        assert_eq!(read("02 02 00 ffffffffffffffff 00"), []);
    }

    proptest! {
        #[test]
        fn any_payload_is_read_without_harm(payload in prop::collection::vec(any::<u8>(), 0..300)) {
            let read: Vec<_> = frames(&payload).collect();
            prop_assert!(read.len() <= payload.len());
        }
    }
}
